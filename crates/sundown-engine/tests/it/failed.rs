//! Writes that come to nothing, or may have, are facts, whatever came of them.

use sundown_engine::{Effect, EffectId};
use sundown_model::{Answer, Outcome, RefusalReason};

use crate::rig::{A, Rig, only, refused, toy};

fn doomed() -> A {
    toy("doomed").doomed()
}

/// How often in a row the deletion has failed.
fn failures(rig: &Rig) -> u32 {
    let object = doomed().build();
    let fact = rig.engine.facts().failed_delete(object.key(), object.uid());
    fact.map_or(0, |it| it.failures)
}

/// Lets the next request of the toy end so, and what is read after it show that the toy is still there.
fn end(rig: &mut Rig, id: EffectId, outcome: Outcome) {
    rig.wrote(id, outcome);
    let effects = rig.turn();
    if let [Effect::Get { id, .. }] = effects[..] {
        rig.got(id, Some(&doomed()));
    }
}

fn next(rig: &mut Rig) -> EffectId {
    rig.now += jiff::SignedDuration::from_mins(1);
    only(rig.turn()).id()
}

#[test]
fn a_deletion_that_fails_in_any_way_is_counted_until_it_is_accepted() {
    let mut rig = Rig::settled(&[&doomed()]);
    let mut id = only(rig.turn()).id();
    for (count, outcome) in (1..).zip([
        refused(RefusalReason::Busy, None),
        Outcome::Unknown,
        refused(RefusalReason::Forbidden, None),
    ]) {
        end(&mut rig, id, outcome);
        assert_eq!(failures(&rig), count);
        id = next(&mut rig);
    }
    rig.now += jiff::SignedDuration::from_hours(1);
    end(&mut rig, id, Outcome::Unknown);
    assert_eq!(failures(&rig), 1, "what is far apart is not in a row");
    let id = next(&mut rig);
    rig.wrote(id, Outcome::Done(Answer::Gone));
    assert_eq!(failures(&rig), 0);
}
