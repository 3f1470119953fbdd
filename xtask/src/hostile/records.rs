//! What is written down about pods holds nothing that they were told in confidence.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result, ensure};

use super::Test;
use super::place::{Place, until};

pub(super) const TESTS: &[Test] = &[(
    "no_record_holds_what_a_pod_was_told",
    no_record_holds_what_a_pod_was_told,
)];

const MARKER: &str = "hunter2-in-every-field";

/// A marker in every text that may hold a secret.
fn manifest() -> String {
    format!(
        "apiVersion: v1\nkind: Pod\nmetadata: {{name: told, labels: {{note: {MARKER}}}, annotations: {{note: {MARKER}}}}}\nspec:\n  \
         restartPolicy: Never\n  containers:\n  - name: main\n    image: busybox\n    command: [sh, -c, 'echo {MARKER}; exit 3']\n    \
         args: [{MARKER}]\n    env: [{{name: PASSWORD, value: {MARKER}}}]\n---\n\
         apiVersion: batch/v1\nkind: Job\nmetadata: {{name: told, annotations: {{note: {MARKER}}}}}\nspec:\n  backoffLimit: 0\n  \
         template:\n    spec:\n      restartPolicy: Never\n      containers:\n      \
         - {{name: main, image: busybox, command: [sh, -c, 'exit 0'], env: [{{name: PASSWORD, value: {MARKER}}}]}}\n"
    )
}

/// The same of a job of Ray. Its head has no Ray, and fails: what is told of that counts, too.
fn ray_job() -> String {
    format!(
        "apiVersion: ray.io/v1\nkind: RayJob\nmetadata: {{name: told, annotations: {{note: {MARKER}}}}}\nspec:\n  \
         entrypoint: python {MARKER}.py\n  submissionMode: HTTPMode\n  metadata: {{note: {MARKER}}}\n  \
         runtimeEnvYAML: \"env_vars: {{PASSWORD: {MARKER}}}\"\n  \
         rayClusterSpec:\n    headGroupSpec:\n      rayStartParams: {{redis-password: {MARKER}}}\n      template:\n        \
         metadata: {{annotations: {{note: {MARKER}}}}}\n        spec:\n          containers:\n          \
         - {{name: ray-head, image: busybox, env: [{{name: PASSWORD, value: {MARKER}}}]}}\n"
    )
}

fn no_record_holds_what_a_pod_was_told(place: &Place) -> Result<()> {
    let record = place.home().join("flight");
    let path = record.display().to_string();
    let up = place.up_behind(&format!(
        "SUNDOWN_LOG=trace exec \"$0\" up --flight-record {path}"
    ))?;
    up.create(&manifest())?;
    until("the pod has failed", || {
        Ok(up.ask(&["get", "pod", "told", "-o", "jsonpath={.status.phase}"])? == "Failed")
    })?;
    until("the job is complete", || {
        Ok(up.ask(&["get", "job", "told", "-o", "jsonpath={.status.succeeded}"])? == "1")
    })?;
    up.create(&ray_job())?;
    let head = "ray.io/node-type=head";
    until("the head has failed", || {
        let status = "jsonpath={.items[*].status.containerStatuses[*]}";
        let status = up.ask(&["get", "pods", "-l", head, "-o", status])?;
        Ok(status.contains("terminated"))
    })?;
    let events = up.ask(&["get", "events", "-A", "-o", "json"])?;
    ensure!(events.contains("\"told\""), "no Event is about them");
    ensure!(!events.contains(MARKER), "an Event holds it");
    let kubeconfig = place.data().join("kubeconfig").display().to_string();
    for object in ["pod/told", "job/told", "rayjob/told"] {
        let explained = place.call(&["explain", object, "--kubeconfig", &kubeconfig])?;
        let said = explained.said;
        ensure!(
            explained.succeeded && said.contains("told"),
            "{object}: {said}"
        );
        ensure!(!said.contains(MARKER), "explain holds it: {said}");
    }
    let log = up.log()?;
    ensure!(log.contains("TRACE"), "the log of `up` holds nothing");
    ensure!(!log.contains(MARKER), "the log of `up` holds it");
    drop(up);
    let text = record_without_marker(&record)?;
    for kind in ["Pod", "Job", "RayJob", "RayCluster"] {
        ensure!(text.contains(kind), "no {kind} was recorded");
    }
    Ok(())
}

/// All that was recorded; nothing of it holds the marker.
fn record_without_marker(directory: &Path) -> Result<String> {
    let mut all = String::new();
    for entry in fs::read_dir(directory).context("list the record")? {
        let path = entry?.path();
        let text = fs::read(&path).with_context(|| path.display().to_string())?;
        let text = String::from_utf8_lossy(&text);
        ensure!(!text.contains(MARKER), "{} holds it", path.display());
        all.push_str(&text);
    }
    Ok(all)
}
