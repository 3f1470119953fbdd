//! The TTL rule as a table, for each kind that has one.

mod batch;
mod volcano;

use jiff::Timestamp;
use serde_json::{Value, json};
use sundown_model::{Action, Decision, Explain, Note, Propagation, Write};

use super::{Reason, Ttl};
use crate::testing::{A, Scene, a_job, a_volcano_job, at};

#[track_caller]
fn check(job: &A, now: i64, expect: &Reason) {
    let decision = decide(job, now);
    assert_eq!(&decision.reason, expect);
    let is_write = |action: &&Action| matches!(action, Action::Api(_));
    assert_eq!(
        decision.actions.iter().filter(is_write).count(),
        usize::from(matches!(expect, Reason::Expired { .. }))
    );
    assert!(!decision.reason.sentence().is_empty());
}

fn decide(job: &A, now: i64) -> Decision<Reason> {
    let scene = Scene::new(Ttl::default()).seeing(job);
    scene.decide(&job.key(), now)
}

/// What a decision tells: one word, no more.
#[track_caller]
fn told(decision: &Decision<Reason>) -> Note {
    match &*decision.actions {
        [Action::Tell(note)] => note.clone(),
        actions => panic!("not one note: {actions:?}"),
    }
}

fn both() -> [A; 2] {
    [a_job(), a_volcano_job()]
}

#[test]
fn keeps_a_job_that_is_gone_deleting_without_ttl_or_running() {
    for job in both() {
        let gone = Scene::new(Ttl::default()).decide(&job.key(), 0);
        assert_eq!(gone.reason, Reason::Gone);
        let deleting = job.clone().ttl(0).finished_at(0).deleting(&["x/y"]);
        check(&deleting, 9, &Reason::AlreadyDeleting);
        check(&job.clone().finished_at(0), 9, &Reason::NoTtl);
        check(&job.ttl(0), 9, &Reason::StillRunning);
    }
}

#[test]
fn deletes_at_the_due_instant_and_not_before() {
    for job in both() {
        let kept = job.clone().finished_at(100).ttl(60);
        check(&kept, 159, &Reason::NotDue { due_at: at(160) });
        check(&kept, 160, &Reason::Expired { due_at: at(160) });
        let at_once = job.finished_at(100).ttl(0);
        check(&at_once, 100, &Reason::Expired { due_at: at(100) });
    }
}

#[test]
fn a_finish_in_the_future_is_warned_of_and_the_ttl_counts_from_it() {
    for job in both() {
        let job = job.finished_at(1_000).ttl(60);
        let (finished_at, due_at) = (at(1_000), at(1_060));
        let in_the_future = Reason::FinishInFuture {
            finished_at,
            due_at,
        };
        check(&job, 0, &in_the_future);
        let decision = decide(&job, 0);
        let note = told(&decision);
        assert!(note.warning && &*note.reason == "FinishTimeInFuture");
        assert!(note.message.contains("2030-01-01T00:16:40Z"), "{note:?}");
        // Until the instant can be believed the same is decided, and so told once.
        assert_eq!(decide(&job, 994), decision);
        assert_eq!(decision.wake_at, Some(at(995)));
        check(&job, 995, &Reason::NotDue { due_at });
        check(&job, 1_060, &Reason::Expired { due_at });
    }
}

#[test]
fn clocks_that_differ_by_seconds_are_no_matter() {
    for job in both() {
        let job = job.finished_at(5).ttl(60);
        check(&job, 0, &Reason::NotDue { due_at: at(65) });
        assert!(decide(&job, 0).actions.is_empty());
    }
}

#[test]
fn treats_a_ttl_of_centuries_as_never() {
    for job in both() {
        let due_at = Timestamp::MAX;
        let job = job.finished_at(0).ttl(i64::MAX);
        check(&job, 9, &Reason::NotDue { due_at });
    }
}

#[test]
fn wakes_at_the_due_instant_and_changes_nothing_before() {
    for job in both() {
        let job = job.finished_at(0).ttl(60);
        let early = decide(&job, 0);
        assert_eq!(early.wake_at, Some(at(60)));
        assert_eq!(decide(&job, 59), early);
        assert_ne!(decide(&job, 60), early);
    }
}

#[test]
fn deletes_in_foreground_exactly_what_it_saw() {
    for job in both() {
        let job = job.finished_at(0).ttl(1).rv(42);
        let delete = Write::Delete {
            at: job.build().seen(),
            how: Propagation::Foreground,
        };
        assert_eq!(*decide(&job, 1).actions, [Action::Api(delete)]);
    }
}

#[test]
fn a_raised_or_removed_ttl_wins() {
    for job in both() {
        let finished = || job.clone().finished_at(0);
        let scene = Scene::new(Ttl::default()).seeing(&finished().ttl(1));
        let raised = scene.clone().seeing(&finished().ttl(100).rv(2));
        let kept = raised.decide(&job.key(), 50).reason;
        assert_eq!(kept, Reason::NotDue { due_at: at(100) });
        let removed = scene.seeing(&finished().rv(2));
        assert_eq!(removed.decide(&job.key(), 50).reason, Reason::NoTtl);
    }
}

#[test]
fn a_successor_of_the_same_name_has_a_time_of_its_own() {
    for job in both() {
        let first = job.clone().finished_at(0).ttl(1);
        let successor = job.uid("uid-of-another").rv(2).ttl(1);
        let scene = Scene::new(Ttl::default()).seeing(&first).seeing(&successor);
        let reason = scene.decide(&first.key(), 50).reason;
        assert_eq!(reason, Reason::StillRunning);
    }
}

#[test]
fn a_job_of_another_group_is_no_job() {
    let pod = crate::testing::a("pod", "job").ttl(0).finished_at(0);
    check(&pod, 9, &Reason::Gone);
}

/// A finished job whose finish time is missing: it stays, with one warning that names the field.
#[track_caller]
fn check_missing(job: &A, field: &'static str) {
    let expect = Reason::FinishTimeMissing { field };
    check(job, 0, &expect);
    let decision = decide(job, 0);
    let note = told(&decision);
    assert!(note.warning && &*note.reason == "FinishTimeMissing");
    assert!(note.message.contains(field), "{note:?}");
    assert!(decision.reason.sentence().contains(field));
    // The same decision whenever it is made, and nothing to wait for: told once.
    assert_eq!(decide(job, 1_000_000), decision);
    assert_eq!(decision.wake_at, None);
}

/// What may stand where an instant should.
fn no_instants() -> [Value; 5] {
    let year_1 = json!("0001-01-01T00:00:00Z");
    [json!(null), json!(""), json!("soon"), json!(7), year_1]
}
