//! Graceful deletion of pods: A05, A07, A08, A10 to A12 of the acceptance list.

use serde_json::{Value, json};

use crate::world::{PODS, World, pod};

const POD: &str = "/api/v1/namespaces/default/pods/p";

/// A pod that runs on a node, with the default grace of 30 seconds.
fn running_pod() -> World {
    let mut world = World::new();
    let mut pod = pod("p");
    pod["spec"]["nodeName"] = json!("n");
    world.post(PODS, &pod).ok();
    world
}

fn grace(seconds: i64) -> Value {
    json!({ "gracePeriodSeconds": seconds })
}

fn mark(world: &mut World) -> (Value, Value) {
    let pod = world.get(POD).ok();
    let metadata = |field| pod.metadata(field).clone();
    (
        metadata("deletionTimestamp"),
        metadata("deletionGracePeriodSeconds"),
    )
}

#[test]
fn waits_for_the_grace_that_the_pod_or_the_request_names() {
    let mut world = running_pod();
    let reply = world.delete(POD, &Value::Null).ok();
    assert_eq!(reply.json["kind"], "Pod");
    assert_eq!(reply.metadata("generation"), 2);
    assert_eq!(mark(&mut world), (json!("2026-01-01T00:00:30Z"), json!(30)));

    let mut world = running_pod();
    world.delete(POD, &grace(5)).ok();
    assert_eq!(mark(&mut world), (json!("2026-01-01T00:00:05Z"), json!(5)));

    let mut world = running_pod();
    world.delete(POD, &grace(-7)).ok();
    assert_eq!(mark(&mut world), (json!("2026-01-01T00:00:01Z"), json!(1)));
}

#[test]
fn ignores_a_longer_grace_and_takes_a_shorter_one() {
    let mut world = running_pod();
    let first = world.delete(POD, &grace(20)).ok();
    for options in [grace(20), grace(60), Value::Null] {
        let reply = world.delete(POD, &options).ok();
        assert_eq!(reply.rv(), first.rv(), "{options}");
    }
    let reply = world.delete(POD, &grace(10)).ok();
    assert_eq!(mark(&mut world), (json!("2026-01-01T00:00:10Z"), json!(10)));
    assert_eq!(reply.metadata("generation"), 2, "counted once");
}

#[test]
fn clamps_a_grace_that_ends_in_the_past() {
    let mut world = running_pod();
    world.delete(POD, &grace(20)).ok();
    world.pass(15);
    world.delete(POD, &grace(10)).ok();
    assert_eq!(mark(&mut world), (json!("2026-01-01T00:00:15Z"), json!(1)));
}

#[test]
fn keeps_pending_finalizers_untouched_by_another_policy() {
    let mut world = running_pod();
    world.delete(POD, &grace(20)).ok();
    let options = json!({ "propagationPolicy": "Foreground" });
    let reply = world.delete(POD, &options).ok();
    assert_eq!(reply.metadata("finalizers"), &Value::Null);
}

#[test]
fn removes_a_pod_at_once_without_grace_in_two_writes() {
    let mut world = running_pod();
    let before = world.server.revision().number();
    let rv = world.get(POD).rv();
    let mut watch = world.watch(&format!("{PODS}?watch=1&resourceVersion={before}"));
    // The precondition is about the state before both writes.
    let options = json!({ "gracePeriodSeconds": 0, "preconditions": { "resourceVersion": rv } });
    world.delete(POD, &options).ok();
    assert!(!world.exists(POD));
    assert_eq!(world.server.revision().number(), before + 2);
    assert_eq!(world.seen(&mut watch), ["MODIFIED p", "DELETED p"]);
}

#[test]
fn finishes_a_pending_deletion_with_a_zero_grace() {
    let mut world = running_pod();
    let uid = world.delete(POD, &grace(20)).ok().uid();
    world
        .delete(
            POD,
            &json!({ "gracePeriodSeconds": 0, "preconditions": { "uid": uid } }),
        )
        .ok();
    assert!(!world.exists(POD));
}

#[test]
fn needs_both_the_end_of_grace_and_of_finalizers() {
    let mut world = running_pod();
    world
        .merge(
            POD,
            &json!({ "metadata": { "finalizers": ["example.com/x"] } }),
        )
        .ok();
    world.delete(POD, &grace(20)).ok();
    world
        .merge(POD, &json!({ "metadata": { "finalizers": null } }))
        .ok();
    assert!(world.exists(POD), "the grace still runs");
    world.delete(POD, &grace(0)).ok();
    assert!(!world.exists(POD));

    let mut world = running_pod();
    world
        .merge(
            POD,
            &json!({ "metadata": { "finalizers": ["example.com/x"] } }),
        )
        .ok();
    let reply = world.delete(POD, &grace(0)).ok();
    assert_eq!(reply.metadata("deletionGracePeriodSeconds"), 0);
    assert!(world.exists(POD), "the finalizer still holds it");
    let kept = world
        .merge(POD, &json!({ "metadata": { "labels": { "a": "b" } } }))
        .ok();
    assert_eq!(kept.metadata("finalizers"), &json!(["example.com/x"]));
    world
        .merge(POD, &json!({ "metadata": { "finalizers": [] } }))
        .ok();
    assert!(!world.exists(POD));
}

#[test]
fn gives_no_grace_to_pods_that_do_not_run() {
    let mut world = World::new();
    world.post(PODS, &pod("p")).ok();
    world.delete(POD, &grace(20)).ok();
    assert!(!world.exists(POD), "no node has it");

    let mut world = running_pod();
    world
        .merge(
            &format!("{POD}/status"),
            &json!({ "status": { "phase": "Succeeded" } }),
        )
        .ok();
    world.delete(POD, &grace(20)).ok();
    assert!(!world.exists(POD), "it has finished");
}

#[test]
fn changes_nothing_about_a_pod_in_a_dry_run() {
    let mut world = running_pod();
    let before = world.server.revision();
    let options = json!({ "gracePeriodSeconds": 0, "dryRun": ["All"] });
    world.delete(POD, &options).ok();
    assert_eq!(world.server.revision(), before);
    assert_eq!(mark(&mut world), (Value::Null, Value::Null));
}
