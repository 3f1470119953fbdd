//! Brakes: what is held back, what is not, and that release lets it go.

use serde_json::json;
use sundown_engine::{Brake, Effect, Input};
use sundown_model::{Answer, Outcome, Write};

use crate::rig::{A, Rig, at, only, toy, writes};
use crate::toy::{BOX, TOY};

fn braked(objects: &[&A], brake: Brake) -> Rig {
    let mut rig = Rig::settled(objects);
    rig.take(Input::Brake(brake));
    rig
}

#[track_caller]
fn names(effects: &[Effect]) -> Vec<String> {
    let deleted = writes(effects).into_iter().map(|write| match write {
        Write::Delete { at, .. } => at.key().name.to_string(),
        other => unreachable!("expected a delete, got {other:?}"),
    });
    deleted.collect()
}

#[test]
fn a_brake_holds_every_write_until_it_is_released() {
    let doomed = toy("doomed").doomed();
    let mut rig = braked(&[&doomed], Brake::everything());
    assert_eq!(rig.turn(), []);
    rig.sees(&doomed.clone().rv(20));
    assert_eq!(rig.turn_at(3_600_000), []);
    assert!(rig.engine.is_at_rest(rig.now), "held is at rest");
    rig.take(Input::Brake(Brake::default()));
    let write = only(rig.turn());
    let [Write::Delete { at, .. }] = &writes(&[write])[..] else {
        panic!("expected a delete");
    };
    assert_eq!(at, &doomed.rv(20).build().seen());
}

#[test]
fn needs_are_asked_under_a_brake() {
    let curious = toy("a").spec("asks", json!("box")).doomed();
    let patient = toy("b").spec("waits", json!(["boxes"])).doomed();
    let mut rig = braked(&[&curious, &patient], Brake::everything());
    let effects = rig.turn();
    let read = effects.iter().find(|it| matches!(it, Effect::Get { .. }));
    assert!(read.is_some(), "{effects:?}");
    let is_barrier = |it: &&Effect| matches!(it, Effect::Barrier { .. });
    assert!(effects.iter().any(|it| is_barrier(&it)), "{effects:?}");
    rig.got(read.map(Effect::id).expect("found above"), None);
    assert_eq!(rig.turn(), [], "the write behind the need is held");
}

#[test]
fn a_brake_on_a_namespace_holds_that_namespace_only() {
    let (here, there) = (
        toy("here").doomed(),
        toy("there").doomed().meta("namespace", json!("there")),
    );
    let namespaces = ["here".into()].into();
    let brake = Brake {
        namespaces,
        ..Brake::default()
    };
    let mut rig = braked(&[&here, &there], brake);
    assert_eq!(names(&rig.turn()), ["there"]);
}

#[test]
fn a_brake_on_a_resource_holds_that_resource_only() {
    let on = |resource| Brake {
        resources: [resource].into(),
        ..Brake::default()
    };
    let doomed = toy("doomed").doomed();
    let mut rig = braked(&[&doomed], on(TOY.resource()));
    assert_eq!(rig.turn(), []);
    rig.take(Input::Brake(on(BOX.resource())));
    assert_eq!(names(&rig.turn()), ["doomed"]);
}

#[test]
fn what_left_before_the_brake_is_answered_as_usual() {
    let doomed = toy("doomed").doomed();
    let mut rig = Rig::settled(&[&doomed]);
    let delete = only(rig.turn());
    rig.take(Input::Brake(Brake::everything()));
    rig.wrote(delete.id(), Outcome::Done(Answer::Gone));
    assert_eq!(rig.cached(&doomed), None);
    assert_eq!(rig.turn(), []);
    assert!(rig.engine.is_at_rest(at(0)));
}

/// A note about a braked object used to be dropped: nobody decided again after the release.
#[test]
fn a_note_is_held_by_a_brake_and_told_after_its_release() {
    let telling = toy("a").spec("tells", json!("hello"));
    let mut rig = braked(&[&telling], Brake::everything());
    assert_eq!(rig.turn(), []);
    rig.take(Input::Brake(Brake::default()));
    let effects = rig.turn();
    assert!(
        matches!(writes(&effects).as_slice(), [Write::Create(_)]),
        "{effects:?}"
    );
}
