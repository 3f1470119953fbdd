//! Stories about what a job is owed when no controller looks, and when users do what they may do at any time:
//! away for longer than every bound, edits that make no sense, a cluster that the user deletes or shares, jobs
//! that the user submits.

use serde_json::{Value, json};
use sundown_api::Method;

use super::ray::{CLUSTER, JOB, LONG, WHILE_SECONDS, begun, cluster, job, story};
use crate::node::{Mishap, Mood};
use crate::op::Op;
use crate::scenario::Scenario;
use crate::trouble::Trouble;

/// Nothing ends it but a stop.
const ENDLESS: &str = "forever";

/// Longer than every bound of a job.
const AWAY_SECONDS: i64 = 5_000;

pub(super) fn scenarios() -> Vec<Scenario> {
    let mut all = away();
    all.extend(edits());
    all.extend(modes());
    all.extend(whims());
    all.extend(troubles());
    all.extend(asleep());
    all.extend(statuses());
    all
}

/// The API server fails for a while.
fn troubles() -> Vec<Scenario> {
    let deadline = json!({ "activeDeadlineSeconds": WHILE_SECONDS });
    vec![
        begun("ray-full-disk", job("HTTPMode", "exit 0 1", &suspendable()))
            .work(WHILE_SECONDS / 2)
            .troubled(Trouble::Full)
            .settle(),
        // Its submitter cannot be deleted, and Ray has to be told all the same.
        begun(
            "ray-deadline-full-disk",
            job("K8sJobMode", ENDLESS, &deadline),
        )
        .work(WHILE_SECONDS - 5)
        .troubled(Trouble::Full)
        .settle()
        // Whether the submitter ended first or was deleted first is open.
        .delete(JOB, "Background")
        .settle(),
        begun("ray-without-service", job("HTTPMode", LONG, &json!({})))
            .troubled(Trouble::NoServices)
            .settle(),
    ]
}

/// The machine sleeps, and Ray had failed before: what was before it proves nothing.
fn asleep() -> Vec<Scenario> {
    vec![
        begun("ray-silent-asleep", job("HTTPMode", LONG, &json!({})))
            .work(WHILE_SECONDS)
            .node(Mishap::Ray(Mood::Silent))
            .work(WHILE_SECONDS / 2)
            .node(Mishap::Ray(Mood::Well))
            .advance(AWAY_SECONDS)
            .settle(),
        begun("ray-busy-asleep", job("HTTPMode", "exit 0 1", &json!({})))
            .node(Mishap::Ray(Mood::Busy))
            .work(WHILE_SECONDS)
            .node(Mishap::Ray(Mood::Well))
            .advance(AWAY_SECONDS)
            .settle(),
    ]
}

/// A status that another wrote, while no operator was there.
fn statuses() -> Vec<Scenario> {
    let pre_running = json!({ "preRunningDeadlineSeconds": 2 * WHILE_SECONDS });
    let status = |status: Value| Op::patch_status(JOB, &json!({ "status": status }));
    vec![
        begun(
            "ray-mended-late",
            job("HTTPMode", "exit 0 300", &pre_running),
        )
        .work(WHILE_SECONDS)
        .stop()
        .does(status(json!({ "jobDeploymentStatus": "ValidationFailed" })))
        .advance(2 * WHILE_SECONDS)
        .start()
        .settle(),
        begun("ray-without-name", job("HTTPMode", LONG, &json!({})))
            .work(WHILE_SECONDS)
            .stop()
            .does(status(json!({ "rayClusterName": "" })))
            .delete(JOB, "Background")
            .start()
            .settle(),
    ]
}

/// What users may do at any time, done at every step: to a job that may be suspended and tried again, and to one
/// that may not.
fn whims() -> Vec<Scenario> {
    let retried = json!({ "backoffLimit": 1, "shutdownAfterJobFinishes": true });
    vec![
        begun("ray-whims", job("HTTPMode", "exit 0 20", &retried)),
        begun(
            "ray-whims-submitter",
            job("K8sJobMode", "exit 0 20", &retried),
        ),
        begun(
            "ray-whims-refused",
            job("HTTPMode", "exit 0 20", &json!({})),
        ),
    ]
    .into_iter()
    .map(|story| story.with_whims().settle())
    .collect()
}

/// No operator is there, or the machine sleeps.
fn away() -> Vec<Scenario> {
    let deadline = json!({ "activeDeadlineSeconds": WHILE_SECONDS });
    let retried = json!({ "backoffLimit": 1 });
    vec![
        begun("ray-deadline-away", job("HTTPMode", ENDLESS, &deadline))
            .work(WHILE_SECONDS / 2)
            .away(AWAY_SECONDS)
            .settle(),
        begun("ray-deadline-asleep", job("HTTPMode", ENDLESS, &deadline))
            .work(WHILE_SECONDS / 2)
            .advance(AWAY_SECONDS)
            .settle(),
        begun(
            "ray-deadline-away-submitter",
            job("K8sJobMode", ENDLESS, &deadline),
        )
        .work(WHILE_SECONDS / 2)
        .away(AWAY_SECONDS)
        .settle(),
        shared("ray-deleted-away", "HTTPMode", ENDLESS)
            .work(WHILE_SECONDS)
            .stop()
            .delete(JOB, "Background")
            .advance(AWAY_SECONDS)
            .start()
            .settle(),
        // It ended well while nobody looked: that is its result, whatever is wished afterwards.
        begun("ray-suspended-late", job("HTTPMode", LONG, &suspendable()))
            .work(WHILE_SECONDS)
            .stop()
            .advance(AWAY_SECONDS)
            .patch(JOB, &json!({ "spec": { "suspend": true } }))
            .start()
            .settle(),
        begun("ray-retry-away", job("HTTPMode", "exit 1 20", &retried))
            .work(WHILE_SECONDS)
            .away(AWAY_SECONDS)
            .settle(),
    ]
}

/// What users change while a job runs.
fn edits() -> Vec<Scenario> {
    let retried = json!({ "backoffLimit": 1 });
    let deselected =
        json!({ "clusterSelector": null, "rayClusterSpec": cluster(0), "backoffLimit": 1 });
    vec![
        // Neither is allowed, so neither is obeyed.
        begun("ray-suspend-refused", job("HTTPMode", LONG, &json!({})))
            .work(WHILE_SECONDS)
            .patch(JOB, &json!({ "spec": { "suspend": true } }))
            .settle(),
        begun("ray-deadline-refused", job("HTTPMode", LONG, &json!({})))
            .work(WHILE_SECONDS)
            .patch(JOB, &json!({ "spec": { "activeDeadlineSeconds": 0 } }))
            .settle(),
        // Its pods outlive it by their grace; the next attempt waits for that.
        begun("ray-cluster-deleted", job("HTTPMode", LONG, &retried))
            .work(WHILE_SECONDS)
            .delete_clusters()
            .settle(),
        // Whose its cluster is does not change with a selector.
        begun("ray-selects-late", job("HTTPMode", LONG, &suspendable()))
            .work(WHILE_SECONDS)
            .node(Mishap::Away)
            .patch(JOB, &json!({ "spec": { "suspend": true } }))
            .work(2 * WHILE_SECONDS)
            .patch(
                JOB,
                &json!({ "spec": { "clusterSelector": { "ray.io/cluster": "other" } } }),
            )
            .work(1)
            .node(Mishap::Back)
            .settle(),
        // It runs on where it was submitted to, and nothing of it runs anywhere else.
        shared("ray-deselected", "HTTPMode", ENDLESS)
            .work(WHILE_SECONDS)
            .patch(JOB, &json!({ "spec": deselected }))
            .work(WHILE_SECONDS)
            .delete(JOB, "Background")
            .settle(),
        // Its cluster goes with the kind, and no read would ever say so.
        begun("ray-without-kind", job("HTTPMode", LONG, &json!({})))
            .with_kinds()
            .work(WHILE_SECONDS)
            .does(withdraw())
            .settle()
            .delete(JOB, "Background")
            .settle(),
        begun(
            "ray-suspended-without-cluster",
            job("HTTPMode", LONG, &suspendable()),
        )
        .work(WHILE_SECONDS)
        .patch(JOB, &json!({ "spec": { "suspend": true } }))
        .delete_clusters()
        .settle(),
    ]
}

/// Ways to run and to end that the other stories do not take.
fn modes() -> Vec<Scenario> {
    // A job that Ray does not know is waited for, as the user may still submit it; a deadline ends that.
    let interactive = json!({
        "entrypoint": null, "activeDeadlineSeconds": 300, "shutdownAfterJobFinishes": true,
    });
    let of_user = |name| begun(name, job("InteractiveMode", "", &interactive)).work(WHILE_SECONDS);
    let patient = json!({ "entrypoint": null });
    let legacy = json!({ "deletionStrategy": {
        "onSuccess": { "policy": "DeleteCluster" }, "onFailure": { "policy": "DeleteNone" },
    } });
    let rule = json!({ "deletionStrategy": { "deletionRules": [{
        "policy": "DeleteCluster",
        "condition": { "jobDeploymentStatus": "Failed", "ttlSeconds": 20 },
    }] } });
    let slow = json!({ "preRunningDeadlineSeconds": 5, "rayClusterSpec": huge() });
    vec![
        shared("ray-shared", "HTTPMode", "exit 0 1").settle(),
        of_user("ray-interactive")
            .submit("mine", "exit 0 20")
            .patch(JOB, &json!({ "spec": { "jobId": "mine" } }))
            .settle(),
        of_user("ray-interactive-deleted")
            .submit("mine", ENDLESS)
            .patch(JOB, &json!({ "spec": { "jobId": "mine" } }))
            .delete(JOB, "Background")
            .settle(),
        // Its user finds another cluster.
        begun(
            "ray-interactive-alone",
            job("InteractiveMode", "", &patient),
        )
        .work(WHILE_SECONDS)
        .delete_clusters()
        .settle(),
        begun("ray-legacy", job("HTTPMode", "exit 0 1", &legacy)).settle(),
        begun("ray-failed-rule", job("HTTPMode", "exit 1 1", &rule)).settle(),
        begun("ray-pre-running", job("HTTPMode", LONG, &slow)).settle(),
    ]
}

fn suspendable() -> Value {
    json!({ "shutdownAfterJobFinishes": true, "ttlSecondsAfterFinished": 60 })
}

/// The kind of the clusters goes, and all of them with it.
fn withdraw() -> Op {
    let path =
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/rayclusters.ray.io".to_owned();
    let label = "delete the definition of RayCluster".to_owned();
    Op::new(Method::Delete, path, None, label)
}

/// A job on a cluster that is not its own.
fn shared(name: &'static str, mode: &str, entrypoint: &str) -> Scenario {
    let spec = json!({
        "submissionMode": mode,
        "entrypoint": entrypoint,
        "clusterSelector": { "ray.io/cluster": CLUSTER.name },
    });
    story(name)
        .does(Op::create(CLUSTER, &json!({ "spec": cluster(0) })))
        .does(Op::create(JOB, &json!({ "spec": spec })))
        .start()
}

/// A cluster that fits on no node.
fn huge() -> Value {
    let mut spec = cluster(0);
    let container = &mut spec["headGroupSpec"]["template"]["spec"]["containers"][0];
    container["resources"] = json!({ "requests": { "cpu": "1000" } });
    spec
}
