//! Pods that behave badly: each ends in the state that upstream would show, with a message that names the
//! cause, and nothing of it stays.

use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use super::home::Home;

/// Bounds a hang; nothing is measured by it.
const WAIT_MAX: Duration = Duration::from_mins(2);
const LOOK_INTERVAL: Duration = Duration::from_millis(300);

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
    let log = fs::File::create(home.files().join("up.log")).context("make a log")?;
    let mut plane = home.command(&["up"]);
    let mut plane = plane.stdout(Stdio::null()).stderr(log).spawn()?;
    let judged = judge(&mut home);
    // Whatever was found, the control plane ends before its directory goes.
    let downed = home.command(&["down"]).output();
    plane.wait().context("await sundown up")?;
    judged?;
    ensure!(
        downed.context("run sundown down")?.status.success(),
        "sundown down failed"
    );
    home.finish()
}

fn judge(home: &mut Home) -> Result<()> {
    until("the control plane is up", || {
        Ok(home.data().join("kubeconfig").exists() && home.status()?["up"] == true)
    })?;
    for case in CASES {
        create(home, case.name, &manifest(case))?;
    }
    for case in CASES {
        let path = format!("jsonpath={}", case.path);
        let mut found = String::new();
        let reached = until(case.name, || {
            found = home.kubectl(&["get", "pod", case.name, "-o", &path])?;
            Ok(found.contains(case.says))
        });
        reached.with_context(|| format!("last seen: {found:?}"))?;
        home.look();
        println!("{}: {found}", case.name);
    }
    ignores_sigterm(home)?;
    home.kubectl(&["delete", "pods", "--all", "--timeout=60s"])?;
    Ok(())
}

/// Deaf to SIGTERM, and with a child that left its parents: both go at the end of the grace.
fn ignores_sigterm(home: &Home) -> Result<()> {
    let text = "apiVersion: v1\nkind: Pod\nmetadata: {name: deaf}\nspec:\n  terminationGracePeriodSeconds: 2\n  \
                containers:\n  - name: main\n    image: busybox\n    command: [sh, -c, \"trap '' TERM; \
                (setsid sleep 4711 &) ; while :; do sleep 1; done\"]\n";
    create(home, "deaf", text)?;
    until("deaf runs", || {
        Ok(home.kubectl(&["get", "pod", "deaf", "-o", "jsonpath={.status.phase}"])? == "Running")
    })?;
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

fn create(home: &Home, name: &str, text: &str) -> Result<()> {
    let path = home.files().join(format!("{name}.yaml"));
    fs::write(&path, text).with_context(|| format!("write {}", path.display()))?;
    home.kubectl(&["create", "-f", &path.display().to_string()])?;
    Ok(())
}

fn until(what: &str, mut is_reached: impl FnMut() -> Result<bool>) -> Result<()> {
    let started_at = Instant::now();
    while !is_reached()? {
        ensure!(started_at.elapsed() < WAIT_MAX, "not reached: {what}");
        sleep(LOOK_INTERVAL);
    }
    Ok(())
}
