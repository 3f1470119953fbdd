//! Barriers: nobody goes on before the watches have reached what was asked for.

use serde_json::json;
use sundown_engine::{Config, Effect, EffectId, Input, WatchEvent};
use sundown_model::{KnownKind, Position, Write};

use crate::rig::{A, CRD, LISTED, Rig, a, at, catalog, failure, only, page, position, toy, writes};
use crate::toy::{BOX, GADGET, TOY};

fn waiting(name: &str, resources: &[&str]) -> A {
    toy(name).spec("waits", json!(resources)).doomed()
}

#[track_caller]
fn barrier_of(effect: &Effect) -> (EffectId, Vec<String>) {
    match effect {
        Effect::Barrier { id, types } => {
            let names = types.iter().map(|ty| ty.resource.to_string()).collect();
            (*id, names)
        }
        other => unreachable!("expected a barrier, got {other:?}"),
    }
}

fn answer(rig: &mut Rig, id: EffectId, positions: Vec<Position>) {
    let result = Ok(positions);
    rig.take(Input::Positions { id, result });
}

/// A settled engine on a server with custom resource definitions.
fn with_definitions(objects: &[&A], kinds: &[&KnownKind]) -> Rig {
    let mut rig = Rig::new(Config::default());
    rig.catalog = catalog(kinds);
    rig.settle(objects);
    rig.take(Input::Lead(true));
    rig
}

#[test]
fn one_round_serves_all_who_wait() {
    let mut rig = Rig::settled(&[
        &waiting("a", &["boxes"]),
        &waiting("b", &["boxes", "toys.toys.io"]),
        &waiting("c", &["boxes"]),
        &waiting("d", &["toys.toys.io"]),
    ]);
    let (first, names) = barrier_of(&only(rig.turn()));
    assert_eq!(
        names,
        ["boxes"],
        "the first who waits does not wait for others"
    );
    answer(&mut rig, first, vec![position(&BOX, LISTED)]);
    let effects = rig.turn();
    assert_eq!(writes(&effects).len(), 1, "{effects:?}");
    let (second, names) = barrier_of(&effects[0]);
    assert_eq!(names, ["boxes", "toys.toys.io"]);
    let reached = vec![position(&BOX, LISTED), position(&TOY, LISTED)];
    answer(&mut rig, second, reached);
    assert_eq!(writes(&rig.turn()).len(), 3);
}

#[test]
fn a_barrier_is_passed_when_the_watch_reaches_the_position_and_not_before() {
    let mut rig = Rig::settled(&[&waiting("a", &["boxes"])]);
    let (id, _) = barrier_of(&only(rig.turn()));
    answer(&mut rig, id, vec![position(&BOX, 50)]);
    rig.bookmark(&BOX, 49);
    rig.bookmark(&TOY, 99);
    assert_eq!(rig.turn(), [], "49 is not 50, and toys are not boxes");
    assert!(!rig.engine.is_at_rest(at(0)));
    rig.bookmark(&BOX, 50);
    assert_eq!(writes(&rig.turn()).len(), 1);
}

#[test]
fn an_object_that_comes_with_the_barrier_is_seen_by_the_decision_behind_it() {
    let mut rig = Rig::settled(&[&waiting("a", &["toys.toys.io"])]);
    let (id, _) = barrier_of(&only(rig.turn()));
    answer(&mut rig, id, vec![position(&TOY, 50)]);
    rig.sees(&toy("a").rv(50));
    assert_eq!(rig.turn(), [], "the toy is not doomed any more");
}

#[test]
fn who_comes_after_a_round_was_asked_gets_one_of_its_own() {
    let mut rig = Rig::settled(&[&waiting("a", &["boxes"])]);
    let (first, _) = barrier_of(&only(rig.turn()));
    rig.sees(&waiting("b", &["boxes"]).rv(20));
    assert_eq!(rig.turn(), [], "one round at a time");
    answer(&mut rig, first, vec![position(&BOX, LISTED)]);
    let effects = rig.turn();
    assert_eq!(writes(&effects).len(), 1, "the first goes on: {effects:?}");
    let (second, _) = barrier_of(&effects[0]);
    answer(&mut rig, second, vec![position(&BOX, LISTED)]);
    assert_eq!(writes(&rig.turn()).len(), 1);
}

#[test]
fn a_position_that_was_asked_for_earlier_is_not_enough_for_a_newcomer() {
    let mut rig = Rig::settled(&[&waiting("a", &["boxes"])]);
    let (first, _) = barrier_of(&only(rig.turn()));
    answer(&mut rig, first, vec![position(&BOX, 50)]);
    rig.sees(&waiting("b", &["boxes"]).rv(20));
    let (second, _) = barrier_of(&only(rig.turn()));
    answer(&mut rig, second, vec![position(&BOX, 60)]);
    rig.bookmark(&BOX, 50);
    let effects = rig.turn();
    let [Write::Delete { at, .. }] = &writes(&effects)[..] else {
        panic!("expected one delete, got {effects:?}");
    };
    assert_eq!(at.uid().as_str(), "uid-a");
    rig.bookmark(&BOX, 60);
    assert_eq!(writes(&rig.turn()).len(), 1);
}

#[test]
fn a_round_that_failed_is_asked_again_after_a_pause() {
    let mut rig = Rig::settled(&[&waiting("a", &["boxes"])]);
    let (id, _) = barrier_of(&only(rig.turn()));
    let result = Err(failure());
    rig.take(Input::Positions { id, result });
    assert_eq!(rig.engine.wake_at(), Some(at(100)));
    assert_eq!(rig.turn_at(99), []);
    let (id, _) = barrier_of(&only(rig.turn_at(100)));
    assert_eq!(rig.engine.wake_at(), None, "the pause is over");
    answer(&mut rig, id, vec![position(&BOX, LISTED)]);
    assert_eq!(writes(&rig.turn()).len(), 1);
}

#[test]
fn a_round_that_answers_for_some_is_asked_again_for_the_others() {
    let mut rig = Rig::settled(&[&waiting("a", &["boxes", "toys.toys.io"])]);
    let (id, _) = barrier_of(&only(rig.turn()));
    answer(&mut rig, id, vec![position(&BOX, LISTED)]);
    assert_eq!(rig.turn_at(99), []);
    let (id, names) = barrier_of(&only(rig.turn_at(100)));
    assert_eq!(names, ["toys.toys.io"]);
    answer(&mut rig, id, vec![position(&TOY, LISTED)]);
    assert_eq!(writes(&rig.turn()).len(), 1);
}

#[test]
fn an_answer_under_another_id_passes_nobody() {
    let mut rig = Rig::settled(&[&waiting("a", &["boxes"])]);
    barrier_of(&only(rig.turn()));
    answer(&mut rig, crate::rig::id(999), vec![position(&BOX, 1)]);
    assert_eq!(rig.turn(), []);
}

#[test]
fn a_resource_that_was_never_listed_becomes_fresh_by_its_list() {
    let mut rig = Rig::new(Config::default());
    rig.take(Input::Lead(true));
    let discover = only(rig.turn());
    rig.discovered(discover.id(), rig.catalog.clone());
    let lists = rig.turn();
    let result = Err(failure());
    let id = lists[0].id();
    rig.take(Input::Listed { id, result });
    rig.listed(lists[1].id(), page(&[&waiting("a", &["boxes"])], LISTED));
    let watch = only(rig.turn());
    assert!(matches!(watch, Effect::Watch { .. }), "no round: {watch:?}");
    let list = only(rig.turn_at(100));
    rig.listed(list.id(), page(&[], LISTED));
    assert_eq!(writes(&rig.turn()).len(), 1);
}

#[test]
fn a_list_that_was_asked_later_is_as_good_as_a_position() {
    let mut rig = Rig::settled(&[&waiting("a", &["boxes"])]);
    let (id, _) = barrier_of(&only(rig.turn()));
    rig.bookmark(&BOX, 11);
    rig.watch(&BOX, WatchEvent::Closed { expired: true });
    let list = only(rig.turn());
    rig.listed(list.id(), page(&[], 12));
    assert_eq!(writes(&rig.turn()).len(), 1);
    answer(&mut rig, id, vec![position(&BOX, 99)]);
    assert_eq!(rig.turn(), [], "a late answer is for nobody");
}

#[test]
fn a_resource_that_is_no_longer_served_does_not_block() {
    let waits = waiting("a", &["boxes", "gadgets.later.io"]);
    let mut rig = with_definitions(&[&waits], &[&TOY, &BOX, &CRD, &GADGET]);
    let (id, names) = barrier_of(&only(rig.turn()));
    assert_eq!(names, ["boxes", "gadgets.later.io"]);
    answer(
        &mut rig,
        id,
        vec![position(&BOX, LISTED), position(&GADGET, 99)],
    );
    assert_eq!(rig.turn(), []);
    rig.sees(&a(&CRD, "gadgets.later.io").rv(11));
    let discover = only(rig.turn());
    rig.discovered(discover.id(), catalog(&[&TOY, &BOX, &CRD]));
    // The toy asks for a kind that is not served; that cannot be waited for.
    let effects = rig.turn();
    assert!(
        matches!(effects.as_slice(), [Effect::Unwatch { .. }]),
        "{effects:?}"
    );
    assert!(rig.engine.is_at_rest(at(0)), "nobody waits any more");
}

/// A ticket for a resource that is not served was kept until some input came by chance.
#[test]
fn a_barrier_over_a_resource_that_is_not_served_waits_for_nothing() {
    let mut rig = Rig::settled(&[&waiting("a", &["gadgets.later.io"])]);
    assert_eq!(rig.turn(), []);
    assert!(rig.engine.is_at_rest(at(0)));
}
