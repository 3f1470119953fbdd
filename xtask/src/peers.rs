//! `cargo xtask accept peers`: controllers of others do their work on our server.
//!
//! The garbage collector of the upstream kube-controller-manager with ours left out, client-go and an
//! operator on controller-runtime by protobuf alone, and a leader election on kube-rs; helm with a chart,
//! and Go's reading of our `OpenAPI`. Before that, our definitions of their kinds are held against their own.

mod clients;
mod definitions;
mod helm;
mod openapi;

use std::fmt::Write as _;
use std::fs::File;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result};

use crate::control_plane::{ControlPlane, await_state};
use crate::kube;
use crate::sundown::{self, Profile};

/// Runs one after the other against a `sundown up` of its own.
pub(crate) fn run() -> Result<()> {
    definitions::run()?;
    let binary = sundown::build(Profile::Release)?;
    collector(&binary)?;
    openapi::run(&binary)?;
    helm::run(&binary)?;
    clients::protobuf(&binary)?;
    clients::operator(&binary)?;
    clients::election(&binary)
}

/// Has the upstream collector collect two trees.
fn collector(binary: &Path) -> Result<()> {
    let manager = kube::program("kube-controller-manager")?;
    let plane = ControlPlane::start_with(binary, &["--controllers=-owner_gc"])?;
    let _collector = Collector::start(&plane, Command::new(manager))?;
    for cascade in ["background", "foreground"] {
        grow(&plane)?;
        let how = format!("--cascade={cascade}");
        plane.ask(&["delete", "configmap/root", &how, "--wait=false"])?;
        await_state(&format!("the tree is collected in {cascade}"), || {
            Ok(plane
                .ask(&["get", "configmaps", "-oname", "-lpeer=tree"])?
                .is_empty())
        })?;
        println!("peers: kube-controller-manager collected a tree in {cascade}");
    }
    Ok(())
}

/// A root, a middle and two leaves, each blocking its owner.
fn grow(plane: &ControlPlane) -> Result<()> {
    for (name, owner) in [
        ("root", ""),
        ("middle", "root"),
        ("leaf-a", "middle"),
        ("leaf-b", "middle"),
    ] {
        let mut manifest = format!(
            "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {name}\n  labels: {{peer: tree}}\n"
        );
        if !owner.is_empty() {
            let target = format!("configmap/{owner}");
            let uid = plane.ask(&["get", &target, "--output=jsonpath={.metadata.uid}"])?;
            let _ = writeln!(
                manifest,
                "  ownerReferences: [{{apiVersion: v1, kind: ConfigMap, name: {owner}, uid: {uid}, \
                 blockOwnerDeletion: true}}]"
            );
        }
        plane.ask(&["create", "--filename", &plane.manifest(name, &manifest)?])?;
    }
    Ok(())
}

/// The upstream process, ended when dropped.
struct Collector {
    child: Child,
}

impl Collector {
    fn start(plane: &ControlPlane, mut manager: Command) -> Result<Self> {
        let log = File::create(plane.file("kube-controller-manager.log"))?;
        let kubeconfig = plane.kubeconfig().display().to_string();
        for flag in [
            "kubeconfig",
            "authentication-kubeconfig",
            "authorization-kubeconfig",
        ] {
            manager.arg(format!("--{flag}={kubeconfig}"));
        }
        let child = manager
            .args([
                "--controllers=garbage-collector-controller",
                "--leader-elect=false",
            ])
            .args(["--bind-address=127.0.0.1", "--secure-port=0"])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .context("start kube-controller-manager")?;
        Ok(Self { child })
    }
}

impl Drop for Collector {
    fn drop(&mut self) {
        // Already ended: nothing is left either way.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
