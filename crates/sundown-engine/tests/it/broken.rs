//! Effects that break: whoever carried them out panicked. Each costs its own key a pause and nothing
//! else.

use jiff::SignedDuration;
use serde_json::json;
use sundown_engine::{Config, Effect, Input, broken};
use sundown_model::{DeedOutcome, Question, Reply, Subject, node};

use crate::rig::{A, Rig, only, toy};

fn looking() -> A {
    toy("looker").spec("looks", json!("ray"))
}

fn pulling() -> A {
    toy("puller").spec("pulls", json!("ray"))
}

#[track_caller]
fn breaks(rig: &mut Rig, effect: &Effect) {
    rig.take(broken(effect).expect("an answer is awaited"));
}

#[test]
fn a_write_that_breaks_each_time_is_tried_after_longer_and_longer_pauses() {
    let doomed = toy("doomed").doomed();
    let mut rig = Rig::settled(&[&doomed]);
    for delay in [100, 200, 400, 800] {
        let write = only(rig.turn());
        assert!(matches!(write, Effect::Write { .. }), "{write:?}");
        breaks(&mut rig, &write);
        let read = only(rig.turn());
        assert!(matches!(read, Effect::Get { .. }), "{read:?}");
        rig.got(read.id(), Some(&doomed));
        assert_eq!(rig.turn(), [], "it is there still, and left alone for now");
        let due_at = rig.now + SignedDuration::from_millis(delay);
        assert_eq!(rig.engine.wake_at(), Some(due_at));
        rig.now = due_at;
    }
}

#[test]
fn a_list_that_breaks_is_asked_again_and_others_go_on() {
    let mut rig = Rig::new(Config::default());
    rig.take(Input::Lead(true));
    let discover = only(rig.turn());
    breaks(&mut rig, &discover);
    assert_eq!(rig.turn(), [], "not at once");
    rig.now = rig.engine.wake_at().expect("it looks again");
    assert!(matches!(only(rig.turn()), Effect::Discover { .. }));
}

#[test]
fn a_deed_that_breaks_is_a_refusal_that_people_see() {
    let mut rig = Rig::settled(&[&pulling(), &toy("z").doomed()]);
    let effects = rig.turn();
    let [pull, write] = &effects[..] else {
        unreachable!("a pull and a write, not {effects:?}")
    };
    breaks(&mut rig, pull);
    let subject = Subject::Image("ray".into());
    let fact = rig.engine.facts().deed(&subject).expect("it is a fact");
    assert!(
        matches!(&fact.outcome, DeedOutcome::Refused(it) if it.reason == node::Refused::Panicked.into()),
        "{fact:?}"
    );
    rig.wrote(
        write.id(),
        sundown_model::Outcome::Done(sundown_model::Answer::Gone),
    );
    assert_eq!(rig.turn(), [], "not at once");
    rig.now = rig.engine.wake_at().expect("it is tried again");
    assert!(matches!(only(rig.turn()), Effect::Do { .. }));
}

/// Of an image that nothing is known about the node is asked at once, so that an error in place of an
/// answer would be asked for as fast as it comes.
#[test]
fn a_question_about_an_image_that_breaks_says_that_there_is_none() {
    let mut rig = Rig::settled(&[&looking()]);
    let ask = only(rig.turn());
    breaks(&mut rig, &ask);
    let image = "ray".into();
    let question = Question::Node(node::Query::Image { image });
    let fact = rig.engine.facts().reply(&question).expect("it is a fact");
    assert!(
        matches!(
            fact.reply,
            Reply::Node(Ok(node::Answer::Image(node::Image::Unavailable { .. })))
        ),
        "{fact:?}"
    );
}
