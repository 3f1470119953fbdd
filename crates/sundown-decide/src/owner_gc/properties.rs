//! What holds for every crowd of owners and dependents: layer 2 of the test ladder.

mod crowd;

use std::cell::Cell;

use fastrand::Rng;
use jiff::{SignedDuration, Timestamp};
use sundown_model::{Action, Controller, Form, Need, Object, ObjectKey, Write};

use super::{OwnerGc, Reason};
use crate::testing::seeds::{for_seeds, odd_object, one_of};
use crate::testing::{Scene, at, catalog};
use crowd::{Crowd, Settled};

const CASES: u64 = 400;

fn writes(actions: &[Action]) -> Vec<&Write> {
    let writes = actions.iter().filter_map(|action| match action {
        Action::Api(write) => Some(write),
        Action::Tell(_) | Action::Do(_) => None,
    });
    writes.collect()
}

/// A crowd as somebody sees it who knows everything, or only a part of it.
fn some_scene(rng: &mut Rng) -> (Crowd, Scene<OwnerGc>) {
    let crowd = Crowd::of(rng);
    let mut scene = crowd.scene(rng);
    if rng.bool() {
        scene = scene.caught_up();
    }
    if rng.bool() {
        scene = crowd.read_owners(scene);
    }
    (crowd, scene)
}

#[test]
fn a_decision_that_was_applied_is_not_made_again() {
    let applied = Cell::new(0);
    for_seeds(CASES, |rng| {
        let (crowd, scene) = some_scene(rng);
        for key in crowd.keys() {
            let decision = scene.decide(&key, 0);
            for write in writes(&decision.actions) {
                let mut crowd = crowd.clone();
                let scene = crowd.apply(write, scene.clone());
                let again = scene.decide(&key, 0);
                // Letting go drops one owner; what the others are worth is the next decision.
                let is_let_go = decision.reason == Reason::LetGo && again.reason != Reason::LetGo;
                assert!(is_let_go || writes(&again.actions).is_empty(), "{again:?}");
                assert_eq!(scene.controller.audit(&scene.cache), Ok(()));
                applied.set(applied.get() + 1);
            }
        }
    });
    assert!(applied.get() > CASES, "{} writes", applied.get());
}

#[test]
fn whoever_answers_and_applies_comes_to_rest_and_no_garbage_is_left() {
    let deleted = Cell::new(0);
    for_seeds(CASES, |rng| {
        let mut crowd = Crowd::of(rng);
        let scene = crowd.scene(rng);
        let Settled { scene, gone, .. } = crowd.settle(scene, None);
        assert_eq!(crowd.garbage(), Vec::<ObjectKey>::new());
        assert_eq!(scene.controller.audit(&scene.cache), Ok(()));
        deleted.set(deleted.get() + gone.len());
    });
    assert!(deleted.get() > 100, "{} were deleted", deleted.get());
}

#[test]
fn a_crash_after_any_prefix_of_the_writes_leads_to_the_same_end() {
    for_seeds(CASES / 4, |rng| {
        let begin = Crowd::of(rng).without_choices();
        let scene = begin.scene(rng);
        let mut whole = begin.clone();
        let writes = whole.settle(scene.clone(), None).writes;
        for prefix in 0..writes {
            let mut crowd = begin.clone();
            crowd.settle(scene.clone(), Some(prefix));
            // Nothing is remembered but what the server has.
            let anew = crowd.scene(rng);
            crowd.settle(anew, None);
            assert_eq!(crowd.shape(), whole.shape(), "after {prefix} writes");
        }
    });
}

#[test]
fn nothing_changes_before_the_instant_that_it_names_and_something_does_at_it() {
    let named = Cell::new(0);
    for_seeds(CASES, |rng| {
        let (crowd, scene) = some_scene(rng);
        for key in crowd.keys() {
            let decision = scene.decide(&key, 0);
            // Of a kind that is not served nothing follows, so it is not worth a clock either.
            let is_stuck = matches!(decision.reason, Reason::UnknownOwnerKind { .. });
            if is_stuck || !decision.actions.is_empty() || !decision.needs.is_empty() {
                continue;
            }
            let until = decision.wake_at.unwrap_or(Timestamp::MAX);
            let just_before = until - SignedDuration::from_nanos(1);
            for now in [at(0), at(rng.i64(0..100_000)).min(just_before), just_before] {
                assert_eq!(scene.decide_at(&key, now), decision, "at {now}");
            }
            if decision.wake_at.is_some() {
                assert_ne!(scene.decide_at(&key, until), decision);
                named.set(named.get() + 1);
            }
        }
    });
    assert!(named.get() > 0, "some decision names an instant");
}

#[test]
fn each_write_names_the_uid_and_the_revision_of_the_object_decided_on() {
    for_seeds(CASES, |rng| {
        let (crowd, scene) = some_scene(rng);
        for key in crowd.keys() {
            let decision = scene.decide(&key, 0);
            assert!(decision.needs.is_empty() || decision.actions.is_empty());
            for write in writes(&decision.actions) {
                let (Write::Delete { at, .. } | Write::Patch { at, .. }) = write else {
                    panic!("the collector creates nothing: {write:?}");
                };
                assert_eq!(at.key(), &key);
                assert_eq!(
                    Some(at),
                    crowd.get(&key).map(|it| it.build().seen()).as_ref()
                );
            }
        }
    });
}

#[test]
fn each_need_is_about_something_that_is_served() {
    for_seeds(CASES, |rng| {
        let (crowd, scene) = some_scene(rng);
        for key in crowd.keys() {
            for need in scene.decide(&key, 0).needs {
                let resources = match need {
                    Need::Live(key) => vec![key.resource],
                    Need::Barrier(resources) => resources,
                    Need::Ray(_) | Need::Node(_) => panic!("the collector asks the server alone"),
                };
                assert!(!resources.is_empty());
                assert!(resources.iter().all(|it| catalog().get(it).is_some()));
            }
        }
    });
}

#[test]
fn the_order_of_observation_does_not_matter() {
    for_seeds(CASES, |rng| {
        let crowd = Crowd::of(rng);
        let known = |scene: Scene<OwnerGc>| crowd.read_owners(scene.caught_up());
        let first = known(crowd.scene(rng));
        let second = known(crowd.scene(rng));
        assert_eq!(first.controller.graph(), second.controller.graph());
        for key in crowd.keys() {
            assert_eq!(first.decide(&key, 0), second.decide(&key, 0), "{key}");
        }
    });
}

#[test]
fn no_object_is_too_odd_to_decide_on() {
    let read = Cell::new(0);
    for_seeds(CASES, |rng| {
        let crowd = Crowd::of(rng);
        let mut scene = crowd.scene(rng);
        for _ in 0..3 {
            let types: Vec<_> = catalog().iter().cloned().collect();
            let resource = &one_of(rng, &types).resource;
            let Ok(odd) = Object::read(resource, &odd_object(rng), &Form::metadata()) else {
                continue;
            };
            read.set(read.get() + 1);
            scene = scene.seeing_as_it_is(odd.clone().into()).caught_up();
            for now in [Timestamp::MIN, at(0), Timestamp::MAX] {
                let decision = scene.decide_at(odd.key(), now);
                for write in writes(&decision.actions) {
                    let (Write::Delete { at, .. } | Write::Patch { at, .. }) = write else {
                        panic!("the collector creates nothing: {write:?}");
                    };
                    assert_eq!(at.uid(), scene.cache.get(odd.key()).unwrap().uid());
                }
            }
        }
        for key in crowd.keys() {
            scene.decide_at(&key, Timestamp::MAX);
        }
    });
    assert!(read.get() > CASES / 2, "{} were read", read.get());
}
