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
