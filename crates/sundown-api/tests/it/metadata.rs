//! Metadata at create and update: generation, immutability, no-op writes, A18 and A19.

use serde_json::{Value, json};

use crate::world::{CM, JOBS, SUNJOBS, World, cm, held, job, sunjob};

fn owner(name: &str, uid: &str) -> Value {
    json!({ "apiVersion": "v1", "kind": "ConfigMap", "name": name, "uid": uid })
}

fn owned(owners: &Value) -> Value {
    let mut body = cm("a");
    body["metadata"]["ownerReferences"] = owners.clone();
    body
}

#[test]
fn sets_what_only_the_server_sets() {
    let mut world = World::new();
    let mut body = cm("a");
    body["metadata"]["uid"] = json!("mine");
    body["metadata"]["creationTimestamp"] = json!("2001-01-01T00:00:00Z");
    body["metadata"]["deletionTimestamp"] = json!("2001-01-01T00:00:00Z");
    body["metadata"]["deletionGracePeriodSeconds"] = json!(3);
    body["metadata"]["generation"] = json!(9);
    body["metadata"]["managedFields"] = json!([{ "manager": "x" }]);
    let reply = world.post(CM, &body).ok();
    assert_eq!(reply.code, 201);
    assert_eq!(reply.metadata("creationTimestamp"), "2026-01-01T00:00:00Z");
    assert_eq!(reply.metadata("namespace"), "default");
    for field in [
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "managedFields",
    ] {
        assert_eq!(reply.metadata(field), &Value::Null, "{field}");
    }
    // As upstream: kinds whose generation nobody counts keep what was sent.
    assert_eq!(reply.metadata("generation"), 9);
    let uid = reply.uid();
    let parts: Vec<usize> = uid.split('-').map(str::len).collect();
    assert_eq!(parts, [8, 4, 4, 4, 12]);
    assert_eq!(&uid[14..15], "4");
    assert_eq!(world.get(&format!("{CM}/a")).json, reply.json);
}

#[test]
fn generates_names_from_a_shortened_base() {
    let mut world = World::new();
    let base = "n".repeat(70);
    let body = json!({ "metadata": { "generateName": base } });
    let first = world.post(CM, &body).ok();
    let second = world.post(CM, &body).ok();
    let name = first.metadata("name").as_str().unwrap();
    assert_eq!(name.len(), 63);
    assert!(
        name[58..]
            .bytes()
            .all(|c| b"bcdfghjklmnpqrstvwxz2456789".contains(&c)),
        "{name}"
    );
    assert_ne!(first.metadata("name"), second.metadata("name"));
    assert_eq!(first.metadata("generateName"), base.as_str());
}

#[test]
fn writes_nothing_when_nothing_changes() {
    let mut world = World::new();
    let created = world.post(CM, &held("a", &["example.com/x"])).ok();
    let path = format!("{CM}/a");
    let before = world.server.revision();
    let mut watch = world.watch(&format!("{CM}?watch=1&resourceVersion={before}"));
    assert_eq!(world.put(&path, &created.json).ok().json, created.json);
    assert_eq!(
        world
            .merge(&path, &json!({ "metadata": { "labels": null } }))
            .ok()
            .json,
        created.json
    );
    let mut moved = created.json.clone();
    moved["metadata"]["creationTimestamp"] = json!("2001-01-01T00:00:00Z");
    moved["metadata"]["generation"] = json!(5);
    assert_eq!(world.put(&path, &moved).ok().rv(), created.rv());
    assert_eq!(world.server.revision(), before);
    assert_eq!(world.seen(&mut watch), Vec::<String>::new());
}

#[test]
fn counts_the_generation_on_changes_of_the_content_only() {
    let mut world = World::with_sunjobs();
    world.post(SUNJOBS, &sunjob("a")).ok();
    let path = format!("{SUNJOBS}/a");
    let mut generation =
        |patch: Value, at: &str| world.merge(at, &patch).ok().metadata("generation").as_i64();
    assert_eq!(generation(json!({ "spec": { "x": 1 } }), &path), Some(2));
    assert_eq!(
        generation(json!({ "metadata": { "labels": { "a": "b" } } }), &path),
        Some(2)
    );
    assert_eq!(generation(json!({ "status": { "x": 1 } }), &path), Some(2));
    let status = format!("{path}/status");
    assert_eq!(
        generation(json!({ "status": { "x": 1 } }), &status),
        Some(2)
    );
    assert_eq!(
        generation(json!({ "spec": { "x": 1 }, "extra": true }), &path),
        Some(3)
    );
}

#[test]
fn keeps_status_and_spec_apart() {
    let mut world = World::with_sunjobs();
    let mut body = sunjob("a");
    body["status"] = json!({ "phase": "Lies" });
    body["spec"] = json!({ "x": 1 });
    let created = world.post(SUNJOBS, &body).ok();
    assert_eq!(created.json.get("status"), None, "wiped at create");
    let path = format!("{SUNJOBS}/a");
    let both = json!({
        "metadata": { "labels": { "a": "b" } }, "spec": { "x": 2 }, "status": { "phase": "Up" },
    });
    let reply = world.merge(&format!("{path}/status"), &both).ok();
    assert_eq!(reply.json["status"], json!({ "phase": "Up" }));
    assert_eq!(reply.json["spec"], json!({ "x": 1 }));
    assert_eq!(
        reply.metadata("labels"),
        &Value::Null,
        "custom resources: status only"
    );
    let reply = world
        .merge(
            &path,
            &json!({ "spec": { "x": 3 }, "status": { "phase": "Down" } }),
        )
        .ok();
    assert_eq!(reply.json["status"], json!({ "phase": "Up" }));
    assert_eq!(reply.json["spec"], json!({ "x": 3 }));
    assert_eq!(world.get(&format!("{path}/status")).json, reply.json);
}

#[test]
fn deletes_a_built_in_object_through_its_status_too() {
    let mut world = World::new();
    let mut job = job("a");
    job["metadata"]["finalizers"] = json!(["example.com/x"]);
    world.post(JOBS, &job).ok();
    let path = format!("{JOBS}/a");
    world
        .delete(&path, &json!({ "propagationPolicy": "Background" }))
        .ok();
    let release = json!({ "metadata": { "finalizers": null } });
    world.merge(&format!("{path}/status"), &release).ok();
    assert!(!world.exists(&path));
}

#[test]
fn takes_no_new_finalizer_while_terminating() {
    let mut world = World::new();
    world
        .post(CM, &held("a", &["example.com/x", "example.com/y"]))
        .ok();
    let path = format!("{CM}/a");
    world.delete(&path, &Value::Null).ok();
    let finalizers = |names: &[&str]| json!({ "metadata": { "finalizers": names } });
    let reply = world.merge(&path, &finalizers(&["example.com/x", "x.io/y"]));
    assert_eq!((reply.code, reply.reason()), (422, "Invalid"));
    assert_eq!(
        reply.message(),
        "ConfigMap \"a\" is invalid: metadata.finalizers: Forbidden: no new finalizers can be added \
         if the object is being deleted, found new finalizers []string{\"x.io/y\"}"
    );
    let cause = &reply.json["details"]["causes"][0];
    assert_eq!(
        (cause["reason"].as_str(), cause["field"].as_str()),
        (Some("FieldValueForbidden"), Some("metadata.finalizers"))
    );
    world.merge(&path, &finalizers(&["example.com/x"])).ok();
}

#[test]
fn checks_the_names_of_finalizers() {
    let mut world = World::with_sunjobs();
    let reply = world.post(CM, &held("a", &["orphan", "foregroundDeletion"]));
    assert_eq!(reply.code, 422);
    assert!(
        reply
            .message()
            .contains("finalizer orphan and foregroundDeletion cannot be both set")
    );
    let reply = world.post(CM, &held("a", &["bare"]));
    assert!(
        reply
            .message()
            .contains("name is neither a standard finalizer name nor is it fully qualified"),
        "{}",
        reply.message()
    );
    assert_eq!(world.post(CM, &held("a", &["not a/name"])).code, 422);
    world.post(CM, &held("a", &["kubernetes"])).ok();
    let mut body = sunjob("a");
    body["metadata"]["finalizers"] = json!(["bare"]);
    assert_eq!(world.post(SUNJOBS, &body).ok().warnings.len(), 1);
}

#[test]
fn checks_owner_references() {
    let mut world = World::new();
    let reply = world.post(CM, &owned(&json!([{}])));
    let fields: Vec<&str> = reply.json["details"]["causes"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|cause| cause["field"].as_str())
        .collect();
    let expected = ["apiVersion", "kind", "name", "uid"]
        .map(|field| format!("metadata.ownerReferences[0].{field}"));
    assert_eq!(fields, expected);

    let mut event = owner("e", "1");
    event["kind"] = json!("Event");
    let reply = world.post(CM, &owned(&json!([event])));
    assert!(
        reply
            .message()
            .contains("is disallowed from being an owner")
    );
    event["apiVersion"] = json!("events.k8s.io/v1");
    world.post(CM, &owned(&json!([event]))).ok();

    let controller = |name: &str| {
        let mut owner = owner(name, name);
        owner["controller"] = json!(true);
        owner
    };
    let reply = world.post(CM, &owned(&json!([controller("b"), controller("c")])));
    assert!(reply.message().contains("Only one reference can have Controller set to true. Found \"true\" in references for ConfigMap/b and ConfigMap/c"));

    let mut bad = owner("b", "1");
    bad["apiVersion"] = json!("a/b/c");
    let reply = world.post(CM, &owned(&json!([bad])));
    assert!(
        reply
            .message()
            .contains("must be <group>/<version> or <version>")
    );
    assert_eq!(world.post(CM, &owned(&json!([{ "uid": 7 }]))).code, 400);
}

#[test]
fn collapses_repeated_owner_references_with_a_warning() {
    let mut world = World::new();
    let mut blocking = owner("b", "1");
    blocking["blockOwnerDeletion"] = json!(true);
    let reply = world
        .post(
            CM,
            &owned(&json!([owner("b", "1"), blocking, owner("b", "1")])),
        )
        .ok();
    assert_eq!(
        reply.metadata("ownerReferences"),
        &json!([owner("b", "1"), blocking])
    );
    assert_eq!(
        reply.warnings,
        [
            ".metadata.ownerReferences contains duplicate entries; API server dedups owner references \
          in 1.20+, and may reject such requests as early as 1.24; please fix your requests; \
          duplicate UID(s) observed: 1"
        ]
    );
    let body = json!({ "metadata": { "ownerReferences": [owner("c", "2"), owner("c", "2")] } });
    assert_eq!(
        world.merge(&format!("{CM}/a"), &body).ok().warnings.len(),
        1
    );
}

#[test]
fn refuses_to_change_what_is_immutable() {
    let mut world = World::new();
    let created = world.post(CM, &cm("a")).ok();
    let path = format!("{CM}/a");
    for (field, value) in [
        ("uid", json!("other")),
        ("deletionTimestamp", json!("2030-01-01T00:00:00Z")),
        ("deletionGracePeriodSeconds", json!(5)),
    ] {
        let reply = world.merge(&path, &json!({ "metadata": { field: value } }));
        assert_eq!(reply.code, 422, "{field}");
        let text = format!(
            "ConfigMap \"a\" is invalid: metadata.{field}: Invalid value: {value}: field is immutable"
        );
        assert_eq!(reply.message(), text);
    }
    for (field, text) in [
        (
            "name",
            "the name of the object (other) does not match the name on the URL (a)",
        ),
        (
            "namespace",
            "the namespace of the provided object does not match the namespace sent on the request",
        ),
    ] {
        let reply = world.merge(&path, &json!({ "metadata": { field: "other" } }));
        assert_eq!((reply.code, reply.message()), (400, text));
    }
    assert_eq!(world.get(&path).json, created.json);
    let mut body = created.json.clone();
    body["metadata"]["uid"] = json!("other");
    let reply = world.put(&path, &body);
    assert_eq!(reply.code, 409);
    let text = format!(
        "Precondition failed: UID in precondition: other, UID in object meta: {}",
        created.uid()
    );
    assert!(reply.message().contains(&text));
}

#[test]
fn writes_the_text_of_secrets_as_data() {
    let mut world = World::new();
    let body = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "a" },
        "stringData": { "k": "hello" },
    });
    let reply = world.post("/api/v1/namespaces/default/secrets", &body).ok();
    assert_eq!(reply.json["data"], json!({ "k": "aGVsbG8=" }));
    assert_eq!(reply.json.get("stringData"), None);
    assert_eq!(reply.json["type"], "Opaque");
}
