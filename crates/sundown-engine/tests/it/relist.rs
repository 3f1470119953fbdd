//! A second list: what it says about objects that it does not hold, and when it says nothing.

use sundown_engine::{Effect, WatchEvent};
use sundown_model::{KnownKind, Position, Rv};

use crate::rig::{Rig, a, only, page, toy, writes};
use crate::toy::{BOX, TOY};

/// The revision is no longer in the history; gives the id of the list that follows.
#[track_caller]
fn expire(rig: &mut Rig, kind: &KnownKind) -> sundown_engine::EffectId {
    rig.bookmark(kind, 11);
    rig.watch(kind, WatchEvent::Closed { expired: true });
    let list = only(rig.turn());
    assert!(
        matches!(&list, Effect::List { ty, next: None, .. } if ty.resource.is(kind)),
        "{list:?}"
    );
    list.id()
}

fn position(rig: &Rig, kind: &KnownKind) -> Option<Rv> {
    rig.engine
        .cache()
        .position(&kind.resource())
        .map(Position::rv)
}

#[test]
fn an_expired_watch_leads_to_a_list_and_then_to_a_watch_from_it() {
    let mut rig = Rig::settled(&[&toy("a")]);
    let list = expire(&mut rig, &TOY);
    rig.listed(list, page(&[&toy("a")], 30));
    let watch = only(rig.turn());
    assert!(
        matches!(watch, Effect::Watch { from, .. } if from == Rv::new(30)),
        "{watch:?}"
    );
}

#[test]
fn what_a_list_lacks_is_gone_and_what_it_holds_stays() {
    let mut rig = Rig::settled(&[&toy("stays"), &toy("goes")]);
    let list = expire(&mut rig, &TOY);
    rig.listed(list, page(&[&toy("stays"), &toy("comes").rv(29)], 30));
    assert_eq!(rig.cached(&toy("goes")), None);
    assert!(rig.engine.cache().is_gone(toy("goes").build().uid()));
    assert_eq!(rig.cached(&toy("stays")), Some(toy("stays").build()));
    assert!(rig.cached(&toy("comes")).is_some());
    assert_eq!(rig.engine.audit(), Vec::<String>::new());
}

#[test]
fn what_is_newer_than_the_list_is_not_missing_from_it() {
    let curious = toy("curious").spec("asks", serde_json::json!("new"));
    let (old, new) = (a(&BOX, "old"), a(&BOX, "new").rv(40));
    let mut rig = Rig::settled(&[&curious, &old]);
    let read = only(rig.turn());
    rig.got(read.id(), Some(&new));
    assert_eq!(rig.cached(&new), Some(new.build()));
    let list = expire(&mut rig, &BOX);
    rig.listed(list, page(&[], 30));
    assert_eq!(rig.cached(&old), None, "older than the list and not in it");
    assert_eq!(rig.cached(&new), Some(new.build()));
}

#[test]
fn a_list_older_than_our_position_is_ignored_and_asked_again() {
    let mut rig = Rig::settled(&[&toy("a")]);
    rig.bookmark(&TOY, 20);
    let list = expire(&mut rig, &TOY);
    rig.listed(list, page(&[&toy("ghost")], 19));
    assert!(rig.cached(&toy("a")).is_some(), "nothing follows from it");
    assert_eq!(rig.cached(&toy("ghost")), None);
    assert_eq!(position(&rig, &TOY), Some(Rv::new(20)));
    assert_eq!(rig.turn_at(99), []);
    let again = only(rig.turn_at(100));
    rig.listed(again.id(), page(&[], 20));
    assert_eq!(rig.cached(&toy("a")), None);
}

#[test]
fn a_changed_uid_across_a_list_is_a_deletion_and_an_addition() {
    let mut rig = Rig::settled(&[&toy("a")]);
    let list = expire(&mut rig, &TOY);
    let successor = toy("a").uid("uid-successor").rv(25).doomed();
    rig.listed(list, page(&[&successor], 30));
    assert!(rig.engine.cache().is_gone(toy("a").build().uid()));
    assert_eq!(rig.engine.audit(), Vec::<String>::new());
    let effects = rig.turn();
    let [sundown_model::Write::Delete { at, .. }] = &writes(&effects)[..] else {
        panic!("one delete, got {effects:?}");
    };
    assert_eq!(at, &successor.build().seen());
}

#[test]
fn an_object_that_the_cache_has_newer_does_not_go_back_by_a_list() {
    let mut rig = Rig::settled(&[&toy("a")]);
    let doomed = toy("a").rv(12).doomed();
    rig.sees(&doomed);
    let delete = only(rig.turn());
    let answer = sundown_model::Answer::Object(toy("a").rv(50).deleting().build());
    rig.wrote(delete.id(), sundown_model::Outcome::Done(answer));
    let list = expire(&mut rig, &TOY);
    rig.listed(list, page(&[&doomed], 30));
    assert_eq!(rig.cached(&doomed).map(|it| it.rv()), Some(Rv::new(50)));
    assert_eq!(writes(&rig.turn()), []);
}
