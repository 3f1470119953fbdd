//! The requests of writes, word for word, with their preconditions, and what their answers mean.

use std::sync::Arc;

use serde_json::{Value, json};
use sundown_engine::wire::{Call, Method, Reply, answered, call};
use sundown_engine::{Effect, Input};
use sundown_model::{
    Answer, Draft, Form, KnownKind, Outcome, Part, Patch, Propagation, RefusalReason, Why, Write,
};

use crate::rig::{A, a, at, id, toy, ty};
use crate::toy::{BOX, TOY};

const NAMESPACE: KnownKind = KnownKind {
    group: "",
    version: "v1",
    kind: "Namespace",
    plural: "namespaces",
};

fn effect(kind: &KnownKind, write: Write) -> Effect {
    let mut form = Form::metadata();
    form.add(&["/spec"]);
    Effect::Write {
        id: id(7),
        ty: Arc::new(ty(kind)),
        form,
        by: "toys".to_owned(),
        why: Arc::new(Why {
            code: "Toy".into(),
            sentence: String::new(),
        }),
        write,
    }
}

fn delete(kind: &KnownKind, object: &A, how: Propagation) -> Effect {
    let at = object.build().seen();
    effect(kind, Write::Delete { at, how })
}

fn patch(kind: &KnownKind, object: &A, part: Part, patch: Value) -> Effect {
    let (at, patch) = (object.build().seen(), Patch::Merge(patch));
    effect(kind, Write::Patch { at, part, patch })
}

fn delete_toy() -> Effect {
    delete(&TOY, &toy("a"), Propagation::Background)
}

fn unfinalize(kind: &KnownKind, object: &A) -> Effect {
    let nothing = json!({ "metadata": { "finalizers": null } });
    patch(kind, object, Part::Main, nothing)
}

fn body(call: &Call) -> Value {
    serde_json::from_slice(&call.body).expect("a body is JSON")
}

#[track_caller]
fn outcome(effect: &Effect, code: u16, body: &Value) -> Outcome {
    outcome_of(effect, code, body.to_string().as_bytes())
}

#[track_caller]
fn outcome_of(effect: &Effect, code: u16, body: &[u8]) -> Outcome {
    let body = body.to_vec();
    match answered(effect, Reply::Answered { code, body }) {
        Some(Input::Wrote { id, outcome }) if id == effect.id() => outcome,
        other => unreachable!("expected an outcome, got {other:?}"),
    }
}

#[track_caller]
fn refusal(effect: &Effect, code: u16, body: &Value) -> (RefusalReason, Option<u32>) {
    match outcome(effect, code, body) {
        Outcome::Refused(refusal) => (refusal.reason, refusal.retry_after_seconds),
        other => unreachable!("expected a refusal, got {other:?}"),
    }
}

fn status(reason: &str, details: &Value) -> Value {
    json!({ "kind": "Status", "reason": reason, "message": "no", "details": details })
}

#[test]
fn a_delete_carries_the_uid_and_the_revision_that_it_was_decided_on() {
    for (how, word) in [
        (Propagation::Background, "Background"),
        (Propagation::Foreground, "Foreground"),
        (Propagation::Orphan, "Orphan"),
    ] {
        let call = call(&delete(&TOY, &toy("a").rv(42), how)).unwrap();
        assert_eq!(call.method, Method::Delete);
        assert_eq!(call.path, "/apis/toys.io/v1/namespaces/here/toys/a");
        assert_eq!(call.query, []);
        assert_eq!(call.content_type, Some("application/json"));
        let expect = json!({
            "kind": "DeleteOptions",
            "apiVersion": "v1",
            "preconditions": { "uid": "uid-a", "resourceVersion": "42" },
            "propagationPolicy": word,
        });
        assert_eq!(body(&call), expect);
    }
}

#[test]
fn a_patch_carries_the_uid_and_the_revision_that_it_was_decided_on() {
    for (part, path) in [
        (Part::Main, "/api/v1/namespaces/here/boxes/a"),
        (Part::Status, "/api/v1/namespaces/here/boxes/a/status"),
        (Part::Finalize, "/api/v1/namespaces/here/boxes/a/finalize"),
    ] {
        let change = json!({ "metadata": { "finalizers": null }, "status": { "x": 1 } });
        let call = call(&patch(&BOX, &a(&BOX, "a").rv(42), part, change)).unwrap();
        assert_eq!((call.method, call.path.as_str()), (Method::Patch, path));
        assert_eq!(call.content_type, Some("application/merge-patch+json"));
        let expect = json!({
            "metadata": { "finalizers": null, "uid": "uid-a", "resourceVersion": "42" },
            "status": { "x": 1 },
        });
        assert_eq!(body(&call), expect);
    }
}

#[test]
fn the_end_of_a_grace_period_is_a_guarded_delete_without_grace() {
    let at = toy("a").rv(42).build().seen();
    let call = call(&effect(&TOY, Write::Finish { at })).unwrap();
    assert_eq!(call.method, Method::Delete);
    let body = body(&call);
    assert_eq!(body["gracePeriodSeconds"], 0);
    let guard = json!({ "uid": "uid-a", "resourceVersion": "42" });
    assert_eq!(body["preconditions"], guard);
}

#[test]
fn a_binding_names_the_pod_that_was_seen_and_its_answer_says_only_that_it_is_done() {
    let target = json!({ "target": { "kind": "Node", "name": "n" } });
    let bind = patch(&BOX, &a(&BOX, "a").rv(42), Part::Binding, target);
    let call = call(&bind).unwrap();
    assert_eq!(call.method, Method::Post);
    assert_eq!(call.path, "/api/v1/namespaces/here/boxes/a/binding");
    assert_eq!(call.content_type, Some("application/json"));
    let expect = json!({
        "apiVersion": "v1", "kind": "Binding",
        "metadata": { "name": "a", "uid": "uid-a", "resourceVersion": "42" },
        "target": { "kind": "Node", "name": "n" },
    });
    assert_eq!(body(&call), expect);
    let success = json!({ "kind": "Status", "status": "Success" });
    let done = Outcome::Done(Answer::Accepted);
    assert_eq!(outcome(&bind, 201, &success), done);
}

#[test]
fn a_patch_cannot_bring_preconditions_of_its_own() {
    let liar = json!({ "metadata": { "uid": "another", "resourceVersion": "1" } });
    let call = call(&patch(&TOY, &toy("a").rv(42), Part::Main, liar)).unwrap();
    let expect = json!({ "metadata": { "uid": "uid-a", "resourceVersion": "42" } });
    assert_eq!(body(&call), expect);
}

#[test]
fn a_create_goes_to_the_collection_as_it_is() {
    let (key, body) = (toy("a").key(), json!({ "any": "thing" }));
    let create = effect(&TOY, Write::Create(Arc::new(Draft::new(key, body))));
    let call = call(&create).unwrap();
    assert_eq!(call.method, Method::Post);
    assert_eq!(call.path, "/apis/toys.io/v1/namespaces/here/toys");
    assert_eq!(call.body, br#"{"any":"thing"}"#);
}

#[test]
fn a_delete_that_left_finalizers_gives_the_object() {
    let left = toy("a").rv(9).deleting();
    let answer = Answer::Object(left.build());
    assert_eq!(
        outcome(&delete_toy(), 200, &left.json),
        Outcome::Done(answer)
    );
}

#[test]
fn a_delete_that_left_a_grace_period_gives_the_object() {
    let graceful = toy("a")
        .meta("deletionTimestamp", json!(at(30_000).to_string()))
        .meta("deletionGracePeriodSeconds", json!(30));
    let answer = Answer::Object(graceful.build());
    assert_eq!(
        outcome(&delete_toy(), 202, &graceful.json),
        Outcome::Done(answer)
    );
}

#[test]
fn a_delete_that_removed_the_object_says_gone_in_three_ways() {
    let removed = toy("a").deleting().meta("finalizers", json!([]));
    let untouched = toy("a");
    let success = json!({ "kind": "Status", "status": "Success" });
    for body in [&removed.json, &untouched.json, &success] {
        assert_eq!(
            outcome(&delete_toy(), 200, body),
            Outcome::Done(Answer::Gone),
            "{body}"
        );
    }
}

#[test]
fn a_patch_that_took_the_last_finalizer_of_a_terminating_object_says_gone() {
    let object = toy("a").deleting();
    let last = object.clone().meta("finalizers", json!(null));
    assert_eq!(
        outcome(&unfinalize(&TOY, &object), 200, &last.json),
        Outcome::Done(Answer::Gone)
    );
    let living = toy("a").rv(9);
    let answer = Answer::Object(living.build());
    assert_eq!(
        outcome(&unfinalize(&TOY, &object), 200, &living.json),
        Outcome::Done(answer),
        "nothing was being deleted"
    );
}

#[test]
fn the_metadata_of_a_namespace_does_not_say_that_it_is_gone() {
    let terminating = a(&NAMESPACE, "here")
        .meta("namespace", json!(null))
        .deleting()
        .meta("finalizers", json!(null));
    let answer = Answer::Object(terminating.build());
    for effect in [
        delete(&NAMESPACE, &terminating, Propagation::Background),
        unfinalize(&NAMESPACE, &terminating),
    ] {
        assert_eq!(
            outcome(&effect, 200, &terminating.json),
            Outcome::Done(answer.clone())
        );
    }
}

#[test]
fn a_404_says_gone_only_if_a_status_names_the_object() {
    let named = status("NotFound", &json!({ "name": "a", "kind": "toys" }));
    let not_found = (RefusalReason::NotFound, None);
    assert_eq!(refusal(&delete_toy(), 404, &named), not_found);
    for other in [
        status("NotFound", &json!({ "name": "another" })),
        status("NotFound", &json!({})),
        status("", &json!({ "name": "a" })),
        json!("404 page not found"),
    ] {
        let busy = (RefusalReason::Busy, None);
        assert_eq!(refusal(&delete_toy(), 404, &other), busy, "{other}");
    }
}

#[test]
fn a_409_is_a_conflict_or_says_that_something_exists_already() {
    let conflict = status("Conflict", &json!({ "name": "a" }));
    let exists = status("AlreadyExists", &json!({ "name": "a" }));
    let reason = |body| refusal(&delete_toy(), 409, body).0;
    assert_eq!(reason(&conflict), RefusalReason::Conflict);
    assert_eq!(reason(&exists), RefusalReason::AlreadyExists);
    assert_eq!(reason(&json!("plain")), RefusalReason::Conflict);
}

#[test]
fn other_refusals_keep_their_meaning_and_the_pause_that_the_server_asks_for() {
    let busy = status("TooManyRequests", &json!({ "retryAfterSeconds": 7 }));
    let nothing = json!({});
    for (code, body, expect) in [
        (429, &busy, (RefusalReason::Busy, Some(7))),
        (503, &busy, (RefusalReason::Busy, Some(7))),
        (429, &nothing, (RefusalReason::Busy, None)),
        (401, &nothing, (RefusalReason::Forbidden, None)),
        (403, &nothing, (RefusalReason::Forbidden, None)),
        (400, &nothing, (RefusalReason::Invalid, None)),
        (422, &nothing, (RefusalReason::Invalid, None)),
    ] {
        assert_eq!(refusal(&delete_toy(), code, body), expect, "{code}");
    }
}

#[test]
fn a_server_error_and_an_unreadable_success_leave_the_fate_unknown() {
    let server_error = status("InternalError", &json!({}));
    for code in [500, 502, 504] {
        assert_eq!(
            outcome(&delete_toy(), code, &server_error),
            Outcome::Unknown
        );
    }
    for body in [&b"not json"[..], b"", b"{}", b"[]"] {
        assert_eq!(outcome_of(&delete_toy(), 200, body), Outcome::Unknown);
    }
}

#[test]
fn a_write_that_was_lost_is_unknown_and_one_that_never_left_is_not() {
    let lost = answered(&delete_toy(), Reply::Lost("reset".to_owned()));
    let (id, outcome) = (id(7), Outcome::Unknown);
    assert_eq!(lost, Some(Input::Wrote { id, outcome }));
    let unsent = answered(&delete_toy(), Reply::NotSent("refused".to_owned()));
    assert!(
        matches!(
            &unsent,
            Some(Input::Wrote { outcome: Outcome::Refused(refusal), .. })
                if refusal.reason == RefusalReason::Busy
        ),
        "{unsent:?}"
    );
}
