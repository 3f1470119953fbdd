//! Events and their age.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use sundown_model::{Action, Change, Controller, Decision, Explain, Propagation, Write};

use super::{EventTtl, Reason};
use crate::testing::{A, Scene, a, at};

/// An Event that was made at the beginning.
fn event() -> A {
    a("event", "said").with("/metadata/creationTimestamp", json!(at(0).to_string()))
}

fn again(event: A, field: &str, seconds: i64) -> A {
    event.with(field, json!(at(seconds).to_string()))
}

#[track_caller]
fn check(event: &A, seconds: i64, expect: &Decision<Reason>) {
    let decision = Scene::new(EventTtl)
        .seeing(event)
        .decide(&event.key(), seconds);
    assert!(!decision.reason.code().is_empty() && !decision.reason.sentence().is_empty());
    assert_eq!(&decision, expect);
}

fn kept_until(seconds: i64) -> Decision<Reason> {
    let due_at = at(seconds);
    let reason = Reason::NotDue { due_at };
    assert_eq!(reason.blockers().len(), 1);
    Decision::wake_at(due_at, reason)
}

fn gone(event: &A, seconds: i64) -> Decision<Reason> {
    let due_at = at(seconds);
    let delete = Write::Delete {
        at: event.build().seen(),
        how: Propagation::Background,
    };
    Decision::act(Action::Api(delete), Reason::Expired { due_at })
}

#[test]
fn an_event_goes_an_hour_after_it_was_made_and_not_before() {
    check(&event(), 0, &kept_until(3600));
    check(&event(), 3599, &kept_until(3600));
    check(&event(), 3600, &gone(&event(), 3600));
}

#[test]
fn an_event_that_happens_again_stays_for_another_hour() {
    for field in ["/lastTimestamp", "/eventTime", "/series/lastObservedTime"] {
        let repeated = again(event(), field, 3000);
        check(&repeated, 3600, &kept_until(6600));
        check(&repeated, 6600, &gone(&repeated, 6600));
    }
}

/// Whatever a client writes there, nothing stays for ever.
#[test]
fn an_instant_that_is_still_to_come_keeps_nothing() {
    let odd = again(event(), "/lastTimestamp", 1_000_000);
    check(&odd, 10, &kept_until(3600));
    check(&odd, 3600, &gone(&odd, 3600));
    let odd = event().with("/lastTimestamp", json!({ "not": "a time" }));
    check(&odd, 3600, &gone(&odd, 3600));
}

#[test]
fn what_cannot_be_judged_or_is_on_its_way_is_left() {
    let timeless = event().with("/metadata/creationTimestamp", Value::Null);
    check(&timeless, 10_000, &Decision::idle(Reason::TimeMissing));
    let going = event().deleting(&["example.com/mine"]);
    check(&going, 10_000, &Decision::idle(Reason::AlreadyDeleting));
    let nothing = Scene::new(EventTtl).decide(&event().key(), 0);
    assert_eq!(nothing, Decision::idle(Reason::Gone));
}

#[test]
fn only_events_are_looked_at() {
    let scene = Scene::new(EventTtl);
    let mut touched = BTreeSet::new();
    let mut controller = scene.controller.clone();
    for object in [event(), a("pod", "pod")] {
        let change = Change::Added(object.build());
        controller.observe(&change, &scene.cache, &mut touched);
    }
    assert_eq!(touched, BTreeSet::from([event().key()]));
    assert_eq!(controller.keys_about(&event().build()), [event().key()]);
    assert!(controller.keys_about(&a("pod", "pod").build()).is_empty());
}
