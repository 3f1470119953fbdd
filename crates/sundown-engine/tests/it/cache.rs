//! Replies are written through, and neither they nor live reads bring back what the watch saw go.

use serde_json::json;
use sundown_engine::{Effect, WatchEvent};
use sundown_model::{Answer, Outcome, RefusalReason, Rv};

use crate::rig::{A, Rig, a, at, only, refused, toy, writes};
use crate::toy::{BOX, TOY};

/// An engine whose delete of a doomed toy is under way.
fn deleting() -> (Rig, Effect, A) {
    let doomed = toy("doomed").doomed();
    let mut rig = Rig::settled(&[&doomed, &toy("other")]);
    let delete = only(rig.turn());
    assert_eq!(writes(std::slice::from_ref(&delete)).len(), 1);
    (rig, delete, doomed)
}

/// An engine whose live read of a box is under way.
fn reading(objects: &[&A]) -> (Rig, Effect) {
    let curious = toy("curious").spec("asks", json!("box"));
    let objects: Vec<&A> = objects.iter().copied().chain([&curious]).collect();
    let mut rig = Rig::settled(&objects);
    let read = only(rig.turn());
    assert!(matches!(read, Effect::Get { .. }), "{read:?}");
    (rig, read)
}

#[test]
fn a_reply_is_in_the_cache_before_the_watch_brings_it() {
    let (mut rig, delete, doomed) = deleting();
    let terminating = doomed.clone().rv(12).deleting();
    let answer = Answer::Object(terminating.build());
    rig.wrote(delete.id(), Outcome::Done(answer));
    assert_eq!(rig.cached(&doomed), Some(terminating.build()));
    assert_eq!(rig.turn(), [], "it is deleting already");
    rig.sees(&terminating);
    assert_eq!(rig.turn(), [], "the echo of the watch is no news");
    assert!(rig.engine.is_at_rest(at(0)));
}

#[test]
fn a_reply_older_than_the_watch_does_not_take_the_cache_back() {
    let (mut rig, delete, doomed) = deleting();
    rig.sees(&toy("doomed").rv(15));
    let answer = Answer::Object(doomed.clone().rv(12).deleting().build());
    rig.wrote(delete.id(), Outcome::Done(answer));
    assert_eq!(rig.cached(&doomed).map(|it| it.rv()), Some(Rv::new(15)));
}

#[test]
fn a_late_reply_does_not_bring_back_what_the_watch_saw_go() {
    let (mut rig, delete, doomed) = deleting();
    rig.watch(&TOY, WatchEvent::Deleted(doomed.clone().rv(15).build()));
    let answer = Answer::Object(doomed.clone().rv(12).deleting().build());
    rig.wrote(delete.id(), Outcome::Done(answer));
    assert_eq!(rig.cached(&doomed), None);
    assert_eq!(rig.turn(), []);
}

#[test]
fn a_reply_that_the_object_is_gone_removes_it_and_nothing_else() {
    for outcome in [
        Outcome::Done(Answer::Gone),
        refused(RefusalReason::NotFound, None),
    ] {
        let (mut rig, delete, doomed) = deleting();
        rig.wrote(delete.id(), outcome);
        assert_eq!(rig.cached(&doomed), None);
        assert!(rig.engine.cache().is_gone(doomed.build().uid()));
        assert_eq!(rig.cached(&toy("other")), Some(toy("other").build()));
        assert_eq!(rig.engine.audit(), Vec::<String>::new());
        assert_eq!(rig.turn(), []);
    }
}

#[test]
fn the_end_of_one_incarnation_is_not_the_end_of_its_successor() {
    let (mut rig, delete, _) = deleting();
    let successor = toy("doomed").uid("uid-successor").rv(20);
    rig.sees(&successor);
    rig.wrote(delete.id(), Outcome::Done(Answer::Gone));
    assert_eq!(rig.cached(&successor), Some(successor.build()));
}

#[test]
fn a_live_answer_is_in_the_cache_and_in_the_facts() {
    let (mut rig, read) = reading(&[]);
    let found = a(&BOX, "box").rv(30);
    rig.got(read.id(), Some(&found));
    assert_eq!(rig.cached(&found), Some(found.build()));
    let fact = rig.engine.facts().live(&found.key()).cloned();
    let fact = fact.expect("it was read");
    assert_eq!((fact.found, fact.answered_at), (Some(found.build()), at(0)));
    assert_eq!(rig.turn(), [], "asked once");
}

#[test]
fn a_live_404_removes_what_was_seen_before_it_was_asked() {
    let held = a(&BOX, "box");
    let (mut rig, read) = reading(&[&held]);
    rig.got(read.id(), None);
    assert_eq!(rig.cached(&held), None);
    assert!(rig.engine.cache().is_gone(held.build().uid()));
    let fact = rig.engine.facts().live(&held.key());
    assert!(fact.is_some_and(|fact| fact.found.is_none()));
}

#[test]
fn a_live_404_does_not_remove_an_incarnation_seen_after_it_was_asked() {
    let (mut rig, read) = reading(&[]);
    let newcomer = a(&BOX, "box").rv(30);
    rig.sees(&newcomer);
    rig.got(read.id(), None);
    assert_eq!(rig.cached(&newcomer), Some(newcomer.build()));
}

#[test]
fn a_read_that_left_before_a_need_does_not_answer_it() {
    let (mut rig, early) = reading(&[]);
    rig.sees(&toy("second").rv(20).spec("asks", json!("box")));
    assert_eq!(rig.turn(), [], "it joins the read that is under way");
    rig.got(early.id(), None);
    let late = only(rig.turn());
    assert!(
        matches!(&late, Effect::Get { key, .. } if *key == a(&BOX, "box").key()),
        "the answer was from before the second toy was seen: {late:?}"
    );
    rig.got(late.id(), None);
    assert_eq!(rig.turn(), []);
}

#[test]
fn one_read_serves_all_who_ask_at_once() {
    let ask = |name: &str| toy(name).spec("asks", json!("box")).doomed();
    let mut rig = Rig::settled(&[&ask("a"), &ask("b"), &ask("c")]);
    let read = only(rig.turn());
    rig.got(read.id(), None);
    assert_eq!(writes(&rig.turn()).len(), 3);
}
