//! What the server says about itself, as far as clients depend on it.

use serde_json::{Value, json};

use crate::world::World;

fn find<'a>(list: &'a Value, field: &str, value: &str) -> &'a Value {
    let found = list
        .as_array()
        .into_iter()
        .flatten()
        .find(|item| item[field] == value);
    found.unwrap_or_else(|| panic!("no {value} in {list}"))
}

#[test]
fn names_a_version_that_kubectl_can_read() {
    let mut world = World::new();
    let version = world.get("/version").ok().json;
    assert_eq!(
        (&version["major"], &version["minor"]),
        (&json!("1"), &json!("37"))
    );
    assert_eq!(version["gitVersion"], "v1.37.0+sundown");
    for path in ["/healthz", "/livez", "/readyz", "/readyz/ping"] {
        assert_eq!(world.get(path).ok().text, "ok");
    }
}

/// As a real kube-apiserver tells it; the groups that are served whole are compared in `conformance`.
#[test]
fn tells_what_built_in_kinds_are_stored_as() {
    let mut world = World::new();
    for (path, plural, hash) in [
        ("/api/v1", "pods", json!("xPOwRZ+Yhw8=")),
        ("/api/v1", "configmaps", json!("qFsyl6wFWjQ=")),
        ("/api/v1", "events", json!("r2yiGXH7wu8=")),
        ("/apis/events.k8s.io/v1", "events", json!("r2yiGXH7wu8=")),
        (
            "/apis/apiextensions.k8s.io/v1",
            "customresourcedefinitions",
            json!("jfWCUB31mvA="),
        ),
        ("/api/v1", "bindings", Value::Null),
        ("/api/v1", "pods/status", Value::Null),
    ] {
        let resources = world.get(path).ok().json["resources"].clone();
        let found = find(&resources, "name", plural);
        assert_eq!(found["storageVersionHash"], hash, "{path} {plural}");
    }
}

#[test]
fn serves_the_legacy_documents() {
    let mut world = World::with_sunjobs();
    assert_eq!(world.get("/api").ok().json["versions"], json!(["v1"]));
    let groups = world.get("/apis").ok().json["groups"].clone();
    let group = find(&groups, "name", "sundown.dev");
    assert_eq!(group["preferredVersion"]["groupVersion"], "sundown.dev/v1");
    assert_eq!(group["versions"].as_array().map(Vec::len), Some(2));
    assert_eq!(world.get("/apis/sundown.dev").ok().json["kind"], "APIGroup");

    let list = world.get("/apis/sundown.dev/v1").ok().json;
    assert_eq!(list["groupVersion"], "sundown.dev/v1");
    let main = find(&list["resources"], "name", "sunjobs");
    assert_eq!(
        (&main["kind"], &main["singularName"]),
        (&json!("SunJob"), &json!("sunjob"))
    );
    assert_eq!(main["shortNames"], json!(["sj"]));
    let status = find(&list["resources"], "name", "sunjobs/status");
    assert_eq!(status["verbs"], json!(["get", "patch", "update"]));

    let core = world.get("/api/v1").ok().json;
    assert_eq!(core["groupVersion"], "v1");
    let namespaces = find(&core["resources"], "name", "namespaces");
    assert_eq!(namespaces["namespaced"], false);
    let has_collection = namespaces["verbs"]
        .as_array()
        .unwrap()
        .contains(&json!("deletecollection"));
    assert!(!has_collection);
    find(&core["resources"], "name", "namespaces/finalize");
}

#[test]
fn serves_the_aggregated_document() {
    let mut world = World::with_sunjobs();
    let accept =
        "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json";
    let list = world.get_as("/apis", accept).ok().json;
    assert_eq!(list["kind"], "APIGroupDiscoveryList");
    assert_eq!(list["apiVersion"], "apidiscovery.k8s.io/v2");
    let items = list["items"].as_array().unwrap();
    let group = items
        .iter()
        .find(|item| item["metadata"]["name"] == "sundown.dev")
        .unwrap();
    let version = find(&group["versions"], "version", "v1");
    let resource = find(&version["resources"], "resource", "sunjobs");
    assert_eq!(resource["scope"], "Namespaced");
    let kind = json!({ "group": "sundown.dev", "version": "v1", "kind": "SunJob" });
    assert_eq!(resource["responseKind"], kind);
    assert_eq!(resource["subresources"][0]["subresource"], "status");
    let core = world.get_as("/api", accept).ok().json;
    assert_eq!(core["items"].as_array().map(Vec::len), Some(1));
    find(
        &core["items"][0]["versions"][0]["resources"],
        "resource",
        "pods",
    );
    assert_eq!(
        world.get_as("/apis", "application/json").ok().json["kind"],
        "APIGroupList"
    );
}

#[test]
fn describes_patches_and_field_validation_for_kubectl() {
    let mut world = World::with_sunjobs();
    let index = world.get("/openapi/v3").ok().json;
    let url = index["paths"]["apis/sundown.dev/v1"]["serverRelativeURL"]
        .as_str()
        .unwrap()
        .to_owned();
    assert!(index["paths"].get("api/v1").is_some());
    let document = world.get(&url).ok().json;
    let path = "/apis/sundown.dev/v1/namespaces/{namespace}/sunjobs";
    let post = &document["paths"][path]["post"];
    let kind = json!({ "group": "sundown.dev", "version": "v1", "kind": "SunJob" });
    assert_eq!(post["x-kubernetes-group-version-kind"], kind);
    find(&post["parameters"], "name", "fieldValidation");
    let change = &document["paths"][format!("{path}/{{name}}")]["patch"];
    find(&change["parameters"], "name", "fieldValidation");
    let takes: Vec<&String> = change["requestBody"]["content"]
        .as_object()
        .unwrap()
        .keys()
        .collect();
    assert_eq!(
        takes,
        [
            "application/json-patch+json",
            "application/merge-patch+json"
        ]
    );
    let schema = &document["components"]["schemas"]["dev.sundown.v1.SunJob"];
    assert_eq!(schema["x-kubernetes-group-version-kind"], json!([kind]));
}
