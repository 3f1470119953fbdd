//! Refusals, word for word.

use serde_json::{Value, json};
use sundown_api::{Method, Request};

use crate::world::{
    CM, MERGE, SUNJOBS, World, cm, custom_resource_definition, held, request, sunjob,
};

#[test]
fn names_the_resource_that_is_not_there() {
    let mut world = World::with_sunjobs();
    let reply = world.get(&format!("{SUNJOBS}/zzz"));
    assert_eq!(
        reply.json,
        json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": "sunjobs.sundown.dev \"zzz\" not found", "reason": "NotFound",
            "details": { "name": "zzz", "group": "sundown.dev", "kind": "sunjobs" }, "code": 404,
        })
    );
    let reply = world.delete(&format!("{CM}/zzz"), &Value::Null);
    assert_eq!(reply.message(), "configmaps \"zzz\" not found");
    assert_eq!(
        reply.json["details"],
        json!({ "name": "zzz", "kind": "configmaps" })
    );
}

#[test]
fn tells_existing_objects_from_terminating_ones() {
    let mut world = World::new();
    world.post(CM, &held("a", &["example.com/x"])).ok();
    let reply = world.post(CM, &cm("a"));
    assert_eq!((reply.code, reply.reason()), (409, "AlreadyExists"));
    assert_eq!(reply.message(), "configmaps \"a\" already exists");
    world.delete(&format!("{CM}/a"), &Value::Null).ok();
    let reply = world.post(CM, &cm("a"));
    assert_eq!(
        reply.message(),
        "object is being deleted: configmaps \"a\" already exists"
    );
}

#[test]
fn wants_a_revision_where_upstream_does() {
    let mut world = World::with_sunjobs();
    world.post(SUNJOBS, &sunjob("a")).ok();
    let reply = world.put(&format!("{SUNJOBS}/a"), &sunjob("a"));
    assert_eq!((reply.code, reply.reason()), (422, "Invalid"));
    assert_eq!(
        reply.message(),
        "sunjobs.sundown.dev \"a\" is invalid: metadata.resourceVersion: Invalid value: 0: must be \
         specified for an update"
    );
    world.post(CM, &cm("a")).ok();
    world.put(&format!("{CM}/a"), &cm("a")).ok();
}

#[test]
fn refuses_a_revision_at_create() {
    let mut world = World::new();
    let mut body = cm("a");
    body["metadata"]["resourceVersion"] = json!("7");
    let reply = world.post(CM, &body);
    assert_eq!((reply.code, reply.reason()), (500, ""));
    let text = "resourceVersion should not be set on objects to be created";
    assert_eq!(reply.message(), text);
}

#[test]
fn refuses_bodies_of_another_type() {
    let mut world = World::with_sunjobs();
    let mut body = sunjob("a");
    body["apiVersion"] = json!("v1");
    let reply = world.post(SUNJOBS, &body);
    assert_eq!(
        (reply.code, reply.message()),
        (
            400,
            "the API version in the data (v1) does not match the expected API version (sundown.dev/v1)"
        )
    );
    let reply = world.post(SUNJOBS, &json!({}));
    assert_eq!(
        (reply.code, reply.message()),
        (
            400,
            "the object provided is unrecognized (must be of type SunJob): Object 'Kind' is missing in '{}' ({})"
        )
    );
    let mut body = cm("a");
    body["kind"] = json!("Secret");
    assert_eq!(world.post(CM, &body).code, 400);
    let broken = Request {
        body: b"{".to_vec(),
        ..request(Method::Post, CM, &Value::Null)
    };
    let reply = world.send(&broken);
    assert_eq!((reply.code, reply.reason()), (400, "BadRequest"));
}

#[test]
fn refuses_objects_in_the_wrong_place() {
    let mut world = World::new();
    let mut body = cm("a");
    body["metadata"]["namespace"] = json!("other");
    let reply = world.post(CM, &body);
    let text =
        "the namespace of the provided object does not match the namespace sent on the request";
    assert_eq!((reply.code, reply.message()), (400, text));
    let reply = world.post("/api/v1/namespaces/nons/configmaps", &cm("a"));
    assert_eq!(
        (reply.code, reply.message()),
        (404, "namespaces \"nons\" not found")
    );
    world.post(CM, &cm("a")).ok();
    let reply = world.put(&format!("{CM}/a"), &cm("b"));
    let text = "the name of the object (b) does not match the name on the URL (a)";
    assert_eq!((reply.code, reply.message()), (400, text));
}

#[test]
fn refuses_bad_names_and_labels_with_all_their_causes() {
    let mut world = World::new();
    let mut body = cm("Bad_Name");
    body["metadata"]["labels"] = json!({ "-x": "ok", "y": "no spaces" });
    let reply = world.post(CM, &body);
    assert_eq!(reply.code, 422);
    assert!(reply.message().starts_with(
        "ConfigMap \"Bad_Name\" is invalid: [metadata.name: Invalid value: \"Bad_Name\": a lowercase \
         RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must \
         start and end with an alphanumeric character (e.g. 'example.com', regex used for validation \
         is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*'), metadata.labels: "
    ), "{}", reply.message());
    assert_eq!(
        reply.json["details"]["causes"].as_array().map(Vec::len),
        Some(3)
    );
    let reply = world.post(CM, &json!({ "metadata": {} }));
    assert!(
        reply
            .message()
            .ends_with("metadata.name: Required value: name or generateName is required")
    );
    let reply = world.post(
        CM,
        &json!({ "metadata": { "name": "a", "labels": { "a": 1 } } }),
    );
    assert_eq!(reply.code, 400, "not even of the right type");
}

#[test]
fn lists_the_media_types_it_takes() {
    let mut world = World::with_sunjobs();
    world.post(SUNJOBS, &sunjob("a")).ok();
    world.post(CM, &cm("a")).ok();
    let text = "the body of the request was in an unknown format - accepted media types include: \
                application/json-patch+json, application/merge-patch+json";
    let all = format!("{text}, application/apply-patch+yaml");
    for (media, text) in [
        ("application/strategic-merge-patch+json", all.as_str()),
        ("application/apply-patch+yaml", text),
        ("application/json", "415: Unsupported Media Type"),
    ] {
        let reply = world.patch(&format!("{SUNJOBS}/a"), media, &json!({}));
        assert_eq!(
            (reply.code, reply.reason(), reply.message()),
            (415, "UnsupportedMediaType", text)
        );
    }
    for (media, code) in [
        ("application/cbor", 415),
        ("application/vnd.kubernetes.protobuf", 400),
    ] {
        let body = request(Method::Post, CM, &cm("b"));
        let reply = world.send(&Request {
            content_type: Some(media.into()),
            ..body
        });
        assert_eq!(reply.code, code, "{media}");
    }
    let reply = world.get_as(&format!("{CM}/a"), "application/cbor");
    assert_eq!((reply.code, reply.reason()), (406, "NotAcceptable"));
}

#[test]
fn refuses_bodies_over_three_mebibytes() {
    let mut world = World::new();
    let mut body = cm("a");
    body["data"] = json!({ "x": "y".repeat(3 * 1024 * 1024) });
    let reply = world.post(CM, &body);
    assert_eq!((reply.code, reply.reason()), (413, "RequestEntityTooLarge"));
    assert_eq!(
        reply.message(),
        "Request entity too large: limit is 3145728"
    );
}

#[test]
fn refuses_unknown_selectors_parameters_and_methods() {
    let mut world = World::new();
    let reply = world.get(&format!("{CM}?fieldSelector=spec.image=x"));
    assert_eq!(
        (reply.code, reply.message()),
        (
            400,
            "\"spec.image\" is not a known field selector: only \"metadata.name\", \"metadata.namespace\""
        )
    );
    assert_eq!(world.get(&format!("{CM}?labelSelector=a%20b")).code, 400);
    assert_eq!(world.get(&format!("{CM}?limit=many")).code, 400);
    assert_eq!(world.post(&format!("{CM}?dryRun=Some"), &cm("a")).code, 422);
    assert_eq!(world.post("/api/v1/configmaps", &cm("a")).code, 405);
    assert_eq!(world.post(&format!("{CM}/a"), &cm("a")).code, 405);
}

#[test]
fn answers_unknown_paths_in_plain_text() {
    let mut world = World::new();
    for path in ["/nothing", "/apis/sundown.dev/v1", "/openapi/v1"] {
        let reply = world.get(path);
        assert_eq!(
            (reply.code, reply.text.as_str()),
            (404, "404 page not found\n"),
            "{path}"
        );
    }
}

#[test]
fn writes_nothing_in_dry_runs_of_create_and_update() {
    let mut world = World::new();
    let before = world.server.revision();
    let reply = world.post(&format!("{CM}?dryRun=All"), &cm("a")).ok();
    assert_eq!((reply.code, reply.rv().as_str()), (201, ""));
    assert!(!reply.uid().is_empty());
    assert_eq!(world.server.revision(), before);
    let created = world.post(CM, &cm("a")).ok();
    let request = Request {
        content_type: Some(MERGE.into()),
        ..request(
            Method::Patch,
            &format!("{CM}/a?dryRun=All"),
            &json!({ "data": { "x": "1" } }),
        )
    };
    assert_eq!(world.send(&request).ok().json["data"], json!({ "x": "1" }));
    assert_eq!(world.get(&format!("{CM}/a")).json, created.json);
}

#[test]
fn refuses_definitions_that_could_not_be_served() {
    let mut world = World::new();
    let mut body = custom_resource_definition();
    body["metadata"]["name"] = json!("other.sundown.dev");
    let crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let reply = world.post(crds, &body);
    assert!(
        reply.message().contains("must be spec.names.plural+"),
        "{}",
        reply.message()
    );
    let mut body = custom_resource_definition();
    body["spec"]["versions"][1]["storage"] = json!(true);
    assert_eq!(world.post(crds, &body).code, 422);
}
