//! The lines of a watch.

use serde_json::{Value, json};
use sundown_engine::wire::line;
use sundown_engine::{Input, WatchEvent};
use sundown_model::{Form, Rv};

use crate::rig::{id, toy, ty};
use crate::toy::TOY;

#[track_caller]
fn event(text: &str) -> WatchEvent {
    let mut form = Form::metadata();
    form.add(&["/spec"]);
    match line(id(7), &ty(&TOY), &form, text.as_bytes()) {
        Input::Watched { id: given, event } if given == id(7) => event,
        other => unreachable!("expected an event, got {other:?}"),
    }
}

#[track_caller]
fn event_of(kind: &str, object: &Value) -> WatchEvent {
    event(&json!({ "type": kind, "object": object }).to_string())
}

#[test]
fn additions_and_changes_are_the_same_and_deletions_are_not() {
    let toy = toy("a").doomed();
    let put = WatchEvent::Put(toy.build());
    assert_eq!(event_of("ADDED", &toy.json), put);
    assert_eq!(event_of("MODIFIED", &toy.json), put);
    assert_eq!(
        event_of("DELETED", &toy.json),
        WatchEvent::Deleted(toy.build())
    );
}

#[test]
fn a_bookmark_needs_nothing_but_a_revision() {
    let bookmark = json!({ "kind": "Toy", "metadata": { "resourceVersion": "42" } });
    assert_eq!(
        event_of("BOOKMARK", &bookmark),
        WatchEvent::Bookmark(Rv::new(42))
    );
}

#[test]
fn an_error_410_wants_a_list_and_another_error_a_watch() {
    let error = |code: u16| json!({ "kind": "Status", "code": code, "reason": "Expired" });
    assert_eq!(
        event_of("ERROR", &error(410)),
        WatchEvent::Closed { expired: true }
    );
    assert_eq!(
        event_of("ERROR", &error(500)),
        WatchEvent::Closed { expired: false }
    );
}

#[test]
fn an_object_that_cannot_be_read_is_not_skipped_but_listed() {
    let nameless = json!({ "metadata": { "uid": "u", "resourceVersion": "1" } });
    let unordered = toy("a").meta("resourceVersion", json!("newest"));
    for object in [nameless, unordered.json, json!({}), json!(null)] {
        for kind in ["ADDED", "MODIFIED", "DELETED", "BOOKMARK"] {
            if kind == "BOOKMARK" && object["metadata"]["resourceVersion"] == json!("1") {
                continue;
            }
            assert_eq!(
                event_of(kind, &object),
                WatchEvent::Closed { expired: true },
                "{kind} {object}"
            );
        }
    }
}

#[test]
fn a_line_that_cannot_be_read_ends_the_watch() {
    for text in ["", "{", "null", "[]", r#"{"type":"ADDED"}"#, "half a li"] {
        assert_eq!(event(text), WatchEvent::Closed { expired: false }, "{text}");
    }
}
