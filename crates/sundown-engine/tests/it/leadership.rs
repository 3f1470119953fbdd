//! Leadership: without it the engine only watches.

use serde_json::json;
use sundown_engine::{Config, Effect, Input};
use sundown_model::{Answer, Outcome, RefusalReason};

use crate::rig::{A, Rig, at, only, refused, toy, writes};

fn following(objects: &[&A]) -> Rig {
    let mut rig = Rig::new(Config::default());
    rig.settle(objects);
    rig
}

#[test]
fn without_a_lead_it_watches_and_decides_nothing() {
    let mut rig = following(&[&toy("doomed").doomed()]);
    rig.sees(&toy("other").doomed().rv(20));
    assert_eq!(rig.turn_at(3_600_000), []);
    assert!(rig.cached(&toy("other")).is_some());
    rig.take(Input::Lead(true));
    assert_eq!(writes(&rig.turn()).len(), 2);
}

#[test]
fn losing_the_lead_keeps_what_was_not_decided_for_the_next_one() {
    let mut rig = Rig::settled(&[]);
    for (name, rv) in [("a", 20), ("b", 21), ("c", 22)] {
        rig.sees(&toy(name).doomed().rv(rv));
    }
    let left = rig.engine.next(at(0)).expect("one delete leaves");
    rig.take(Input::Lead(false));
    assert_eq!(rig.turn(), [], "nothing more leaves");
    rig.take(Input::Lead(true));
    let again = rig.turn();
    assert_eq!(writes(&again).len(), 2, "{again:?}");
    assert!(!again.iter().any(|effect| effect.id() == left.id()));
}

#[test]
fn losing_the_lead_drops_what_has_not_left_and_decides_it_again_later() {
    let busy = toy("a").doomed().spec("patches", json!({ "x": 1 }));
    let mut rig = Rig::settled(&[&busy]);
    let patch = rig.engine.next(at(0)).expect("the first of two leaves");
    rig.take(Input::Lead(false));
    assert_eq!(rig.turn(), [], "the second does not");
    let answer = Answer::Object(busy.clone().rv(20).build());
    rig.wrote(patch.id(), Outcome::Done(answer));
    assert_eq!(rig.turn(), []);
    rig.take(Input::Lead(true));
    let again = rig.turn();
    assert_eq!(writes(&again).len(), 2, "decided again");
    for effect in again {
        rig.wrote(effect.id(), Outcome::Done(Answer::Gone));
    }
    assert_eq!(rig.turn(), []);
    assert!(
        rig.engine.is_at_rest(at(0)),
        "what was dropped is forgotten"
    );
}

#[test]
fn a_read_that_has_not_left_is_dropped_with_the_lead() {
    let doomed = toy("doomed").doomed();
    let mut rig = Rig::settled(&[&doomed]);
    let delete = only(rig.turn());
    rig.wrote(delete.id(), refused(RefusalReason::Conflict, None));
    rig.take(Input::Lead(false));
    assert_eq!(rig.turn(), []);
    assert!(!rig.engine.is_at_rest(at(0)), "its key waits for a lead");
    rig.take(Input::Lead(true));
    let effects = rig.turn();
    assert_eq!(effects.len(), 1, "decided again: {effects:?}");
}

#[test]
fn answers_to_what_left_are_taken_without_a_lead() {
    let doomed = toy("doomed").doomed();
    let mut rig = Rig::settled(&[&doomed]);
    let delete = only(rig.turn());
    rig.take(Input::Lead(false));
    rig.wrote(delete.id(), Outcome::Done(Answer::Gone));
    assert_eq!(rig.cached(&doomed), None);
    rig.take(Input::Lead(true));
    assert_eq!(rig.turn(), []);
}

#[test]
fn a_lead_before_the_first_lists_decides_nothing_before_them() {
    let mut rig = Rig::new(Config::default());
    rig.take(Input::Lead(true));
    let effects = rig.turn();
    assert!(
        matches!(effects.as_slice(), [Effect::Discover { .. }]),
        "{effects:?}"
    );
    assert!(!rig.engine.is_settled());
}
