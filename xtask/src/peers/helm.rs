//! helm and a chart with a List, a definition and an object of it: `helm template | kubectl apply -f -`,
//! then `helm install`, `upgrade` and `uninstall`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::control_plane::{CALL_DURATION_MAX, ControlPlane, await_state};
use crate::{kube, process, workspace};

const MODULE: &str = "helm.sh/helm/v3/cmd/helm";
const VERSION: &str = "v3.22.0";

/// What has to be there when the chart is.
const OBJECTS: [&str; 3] = [
    "configmap/try-words",
    "service/try-door",
    "shelf.peers.sundown.dev/try-shelf",
];

/// Both ways of a chart onto a server.
pub(super) fn run(binary: &Path) -> Result<()> {
    let program = build()?;
    let plane = ControlPlane::start(binary)?;
    let helm = Helm {
        program: &program,
        plane: &plane,
    };
    helm.template()?;
    helm.install()
}

fn build() -> Result<PathBuf> {
    process::require("go", "install Go 1.26 or later (https://go.dev/dl)")?;
    let directory = workspace::cache()?
        .join("peers")
        .join(format!("helm-{VERSION}"));
    let program = directory.join("helm");
    if program.is_file() {
        return Ok(program);
    }
    fs::create_dir_all(&directory).context("make the directory of helm")?;
    println!("peers: building helm {VERSION}, this may take minutes");
    process::run(
        Command::new("go")
            .env("CGO_ENABLED", "0")
            .env("GOBIN", &directory)
            .args(["install", &format!("{MODULE}@{VERSION}")]),
    )?;
    Ok(program)
}

struct Helm<'a> {
    program: &'a Path,
    plane: &'a ControlPlane,
}

impl Helm<'_> {
    /// kubectl looks for all kinds before it makes the first object, so that the object of a definition
    /// in the same stream is made by the second run; upstream's server gets the same.
    fn template(&self) -> Result<()> {
        let chart = chart();
        let rendered = self.ask(&["template", "try", &chart, "--include-crds"])?;
        let first = self.apply(&rendered)?;
        ensure!(
            !first.succeeded && first.said.contains("ensure CRDs are installed first"),
            "the first run should ask for a second; it said:\n{}",
            first.said
        );
        for name in ["shelves.peers.sundown.dev", "try-words", "try-door"] {
            let line = format!("/{name} created");
            ensure!(
                first.said.contains(&line),
                "no `{line}` in:\n{}",
                first.said
            );
        }
        let wanted = [
            "wait",
            "--for=condition=Established",
            "crd/shelves.peers.sundown.dev",
        ];
        self.plane.ask(&wanted)?;
        for expected in ["created", "unchanged"] {
            let next = self.apply(&rendered)?;
            let line = format!("shelf.peers.sundown.dev/try-shelf {expected}");
            ensure!(
                next.succeeded && next.said.contains(&line),
                "no `{line}` in:\n{}",
                next.said
            );
        }
        self.ensure_there()?;
        let definition = "crd/shelves.peers.sundown.dev";
        for deleted in [&OBJECTS[..], &[definition]] {
            let delete = ["delete", "--timeout=3m"];
            self.plane.ask(&[&delete, deleted].concat())?;
        }
        println!("peers: helm template | kubectl apply: a List, a definition and its object");
        Ok(())
    }

    fn install(&self) -> Result<()> {
        let chart = chart();
        self.ask(&["install", "try", &chart, "--wait", "--timeout=2m"])?;
        self.ensure_there()?;
        self.ask(&["upgrade", "try", &chart, "--set", "count=5"])?;
        let count = ["get", OBJECTS[2], "-o", "jsonpath={.spec.count}"];
        let count = self.plane.ask(&count)?;
        ensure!(count == "5", "after the upgrade the count is {count}");
        self.ask(&["uninstall", "try"])?;
        await_state("the release is gone", || {
            let left = self.plane.ask(&["get", "cm,svc,secret", "-oname"])?;
            Ok(!left.contains("try"))
        })?;
        println!("peers: helm installed, upgraded and removed a chart");
        Ok(())
    }

    fn ensure_there(&self) -> Result<()> {
        for object in OBJECTS {
            self.plane.ask(&["get", object])?;
        }
        Ok(())
    }

    /// With the kubectl that asks for `OpenAPI` v2 in most places.
    fn apply(&self, manifest: &str) -> Result<process::Done> {
        let mut kubectl = Command::new(kube::program("kubectl")?);
        kubectl
            .env("KUBECONFIG", self.plane.kubeconfig())
            .arg("--cache-dir")
            .arg(self.plane.file("kubectl-cache"))
            .args(["apply", "-f", "-"]);
        process::output_of_within(&mut kubectl, manifest.as_bytes(), CALL_DURATION_MAX)
    }

    /// helm keeps its files where nothing of the user's is.
    fn ask(&self, arguments: &[&str]) -> Result<String> {
        let mut helm = Command::new(self.program);
        for (name, directory) in [
            ("HELM_CACHE_HOME", "helm-cache"),
            ("HELM_CONFIG_HOME", "helm-config"),
            ("HELM_DATA_HOME", "helm-data"),
            // What it discovered; by itself below the home directory.
            ("KUBECACHEDIR", "helm-discovery"),
        ] {
            helm.env(name, self.plane.file(directory));
        }
        helm.env("KUBECONFIG", self.plane.kubeconfig());
        process::output_within(helm.args(arguments), CALL_DURATION_MAX)
    }
}

/// Where the chart is that is installed.
fn chart() -> String {
    let chart = workspace::root().join("xtask/peers/chart");
    chart.display().to_string()
}
