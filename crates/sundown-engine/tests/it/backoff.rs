//! What follows a write that was refused or whose fate is not known.

use jiff::{SignedDuration, Timestamp};
use serde_json::json;
use sundown_engine::{Effect, EffectId, Input, WatchEvent};
use sundown_model::{Answer, Outcome, RefusalReason, Write};

use crate::rig::{A, Rig, at, failure, only, refused, toy, writes};
use crate::toy::TOY;

#[track_caller]
fn deleted(effect: &Effect) -> (EffectId, sundown_model::Seen) {
    match effect {
        Effect::Write {
            id,
            write: Write::Delete { at, .. },
            ..
        } => (*id, at.clone()),
        other => unreachable!("expected a delete, got {other:?}"),
    }
}

fn doomed() -> A {
    toy("doomed").doomed()
}

fn after(instant: Timestamp, millis: i64) -> Timestamp {
    instant + SignedDuration::from_millis(millis)
}

#[test]
fn a_conflict_is_answered_by_a_read_and_a_new_decision() {
    let mut rig = Rig::settled(&[&doomed()]);
    let (id, _) = deleted(&only(rig.turn()));
    rig.wrote(id, refused(RefusalReason::Conflict, None));
    let read = only(rig.turn());
    assert!(
        matches!(&read, Effect::Get { key, .. } if *key == doomed().key()),
        "{read:?}"
    );
    let newer = doomed().rv(30);
    rig.got(read.id(), Some(&newer));
    let (_, seen) = deleted(&only(rig.turn()));
    assert_eq!(seen, newer.build().seen());
}

#[test]
fn a_conflict_that_turns_out_to_spare_the_object_is_not_followed_by_a_delete() {
    let mut rig = Rig::settled(&[&doomed()]);
    let (id, _) = deleted(&only(rig.turn()));
    rig.wrote(id, refused(RefusalReason::Conflict, None));
    let read = only(rig.turn());
    rig.got(read.id(), Some(&toy("doomed").rv(30)));
    assert_eq!(rig.turn(), []);
    assert!(rig.engine.is_at_rest(at(0)));
}

#[test]
fn after_an_unknown_outcome_the_target_is_read_before_anything_is_decided() {
    let mut rig = Rig::settled(&[&doomed()]);
    let (id, _) = deleted(&only(rig.turn()));
    rig.wrote(id, Outcome::Unknown);
    rig.sees(&doomed().rv(20));
    let read = only(rig.turn());
    assert!(matches!(read, Effect::Get { .. }), "{read:?}");
    assert_eq!(rig.turn_at(60_000), [], "no write before the answer");
    rig.got(read.id(), None);
    assert_eq!(rig.turn(), [], "it had been deleted after all");
}

#[test]
fn a_read_that_fails_is_asked_again_after_a_pause() {
    let mut rig = Rig::settled(&[&toy("curious").spec("asks", json!("box"))]);
    let read = only(rig.turn());
    let (id, result) = (read.id(), Err(failure()));
    rig.take(Input::Got { id, result });
    assert_eq!(rig.engine.wake_at(), Some(at(100)));
    assert_eq!(rig.turn_at(99), []);
    let again = only(rig.turn_at(100));
    assert!(matches!(again, Effect::Get { .. }), "{again:?}");
}

#[test]
fn a_refused_write_waits_longer_each_time_and_never_longer_than_a_minute() {
    for reason in [
        RefusalReason::Forbidden,
        RefusalReason::Invalid,
        RefusalReason::Busy,
    ] {
        let mut rig = Rig::settled(&[&doomed()]);
        let (mut id, _) = deleted(&only(rig.turn()));
        let delays = [100, 200, 400, 800, 1_600, 3_200, 6_400, 12_800, 25_600];
        for delay in delays.into_iter().chain([51_200, 60_000, 60_000]) {
            rig.wrote(id, refused(reason, None));
            let due_at = after(rig.now, delay);
            assert_eq!(rig.engine.wake_at(), Some(due_at), "{reason:?}");
            rig.now = after(due_at, -1);
            assert_eq!(rig.turn(), [], "nothing leaves before the back-off ends");
            rig.now = due_at;
            (id, _) = deleted(&only(rig.turn()));
        }
    }
}

#[test]
fn waits_as_long_as_the_server_asks_if_that_is_longer() {
    let mut rig = Rig::settled(&[&doomed()]);
    let (id, _) = deleted(&only(rig.turn()));
    rig.wrote(id, refused(RefusalReason::Busy, Some(7)));
    assert_eq!(rig.turn_at(6_999), []);
    let (id, _) = deleted(&only(rig.turn_at(7_000)));
    rig.wrote(id, refused(RefusalReason::Busy, Some(0)));
    assert_eq!(rig.turn_at(7_199), [], "our own pause is longer");
    deleted(&only(rig.turn_at(7_200)));
}

#[test]
fn a_change_of_the_object_does_not_end_its_back_off() {
    let mut rig = Rig::settled(&[&doomed()]);
    let (id, _) = deleted(&only(rig.turn()));
    rig.wrote(id, refused(RefusalReason::Forbidden, None));
    rig.sees(&doomed().rv(20));
    assert_eq!(rig.turn_at(99), []);
    let (_, seen) = deleted(&only(rig.turn_at(100)));
    assert_eq!(seen, doomed().rv(20).build().seen());
}

#[test]
fn the_back_off_of_one_object_does_not_delay_another() {
    let mut rig = Rig::settled(&[&doomed()]);
    let (id, _) = deleted(&only(rig.turn()));
    rig.wrote(id, refused(RefusalReason::Forbidden, Some(60)));
    let other = toy("other").doomed().rv(20);
    rig.sees(&other);
    let (_, seen) = deleted(&only(rig.turn()));
    assert_eq!(seen, other.build().seen());
}

/// A decision about a whole (a namespace, a definition) says by it why a part is still there.
#[test]
fn a_refused_deletion_is_a_fact_until_it_is_accepted() {
    let mut rig = Rig::settled(&[&doomed()]);
    let object = doomed().build();
    let (key, uid) = (object.key(), object.uid());
    let (id, _) = deleted(&only(rig.turn()));
    rig.wrote(id, refused(RefusalReason::Busy, None));
    assert_eq!(rig.engine.facts().refused_deletes(), 0, "not for good");
    let (id, _) = deleted(&only(rig.turn_at(100)));
    rig.wrote(id, refused(RefusalReason::Forbidden, None));
    let fact = rig.engine.facts().refused_delete(key, uid);
    assert_eq!(fact.unwrap().reason, RefusalReason::Forbidden);
    let other = sundown_model::Uid::from("another incarnation");
    assert_eq!(rig.engine.facts().refused_delete(key, &other), None);
    let (id, _) = deleted(&only(rig.turn_at(300)));
    rig.wrote(id, Outcome::Done(Answer::Gone));
    assert_eq!(rig.engine.facts().refused_deletes(), 0);
}

#[test]
fn the_pause_is_short_again_after_a_success() {
    let mut rig = Rig::settled(&[&doomed()]);
    let (id, _) = deleted(&only(rig.turn()));
    rig.wrote(id, refused(RefusalReason::Busy, None));
    let (id, _) = deleted(&only(rig.turn_at(100)));
    let answer = Answer::Object(toy("doomed").rv(20).build());
    rig.wrote(id, Outcome::Done(answer));
    assert_eq!(rig.turn(), []);
    rig.sees(&doomed().rv(30));
    let (id, _) = deleted(&only(rig.turn()));
    rig.wrote(id, refused(RefusalReason::Busy, None));
    assert_eq!(rig.engine.wake_at(), Some(at(200)));
}

#[test]
fn the_pause_is_kept_even_if_another_write_of_the_same_decision_ends_later() {
    let mut rig = Rig::settled(&[&busy()]);
    let [patch, delete] = two(rig.turn());
    rig.wrote(patch.id(), refused(RefusalReason::Forbidden, Some(9)));
    assert_eq!(rig.turn_at(400), [], "the other is still under way");
    rig.wrote(delete.id(), refused(RefusalReason::Conflict, None));
    let read = only(rig.turn());
    rig.got(read.id(), Some(&busy()));
    assert_eq!(rig.turn_at(8_999), []);
    assert_eq!(rig.turn_at(9_000).len(), 2);
}

#[test]
fn the_longer_of_two_pauses_counts() {
    let mut rig = Rig::settled(&[&busy()]);
    let [patch, delete] = two(rig.turn());
    rig.wrote(patch.id(), refused(RefusalReason::Busy, Some(9)));
    rig.wrote(delete.id(), refused(RefusalReason::Busy, None));
    assert_eq!(rig.turn_at(8_999), []);
    assert_eq!(rig.turn_at(9_000).len(), 2);
}

/// A timer that fired while a second write was under way used to wipe out the pause that the
/// first one had earned.
#[test]
fn the_pause_is_kept_even_if_a_timer_of_the_same_decision_fires_in_it() {
    let timed = busy().spec("again", json!(at(500).to_string()));
    let mut rig = Rig::settled(&[&timed]);
    let [patch, delete] = two(rig.turn());
    rig.wrote(patch.id(), refused(RefusalReason::Forbidden, Some(9)));
    assert_eq!(rig.turn_at(500), [], "the other is still under way");
    rig.wrote(delete.id(), refused(RefusalReason::Conflict, None));
    let read = only(rig.turn_at(1_000));
    rig.got(read.id(), Some(&timed));
    assert_eq!(rig.turn_at(8_999), []);
    assert_eq!(rig.turn_at(9_000).len(), 2);
}

/// One connection that broke under many writes of a decision was as many failures: a minute of waiting.
#[test]
fn however_many_writes_of_a_decision_fail_that_is_one_failure() {
    let mut rig = Rig::settled(&[&busy()]);
    let [one, other] = two(rig.turn());
    rig.wrote(one.id(), refused(RefusalReason::Busy, None));
    rig.wrote(other.id(), refused(RefusalReason::Busy, None));
    assert_eq!(rig.turn_at(99), [], "the first pause");
    two(rig.turn_at(100));
}

#[test]
fn a_refusal_is_forgotten_when_the_object_goes_by_another_hand() {
    let mut rig = Rig::settled(&[&doomed()]);
    let (id, _) = deleted(&only(rig.turn()));
    rig.wrote(id, refused(RefusalReason::Forbidden, None));
    assert_eq!(rig.engine.facts().refused_deletes(), 1);
    rig.sees(&doomed().rv(40).deleting());
    assert_eq!(rig.engine.facts().refused_deletes(), 0);
}

/// So that a controller can leave a change that is refused each time until something else is new.
#[test]
fn that_a_change_was_refused_is_known_until_it_is_made_or_the_object_goes() {
    for is_made in [true, false] {
        let mut rig = Rig::settled(&[&busy()]);
        let [patch, delete] = two(rig.turn());
        rig.wrote(patch.id(), refused(RefusalReason::Forbidden, None));
        rig.wrote(delete.id(), refused(RefusalReason::Forbidden, None));
        assert!(rig.engine.facts().refusal(&busy().key()).is_some());
        let [patch, _] = two(rig.turn_at(1_000));
        if is_made {
            let answer = Answer::Object(busy().rv(40).build());
            rig.wrote(patch.id(), Outcome::Done(answer));
        } else {
            rig.watch(&TOY, WatchEvent::Deleted(busy().rv(40).build()));
        }
        assert!(rig.engine.facts().refusal(&busy().key()).is_none());
    }
}

/// A toy whose decision has two actions.
fn busy() -> A {
    doomed().spec("patches", json!({ "metadata": { "labels": { "a": "b" } } }))
}

#[track_caller]
fn two(effects: Vec<Effect>) -> [Effect; 2] {
    effects.try_into().expect("two effects")
}

#[test]
fn a_conflict_that_comes_each_time_waits_longer_each_time() {
    let mut rig = Rig::settled(&[&doomed()]);
    let (mut id, _) = deleted(&only(rig.turn()));
    for (rv, delay) in (30..).zip([0, 200, 400, 800, 1_600]) {
        rig.wrote(id, refused(RefusalReason::Conflict, None));
        let read = only(rig.turn());
        rig.got(read.id(), Some(&doomed().rv(rv)));
        let due_at = after(rig.now, delay);
        if delay > 0 {
            rig.now = after(due_at, -1);
            assert_eq!(rig.turn(), [], "nothing leaves before the back-off ends");
        }
        rig.now = due_at;
        (id, _) = deleted(&only(rig.turn()));
    }
}

/// All pods are bound under one key: each Binding of the scheduler once counted as a failure, and the next ones
/// had to wait for up to a minute.
#[test]
fn writes_that_are_accepted_without_an_object_are_no_failures_however_many_follow() {
    let unbound = toy("unbound").spec("binds", json!({ "target": "there" }));
    let mut rig = Rig::settled(&[&unbound]);
    for rv in 30..40 {
        let bind = only(rig.turn());
        assert_eq!(writes(std::slice::from_ref(&bind)).len(), 1, "{bind:?}");
        rig.wrote(bind.id(), Outcome::Done(Answer::Accepted));
        let read = only(rig.turn());
        rig.got(read.id(), Some(&unbound.clone().rv(rv)));
    }
    assert_eq!(rig.turn().len(), 1, "no pause");
}

/// A key that writes in each decision (a Job whose pods end one by one) has no idle decision that would end the
/// row: two conflicts with a success in between once counted as a repeated one.
#[test]
fn a_write_that_is_done_ends_a_row_of_failures() {
    let willing = toy("willing").spec("patches", json!({ "metadata": { "labels": {} } }));
    let mut rig = Rig::settled(&[&willing]);
    for rv in [30, 40, 50] {
        let patch = only(rig.turn());
        rig.wrote(patch.id(), refused(RefusalReason::Conflict, None));
        let read = only(rig.turn());
        rig.got(read.id(), Some(&willing.clone().rv(rv)));
        let again = only(rig.turn());
        let answer = Answer::Object(willing.clone().rv(rv + 1).build());
        rig.wrote(again.id(), Outcome::Done(answer));
    }
    assert_eq!(rig.turn().len(), 1, "no pause");
}

/// What is asked before each try is no success.
#[test]
fn an_answer_to_a_need_does_not_end_a_row_of_failures() {
    let curious = doomed().spec("asks", json!("box"));
    let mut rig = Rig::settled(&[&curious]);
    for (rv, delay) in (30..).zip([0, 200, 400]) {
        let ask = only(rig.turn());
        rig.got(ask.id(), None);
        let (id, _) = deleted(&only(rig.turn()));
        rig.wrote(id, refused(RefusalReason::Conflict, None));
        let read = only(rig.turn());
        rig.got(read.id(), Some(&curious.clone().rv(rv)));
        if delay > 0 {
            assert_eq!(rig.turn(), [], "a pause of {delay} ms");
            rig.now = after(rig.now, delay);
        }
    }
    assert_eq!(rig.turn().len(), 1);
}

/// A definition of another version prunes a status, or a webhook puts a reference back: each decision wants the
/// same write again.
#[test]
fn a_write_that_is_accepted_and_changes_nothing_waits_longer_each_time() {
    let stubborn = toy("stubborn").spec("patches", json!({ "status": { "new": 1 } }));
    let mut rig = Rig::settled(&[&stubborn]);
    let mut patch = only(rig.turn());
    for delay in [100, 200, 400, 800] {
        let answer = Answer::Object(stubborn.build());
        rig.wrote(patch.id(), Outcome::Done(answer));
        let due_at = after(rig.now, delay);
        assert_eq!(rig.engine.wake_at(), Some(due_at));
        rig.now = after(due_at, -1);
        assert_eq!(rig.turn(), [], "nothing leaves before the back-off ends");
        rig.now = due_at;
        patch = only(rig.turn());
    }
}

/// A namespace whose status is lost each time waits a second for the next one, and that decision, which only waits,
/// ended the row: a request a second, for ever.
#[test]
fn a_decision_that_waits_for_an_instant_does_not_end_a_row_of_failures() {
    let mut rig = Rig::settled(&[&doomed()]);
    let (mut id, _) = deleted(&only(rig.turn()));
    for (rv, delay) in (30..).step_by(2).zip([100, 200, 400, 800, 1_600]) {
        rig.wrote(id, refused(RefusalReason::Busy, None));
        assert_eq!(rig.engine.wake_at(), Some(after(rig.now, delay)));
        let wakes_at = after(rig.now, delay + 1_000);
        let waits = toy("doomed").rv(rv);
        rig.sees(&waits.spec("wakes", json!(wakes_at.to_string())));
        rig.now = after(rig.now, delay);
        assert_eq!(rig.turn(), []);
        rig.now = wakes_at;
        rig.sees(&doomed().rv(rv + 1));
        (id, _) = deleted(&only(rig.turn()));
    }
    rig.now = after(rig.now, 200_000);
    rig.wrote(id, refused(RefusalReason::Busy, None));
    let due_at = after(rig.now, 100);
    assert_eq!(rig.engine.wake_at(), Some(due_at), "far from the last one");
}

/// A clock that a test moves would never come to the end of such a pause.
#[test]
fn a_pause_that_the_next_try_may_mend_is_told_from_one_after_a_refusal() {
    for (outcome, is_mended) in [
        (Outcome::Unknown, true),
        (refused(RefusalReason::Conflict, None), false),
        (refused(RefusalReason::Forbidden, None), false),
    ] {
        let mut rig = Rig::settled(&[&doomed()]);
        let (id, _) = deleted(&only(rig.turn()));
        rig.wrote(id, outcome);
        for read in rig.turn() {
            rig.got(read.id(), Some(&doomed().rv(30)));
        }
        assert_eq!(rig.engine.mends_at(), is_mended.then(|| at(100)));
        rig.turn_at(100);
        assert_eq!(rig.engine.mends_at(), None, "it goes on");
    }
}
