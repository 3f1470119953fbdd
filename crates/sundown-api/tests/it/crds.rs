//! Custom resources: served from the commit that defines them, gone with the one that removes it.

use serde_json::{Value, json};
use sundown_model::{Resolved, Resource};

use crate::world::{CRDS, SUNJOBS, World, custom_resource_definition, sunjob};

const CRD: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/sunjobs.sundown.dev";

#[test]
fn establishes_a_definition_at_once() {
    let mut world = World::new();
    assert_eq!(world.get(SUNJOBS).code, 404);
    let created = world.post(CRDS, &custom_resource_definition()).ok();
    // What was asked for first, what follows from it right behind it, as a watch sees it upstream.
    assert_eq!(
        created.json["status"]["acceptedNames"],
        json!({ "kind": "", "plural": "" })
    );
    let reply = world.get(CRD);
    assert_ne!(created.rv(), reply.rv());
    let conditions = reply.json["status"]["conditions"].as_array().unwrap();
    for (condition, reason) in [
        ("NamesAccepted", "NoConflicts"),
        ("Established", "InitialNamesAccepted"),
    ] {
        let found = conditions
            .iter()
            .find(|own| own["type"] == condition)
            .unwrap();
        assert_eq!(
            (&found["status"], &found["reason"]),
            (&json!("True"), &json!(reason))
        );
    }
    assert_eq!(reply.json["status"]["storedVersions"], json!(["v1"]));
    assert_eq!(
        reply.json["status"]["acceptedNames"]["listKind"],
        "SunJobList"
    );
    assert_eq!(reply.metadata("generation"), 1);
    let created = world.post(SUNJOBS, &sunjob("a")).ok();
    assert_eq!(created.json["apiVersion"], "sundown.dev/v1");
    assert_eq!(world.get(SUNJOBS).ok().json["kind"], "SunJobList");
}

#[test]
fn serves_one_object_in_all_versions() {
    let mut world = World::with_sunjobs();
    let uid = world.post(SUNJOBS, &sunjob("a")).ok().uid();
    let beta = SUNJOBS.replace("/v1/", "/v1beta1/");
    let reply = world.get(&format!("{beta}/a")).ok();
    assert_eq!(
        (reply.json["apiVersion"].as_str(), reply.uid()),
        (Some("sundown.dev/v1beta1"), uid)
    );
    let body = json!({ "spec": { "x": 1 } });
    let reply = world.merge(&format!("{beta}/a"), &body).ok();
    assert_eq!(reply.json["apiVersion"], "sundown.dev/v1beta1");
    let reply = world.get(&format!("{SUNJOBS}/a")).ok();
    assert_eq!(
        (&reply.json["apiVersion"], &reply.json["spec"]),
        (&json!("sundown.dev/v1"), &json!({ "x": 1 }))
    );
}

/// The part of the controller, which is not run here.
fn release(world: &mut World) {
    let released = json!({ "metadata": { "finalizers": null } });
    world.merge(CRD, &released).ok();
}

#[test]
fn stops_serving_what_is_no_longer_defined() {
    let mut world = World::with_sunjobs();
    let reply = world
        .delete(CRD, &json!({ "propagationPolicy": "Foreground" }))
        .ok();
    assert_eq!(
        reply.metadata("finalizers"),
        &json!(["customresourcecleanup.apiextensions.k8s.io"])
    );
    assert_eq!(reply.metadata("generation"), 1, "as upstream, not counted");
    let conditions = reply.json["status"]["conditions"].as_array().unwrap();
    let last = conditions.last().unwrap();
    assert_eq!(
        (&last["type"], &last["reason"]),
        (&json!("Terminating"), &json!("InstanceDeletionPending"))
    );
    let body = json!({ "status": { "conditions": conditions } });
    world.merge(&format!("{CRD}/status"), &body).ok();
    assert_eq!(world.get(SUNJOBS).code, 200, "until its instances are gone");
    release(&mut world);
    assert_eq!(world.get(SUNJOBS).text, "404 page not found\n");
    assert_eq!(world.get("/apis/sundown.dev").code, 404);
    assert_eq!(world.get(CRD).code, 404);
}

#[test]
fn takes_no_instances_while_its_definition_terminates() {
    let mut world = World::with_sunjobs();
    world.post(SUNJOBS, &sunjob("old")).ok();
    world.delete(CRD, &Value::Null).ok();
    let reply = world.post(SUNJOBS, &sunjob("a"));
    assert_eq!((reply.code, reply.reason()), (403, "Forbidden"));
    assert_eq!(
        reply.message(),
        "sunjobs.sundown.dev \"a\" is forbidden: create not allowed while custom resource \
         definition is terminating"
    );
    let body = json!({ "metadata": { "labels": { "a": "b" } } });
    world.merge(&format!("{SUNJOBS}/old"), &body).ok();
    world.delete(&format!("{SUNJOBS}/old"), &Value::Null).ok();
}

#[test]
fn a_name_belongs_to_one_definition_until_it_is_gone() {
    let mut world = World::with_sunjobs();
    let mut other = custom_resource_definition();
    other["metadata"]["name"] = json!("others.sundown.dev");
    other["spec"]["names"] =
        json!({ "plural": "others", "kind": "SunJob", "shortNames": ["sunjob", "ot"] });
    world.post(CRDS, &other).ok();
    let path = format!("{CRDS}/others.sundown.dev");
    let condition = |world: &mut World, name: &str| {
        let conditions = world.get(&path).json["status"]["conditions"].clone();
        let found = conditions
            .as_array()
            .unwrap()
            .iter()
            .find(|it| it["type"] == name);
        let found = found.cloned().unwrap_or_default();
        let text = |member: &str| found[member].as_str().unwrap_or("").to_owned();
        format!("{} {}: {}", text("status"), text("reason"), text("message"))
    };
    // Only the last conflict is told, as upstream's.
    assert_eq!(
        condition(&mut world, "NamesAccepted"),
        "False ListKindConflict: \"SunJobList\" is already in use"
    );
    assert_eq!(
        condition(&mut world, "Established"),
        "False NotAccepted: not all names are accepted"
    );
    let others = SUNJOBS.replace("sunjobs", "others");
    assert_eq!(world.get(&others).code, 404, "not served");
    world.delete(CRD, &Value::Null).ok();
    release(&mut world);
    assert_eq!(
        condition(&mut world, "NamesAccepted"),
        "True NoConflicts: no conflicts found"
    );
    assert_eq!(
        condition(&mut world, "Established"),
        "True InitialNamesAccepted: the initial names have been accepted"
    );
    assert_eq!(world.get(&others).code, 200);
}

#[test]
fn what_is_stored_by_its_names_cannot_change() {
    let mut world = World::with_sunjobs();
    let mut body = world.get(CRD).json;
    body["spec"]["scope"] = json!("Cluster");
    body["spec"]["names"]["kind"] = json!("Other");
    let reply = world.put(CRD, &body);
    assert_eq!(reply.code, 422);
    let message = reply.message();
    assert!(
        message.contains("spec.scope: Invalid value: \"Cluster\": field is immutable"),
        "{message}"
    );
    assert!(
        message.contains("spec.names.kind: Invalid value: \"Other\": field is immutable"),
        "{message}"
    );
}

#[test]
fn versions_that_were_stored_stay_defined() {
    let mut world = World::with_sunjobs();
    let mut body = world.get(CRD).json;
    body["spec"]["versions"][0]["storage"] = json!(false);
    body["spec"]["versions"][1]["storage"] = json!(true);
    let reply = world.put(CRD, &body).ok();
    assert_eq!(
        reply.json["status"]["storedVersions"],
        json!(["v1", "v1beta1"])
    );
    let mut body = world.get(CRD).json;
    body["spec"]["versions"].as_array_mut().unwrap().remove(0);
    let reply = world.put(CRD, &body);
    assert!(
        reply.message().contains(
            "status.storedVersions[0]: Invalid value: \"v1\": missing from spec.versions; v1 was \
         previously a storage version"
        ),
        "{}",
        reply.message()
    );
}

#[test]
fn follows_an_update_of_the_definition() {
    let mut world = World::with_sunjobs();
    let mut body = world.get(CRD).json;
    body["spec"]["versions"][1]["served"] = json!(false);
    world.put(CRD, &body).ok();
    assert_eq!(world.get(&SUNJOBS.replace("/v1/", "/v1beta1/")).code, 404);
    assert_eq!(world.get(SUNJOBS).code, 200);
}

#[test]
fn cannot_take_over_a_built_in_resource() {
    let mut world = World::new();
    let mut body = custom_resource_definition();
    body["metadata"] = json!({
        "name": "leases.coordination.k8s.io",
        "annotations": { "api-approved.kubernetes.io": "unapproved, a test" },
    });
    body["spec"]["group"] = json!("coordination.k8s.io");
    body["spec"]["names"] = json!({ "plural": "leases", "kind": "Lease" });
    world.post(CRDS, &body).ok();
    let path = format!("{CRDS}/leases.coordination.k8s.io");
    let status = world.get(&path).json["status"].clone();
    assert_eq!(status["conditions"][0]["reason"], "PluralConflict");
    assert_eq!(status["conditions"][1]["status"], "False");
    let lease = json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": { "name": "a" },
    });
    let leases = "/apis/coordination.k8s.io/v1/namespaces/default/leases";
    world.post(leases, &lease).ok();
    world.delete(&path, &Value::Null).ok();
    world
        .merge(&path, &json!({ "metadata": { "finalizers": null } }))
        .ok();
    assert_eq!(world.get(&format!("{leases}/a")).code, 200);
}

#[test]
fn tells_controllers_of_the_same_process_what_is_served() {
    let mut world = World::with_sunjobs();
    let Resolved::Known(ty) = world
        .server
        .catalog()
        .resolve("sundown.dev/v1beta1", "SunJob")
    else {
        panic!("served, so known");
    };
    assert_eq!(
        (&*ty.version, ty.namespaced, ty.is_collectable()),
        ("v1", true, true)
    );
    let sunjobs = Resource::new("sundown.dev", "sunjobs");
    assert_eq!(world.server.position(&sunjobs).rv().to_string(), "0");
    let rv = world.post(SUNJOBS, &sunjob("a")).ok().rv();
    assert_eq!(world.server.position(&sunjobs).rv().to_string(), rv);
}
