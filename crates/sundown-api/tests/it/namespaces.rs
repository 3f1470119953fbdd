//! The life of a namespace, and creation against its end.

use serde_json::{Value, json};

use crate::world::{NAMESPACES, World, cm};

const NS: &str = "/api/v1/namespaces/n";

fn with_namespace() -> World {
    let mut world = World::new();
    let body = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "n" } });
    world.post(NAMESPACES, &body).ok();
    world
}

#[test]
fn starts_with_the_namespaces_of_every_cluster() {
    let mut world = World::new();
    let list = world.get(NAMESPACES).ok();
    let names: Vec<&str> = list.json["items"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|item| item["metadata"]["name"].as_str())
        .collect();
    assert_eq!(
        names,
        ["default", "kube-node-lease", "kube-public", "kube-system"]
    );
}

#[test]
fn comes_with_finalizer_label_and_phase() {
    let mut world = with_namespace();
    let namespace = world.get(NS).ok();
    assert_eq!(
        namespace.json["spec"],
        json!({ "finalizers": ["kubernetes"] })
    );
    assert_eq!(namespace.json["status"], json!({ "phase": "Active" }));
    let labels = json!({ "kubernetes.io/metadata.name": "n" });
    assert_eq!(namespace.metadata("labels"), &labels);
    let reply = world.merge(
        NS,
        &json!({ "metadata": { "labels": null }, "spec": { "finalizers": [] } }),
    );
    assert_eq!(reply.ok().json, namespace.json, "neither can be taken away");
}

#[test]
fn terminates_until_it_is_finalized() {
    let mut world = with_namespace();
    let uid = world.get(NS).uid();
    let reply = world.delete(NS, &Value::Null).ok();
    assert_eq!(reply.json["status"], json!({ "phase": "Terminating" }));
    assert_eq!(reply.metadata("deletionTimestamp"), "2026-01-01T00:00:00Z");
    assert_eq!(reply.metadata("deletionGracePeriodSeconds"), &Value::Null);
    let again = world.delete(NS, &Value::Null).ok();
    assert_eq!((again.rv(), again.uid()), (reply.rv(), uid));

    let mut body = world.get(NS).json;
    body["spec"]["finalizers"] = json!([]);
    let reply = world.put(&format!("{NS}/finalize"), &body).ok();
    assert_eq!(reply.json["spec"], json!({}));
    assert!(!world.exists(NS));
}

#[test]
fn is_finalized_by_a_merge_patch_as_well() {
    let mut world = with_namespace();
    world.delete(NS, &Value::Null).ok();
    let patch = json!({ "spec": { "finalizers": null } });
    world.merge(&format!("{NS}/finalize"), &patch).ok();
    assert!(!world.exists(NS));
}

#[test]
fn waits_for_metadata_finalizers_too() {
    let mut world = with_namespace();
    world
        .delete(NS, &json!({ "propagationPolicy": "Foreground" }))
        .ok();
    let finalizers = world.get(NS).metadata("finalizers").clone();
    assert_eq!(finalizers, json!(["foregroundDeletion"]));
    let patch = json!({ "spec": { "finalizers": [] } });
    world.merge(&format!("{NS}/finalize"), &patch).ok();
    assert!(world.exists(NS));
    world
        .merge(NS, &json!({ "metadata": { "finalizers": null } }))
        .ok();
    assert!(!world.exists(NS));
}

#[test]
fn maps_the_options_of_a_namespace_its_own_way() {
    for (options, expected) in [
        (json!({ "orphanDependents": true }), json!(["orphan"])),
        (
            json!({ "orphanDependents": false }),
            json!(["foregroundDeletion"]),
        ),
        (json!({ "propagationPolicy": "Background" }), Value::Null),
    ] {
        let mut world = with_namespace();
        world.delete(NS, &options).ok();
        assert_eq!(
            world.get(NS).ok().metadata("finalizers"),
            &expected,
            "{options}"
        );
    }
}

#[test]
fn takes_nothing_new_while_it_terminates() {
    let mut world = with_namespace();
    let path = format!("{NS}/configmaps");
    let before = world.post(&path, &cm("before")).ok().uid();
    world.delete(NS, &Value::Null).ok();
    let reply = world.post(&path, &cm("a"));
    assert_eq!((reply.code, reply.reason()), (403, "Forbidden"));
    assert_eq!(
        reply.message(),
        "configmaps \"a\" is forbidden: unable to create new content in namespace n because it is \
         being terminated"
    );
    assert_eq!(
        reply.json["details"]["causes"],
        json!([{
            "reason": "NamespaceTerminating", "message": "namespace n is being terminated",
            "field": "metadata.namespace",
        }])
    );
    let kept = world
        .merge(&format!("{path}/before"), &json!({ "data": { "x": "1" } }))
        .ok();
    assert_eq!(kept.uid(), before, "what is there can still be changed");
}

#[test]
fn keeps_the_namespaces_that_a_cluster_needs() {
    let mut world = World::new();
    let reply = world.delete("/api/v1/namespaces/default", &Value::Null);
    let text = "namespaces \"default\" is forbidden: this namespace may not be deleted";
    assert_eq!((reply.code, reply.message()), (403, text));
}
