//! Custom resources: served from the commit that defines them, gone with the one that removes it.

use serde_json::{Value, json};
use sundown_model::{Resolved, Resource};

use crate::world::{CRDS, SUNJOBS, World, custom_resource_definition, sunjob};

const CRD: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/sunjobs.sundown.dev";

#[test]
fn establishes_a_definition_at_once() {
    let mut world = World::new();
    assert_eq!(world.get(SUNJOBS).code, 404);
    let reply = world.post(CRDS, &custom_resource_definition()).ok();
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

#[test]
fn stops_serving_what_is_no_longer_defined() {
    let mut world = World::with_sunjobs();
    world.delete(CRD, &Value::Null).ok();
    assert_eq!(world.get(SUNJOBS).text, "404 page not found\n");
    assert_eq!(world.get("/apis/sundown.dev").code, 404);
}

#[test]
fn takes_no_instances_while_its_definition_terminates() {
    let mut world = World::with_sunjobs();
    world
        .merge(
            CRD,
            &json!({ "metadata": { "finalizers": ["example.com/x"] } }),
        )
        .ok();
    world.delete(CRD, &Value::Null).ok();
    let reply = world.post(SUNJOBS, &sunjob("a"));
    assert_eq!((reply.code, reply.reason()), (403, "Forbidden"));
    let text = "create not allowed while custom resource definition is terminating";
    assert!(reply.message().ends_with(text), "{}", reply.message());
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
    body["metadata"]["name"] = json!("jobs.batch");
    body["spec"]["group"] = json!("batch");
    body["spec"]["names"] = json!({ "plural": "jobs", "kind": "Job" });
    world.post(CRDS, &body).ok();
    let job = json!({ "apiVersion": "batch/v1", "kind": "Job", "metadata": { "name": "a" } });
    let path = "/apis/batch/v1/namespaces/default/jobs";
    world.post(path, &job).ok();
    assert_eq!(
        world
            .delete(&format!("{path}/a"), &Value::Null)
            .ok()
            .warnings
            .len(),
        1
    );
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
