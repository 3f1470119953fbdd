//! What is made is told when it is there, and what could not be made is a fact.

use serde_json::json;
use sundown_engine::{Brake, Effect, Input};
use sundown_model::{Answer, Outcome, RefusalReason, Write};

use crate::rig::{A, Rig, only, refused, toy};

fn maker() -> A {
    toy("maker").spec("makes", json!("child"))
}

fn child() -> A {
    toy("child").rv(20)
}

/// The child as it is made: with its owner.
fn child_of(uid: &str) -> A {
    let owner = json!({
        "apiVersion": "toys.io/v1", "kind": "Toy", "name": "maker", "uid": uid, "controller": true,
    });
    child().meta("ownerReferences", json!([owner]))
}

fn made() -> Outcome {
    Outcome::Done(Answer::Object(child().build()))
}

/// The reasons of the events among effects, and how many other objects are made.
fn told(effects: &[Effect]) -> (Vec<String>, usize) {
    let drafts = effects.iter().filter_map(|effect| match effect {
        Effect::Write {
            write: Write::Create(draft),
            ..
        } => Some(draft),
        _ => None,
    });
    let (events, others): (Vec<_>, Vec<_>) =
        drafts.partition(|draft| draft.key.resource.plural() == "events");
    let reasons = events.iter().map(|it| it.body["reason"].as_str());
    let reasons = reasons.map(|it| it.expect("an event has a reason").to_owned());
    (reasons.collect(), others.len())
}

fn one(reason: &str, creates: usize) -> (Vec<String>, usize) {
    (vec![reason.to_owned()], creates)
}

#[test]
fn what_was_made_is_told_when_the_answer_says_so_and_not_before() {
    let mut rig = Rig::settled(&[&maker()]);
    let create = only(rig.turn());
    assert_eq!(told(std::slice::from_ref(&create)), (vec![], 1));
    rig.wrote(create.id(), made());
    assert_eq!(told(&rig.turn()), one("ToyMade", 0));
    assert_eq!(rig.turn(), []);
}

#[test]
fn what_is_refused_is_a_fact_that_the_next_decision_has() {
    for reason in [
        RefusalReason::Forbidden,
        RefusalReason::Invalid,
        RefusalReason::NotFound,
    ] {
        let mut rig = Rig::settled(&[&maker()]);
        let create = only(rig.turn());
        rig.wrote(create.id(), refused(reason, None));
        assert_eq!(rig.turn(), [], "it is not tried again at once");
        let fact = rig.engine.facts().refusal(&child().key());
        let fact = fact.expect("it is remembered");
        assert_eq!((fact.reason, &*fact.message), (reason, "no"));
        let again = rig.turn_at(100);
        assert_eq!(told(&again), one("ToyRefused", 1));
        rig.wrote(again[0].id(), made());
        assert_eq!(told(&rig.turn()), one("ToyMade", 0));
        assert!(rig.engine.facts().refusal(&child().key()).is_none());
    }
}

#[test]
fn a_server_that_is_busy_has_not_said_no() {
    let mut rig = Rig::settled(&[&maker()]);
    let create = only(rig.turn());
    rig.wrote(create.id(), refused(RefusalReason::Busy, None));
    assert!(rig.engine.facts().refusal(&child().key()).is_none());
    assert_eq!(told(&rig.turn_at(100)), (vec![], 1));
}

#[test]
fn a_refusal_is_forgotten_when_somebody_else_makes_the_object() {
    let mut rig = Rig::settled(&[&maker()]);
    let create = only(rig.turn());
    rig.wrote(create.id(), refused(RefusalReason::Forbidden, None));
    rig.sees(&child());
    assert!(rig.engine.facts().refusal(&child().key()).is_none());
    assert_eq!(rig.turn_at(100), []);
}

#[test]
fn nothing_is_told_by_who_does_not_lead_or_is_held() {
    let mut rig = Rig::settled(&[&maker()]);
    let create = only(rig.turn());
    rig.take(Input::Lead(false));
    rig.wrote(create.id(), made());
    assert_eq!(rig.turn(), []);
    let mut rig = Rig::settled(&[&maker()]);
    let create = only(rig.turn());
    rig.take(Input::Brake(Brake::everything()));
    rig.wrote(create.id(), made());
    assert_eq!(rig.turn(), []);
}

/// What is told after the answer to a create and, if that leads to a read, after what it finds.
fn told_after(answer: Outcome, found: Option<&A>) -> Vec<Effect> {
    let mut rig = Rig::settled(&[&maker()]);
    let create = only(rig.turn());
    rig.wrote(create.id(), answer);
    let read = only(rig.turn());
    assert!(matches!(read, Effect::Get { .. }), "{read:?}");
    rig.got(read.id(), found);
    let mut effects = rig.turn();
    // What is not there is asked for again after a pause.
    effects.extend(rig.turn_at(100));
    effects
}

#[test]
fn what_was_made_is_told_once_when_only_a_read_says_so() {
    let late = [
        Outcome::Unknown,
        refused(RefusalReason::AlreadyExists, None),
    ];
    for answer in late {
        let effects = told_after(answer, Some(&child_of("uid-maker")));
        assert_eq!(told(&effects), one("ToyMade", 0));
    }
}

#[test]
fn what_a_read_does_not_find_or_finds_to_be_anothers_is_not_told_as_made() {
    assert_eq!(told(&told_after(Outcome::Unknown, None)), (vec![], 1));
    for other in [child(), child_of("uid-another")] {
        let effects = told_after(Outcome::Unknown, Some(&other));
        assert_eq!(told(&effects), (vec![], 0));
    }
}

#[test]
fn a_birth_of_two_tries_is_told_once() {
    let child = child_of("uid-maker");
    let ends = [
        (made(), false),
        (refused(RefusalReason::AlreadyExists, None), true),
    ];
    for (end, is_read) in ends {
        let mut rig = Rig::settled(&[&maker()]);
        let first = only(rig.turn());
        rig.wrote(first.id(), Outcome::Unknown);
        let read = only(rig.turn());
        // Still on its way: it may arrive while it is asked for once more.
        rig.got(read.id(), None);
        let second = only(rig.turn_at(100));
        rig.wrote(second.id(), end);
        let mut effects = rig.turn();
        if is_read {
            let read = only(effects);
            rig.got(read.id(), Some(&child));
            effects = rig.turn();
        }
        assert_eq!(told(&effects), one("ToyMade", 0));
        rig.sees(&child.clone().rv(30));
        assert_eq!(rig.turn(), []);
    }
}

#[test]
fn a_read_that_proves_a_birth_tells_nothing_for_who_does_not_lead() {
    let mut rig = Rig::settled(&[&maker()]);
    let create = only(rig.turn());
    rig.wrote(create.id(), Outcome::Unknown);
    let read = only(rig.turn());
    rig.take(Input::Lead(false));
    rig.got(read.id(), Some(&child_of("uid-maker")));
    assert_eq!(rig.turn(), []);
}
