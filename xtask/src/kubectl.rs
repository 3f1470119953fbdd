//! The kubectl script of the landing gate: a real kubectl against `sundown up`.
//!
//! It shows that the wire is right; what is collected when is judged by the simulator.

mod lists;
mod tour;

use std::fs::File;
use std::process::{Child, Stdio};

use anyhow::{Context, Result, ensure};

use crate::control_plane::{ControlPlane, await_state};
use crate::process;
use crate::sundown::{self, Profile};

/// Create, watch, patch, and delete with a finalizer in the way.
pub(crate) fn script() -> Result<()> {
    process::require(
        "kubectl",
        "install Debian's kubernetes-client or Kubernetes' own build",
    )?;
    let plane = ControlPlane::start(&sundown::build(Profile::Dev)?)?;
    let watch = Watch::start(&plane)?;
    create(&plane)?;
    watch.await_line("ADDED", "configmap/dependent")?;
    patch(&plane)?;
    watch.await_line("MODIFIED", "configmap/owner")?;
    delete_behind_a_finalizer(&plane)?;
    watch.await_line("DELETED", "configmap/dependent")?;
    watch.await_line("DELETED", "configmap/owner")?;
    tour::make(&plane)
}

fn create(plane: &ControlPlane) -> Result<()> {
    say("create an owner and a dependent");
    let owner = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: owner}\ndata: {step: '1'}\n";
    plane.ask(&["create", "--filename", &plane.manifest("owner", owner)?])?;
    let uid = plane.ask(&[
        "get",
        "configmap/owner",
        "--output=jsonpath={.metadata.uid}",
    ])?;
    let dependent = format!(
        "apiVersion: v1\n\
         kind: ConfigMap\n\
         metadata:\n\
         \x20 name: dependent\n\
         \x20 finalizers: [example.com/hold]\n\
         \x20 ownerReferences:\n\
         \x20 - {{apiVersion: v1, kind: ConfigMap, name: owner, uid: {uid},\n\
         \x20    blockOwnerDeletion: true}}\n"
    );
    plane.ask(&[
        "create",
        "--filename",
        &plane.manifest("dependent", &dependent)?,
    ])?;
    let names = plane.ask(&["get", "configmaps", "--output=name"])?;
    ensure!(
        names == "configmap/dependent\nconfigmap/owner",
        "listed: {names}"
    );
    Ok(())
}

fn patch(plane: &ControlPlane) -> Result<()> {
    say("patch by merge and by JSON patch");
    let patches = [
        ("--type=merge", r#"{"data":{"step":"2"}}"#, "2"),
        (
            "--type=json",
            r#"[{"op":"replace","path":"/data/step","value":"3"}]"#,
            "3",
        ),
    ];
    for (kind, patch, expect) in patches {
        plane.ask(&["patch", "configmap/owner", kind, "--patch", patch])?;
        let step = plane.ask(&["get", "configmap/owner", "--output=jsonpath={.data.step}"])?;
        ensure!(step == expect, "after the patch {patch} step is {step}");
    }
    Ok(())
}

/// Foreground: the owner waits for the dependent, the dependent for its finalizer.
fn delete_behind_a_finalizer(plane: &ControlPlane) -> Result<()> {
    say("delete in the foreground; a finalizer holds the dependent");
    plane.ask(&[
        "delete",
        "configmap/owner",
        "--cascade=foreground",
        "--wait=false",
    ])?;
    let deleted_at = "--output=jsonpath={.metadata.deletionTimestamp}";
    await_state("the dependent is terminating", || {
        Ok(!plane
            .ask(&["get", "configmap/dependent", deleted_at])?
            .is_empty())
    })?;
    let owner = plane.ask(&["get", "configmap/owner", deleted_at])?;
    ensure!(!owner.is_empty(), "the owner waits, so it is terminating");

    say("remove the finalizer: both go");
    let no_finalizers = r#"{"metadata":{"finalizers":null}}"#;
    plane.ask(&[
        "patch",
        "configmap/dependent",
        "--type=merge",
        "--patch",
        no_finalizers,
    ])?;
    await_state("both are gone", || {
        Ok(plane.ask(&["get", "configmaps", "-oname"])?.is_empty())
    })
}

fn say(what: &str) {
    println!("kubectl: {what}");
}

/// `kubectl get --watch` in the background, its lines in a file.
struct Watch {
    child: Child,
    lines: String,
}

impl Watch {
    fn start(plane: &ControlPlane) -> Result<Self> {
        let lines = plane.manifest("watched", "")?;
        let file = File::create(&lines).context("make the file of the watch")?;
        let arguments = [
            "get",
            "configmaps",
            "--watch",
            "--output-watch-events",
            "--output=jsonpath={.type} configmap/{.object.metadata.name}{\"\\n\"}",
        ];
        let child = plane
            .kubectl(&arguments)
            .stdout(file)
            .stderr(Stdio::inherit())
            .spawn()?;
        Ok(Self { child, lines })
    }

    fn await_line(&self, event: &str, object: &str) -> Result<()> {
        let line = format!("{event} {object}");
        await_state(&format!("the watch shows `{line}`"), || {
            let seen = std::fs::read_to_string(&self.lines).context("read the watch")?;
            Ok(seen.lines().any(|seen| seen == line))
        })
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        // Already ended: nothing is left either way.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
