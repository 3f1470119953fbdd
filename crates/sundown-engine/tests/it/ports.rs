//! Beyond the API server: questions, deeds, and what the node says by itself.

use std::sync::Arc;

use serde_json::json;
use sundown_engine::{Brake, Config, Effect, EffectId, Input};
use sundown_model::{
    DeedOutcome, DeedRefusal, ObjectKey, Port, Question, Reply, Report, Resource, Subject, What,
    node,
};

use crate::rig::{A, Rig, id, only, toy};

fn looking(name: &str) -> A {
    toy(name).spec("looks", json!("ray"))
}

fn pulling() -> A {
    toy("puller").spec("pulls", json!("ray"))
}

fn question() -> Question {
    let image = "ray".into();
    Question::Node(node::Query::Image { image })
}

fn refused() -> DeedOutcome {
    DeedOutcome::Refused(DeedRefusal::new(node::Refused::NotDone, "the disk is full"))
}

#[track_caller]
fn pull(effect: &Effect) -> EffectId {
    match effect {
        Effect::Do { id, by, why, deed } => {
            assert_eq!((&**by, &*why.code), ("toys", "Obeys"));
            assert!(
                matches!(&deed.what, What::Node(node::Call::Pull { image }) if &**image == "ray")
            );
            *id
        }
        other => unreachable!("expected a pull, got {other:?}"),
    }
}

#[test]
fn a_question_is_asked_once_for_all_who_want_to_know() {
    let mut rig = Rig::settled(&[&looking("a").doomed(), &looking("b").doomed()]);
    let ask = only(rig.turn());
    assert!(matches!(&ask, Effect::Ask { question: asked, .. } if *asked == question()));
    assert_eq!(rig.turn(), [], "both wait");
    let reply = Reply::Node(Ok(node::Answer::Image(node::Image::Ready)));
    rig.take(Input::Answered {
        id: ask.id(),
        reply: reply.clone(),
    });
    assert_eq!(rig.turn().len(), 2, "both go on");
    let fact = rig.engine.facts().reply(&question()).expect("it is a fact");
    assert_eq!((&fact.reply, fact.answered_at), (&reply, rig.now));
}

#[test]
fn questions_and_deeds_that_take_long_hold_up_nobody_else() {
    let mut rig = Rig::new(Config {
        in_flight_max: 1,
        ..Config::default()
    });
    rig.settle(&[&looking("a"), &pulling(), &toy("z").doomed()]);
    rig.take(Input::Lead(true));
    let effects = rig.turn();
    let kinds = effects.iter().map(|it| match it {
        Effect::Ask { .. } => "asks",
        Effect::Do { .. } => "does",
        Effect::Write { .. } => "writes",
        _ => "else",
    });
    assert_eq!(kinds.collect::<Vec<_>>(), ["asks", "does", "writes"]);
}

#[test]
fn no_more_questions_are_under_way_than_allowed_and_the_oldest_is_next() {
    let toys: Vec<_> = (0..5)
        .map(|number| toy(&format!("toy-{number}")).spec("looks", json!(format!("image-{number}"))))
        .collect();
    let mut rig = Rig::new(Config {
        asks_max: 2,
        ..Config::default()
    });
    rig.settle(&toys.iter().collect::<Vec<_>>());
    rig.take(Input::Lead(true));
    let image = |effect: &Effect| match effect {
        Effect::Ask {
            question: Question::Node(node::Query::Image { image }),
            ..
        } => image.to_string(),
        other => unreachable!("expected a question, got {other:?}"),
    };
    let mut under_way = rig.turn();
    let mut asked: Vec<String> = under_way.iter().map(image).collect();
    assert_eq!(asked.len(), 2);
    while !under_way.is_empty() {
        let id = under_way.remove(0).id();
        let reply = Reply::Node(Ok(node::Answer::Image(node::Image::Ready)));
        rig.take(Input::Answered { id, reply });
        let next = rig.turn();
        assert!(next.len() <= 1, "{next:?}");
        asked.extend(next.iter().map(image));
        under_way.extend(next);
    }
    assert_eq!(
        asked,
        ["image-0", "image-1", "image-2", "image-3", "image-4"]
    );
    assert!(rig.engine.is_at_rest(rig.now));
}

#[test]
fn a_port_that_does_not_answer_holds_up_no_other() {
    let silent = toy("a").spec("dials", json!("head:8265"));
    let mut rig = Rig::new(Config {
        asks_max: 1,
        ..Config::default()
    });
    rig.settle(&[&silent, &looking("b")]);
    rig.take(Input::Lead(true));
    let ports = rig.turn().into_iter().map(|it| match it {
        Effect::Ask { question, .. } => question.port(),
        other => unreachable!("expected a question, got {other:?}"),
    });
    assert_eq!(ports.collect::<Vec<_>>(), [Port::Ray, Port::Node]);
}

#[test]
fn an_answer_to_a_question_that_waits_for_its_turn_is_nothing() {
    let (one, other) = (looking("a"), toy("b").spec("looks", json!("other")));
    let mut rig = Rig::new(Config {
        asks_max: 1,
        ..Config::default()
    });
    rig.settle(&[&one, &other]);
    rig.take(Input::Lead(true));
    let ask = only(rig.turn());
    let reply = || Reply::Node(Ok(node::Answer::Image(node::Image::Ready)));
    let asked: u64 = serde_json::from_value(json!(ask.id())).expect("an id is a number");
    let early = id(asked + 1);
    rig.take(Input::Answered {
        id: early,
        reply: reply(),
    });
    assert_eq!(rig.turn(), [], "it was not asked yet");
    rig.take(Input::Answered {
        id: ask.id(),
        reply: reply(),
    });
    let next = only(rig.turn());
    assert!(
        matches!(next, Effect::Ask { .. }),
        "its turn has come: {next:?}"
    );
}

#[test]
fn questions_that_wait_for_their_turn_are_not_asked_once_the_lead_is_lost() {
    let (one, other) = (looking("a"), toy("b").spec("looks", json!("other")));
    let mut rig = Rig::new(Config {
        asks_max: 1,
        ..Config::default()
    });
    rig.settle(&[&one, &other]);
    rig.take(Input::Lead(true));
    let ask = only(rig.turn());
    rig.take(Input::Lead(false));
    let reply = Reply::Node(Ok(node::Answer::Image(node::Image::Ready)));
    rig.take(Input::Answered {
        id: ask.id(),
        reply,
    });
    assert_eq!(rig.turn(), []);
    rig.take(Input::Lead(true));
    let is_other =
        |it: &Effect| matches!(it, Effect::Ask { question: asked, .. } if *asked != question());
    assert!(is_other(&only(rig.turn())));
}

#[test]
fn that_nobody_answers_is_an_answer() {
    let mut rig = Rig::settled(&[&looking("a").doomed()]);
    let ask = only(rig.turn());
    let reply = Reply::Node(Err("away".to_owned()));
    rig.take(Input::Answered {
        id: ask.id(),
        reply,
    });
    assert!(matches!(only(rig.turn()), Effect::Write { .. }));
}

#[test]
fn an_answer_to_a_question_of_an_earlier_life_is_nothing() {
    let mut rig = Rig::settled(&[&looking("a")]);
    let ask = only(rig.turn());
    let reply = || Reply::Node(Ok(node::Answer::Image(node::Image::Missing)));
    let id = ask.id();
    rig.take(Input::Answered { id, reply: reply() });
    rig.turn();
    rig.take(Input::Answered { id, reply: reply() });
    assert_eq!(rig.turn(), []);
}

#[test]
fn a_deed_is_done_once_and_its_outcome_is_a_fact() {
    let mut rig = Rig::settled(&[&pulling()]);
    let id = pull(&only(rig.turn()));
    assert_eq!(rig.turn(), [], "it is under way");
    let outcome = DeedOutcome::Done;
    rig.take(Input::Done { id, outcome });
    assert_eq!(rig.turn(), []);
    let subject = Subject::Image(Arc::from("ray"));
    let fact = rig.engine.facts().deed(&subject).expect("it is a fact");
    assert_eq!(fact.outcome, DeedOutcome::Done);
}

#[test]
fn what_was_refused_or_is_not_known_is_tried_again_after_a_pause() {
    for outcome in [refused(), DeedOutcome::unanswered()] {
        let mut rig = Rig::settled(&[&pulling()]);
        let id = pull(&only(rig.turn()));
        rig.take(Input::Done { id, outcome });
        assert_eq!(rig.turn(), [], "not at once");
        let at = rig.engine.wake_at().expect("it looks again");
        rig.now = at;
        pull(&only(rig.turn()));
    }
}

#[test]
fn what_was_refused_for_the_lack_of_an_object_is_left_to_the_decision() {
    let mut rig = Rig::settled(&[&pulling()]);
    let id = pull(&only(rig.turn()));
    let missing = ObjectKey::namespaced(&Resource::new("", "configmaps"), "here", "c");
    let message = "configmap \"c\" not found";
    let refusal = DeedRefusal::new(node::Refused::ConfigMapNotFound, message);
    let outcome = DeedOutcome::Refused(refusal.for_lack_of(missing));
    rig.take(Input::Done { id, outcome });
    pull(&only(rig.turn()));
}

#[test]
fn a_brake_on_the_object_holds_its_deeds() {
    let mut rig = Rig::settled(&[&pulling()]);
    rig.take(Input::Brake(Brake::everything()));
    assert_eq!(rig.turn(), []);
    rig.take(Input::Brake(Brake::default()));
    pull(&only(rig.turn()));
}

#[test]
fn a_deed_leaves_only_where_the_controller_may_go() {
    let mut rig = Rig::settled(&[&toy("a").spec("stops", json!("job"))]);
    assert_eq!(rig.turn(), []);
    assert_eq!(rig.engine.not_granted(), 1);
}

#[test]
fn what_the_node_says_is_a_fact_before_anybody_decides_on_it() {
    let mut rig = Rig::settled(&[&toy("ray").spec("pulls", json!("other"))]);
    rig.turn();
    assert!(!rig.engine.facts().knows_all_pods());
    rig.take(Input::Reported(Report::Node(node::Report::All(Vec::new()))));
    assert!(rig.engine.facts().knows_all_pods());
    let (image, is) = (Arc::from("ray"), node::Image::Ready);
    rig.take(Input::Reported(Report::Node(node::Report::Image {
        image,
        is,
    })));
    assert_eq!(rig.engine.facts().image("ray"), Some(&node::Image::Ready));
    let message = "it was killed".to_owned();
    rig.take(Input::Reported(Report::Node(node::Report::Away {
        message,
    })));
    assert!(
        !rig.engine.facts().knows_all_pods(),
        "absence is no fact now"
    );
}
