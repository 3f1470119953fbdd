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

/// The job itself, or a pod of it, was waited for without end, and what stands beside it was never deleted.
#[test]
fn a_job_that_is_held_keeps_nothing_beside_it() -> Result<()> {
    let Some(home) = Home::new()? else {
        return Ok(());
    };
    let of_job = "kind: Job\nmetadata: {name: fails, finalizers: [example.com/hold]}";
    let of_pod = format!("template:\n    metadata: {{{HOLD}}}\n    spec:");
    for (from, to, removed, kept) in [
        (
            "kind: Job\nmetadata: {name: fails}",
            of_job,
            "removed: 1 pod, configmap/fails (2 objects)\n",
            "kept: job/fails; to remove: kubectl ",
        ),
        (
            "template:\n    spec:",
            &of_pod,
            "removed: configmap/fails (1 object)\n",
            "kept: job/fails, pod/fails-",
        ),
    ] {
        let file = home.job("fails", "exit 3")?;
        let text = fs::read_to_string(&file)?;
        assert!(text.contains(from), "{text}");
        fs::write(&file, text.replace(from, to))?;
        let output = home.run(&["--rm", &file])?;
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(3), "{said}");
        assert!(said.contains("not deleted: "), "{said}");
        assert!(said.contains(removed), "{said}");
        assert!(said.contains(kept), "{said}");
        // The next one begins with nothing.
        assert!(home.call(&["reset", "--yes"])?.status.success());
    }
    Ok(())
}

/// The object that was held was given up, and what cannot go before it was waited for without end.
#[test]
fn what_only_waits_for_an_object_that_is_held_is_given_up_too() -> Result<()> {
    let Some(home) = Home::new()? else {
        return Ok(());
    };
    let file = home.path().join("held.yaml");
    let text = format!(
        "apiVersion: v1\nkind: Namespace\nmetadata: {{name: team}}\n---\n\
         apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: held, namespace: team, {HOLD}}}\n---\n\
         apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: free, namespace: team}}\n---\n\
         apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\n\
         metadata: {{name: things.example.com}}\n\
         spec:\n  group: example.com\n  scope: Namespaced\n  \
         names: {{kind: Thing, plural: things, singular: thing, listKind: ThingList}}\n  \
         versions: [{{name: v1, served: true, storage: true, schema: {{openAPIV3Schema: {{type: object}}}}}}]\n---\n\
         apiVersion: example.com/v1\nkind: Thing\nmetadata: {{name: held, {HOLD}}}\n"
    );
    fs::write(&file, text)?;
    let output = home.run(&["--rm", &file.display().to_string()])?;
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    let removed = "removed: configmap/free (1 object)\n";
    assert!(said.contains(removed), "{said}");
    for kept in [
        "namespace/team",
        "configmap/held",
        "customresourcedefinition/things.example.com",
        "/held",
    ] {
        assert!(
            said.contains(&format!("not deleted: {kept}")) || kept == "/held",
            "{kept}: {said}"
        );
        assert!(
            said.lines()
                .any(|it| it.starts_with("kept: ") && it.contains(kept)),
            "{kept}: {said}"
        );
    }
    Ok(())
}
