//! The first list, the watch after it, and how a watch ends.

use sundown_engine::{Config, Effect, Input, Page, WatchEvent};
use sundown_model::{Rv, Write};

use crate::rig::{LISTED, Rig, a, at, failure, only, page, toy, writes};
use crate::toy::{BOX, TOY};

/// An engine that has discovered; gives the lists that it asks for.
fn discovered() -> (Rig, Vec<Effect>) {
    let mut rig = Rig::new(Config::default());
    rig.take(Input::Lead(true));
    let discover = only(rig.turn());
    assert!(matches!(discover, Effect::Discover { .. }), "{discover:?}");
    rig.discovered(discover.id(), rig.catalog.clone());
    let lists = rig.turn();
    (rig, lists)
}

fn list_of(lists: &[Effect], plural: &str) -> sundown_engine::EffectId {
    let list = lists
        .iter()
        .find(|effect| matches!(effect, Effect::List { ty, .. } if ty.resource.plural() == plural));
    list.expect("the resource is listed").id()
}

#[test]
fn asks_what_is_served_and_lists_exactly_what_somebody_is_interested_in() {
    let (_, lists) = discovered();
    let listed = lists.iter().map(|effect| match effect {
        Effect::List { ty, form, next, .. } => {
            assert_eq!(next, &None);
            (ty.resource.to_string(), form.is_metadata())
        }
        other => panic!("expected a list, got {other:?}"),
    });
    let listed: Vec<_> = listed.collect();
    let boxes = ("boxes".to_owned(), true);
    let toys = ("toys.toys.io".to_owned(), false);
    assert_eq!(listed, [boxes, toys]);
}

#[test]
fn the_pages_of_a_list_are_put_together() {
    let (mut rig, lists) = discovered();
    let first = Page {
        next: Some("more".to_owned()),
        ..page(&[&toy("a")], 20)
    };
    rig.listed(list_of(&lists, "toys"), first);
    assert_eq!(rig.cached(&toy("a")), None, "half a list proves nothing");
    let second = only(rig.turn());
    assert!(
        matches!(&second, Effect::List { next: Some(next), .. } if next == "more"),
        "{second:?}"
    );
    rig.listed(second.id(), page(&[&toy("b")], 20));
    assert!(rig.cached(&toy("a")).is_some() && rig.cached(&toy("b")).is_some());
    let watch = only(rig.turn());
    assert!(
        matches!(watch, Effect::Watch { from, .. } if from == Rv::new(20)),
        "{watch:?}"
    );
}

#[test]
fn a_list_whose_next_page_expired_begins_again_and_forgets_its_pages() {
    let (mut rig, lists) = discovered();
    let first = Page {
        next: Some("more".to_owned()),
        ..page(&[&toy("a")], 20)
    };
    rig.listed(list_of(&lists, "toys"), first);
    let second = only(rig.turn());
    let mut expired = failure();
    expired.expired = true;
    let (id, result) = (second.id(), Err(expired));
    rig.take(Input::Listed { id, result });
    assert_eq!(rig.turn_at(99), []);
    let again = only(rig.turn_at(100));
    assert!(
        matches!(again, Effect::List { next: None, .. }),
        "{again:?}"
    );
    rig.listed(again.id(), page(&[&toy("b")], 30));
    assert_eq!(rig.cached(&toy("a")), None);
    assert!(rig.cached(&toy("b")).is_some());
}

#[test]
fn a_kind_that_cannot_be_listed_does_not_stop_the_others() {
    let (mut rig, lists) = discovered();
    let doomed = toy("doomed").doomed();
    rig.listed(list_of(&lists, "toys"), page(&[&doomed], LISTED));
    let watch = only(rig.turn());
    assert!(matches!(watch, Effect::Watch { .. }), "{watch:?}");
    assert!(!rig.engine.is_settled(), "boxes had no answer yet");
    let (id, result) = (list_of(&lists, "boxes"), Err(failure()));
    rig.take(Input::Listed { id, result });
    assert!(rig.engine.is_settled(), "a bad answer is an answer");
    let write = writes(&[only(rig.turn())]);
    assert!(
        matches!(write.as_slice(), [Write::Delete { at, .. }] if *at == doomed.build().seen()),
        "{write:?}"
    );
    let retry = only(rig.turn_at(100));
    assert!(
        matches!(&retry, Effect::List { ty, .. } if ty.resource.plural() == "boxes"),
        "{retry:?}"
    );
}

#[test]
fn waits_longer_after_each_list_that_fails_in_a_row() {
    let (mut rig, lists) = discovered();
    let mut id = list_of(&lists, "boxes");
    for delay in [100, 200, 400, 800] {
        let result = Err(failure());
        rig.take(Input::Listed { id, result });
        let asked_at = rig.now;
        let due_at = asked_at + jiff::SignedDuration::from_millis(delay);
        assert_eq!(rig.engine.wake_at(), Some(due_at));
        assert_eq!(rig.turn(), []);
        rig.now = due_at;
        id = only(rig.turn()).id();
    }
}

#[test]
fn a_watch_brings_additions_changes_and_deletions() {
    let mut rig = Rig::settled(&[]);
    rig.sees(&toy("a").rv(11));
    rig.sees(&toy("a").rv(12));
    assert_eq!(rig.cached(&toy("a")).map(|it| it.rv()), Some(Rv::new(12)));
    rig.watch(&TOY, WatchEvent::Deleted(toy("a").rv(13).build()));
    assert_eq!(rig.cached(&toy("a")), None);
    assert!(rig.engine.cache().is_gone(toy("a").build().uid()));
    assert_eq!(rig.engine.audit(), Vec::<String>::new());
}

#[test]
fn a_watch_that_closed_goes_on_from_the_last_position() {
    let mut rig = Rig::settled(&[&toy("a")]);
    rig.sees(&toy("b").rv(17));
    rig.watch(&TOY, WatchEvent::Closed { expired: false });
    let watch = only(rig.turn());
    assert!(
        matches!(&watch, Effect::Watch { from, ty, .. }
            if *from == Rv::new(17) && ty.resource.is(&TOY)),
        "{watch:?}"
    );
    assert!(rig.cached(&toy("a")).is_some());
}

#[test]
fn a_bookmark_moves_the_position_and_nothing_else() {
    let mut rig = Rig::settled(&[&toy("a")]);
    rig.bookmark(&TOY, 40);
    rig.bookmark(&TOY, 30);
    assert_eq!(rig.turn(), []);
    rig.watch(&TOY, WatchEvent::Closed { expired: false });
    let watch = only(rig.turn());
    assert!(
        matches!(watch, Effect::Watch { from, .. } if from == Rv::new(40)),
        "{watch:?}"
    );
    let boxes = rig.engine.cache().position(&BOX.resource());
    assert_eq!(
        boxes.map(sundown_model::Position::rv),
        Some(Rv::new(LISTED))
    );
}

#[test]
fn a_watch_that_closes_without_a_word_is_opened_again_later_and_later() {
    let mut rig = Rig::settled(&[]);
    for (delay, due) in [(100, 100), (200, 300), (400, 700)] {
        rig.watch(&TOY, WatchEvent::Closed { expired: false });
        assert_eq!(rig.turn_at(due - 1), [], "not before {delay} ms");
        let watch = only(rig.turn_at(due));
        assert!(matches!(watch, Effect::Watch { .. }), "{watch:?}");
    }
    rig.bookmark(&TOY, 11);
    rig.watch(&TOY, WatchEvent::Closed { expired: false });
    assert_eq!(rig.turn().len(), 1, "a watch that spoke is no failure");
}

#[test]
fn events_of_a_watch_that_is_over_are_ignored() {
    let mut rig = Rig::settled(&[&toy("a")]);
    let old = rig.watch_of(&TOY);
    rig.bookmark(&TOY, 11);
    rig.watch(&TOY, WatchEvent::Closed { expired: false });
    rig.turn();
    assert_ne!(rig.watch_of(&TOY), old);
    for event in [
        WatchEvent::Put(toy("b").rv(50).build()),
        WatchEvent::Deleted(toy("a").rv(51).build()),
        WatchEvent::Bookmark(Rv::new(60)),
        WatchEvent::Closed { expired: true },
    ] {
        rig.take(Input::Watched { id: old, event });
    }
    assert_eq!(rig.turn(), []);
    assert_eq!(rig.cached(&toy("b")), None);
    assert!(rig.cached(&toy("a")).is_some());
    let toys = rig.engine.cache().position(&TOY.resource());
    assert_eq!(toys.map(sundown_model::Position::rv), Some(Rv::new(11)));
    assert!(rig.engine.is_at_rest(at(0)));
}

#[test]
fn a_list_that_nobody_asked_for_is_ignored() {
    let mut rig = Rig::settled(&[&toy("a")]);
    rig.listed(crate::rig::id(999), page(&[&a(&TOY, "b")], 99));
    assert_eq!(rig.turn(), []);
    assert!(rig.cached(&toy("a")).is_some());
    assert_eq!(rig.cached(&toy("b")), None);
}
