//! Merge and JSON patches, with the semantics of Go's libraries.

use serde_json::{Value, json};

use crate::world::{CM, JSON_PATCH, World, cm};

const STRATEGIC: &str = "application/strategic-merge-patch+json";
const PATH: &str = "/api/v1/namespaces/default/configmaps/a";

fn with_cm() -> World {
    let mut world = World::new();
    let mut body = cm("a");
    body["data"] = json!({ "x": "1", "y": "2" });
    world.post(CM, &body).ok();
    world
}

fn json_patch(world: &mut World, operations: &Value) -> (u16, Value) {
    let reply = world.patch(PATH, JSON_PATCH, operations);
    (reply.code, reply.json)
}

#[test]
fn merges_and_removes_by_null() {
    let mut world = with_cm();
    let reply = world
        .merge(PATH, &json!({ "data": { "x": null, "z": "3" } }))
        .ok();
    assert_eq!(reply.json["data"], json!({ "y": "2", "z": "3" }));
    assert_eq!(world.merge(PATH, &json!([])).code, 400);
}

#[test]
fn takes_revision_and_uid_of_a_patch_as_preconditions() {
    let mut world = with_cm();
    let (rv, uid) = (world.get(PATH).rv(), world.get(PATH).uid());
    let patch = |rv: &str, uid: &str| json!({ "metadata": { "resourceVersion": rv, "uid": uid }, "data": { "x": "9" } });
    assert_eq!(world.merge(PATH, &patch("1", &uid)).code, 409);
    assert_eq!(world.merge(PATH, &patch(&rv, "other")).code, 422);
    assert_eq!(world.get(PATH).json["data"]["x"], "1");
    world.merge(PATH, &patch(&rv, &uid)).ok();
    assert_eq!(
        world.merge(PATH, &patch(&rv, &uid)).code,
        409,
        "the revision has moved"
    );
}

#[test]
fn tests_a_missing_path_for_null_as_go_does() {
    // kube-rs' finalizer helper sends exactly this on objects without finalizers.
    let mut world = with_cm();
    let operations = json!([
        { "op": "test", "path": "/metadata/finalizers", "value": null },
        { "op": "add", "path": "/metadata/finalizers", "value": ["example.com/x"] },
    ]);
    let (code, json) = json_patch(&mut world, &operations);
    assert_eq!(
        (code, &json["metadata"]["finalizers"]),
        (200, &json!(["example.com/x"]))
    );
    let (code, json) = json_patch(&mut world, &operations);
    assert_eq!(code, 422, "now there is something");
    assert_eq!(
        json["message"],
        "the server rejected our request due to an error in our request"
    );
    let operations = json!([{ "op": "test", "path": "/metadata/missing", "value": "x" }]);
    assert_eq!(
        json_patch(&mut world, &operations).0,
        422,
        "only null matches nothing"
    );
}

#[test]
fn counts_negative_indices_from_the_end() {
    let mut world = with_cm();
    let finalizers = json!(["a.io/a", "a.io/b", "a.io/c"]);
    let held = json!({ "metadata": { "finalizers": finalizers } });
    world.merge(PATH, &held).ok();
    let operations = json!([
        { "op": "replace", "path": "/metadata/finalizers/-1", "value": "a.io/z" },
        { "op": "remove", "path": "/metadata/finalizers/-3" },
        { "op": "add", "path": "/metadata/finalizers/-", "value": "a.io/end" },
    ]);
    let (code, json) = json_patch(&mut world, &operations);
    let expected = json!(["a.io/b", "a.io/z", "a.io/end"]);
    assert_eq!((code, &json["metadata"]["finalizers"]), (200, &expected));
    let operations = json!([{ "op": "remove", "path": "/metadata/finalizers/-9" }]);
    assert_eq!(json_patch(&mut world, &operations).0, 422);
}

#[test]
fn applies_all_operations_or_none() {
    let mut world = with_cm();
    let before = world.get(PATH).json;
    let operations = json!([
        { "op": "replace", "path": "/data/x", "value": "changed" },
        { "op": "remove", "path": "/data/missing" },
    ]);
    assert_eq!(json_patch(&mut world, &operations).0, 422);
    assert_eq!(world.get(PATH).json, before);
    assert_eq!(
        json_patch(&mut world, &json!([{ "op": "explode", "path": "/" }])).0,
        422
    );
    assert_eq!(json_patch(&mut world, &json!({ "not": "a list" })).0, 400);
}

#[test]
fn refuses_a_patch_that_changes_the_type() {
    let mut world = with_cm();
    assert_eq!(world.merge(PATH, &json!({ "kind": "Secret" })).code, 422);
    let labels = json!({ "metadata": { "labels": "no map" } });
    assert_eq!(world.merge(PATH, &labels).code, 422);
}

#[test]
fn finds_nothing_to_patch() {
    let mut world = World::new();
    let reply = world.merge(PATH, &json!({}));
    assert_eq!(
        (reply.code, reply.message()),
        (404, "configmaps \"a\" not found")
    );
}

#[test]
fn releases_owners_by_the_strategic_patch_of_upstreams_collector() {
    let mut world = with_cm();
    let owner =
        |uid: &str| json!({ "apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": uid });
    let body = json!({
        "metadata": { "ownerReferences": [owner("1"), owner("2")], "finalizers": ["a.io/x", "a.io/y"] },
    });
    let uid = world.merge(PATH, &body).ok().uid();
    let patch = |owner: &str| {
        json!({
            "metadata": {
                "uid": uid,
                "ownerReferences": [{ "$patch": "delete", "uid": owner }],
                "$deleteFromPrimitiveList/finalizers": ["a.io/x"],
            },
        })
    };
    let reply = world.patch(PATH, STRATEGIC, &patch("1")).ok();
    assert_eq!(reply.metadata("ownerReferences"), &json!([owner("2")]));
    assert_eq!(reply.metadata("finalizers"), &json!(["a.io/y"]));
    let again = world.patch(PATH, STRATEGIC, &patch("1")).ok();
    assert_eq!(
        again.rv(),
        reply.rv(),
        "an owner that is not there: nothing to do"
    );
    let reply = world.patch(PATH, STRATEGIC, &patch("2")).ok();
    assert_eq!(reply.metadata("ownerReferences"), &Value::Null);
    let reply = world.patch(
        PATH,
        STRATEGIC,
        &json!({ "metadata": { "finalizers": ["b.io/z"] } }),
    );
    assert_eq!(
        reply.ok().metadata("finalizers"),
        &json!(["b.io/z", "a.io/y"]),
        "a set, what is new in front"
    );
}

#[test]
fn merges_containers_by_name_and_drops_lists_it_does_not_know() {
    let mut world = World::new();
    let of_template = |spec: Value| json!({ "spec": { "template": { "spec": spec } } });
    let mut deployment = of_template(json!({ "containers": [
        { "name": "a", "image": "1", "args": ["x"] }, { "name": "b", "image": "1" },
    ] }));
    deployment["metadata"] = json!({ "name": "d" });
    deployment["spec"]["selector"] = json!({ "matchLabels": { "app": "d" } });
    deployment["spec"]["template"]["metadata"] = json!({ "labels": { "app": "d" } });
    let deployments = "/apis/apps/v1/namespaces/default/deployments";
    world.post(deployments, &deployment).ok();
    let path = format!("{deployments}/d");
    let change = of_template(json!({
        "$setElementOrder/containers": [{ "name": "b" }, { "name": "a" }],
        "containers": [{ "name": "a", "image": "2", "args": ["y"] }],
        "hostname": "n",
    }));
    let reply = world.patch(&path, STRATEGIC, &change).ok();
    let spec = &reply.json["spec"]["template"]["spec"];
    let containers = &spec["containers"];
    assert_eq!(
        (&containers[0]["name"], &containers[0]["image"]),
        (&json!("b"), &json!("1"))
    );
    assert_eq!(
        (&containers[1]["name"], &containers[1]["image"]),
        (&json!("a"), &json!("2"))
    );
    assert_eq!(containers[1]["args"], json!(["y"]));
    assert_eq!(spec["hostname"], "n");
    let reply = world.patch(&path, STRATEGIC, &json!({ "spec": { "strangers": [1] } }));
    assert_eq!(reply.warnings, ["unknown field \"spec.strangers\""]);
    assert!(reply.ok().json["spec"].get("strangers").is_none());
    let reply = world.patch(
        &path,
        STRATEGIC,
        &of_template(json!({ "containers": [{}] })),
    );
    assert!(
        reply
            .message()
            .ends_with("does not contain declared merge key: name")
    );
}

/// Before there was a bound, a deep object was stored and could never be read again.
#[test]
fn refuses_what_could_not_be_read_again() {
    let mut world = with_cm();
    let before = world.get(PATH).json;
    let nested = (0..90).fold(json!("end"), |inner, _| json!({ "n": inner }));
    let mut body = cm("deep");
    body["data"] = (0..15).fold(nested.clone(), |inner, _| json!({ "n": inner }));
    let reply = world.post(CM, &body);
    assert_eq!((reply.code, reply.message()), (400, "exceeded max depth"));
    let deep = "/data".to_owned() + &"/n".repeat(90);
    let twice = json!([
        { "op": "replace", "path": "/data", "value": nested },
        { "op": "replace", "path": deep, "value": nested },
    ]);
    assert_eq!(json_patch(&mut world, &twice).0, 400);
    assert_eq!(
        world.merge(PATH, &json!({ "data": body["data"] })).code,
        400
    );
    assert_eq!(world.get(PATH).json, before);
}

#[test]
fn refuses_a_patch_that_copies_without_end() {
    let mut world = with_cm();
    let copy =
        |index: usize| json!({ "op": "copy", "from": "/data", "path": format!("/data/c{index}") });
    let operations: Vec<Value> = (0..40).map(copy).collect();
    let (code, _) = json_patch(&mut world, &Value::Array(operations));
    assert_eq!(code, 413);
    let one = json!([{ "op": "copy", "from": "/data/x", "path": "/data/c1" }]);
    assert_eq!(json_patch(&mut world, &one).0, 200);
}
