//! What `sundown down` says of what stays, and how `--delete` ends, by the shipped binary.

use std::fs;

use anyhow::Result;

use crate::home::Home;
use crate::process::{stderr, stdout};

/// Its head does not start, which makes it no less a cluster that comes back.
const CLUSTER: &str = "apiVersion: ray.io/v1\nkind: RayCluster\nmetadata: {name: demo}\nspec:\n  \
    headGroupSpec: {rayStartParams: {}, template: {spec: {terminationGracePeriodSeconds: 1,\n    \
    containers: [{name: h, image: busybox}]}}}\n";

/// Clusters came back without a word. `--delete` waited up to five minutes for each object in silence, and left
/// everything up if one of them did not go.
#[test]
fn down_names_what_comes_back_and_goes_down_though_something_cannot_be_deleted() -> Result<()> {
    let Some(home) = Home::new()? else {
        return Ok(());
    };
    let file = home.job("endless", "sleep 1000")?;
    let text = fs::read_to_string(&file)?;
    let text = text.replace("backoffLimit: 0", "backoffLimit: 6").replace(
        "kind: Job\nmetadata: {name: endless}",
        "kind: Job\nmetadata: {name: endless, finalizers: [example.com/hold]}",
    );
    assert!(text.contains("example.com/hold"), "{text}");
    fs::write(&file, format!("{CLUSTER}---\n{text}"))?;
    let mut run = home.begin(&[&file])?;
    run.until_running()?;
    run.signal("-KILL")?;
    assert_eq!(run.code()?, None);

    let said = stdout(&home.call(&["down"])?);
    assert!(
        said.contains("  job/endless -n default  Running\n"),
        "{said}"
    );
    assert!(said.contains("  raycluster/demo -n default\n"), "{said}");

    // Starts a control plane, with which both go on.
    let brief = home.job("brief", "true")?;
    let output = home.run(&[&brief])?;
    assert!(output.status.success(), "{}", stderr(&output));

    let output = home.call(&["down", "--delete"])?;
    let said = stdout(&output);
    assert_eq!(output.status.code(), Some(1), "{said}{}", stderr(&output));
    assert!(said.contains("raycluster/demo deleted\n"), "{said}");
    let waits = "waiting for job/endless: finalizer example.com/hold is not removed\n";
    assert_eq!(said.matches(waits).count(), 1, "{said}");
    let left =
        "Not deleted:\n  job/endless -n default  finalizer example.com/hold is not removed\n";
    assert!(said.contains(left), "{said}");
    assert!(!said.contains("will be recreated"), "{said}");
    assert!(
        said.contains("the control plane and its pods have stopped"),
        "{said}"
    );
    assert_eq!(home.alive()?, Vec::<String>::new());
    Ok(())
}
