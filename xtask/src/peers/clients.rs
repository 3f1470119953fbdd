//! Programs on the client libraries of Go and Rust, built from `xtask/peers`.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, ensure};

use crate::control_plane::{ControlPlane, await_state};
use crate::{process, workspace};

const CONFIG_MAP: &str = "apiVersion: v1\nkind: ConfigMap\n\
                          metadata: {name: kept, labels: {peer: operator}}\n";

/// A Go operator keeps a Secret for a `ConfigMap`, by protobuf alone, and both go in the end.
pub(super) fn operator(binary: &Path) -> Result<()> {
    let program = build("operator", ".")?;
    let plane = ControlPlane::start(binary)?;
    let log = plane.file("operator.log");
    let mut operator = Operator::start(&plane, &program, &log)?;
    plane.ask(&["create", "-f", &plane.manifest("kept", CONFIG_MAP)?])?;
    let annotation = "jsonpath={.metadata.annotations.peers\\.sundown\\.dev/done}";
    await_state("the operator has done its work", || {
        operator.ensure_runs(&log)?;
        Ok(plane.ask(&["get", "configmap/kept", "-o", annotation])? == "true")
    })?;
    let of = plane.ask(&["get", "secret/kept", "-o", "jsonpath={.data.of}"])?;
    ensure!(of == "a2VwdA==", "the Secret says {of:?}");
    await_state("its event was recorded", || {
        Ok(plane
            .ask(&["events", "--for=configmap/kept"])?
            .contains("made kept"))
    })?;
    // Not kubectl's own wait: it would wait for an operator that ended.
    plane.ask(&["delete", "configmap/kept", "--wait=false"])?;
    await_state("the operator has let its ConfigMap go", || {
        operator.ensure_runs(&log)?;
        let left = plane.ask(&["get", "configmaps", "-oname", "-lpeer=operator"])?;
        Ok(left.is_empty())
    })?;
    await_state("the Secret is collected", || {
        operator.ensure_runs(&log)?;
        Ok(plane.ask(&["get", "secrets", "-oname"])?.is_empty())
    })?;
    let words = fs::read_to_string(&log).context("read what the operator said")?;
    let last = |what: &str| {
        let mut counts = words.lines().filter_map(|line| line.strip_prefix(what));
        let last = counts.next_back();
        last.with_context(|| format!("the operator said nothing of its {what}"))
    };
    println!(
        "peers: a controller-runtime operator did its work by protobuf alone, with {} bodies and {} answers",
        last("protobuf bodies: ")?,
        last("protobuf answers: ")?
    );
    Ok(())
}

/// client-go, which takes and sends nothing but protobuf, has an object of every built-in kind live.
pub(super) fn protobuf(binary: &Path) -> Result<()> {
    let program = build("protobuf", "./protobuf")?;
    let plane = ControlPlane::start(binary)?;
    let said = process::output(Command::new(program).env("KUBECONFIG", plane.kubeconfig()))?;
    println!(
        "peers: client-go by protobuf alone reads what JSON says: {}",
        said.trim_end()
    );
    Ok(())
}

/// Two candidates of `kube-leader-election` lead one after the other.
pub(super) fn election(binary: &Path) -> Result<()> {
    let directory = workspace::root().join("xtask/peers/election");
    let target = workspace::cache()?.join("target-election");
    // Its own lock file and configuration: it is no member of the workspace.
    process::run(
        Command::new("cargo")
            .current_dir(&directory)
            .env_remove("K8S_OPENAPI_ENABLED_VERSION")
            .env("CARGO_TARGET_DIR", &target)
            .args(["build", "--quiet", "--locked"]),
    )?;
    let plane = ControlPlane::start(binary)?;
    let mut election = Command::new(target.join("debug/election"));
    let said = process::output(election.env("KUBECONFIG", plane.kubeconfig()))?;
    println!("peers: kube-leader-election: {}", said.trim_end());
    Ok(())
}

/// Builds a program of the operator's module.
fn build(name: &str, package: &str) -> Result<PathBuf> {
    process::require("go", "install Go 1.26 or later (https://go.dev/dl)")?;
    let path = workspace::cache()?.join("peers").join(name);
    fs::create_dir_all(path.parent().context("it has a directory")?)?;
    println!("peers: building {name}, minutes the first time");
    process::run(
        Command::new("go")
            .current_dir(workspace::root().join("xtask/peers/operator"))
            .env("CGO_ENABLED", "0")
            .args(["build", "-o"])
            .arg(&path)
            .arg(package),
    )?;
    Ok(path)
}

/// The process, ended when dropped.
struct Operator {
    child: Child,
}

impl Operator {
    fn start(plane: &ControlPlane, program: &Path, log: &Path) -> Result<Self> {
        let log = File::create(log).context("make the operator's log")?;
        let child = Command::new(program)
            .env("KUBECONFIG", plane.kubeconfig())
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()
            .context("start the operator")?;
        Ok(Self { child })
    }

    fn ensure_runs(&mut self, log: &Path) -> Result<()> {
        if let Some(status) = self.child.try_wait().context("look at the operator")? {
            let words = fs::read_to_string(log).unwrap_or_default();
            let last = words.lines().next_back().unwrap_or("nothing");
            anyhow::bail!("the operator ended with {status}; it said: {last}");
        }
        Ok(())
    }
}

impl Drop for Operator {
    fn drop(&mut self) {
        // Already ended: nothing is left either way.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
