//! DELETE of collections: A15 of the acceptance list.

use serde_json::{Value, json};

use crate::world::{CM, JOBS, NAMESPACES, World, cm, held, job};

fn labelled(name: &str, app: &str) -> Value {
    let mut body = cm(name);
    body["metadata"]["labels"] = json!({ "app": app });
    body
}

#[test]
fn deletes_what_matches_and_nothing_else() {
    let mut world = World::new();
    world.post(CM, &labelled("a", "x")).ok();
    world.post(CM, &labelled("b", "x")).ok();
    let kept = world.post(CM, &labelled("c", "y")).ok().uid();
    let rv = world.get(CM).rv();
    let mut watch = world.watch(&format!("{CM}?watch=1&resourceVersion={rv}"));
    let reply = world
        .delete(&format!("{CM}?labelSelector=app=x"), &Value::Null)
        .ok();
    assert_eq!(reply.json["kind"], "ConfigMapList");
    assert_eq!(reply.json["items"].as_array().map(Vec::len), Some(2));
    let left = world.get(CM);
    assert_eq!(left.json["items"].as_array().map(Vec::len), Some(1));
    assert_eq!(left.json["items"][0]["metadata"]["uid"], kept.as_str());
    assert_eq!(world.seen(&mut watch), ["DELETED a", "DELETED b"]);
}

#[test]
fn applies_the_same_options_to_every_item() {
    let mut world = World::new();
    world.post(CM, &cm("a")).ok();
    world.post(CM, &held("b", &["example.com/x"])).ok();
    world
        .delete(CM, &json!({ "propagationPolicy": "Foreground" }))
        .ok();
    let finalizers = |world: &mut World, name: &str| {
        world
            .get(&format!("{CM}/{name}"))
            .ok()
            .metadata("finalizers")
            .clone()
    };
    assert_eq!(finalizers(&mut world, "a"), json!(["foregroundDeletion"]));
    assert_eq!(
        finalizers(&mut world, "b"),
        json!(["example.com/x", "foregroundDeletion"])
    );
}

#[test]
fn deletes_nothing_when_a_precondition_fails_for_one() {
    let mut world = World::new();
    let uid = world.post(CM, &cm("a")).ok().uid();
    world.post(CM, &cm("b")).ok();
    let reply = world.delete(CM, &json!({ "preconditions": { "uid": uid } }));
    assert_eq!(reply.code, 409);
    assert!(world.exists(&format!("{CM}/a")) && world.exists(&format!("{CM}/b")));
}

#[test]
fn warns_once_for_jobs_and_refuses_namespaces() {
    let mut world = World::new();
    world.post(JOBS, &job("a")).ok();
    assert_eq!(world.delete(JOBS, &Value::Null).ok().warnings.len(), 1);
    assert_eq!(world.delete(NAMESPACES, &Value::Null).code, 405);
    assert!(world.exists("/api/v1/namespaces/kube-node-lease"));
}
