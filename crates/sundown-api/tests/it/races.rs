//! Two requests on one snapshot: what the read dependencies of a transaction are for (S2, S8, A16).

use serde_json::{Value, json};
use sundown_api::{Cx, Method, Request, Server, Verdict};

use crate::world::{CM, MERGE, NAMESPACES, World, cm, request};

/// What a request decides on this snapshot; nothing is committed.
fn decide(server: &Server, request: &Request, world: &World) -> Verdict {
    server.handle(
        request,
        &mut Cx {
            now: world.now,
            entropy: &mut || 7,
        },
    )
}

fn commit(world: &mut World, verdict: &Verdict) -> Option<u16> {
    match verdict {
        Verdict::Commit(commit) => world
            .server
            .commit(commit, world.now)
            .ok()
            .map(|response| response.code),
        Verdict::Answer(response) => Some(response.code),
        Verdict::Watch(_) | Verdict::Log(_) => None,
    }
}

fn patch(path: &str, body: &Value) -> Request {
    Request {
        content_type: Some(MERGE.into()),
        ..request(Method::Patch, path, body)
    }
}

#[test]
fn never_loses_an_acknowledged_finalizer_to_a_delete() {
    let path = format!("{CM}/a");
    let add = patch(
        &path,
        &json!({ "metadata": { "finalizers": ["example.com/x"] } }),
    );
    let delete = request(Method::Delete, &path, &Value::Null);

    let mut world = World::new();
    world.post(CM, &cm("a")).ok();
    let decided = decide(&world.server, &delete, &world);
    assert_eq!(world.send(&add).code, 200);
    assert_eq!(
        commit(&mut world, &decided),
        None,
        "decided on a state without the finalizer"
    );
    let reply = world.send(&delete);
    assert_eq!(reply.metadata("finalizers"), &json!(["example.com/x"]));
    assert!(world.exists(&path));
}

#[test]
fn never_adds_a_finalizer_to_what_a_delete_took() {
    let path = format!("{CM}/a");
    let add = patch(
        &path,
        &json!({ "metadata": { "finalizers": ["example.com/x"] } }),
    );
    let mut world = World::new();
    world.post(CM, &cm("a")).ok();
    let decided = decide(&world.server, &add, &world);
    world.delete(&path, &Value::Null).ok();
    assert_eq!(commit(&mut world, &decided), None);
    assert_eq!(world.send(&add).code, 404);
}

#[test]
fn never_creates_in_a_namespace_that_began_to_terminate() {
    let mut world = World::new();
    let namespace = json!({ "metadata": { "name": "n" } });
    world.post(NAMESPACES, &namespace).ok();
    let create = request(Method::Post, "/api/v1/namespaces/n/configmaps", &cm("a"));
    let decided = decide(&world.server, &create, &world);
    world.delete(&format!("{NAMESPACES}/n"), &Value::Null).ok();
    assert_eq!(commit(&mut world, &decided), None);
    assert_eq!(world.send(&create).code, 403);
}

#[test]
fn applies_a_patch_without_revision_on_the_newer_state() {
    let path = format!("{CM}/a");
    let mut world = World::new();
    world.post(CM, &cm("a")).ok();
    let mine = patch(&path, &json!({ "data": { "mine": "1" } }));
    let decided = decide(&world.server, &mine, &world);
    world
        .merge(&path, &json!({ "data": { "other": "2" } }))
        .ok();
    assert_eq!(commit(&mut world, &decided), None);
    let reply = world.send(&mine).ok();
    assert_eq!(reply.json["data"], json!({ "mine": "1", "other": "2" }));
}

#[test]
fn refuses_a_stale_revision_and_changes_nothing() {
    let path = format!("{CM}/a");
    let mut world = World::new();
    let old = world.post(CM, &cm("a")).ok();
    world.merge(&path, &json!({ "data": { "x": "1" } })).ok();
    let before = world.get(&path).json;
    let text = "Operation cannot be fulfilled on configmaps \"a\": the object has been modified; \
                please apply your changes to the latest version and try again";
    let reply = world.put(&path, &old.json);
    assert_eq!(
        (reply.code, reply.reason(), reply.message()),
        (409, "Conflict", text)
    );
    let body = json!({ "metadata": { "resourceVersion": old.rv() }, "data": { "x": "2" } });
    let reply = world.merge(&path, &body);
    assert_eq!((reply.code, reply.message()), (409, text));
    assert_eq!(world.get(&path).json, before);
}

#[test]
fn gives_a_recreated_object_another_uid() {
    let path = format!("{CM}/a");
    let mut world = World::new();
    let first = world.post(CM, &cm("a")).ok();
    world.delete(&path, &Value::Null).ok();
    let second = world.post(CM, &cm("a")).ok();
    assert_ne!(first.uid(), second.uid());
    let options = json!({ "preconditions": { "uid": first.uid() } });
    assert_eq!(world.delete(&path, &options).code, 409);
    assert_eq!(world.get(&path).uid(), second.uid());
}

/// What a `Commit` answers that cannot forget what it was decided on.
struct CannotForget;

/// A method of `Commit` itself would come before this one, and the test below would not compile.
trait Forgets {
    fn forget_reads(&mut self) -> CannotForget {
        CannotForget
    }
}

impl Forgets for sundown_api::Commit {}

#[test]
fn no_server_can_commit_whatever_happened_since_the_decision() {
    let _: fn(&mut sundown_api::Commit) -> CannotForget = |commit| commit.forget_reads();
}
