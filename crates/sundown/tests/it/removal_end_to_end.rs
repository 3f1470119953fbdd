//! What `sundown run --rm` does about objects that do not go, and about a control plane that does not stay, by the
//! shipped binary.

use std::fs;

use anyhow::Result;
use serde_json::Value;

use crate::home::{Begun, Home, kill};
use crate::process::stderr;

const HOLD: &str = "finalizers: [example.com/hold]";

/// Held by a finalizer that nothing of Sundown removes.
fn held(home: &Home) -> Result<String> {
    let file = home.path().join("held.yaml");
    let text = format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: held, {HOLD}}}\n");
    fs::write(&file, text)?;
    Ok(file.display().to_string())
}

fn is_note(event: &Value, word: &str) -> bool {
    event["text"].as_str().is_some_and(|it| it.contains(word))
}

fn until_waiting(run: &mut Begun) -> Result<()> {
    let waits = "waiting for finalizer example.com/hold of configmap/held to be removed";
    run.until("what is waited for", |it| is_note(it, waits))?;
    Ok(())
}

/// It asked for ever at an address where nothing listened.
#[test]
fn a_removal_without_a_job_goes_on_when_its_control_plane_is_killed() -> Result<()> {
    let Some(home) = Home::new()? else {
        return Ok(());
    };
    let mut run = home.begin(&["--rm", &held(&home)?])?;
    until_waiting(&mut run)?;
    kill("-9", &home.status()?["pid"].to_string())?;
    run.until("a new control plane", |it| {
        it["event"] == "controlPlane" && it["state"] == "back"
    })?;
    run.signal("-TERM")?;
    run.until("a warning", |it| is_note(it, "already deleting"))?;
    run.signal("-TERM")?;
    let left = run.until("what is left", |it| is_note(it, "not deleted: "))?;
    assert_eq!(left["text"], "not deleted: configmap/held");
    assert_eq!(run.code()?, Some(130));
    Ok(())
}

/// As above; and the control plane was not to be started again.
#[test]
fn a_removal_without_a_job_ends_when_its_control_plane_is_stopped() -> Result<()> {
    let Some(home) = Home::new()? else {
        return Ok(());
    };
    let said = home.path().join("said");
    let mut run = home.begin_saying(&["--rm", &held(&home)?], fs::File::create(&said)?.into())?;
    until_waiting(&mut run)?;
    let output = home.call(&["down"])?;
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!(run.code()?, Some(1));
    let said = fs::read_to_string(&said)?;
    assert!(said.contains("the control plane was stopped"), "{said}");
    assert!(said.contains("configmap/held"), "{said}");
    assert_eq!(home.status()?["up"], false);
    Ok(())
}
