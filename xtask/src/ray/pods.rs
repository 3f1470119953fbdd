//! Pods that behave badly: each ends in the state that upstream would show, with a message that names the
//! cause, and nothing of it stays.

use std::path::Path;

use anyhow::Result;

use super::home::Home;

/// A pod, and what its state says in the end.
struct Case {
    name: &'static str,
    /// In shell; empty: the image's own.
    command: &'static str,
    image: &'static str,
    /// Further lines of the container, and of the pod.
    container: &'static str,
    pod: &'static str,
    /// What kubectl finds where, in the end.
    path: &'static str,
    says: &'static str,
}

const PHASE: &str = "{.status.phase}";
const WAITING: &str = "{.status.containerStatuses[0].state.waiting.reason}: {.status.containerStatuses[0].state.waiting.message}";
const TERMINATED: &str = "{.status.containerStatuses[0].state.terminated.reason} {.status.containerStatuses[0].state.terminated.exitCode}";

const CASES: &[Case] = &[
    Case {
        name: "crashes-at-once",
        command: "exit 7",
        image: "busybox",
        container: "",
        pod: "restartPolicy: Never",
        path: TERMINATED,
        says: "Error 7",
    },
    Case {
        name: "crashes-again-and-again",
        command: "exit 1",
        image: "busybox",
        container: "",
        pod: "restartPolicy: Always",
        path: WAITING,
        says: "CrashLoopBackOff: back-off",
    },
    Case {
        name: "names-an-unknown-image",
        command: "true",
        image: "example.com/never-heard-of:1",
        container: "",
        pod: "restartPolicy: Never",
        path: WAITING,
        says: "never-heard-of",
    },
    Case {
        name: "wants-a-missing-config-map",
        command: "true",
        image: "busybox",
        container: "envFrom: [{configMapRef: {name: not-there}}]",
        pod: "restartPolicy: Never",
        path: WAITING,
        says: "CreateContainerConfigError: configmap \"not-there\" not found",
    },
    Case {
        name: "runs-what-is-not-there",
        command: "",
        image: "busybox",
        container: "command: [/no/such/program]",
        pod: "restartPolicy: Never",
        path: TERMINATED,
        says: "StartError 128",
    },
    Case {
        name: "logs-a-gigabyte",
        command: "yes 0123456789abcdef0123456789abcdef | head -c 1000000000",
        image: "busybox",
        container: "",
        pod: "restartPolicy: Never",
        path: PHASE,
        says: "Succeeded",
    },
];

/// Runs all of them on one control plane.
pub(super) fn all(binary: &Path) -> Result<()> {
    let mut home = Home::new(binary)?;
    home.while_up(judge)?;
    home.finish()
}

fn judge(home: &mut Home) -> Result<()> {
    for case in CASES {
        home.create(case.name, &manifest(case))?;
    }
    for case in CASES {
        home.until_told(&format!("pod/{}", case.name), case.path, case.says)?;
    }
    ignores_sigterm(home)?;
    home.kubectl(&["delete", "pods", "--all", "--timeout=60s"])?;
    Ok(())
}

/// Deaf to SIGTERM, and with a child that left its parents: both go at the end of the grace.
fn ignores_sigterm(home: &mut Home) -> Result<()> {
    let text = "apiVersion: v1\nkind: Pod\nmetadata: {name: deaf}\nspec:\n  terminationGracePeriodSeconds: 2\n  \
                containers:\n  - name: main\n    image: busybox\n    command: [sh, -c, \"trap '' TERM; \
                (setsid sleep 4711 &) ; while :; do sleep 1; done\"]\n";
    home.create("deaf", text)?;
    home.until_told("pod/deaf", PHASE, "Running")?;
    home.kubectl(&["delete", "pod", "deaf", "--timeout=60s"])?;
    println!("deaf: gone at the end of its grace");
    Ok(())
}

fn manifest(case: &Case) -> String {
    let Case {
        name, image, pod, ..
    } = case;
    let mut lines = vec![
        "apiVersion: v1".to_owned(),
        "kind: Pod".to_owned(),
        format!("metadata: {{name: {name}}}"),
        "spec:".to_owned(),
        format!("  {pod}"),
        "  containers:".to_owned(),
        "  - name: main".to_owned(),
        format!("    image: {image}"),
    ];
    if !case.command.is_empty() {
        lines.push(format!("    command: [sh, -c, {:?}]", case.command));
    }
    if !case.container.is_empty() {
        lines.push(format!("    {}", case.container));
    }
    lines.join("\n") + "\n"
}
