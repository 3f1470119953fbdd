//! The flight record: a life that is lived again does the same, from its beginning or from the
//! middle, and a record that does not fit is refused.

use serde_json::{Value, json};
use sundown_engine::flight::{FORMAT, Record, Replayed, replay};
use sundown_engine::{Config, Effect, Engine, Input, WatchEvent};
use sundown_model::{Answer, DeedOutcome, Outcome, RefusalReason, Reply};

use crate::rig::{A, LISTED, Rig, at, failure, only, position, refused, toy, veil};
use crate::toy::{BOX, TOY, Toys};

fn fresh() -> Engine {
    Engine::new(Config::default()).with(Toys::default())
}

fn cast() -> Vec<A> {
    vec![
        toy("asking").spec("asks", json!("box")).doomed(),
        toy("doomed").doomed(),
        toy("telling").spec("tells", json!("hello")),
        toy("timed")
            .spec("wakes", json!(at(9_000).to_string()))
            .doomed(),
        toy("waiting").spec("waits", json!(["boxes"])).doomed(),
    ]
}

/// Answers an effect in a way that depends on how often something was answered before.
fn answer(rig: &mut Rig, effect: &Effect, count: usize) {
    let id = effect.id();
    match effect {
        Effect::Get { .. } if count.is_multiple_of(2) => {
            let result = Err(failure());
            rig.take(Input::Got { id, result });
        }
        Effect::Get { .. } => rig.got(id, None),
        Effect::Barrier { .. } => {
            let result = Ok(vec![position(&BOX, LISTED)]);
            rig.take(Input::Positions { id, result });
        }
        Effect::Write { .. } => rig.wrote(
            id,
            match count % 4 {
                0 => refused(RefusalReason::Busy, Some(2)),
                1 => refused(RefusalReason::Conflict, None),
                2 => Outcome::Unknown,
                _ => Outcome::Done(Answer::Gone),
            },
        ),
        Effect::Watch { .. } => {}
        Effect::Ask { .. } => rig.take(Input::Answered {
            id,
            reply: Reply::Node(Err("no answer".to_owned())),
        }),
        Effect::Do { .. } => rig.take(Input::Done {
            id,
            outcome: if count.is_multiple_of(2) {
                DeedOutcome::unanswered()
            } else {
                DeedOutcome::Done
            },
        }),
        Effect::Discover { .. } | Effect::List { .. } | Effect::Unwatch { .. } => {
            unreachable!("the streams have settled: {effect:?}")
        }
    }
}

/// A life with reads, barriers, refusals, timers, notes and a watch that closed.
fn life() -> Vec<Record> {
    let cast = cast();
    let mut rig = Rig::settled(&cast.iter().collect::<Vec<_>>());
    let mut count = 0;
    for second in 0..30 {
        let mut effects = rig.turn_at(second * 1_000);
        while !effects.is_empty() {
            for effect in &effects {
                answer(&mut rig, effect, count);
                count += 1;
            }
            effects = rig.turn();
        }
        if second == 5 {
            rig.watch(&TOY, WatchEvent::Closed { expired: false });
            rig.turn();
        }
    }
    assert!(count > 15, "a life with something in it: {count} effects");
    assert!(rig.engine.is_at_rest(rig.now), "it ends at rest");
    rig.turns
}

#[track_caller]
fn is_same(engine: &mut Engine, record: &Record) -> bool {
    let replayed = replay(engine, record.clone()).expect("the record fits");
    matches!(replayed, Some(Replayed::Same { .. }))
}

#[test]
fn a_life_that_is_lived_again_does_the_same() {
    let mut engine = fresh();
    for record in life() {
        let line = record.line(&veil());
        assert!(!line.contains('\n'));
        let read: Record = serde_json::from_str(&line).expect("a line is JSON");
        assert!(is_same(&mut engine, &read), "{line}");
    }
}

#[test]
fn a_life_goes_on_from_a_checkpoint_at_any_turn() {
    let turns = life();
    let mut first = fresh();
    for (index, record) in turns.iter().enumerate() {
        let line = Record::begin(&first, at(0), &veil()).line(&veil());
        let begin: Record = serde_json::from_str(&line).expect("a line is JSON");
        let mut second = fresh();
        assert_eq!(replay(&mut second, begin), Ok(None));
        assert_eq!(second.checkpoint(), first.checkpoint(), "turn {index}");
        assert_eq!(second.audit(), Vec::<String>::new(), "turn {index}");
        for rest in &turns[index..] {
            assert!(is_same(&mut second, rest), "from turn {index}");
        }
        assert!(is_same(&mut first, record));
    }
}

#[test]
fn an_effect_that_was_tampered_with_is_a_difference() {
    let mut life = life();
    let with_write = life.iter().position(|record| {
        matches!(record, Record::Turn { effects, .. }
            if effects.iter().any(|effect| matches!(effect, Effect::Write { .. })))
    });
    let index = with_write.expect("something was written");
    let Record::Turn { effects, .. } = &mut life[index] else {
        panic!("found above");
    };
    let tampered = effects.pop().expect("found above");
    let mut engine = fresh();
    assert!(
        life[..index]
            .iter()
            .all(|record| is_same(&mut engine, record))
    );
    let replayed = replay(&mut engine, life[index].clone()).unwrap();
    let Some(Replayed::Differs { recorded, now, .. }) = replayed else {
        panic!("expected a difference, got {replayed:?}");
    };
    assert_eq!(now.len(), recorded.len() + 1);
    assert_eq!(now.last(), Some(&tampered));
}

#[test]
fn a_record_of_another_format_is_refused_and_changes_nothing() {
    let mut engine = fresh();
    let before = engine.checkpoint();
    let begin = Record::Begin {
        format: FORMAT + 1,
        at: at(0),
        controllers: vec!["toys".to_owned()],
        checkpoint: engine.checkpoint(),
    };
    let error = replay(&mut engine, begin).unwrap_err();
    let expect = format!("format {FORMAT}");
    assert!(error.contains(&expect), "{error}");
    assert_eq!(engine.checkpoint(), before);
}

#[test]
fn a_record_begins_with_its_format_and_its_controllers() {
    let line = Record::begin(&fresh(), at(0), &veil()).line(&veil());
    let json: Value = serde_json::from_str(&line).unwrap();
    assert_eq!(json["line"], json!("begin"));
    assert_eq!(json["format"], json!(FORMAT));
    assert_eq!(json["controllers"], json!(["toys"]));
}

#[test]
fn a_checkpoint_of_other_controllers_or_of_another_form_is_refused() {
    let none = Engine::new(Config::default());
    assert!(fresh().restore(&none.checkpoint()).is_err(), "one too few");
    let mut none = none;
    assert!(none.restore(&fresh().checkpoint()).is_err(), "one too many");
    assert!(fresh().restore(&json!({ "state": 1 })).is_err());
}

#[test]
fn answers_decide_what_differs() {
    let mut rig = Rig::settled(&[&toy("doomed").doomed()]);
    let delete = only(rig.turn());
    let (mut gone, mut conflict) = (rig.clone(), rig);
    gone.wrote(delete.id(), Outcome::Done(Answer::Gone));
    conflict.wrote(delete.id(), refused(RefusalReason::Conflict, None));
    assert_ne!(gone.turn(), conflict.turn());
}
