//! Stories about Ray: jobs on clusters that are made for them, and clusters by themselves.

use serde_json::{Value, json};

use super::node::{allocatable, node, welcoming};
use crate::late::MUTE;
use crate::node::Mishap;
use crate::op::{It, Op, it};
use crate::scenario::Scenario;
use crate::world::RAY_JOB;

pub(super) const JOB: It = RAY_JOB;
const MUTED: It = it("RayJob", MUTE);
pub(super) const CLUSTER: It = it("RayCluster", "own");

/// A job that nothing but a mishap, a deadline or a user ends within the story.
pub(super) const LONG: &str = "exit 0 120";

/// When these come: a fault that costs one wait (an image is asked for again after ten seconds) must not
/// make them come before the job runs, or another end would be right.
pub(super) const WHILE_SECONDS: i64 = 30;

pub(super) fn scenarios() -> Vec<Scenario> {
    let mut all = jobs();
    all.extend(ends());
    all.extend(clusters());
    all.extend(super::ray_promises::scenarios());
    all
}

/// Jobs that run to an end.
fn jobs() -> Vec<Scenario> {
    vec![
        begun("ray-http", job("HTTPMode", "exit 0 1", &json!({}))).settle(),
        begun("ray-http-fails", job("HTTPMode", "exit 1 0", &json!({}))).settle(),
        begun("ray-submitter", job("K8sJobMode", "exit 0 1", &json!({}))).settle(),
        begun(
            "ray-submitter-fails",
            job("K8sJobMode", "exit 1 0", &json!({})),
        )
        .settle(),
        // What a lost head ran is lost, and is not run again by itself.
        begun("ray-head-dies", job("HTTPMode", LONG, &json!({})))
            .work(WHILE_SECONDS)
            .node(Mishap::HeadsDie)
            .settle(),
        begun(
            "ray-retry",
            job("HTTPMode", "exit 1 0", &json!({ "backoffLimit": 1 })),
        )
        .settle(),
        // One dashboard takes every question and answers none; the other job does not notice.
        story("ray-mute-neighbour")
            .does(named(MUTED, "HTTPMode", "exit 0 1", &json!({})))
            .does(job("HTTPMode", "exit 0 1", &json!({})))
            .start()
            .settle(),
        begun(
            "ray-deadline",
            job(
                "HTTPMode",
                LONG,
                &json!({ "activeDeadlineSeconds": WHILE_SECONDS }),
            ),
        )
        .settle(),
        // What submits is ended before Ray is believed that there is nothing to stop.
        begun(
            "ray-deadline-submitter",
            job(
                "K8sJobMode",
                LONG,
                &json!({ "activeDeadlineSeconds": WHILE_SECONDS }),
            ),
        )
        .settle(),
    ]
}

/// What goes with a job, and how.
fn ends() -> Vec<Scenario> {
    let shutdown = json!({ "shutdownAfterJobFinishes": true, "ttlSecondsAfterFinished": 60 });
    let staged = json!({
        "rayClusterSpec": cluster(1),
        "deletionStrategy": { "deletionRules": [
            rule("DeleteWorkers", 10), rule("DeleteCluster", 60), rule("DeleteSelf", 200),
        ] },
    });
    let nonsense = json!({ "runtimeEnvYAML": "- a" });
    let suspendable = json!({ "shutdownAfterJobFinishes": true });
    vec![
        // What goes after it was said before somebody broke the rest.
        begun("ray-invalid-late", job("HTTPMode", "exit 0 0", &shutdown))
            .work(20)
            .patch(JOB, &json!({ "spec": nonsense }))
            .settle(),
        begun("ray-mended", job("HTTPMode", "exit 0 0", &nonsense))
            .settle()
            .patch(JOB, &json!({ "spec": { "runtimeEnvYAML": null } }))
            .settle(),
        begun("ray-deleted", job("HTTPMode", LONG, &json!({})))
            .work(WHILE_SECONDS)
            .delete(JOB, "Background")
            .settle(),
        begun("ray-deleted-submitter", job("K8sJobMode", LONG, &json!({})))
            .work(WHILE_SECONDS)
            .delete(JOB, "Foreground")
            .settle(),
        begun("ray-shutdown", job("HTTPMode", "exit 0 0", &shutdown)).settle(),
        begun("ray-staged", job("HTTPMode", "exit 0 0", &staged)).settle(),
        begun("ray-suspended", job("HTTPMode", LONG, &suspendable))
            .work(WHILE_SECONDS)
            .patch(JOB, &json!({ "spec": { "suspend": true } }))
            .settle()
            .patch(
                JOB,
                &json!({ "spec": { "suspend": false, "entrypoint": "exit 0 0" } }),
            )
            .settle(),
    ]
}

/// Clusters by themselves.
fn clusters() -> Vec<Scenario> {
    let scaled = |replicas: u32| {
        let mut groups = cluster(1)["workerGroupSpecs"].clone();
        groups[0]["replicas"] = json!(replicas);
        json!({ "spec": { "workerGroupSpecs": groups } })
    };
    let made = || Op::create(CLUSTER, &json!({ "spec": cluster(1) }));
    vec![
        begun("ray-cluster-scales", made())
            .settle()
            .patch(CLUSTER, &scaled(2))
            .settle()
            .patch(CLUSTER, &scaled(0))
            .settle(),
        begun("ray-cluster-rests", made())
            .settle()
            .patch(CLUSTER, &json!({ "spec": { "suspend": true } }))
            .settle()
            .patch(CLUSTER, &json!({ "spec": { "suspend": false } }))
            .settle(),
    ]
}

fn rule(policy: &str, ttl_seconds: u32) -> Value {
    json!({
        "policy": policy,
        "condition": { "jobStatus": "SUCCEEDED", "ttlSeconds": ttl_seconds },
    })
}

pub(super) fn begun(name: &'static str, first: Op) -> Scenario {
    story(name).does(first).start()
}

/// A world with a node that pods fit on. The job comes before the operator starts: its uid makes names.
pub(super) fn story(name: &'static str) -> Scenario {
    Scenario::new(name)
        .with_ray()
        .does(node())
        .does(allocatable())
        .does(welcoming())
}

pub(super) fn job(mode: &str, entrypoint: &str, extra: &Value) -> Op {
    named(JOB, mode, entrypoint, extra)
}

fn named(it: It, mode: &str, entrypoint: &str, extra: &Value) -> Op {
    let mut spec = json!({
        "submissionMode": mode,
        "entrypoint": entrypoint,
        "rayClusterSpec": cluster(0),
    });
    crate::op::merge(&mut spec, extra);
    Op::create(it, &json!({ "spec": spec }))
}

/// A head and so many workers.
pub(super) fn cluster(workers: u32) -> Value {
    let mut spec =
        json!({ "rayVersion": "2.52.0", "headGroupSpec": { "template": template("ray-head") } });
    if workers > 0 {
        spec["workerGroupSpecs"] = json!([{
            "groupName": "small", "replicas": workers, "minReplicas": 0, "maxReplicas": 5,
            "template": template("ray-worker"),
        }]);
    }
    spec
}

fn template(name: &str) -> Value {
    let container = json!({ "name": name, "image": "none" });
    json!({ "spec": { "containers": [container] } })
}
