//! Rest: silence until an input or the instant that was named, and no more at once than allowed.

use std::collections::VecDeque;

use serde_json::json;
use sundown_engine::{Config, Input};
use sundown_model::{Answer, Outcome};

use crate::rig::{Rig, a, at, only, toy, writes};
use crate::toy::BOX;

#[test]
fn at_rest_it_gives_nothing_and_keeps_giving_nothing() {
    let mut rig = Rig::settled(&[&toy("a"), &a(&BOX, "box")]);
    for millis in [0, 0, 1, 60_000, 86_400_000, 31_536_000_000] {
        assert_eq!(rig.turn_at(millis), []);
        assert!(rig.engine.is_at_rest(rig.now));
        assert_eq!(rig.engine.wake_at(), None);
    }
}

#[test]
fn it_is_not_at_rest_while_something_is_under_way() {
    let mut rig = Rig::settled(&[&toy("a").doomed()]);
    assert!(
        !rig.engine.is_at_rest(at(0)),
        "there is something to decide"
    );
    let delete = only(rig.turn());
    assert!(!rig.engine.is_at_rest(at(0)), "a write is under way");
    rig.wrote(delete.id(), Outcome::Done(Answer::Gone));
    assert_eq!(rig.turn(), []);
    assert!(rig.engine.is_at_rest(at(0)));
}

#[test]
fn wakes_at_the_named_instant_and_not_a_millisecond_before() {
    let timed = toy("a")
        .spec("wakes", json!(at(5_000).to_string()))
        .doomed();
    let mut rig = Rig::settled(&[&timed]);
    assert_eq!(rig.turn(), []);
    assert_eq!(rig.engine.wake_at(), Some(at(5_000)));
    assert!(rig.engine.is_at_rest(at(4_999)));
    assert_eq!(rig.turn_at(4_999), []);
    assert!(!rig.engine.is_at_rest(at(5_000)));
    assert_eq!(writes(&rig.turn_at(5_000)).len(), 1);
    assert_eq!(rig.engine.wake_at(), None);
}

#[test]
fn the_earliest_instant_counts_and_a_new_decision_replaces_the_old_one() {
    let timed = |name: &str, millis: i64| toy(name).spec("wakes", json!(at(millis).to_string()));
    let mut rig = Rig::settled(&[&timed("a", 5_000), &timed("b", 3_000)]);
    rig.turn();
    assert_eq!(rig.engine.wake_at(), Some(at(3_000)));
    rig.sees(&timed("b", 9_000).rv(20));
    rig.turn();
    assert_eq!(rig.engine.wake_at(), Some(at(5_000)));
    rig.sees(&toy("a").rv(21));
    rig.turn();
    assert_eq!(rig.engine.wake_at(), Some(at(9_000)));
}

#[test]
fn the_timer_of_an_object_ends_with_it() {
    let timed = toy("a")
        .spec("wakes", json!(at(5_000).to_string()))
        .doomed();
    let mut rig = Rig::settled(&[&timed]);
    rig.turn();
    rig.watch(
        &crate::toy::TOY,
        sundown_engine::WatchEvent::Deleted(timed.rv(20).build()),
    );
    assert_eq!(rig.turn(), []);
    assert_eq!(rig.engine.wake_at(), None);
}

#[test]
fn no_more_is_under_way_than_allowed_and_each_answer_makes_room_for_one() {
    let toys: Vec<_> = (0..7)
        .map(|number| toy(&format!("toy-{number}")).doomed())
        .collect();
    let mut rig = Rig::new(Config {
        in_flight_max: 3,
        ..Config::default()
    });
    rig.settle(&toys.iter().collect::<Vec<_>>());
    rig.take(Input::Lead(true));
    let mut under_way = rig.turn();
    assert_eq!(under_way.len(), 3);
    let mut deleted = 3;
    while !under_way.is_empty() {
        let done = under_way.remove(0);
        rig.wrote(done.id(), Outcome::Done(Answer::Gone));
        let next = rig.turn();
        assert!(next.len() <= 1, "{next:?}");
        deleted += next.len();
        under_way.extend(next);
    }
    assert_eq!(deleted, toys.len());
    assert!(rig.engine.is_at_rest(at(0)));
}

/// A start after a mass deletion that nobody saw: more answers come in than are remembered. Those who asked first
/// used to be decided last, found theirs forgotten, and asked again, for ever.
#[test]
fn more_questions_than_are_remembered_are_asked_once_each() {
    let count = 5_000;
    let curious = |number| toy(&format!("toy-{number}")).spec("asks", json!(format!("{number}")));
    let toys: Vec<_> = (0..count).map(curious).collect();
    let mut rig = Rig::settled(&toys.iter().collect::<Vec<_>>());
    let mut under_way = VecDeque::from(rig.turn());
    let mut asked = under_way.len();
    while let Some(read) = under_way.pop_front() {
        rig.got(read.id(), None);
        let next = rig.turn();
        asked += next.len();
        assert!(asked <= count, "asked again");
        under_way.extend(next);
    }
    assert_eq!(asked, count);
    assert!(rig.engine.is_at_rest(at(0)));
}

#[test]
fn an_explanation_says_what_would_be_decided_now() {
    let timed = toy("a")
        .spec("wakes", json!(at(5_000).to_string()))
        .doomed();
    let rig = Rig::settled(&[&timed]);
    let [early] = &rig.engine.explain(&timed.key(), at(0))[..] else {
        panic!("one controller");
    };
    assert_eq!((&*early.controller, &*early.code), ("toys", "Early"));
    assert_eq!(early.wake_at, Some(at(5_000)));
    let [late] = &rig.engine.explain(&timed.key(), at(5_000))[..] else {
        panic!("one controller");
    };
    assert_eq!(late.actions, ["delete toys.toys.io/here/a"]);
    assert_eq!(rig.engine.explain(&toy("nobody").key(), at(0)), []);
}
