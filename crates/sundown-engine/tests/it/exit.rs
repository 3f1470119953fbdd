//! The exit: what no grant covers never leaves, and notes become events once.

use serde_json::{Value, json};
use sundown_engine::{Config, Effect};
use sundown_model::{Draft, Outcome, RefusalReason, Write};

use crate::rig::{Rig, at, catalog, only, refused, toy, writes};
use crate::toy::{BOX, TOY};

#[track_caller]
fn draft_of(effect: &Effect) -> Draft {
    match effect {
        Effect::Write {
            write: Write::Create(draft),
            ..
        } => Draft::clone(draft),
        other => unreachable!("expected a create, got {other:?}"),
    }
}

#[test]
fn a_write_without_a_grant_never_leaves_and_is_counted() {
    let overreaching = toy("a").spec("creates", json!("box"));
    let mut rig = Rig::settled(&[&overreaching, &toy("b").doomed()]);
    let effects = rig.turn();
    assert!(
        matches!(writes(&effects).as_slice(), [Write::Delete { .. }]),
        "only the granted write leaves: {effects:?}"
    );
    assert_eq!(rig.engine.not_granted(), 1);
    assert_eq!(rig.turn_at(3_600_000), [], "it is not tried in a loop");
    assert_eq!(rig.engine.not_granted(), 1);
    let tally = rig.engine.take_tally();
    assert_eq!(
        tally.ungranted,
        [("toys", "create boxes/here/box".to_owned())]
    );
}

#[test]
fn decisions_are_counted_by_their_reasons_until_they_are_taken() {
    let mut rig = Rig::settled(&[&toy("a").doomed(), &toy("b").doomed()]);
    rig.turn();
    let tally = rig.engine.take_tally();
    assert_eq!(tally.decisions.get(&("toys", "Obeys")), Some(&2));
    assert!(rig.engine.take_tally().is_empty());
}

#[test]
fn every_write_says_by_whom_it_was_decided_and_why() {
    let mut rig = Rig::settled(&[&toy("a").doomed()]);
    let effect = only(rig.turn());
    let Effect::Write { by, why, .. } = &effect else {
        unreachable!("expected a write, got {effect:?}")
    };
    assert_eq!((&**by, &*why.code), ("toys", "Obeys"));
    assert!(!why.sentence.is_empty(), "people can read it");
    assert_eq!(rig.engine.controllers().collect::<Vec<_>>(), ["toys"]);
}

#[test]
fn a_note_becomes_an_event_about_its_object() {
    let telling = toy("a").spec("tells", json!("hello"));
    let mut rig = Rig::settled(&[&telling]);
    let draft = draft_of(&only(rig.turn()));
    assert_eq!(draft.key.resource.to_string(), "events");
    assert_eq!(draft.key.namespace_str(), "here");
    let name = draft.key.name.to_string();
    assert!(name.starts_with("a."), "{name}");
    let expect = json!({
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": { "name": name, "namespace": "here" },
        "involvedObject": {
            "apiVersion": "toys.io/v1", "kind": "Toy", "namespace": "here", "name": "a",
            "uid": "uid-a",
        },
        "reason": "ToyTold",
        "message": "hello",
        "type": "Warning",
        "source": { "component": "toys" },
        "firstTimestamp": "2030-01-01T00:00:00Z",
        "lastTimestamp": "2030-01-01T00:00:00Z",
        "count": 1,
    });
    assert_eq!(draft.body, expect);
}

#[test]
fn a_note_is_told_once_however_often_it_is_decided() {
    let telling = toy("a").spec("tells", json!("hello"));
    let mut rig = Rig::settled(&[&telling]);
    let event = only(rig.turn());
    rig.wrote(event.id(), refused(RefusalReason::AlreadyExists, None));
    assert_eq!(rig.turn(), [], "nobody waits for an event");
    rig.sees(&telling.clone().rv(20));
    assert_eq!(rig.turn(), []);
    rig.sees(&telling.uid("uid-successor").rv(30));
    assert_eq!(rig.turn().len(), 1, "another object is another matter");
}

#[test]
fn an_event_that_is_lost_does_not_hold_its_object() {
    let telling = toy("a").spec("tells", json!("hello"));
    for outcome in [Outcome::Unknown, refused(RefusalReason::Forbidden, Some(9))] {
        let mut rig = Rig::settled(&[&telling]);
        let event = only(rig.turn());
        rig.wrote(event.id(), outcome);
        assert_eq!(rig.turn(), []);
        assert!(rig.engine.is_at_rest(at(0)));
    }
}

#[test]
fn what_was_done_is_told_after_it_and_nobody_waits_for_the_telling() {
    let telling = toy("a").spec("tells", json!("hello"));
    let mut rig = Rig::settled(&[&telling.clone().doomed()]);
    let effects = rig.turn();
    assert!(
        matches!(
            writes(&effects).as_slice(),
            [Write::Delete { .. }, Write::Create(_)]
        ),
        "{effects:?}"
    );
    rig.wrote(effects[0].id(), refused(RefusalReason::Busy, None));
    // The event is still under way; its object is decided on again all the same.
    let again = rig.turn_at(3_600_000);
    assert!(
        matches!(writes(&again).as_slice(), [Write::Delete { .. }]),
        "{again:?}"
    );
}

#[test]
fn the_name_of_an_event_is_made_of_what_it_says() {
    let name = |message: &str, uid: &str, now: i64| -> Value {
        let telling = toy("a").uid(uid).spec("tells", json!(message));
        let mut rig = Rig::new(Config::default());
        rig.now = at(now);
        rig.settle(&[&telling]);
        rig.take(sundown_engine::Input::Lead(true));
        draft_of(&only(rig.turn())).body["metadata"]["name"].clone()
    };
    let first = name("hello", "uid-a", 0);
    assert_eq!(
        first,
        name("hello", "uid-a", 5_000),
        "a second process tells the same event"
    );
    assert_ne!(first, name("goodbye", "uid-a", 0));
    assert_ne!(first, name("hello", "uid-b", 0));
}

#[test]
fn without_events_on_the_server_a_note_goes_nowhere() {
    let mut rig = Rig::new(Config::default());
    rig.catalog = catalog(&[&TOY, &BOX]);
    rig.settle(&[&toy("a").spec("tells", json!("hello")).doomed()]);
    rig.take(sundown_engine::Input::Lead(true));
    let effects = rig.turn();
    assert!(
        matches!(writes(&effects).as_slice(), [Write::Delete { .. }]),
        "{effects:?}"
    );
}
