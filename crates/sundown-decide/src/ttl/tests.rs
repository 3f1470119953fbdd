//! The TTL rule as a table, and what must hold for every job.

use jiff::Timestamp;
use serde_json::json;
use sundown_model::{Action, Explain, Propagation, Write};

use super::{Reason, Ttl};
use crate::testing::{A, Scene, a_job, at};

#[track_caller]
fn check(job: &A, now: i64, expect: &Reason) {
    let decision = Scene::new(Ttl).seeing(job).decide(&job.key(), now);
    assert_eq!(&decision.reason, expect);
    assert_eq!(
        decision.actions.is_empty(),
        !matches!(expect, Reason::Expired { .. })
    );
    assert!(!decision.reason.sentence().is_empty());
}

#[test]
fn keeps_a_job_that_is_gone_deleting_without_ttl_or_running() {
    let gone = Scene::new(Ttl).decide(&a_job().key(), 0);
    assert_eq!(gone.reason, Reason::Gone);
    check(
        &a_job().ttl(0).finished_at(0).deleting(&["x/y"]),
        9,
        &Reason::AlreadyDeleting,
    );
    check(&a_job().finished_at(0), 9, &Reason::NoTtl);
    check(&a_job().ttl(0), 9, &Reason::StillRunning);
}

#[test]
fn counts_only_true_complete_and_failed_conditions() {
    let condition = |kind: &str, status: &str| {
        let at = at(0).to_string();
        let it = json!({ "type": kind, "status": status, "lastTransitionTime": at });
        a_job().ttl(5).with("/status/conditions", json!([it]))
    };
    for kind in ["Suspended", "FailureTarget", "SuccessCriteriaMet"] {
        check(&condition(kind, "True"), 9, &Reason::StillRunning);
    }
    check(&condition("Complete", "False"), 9, &Reason::StillRunning);
    check(
        &condition("Failed", "True"),
        9,
        &Reason::Expired { due_at: at(5) },
    );
}

#[test]
fn takes_the_first_finished_condition_in_list_order() {
    let condition = |kind: &str, seconds: i64| json!({ "type": kind, "status": "True", "lastTransitionTime": at(seconds).to_string() });
    let conditions = json!([condition("Failed", 7), condition("Complete", 3)]);
    let job = a_job().ttl(0).with("/status/conditions", conditions);
    check(&job, 5, &Reason::NotDue { due_at: at(7) });
}

#[test]
fn never_guesses_a_missing_finish_time() {
    let conditions = json!([{ "type": "Complete", "status": "True" }]);
    let job = a_job().ttl(0).with("/status/conditions", conditions);
    check(&job, 1_000_000, &Reason::FinishTimeMissing);
}

#[test]
fn deletes_at_the_due_instant_and_not_before() {
    let job = a_job().finished_at(100).ttl(60);
    check(&job, 159, &Reason::NotDue { due_at: at(160) });
    check(&job, 160, &Reason::Expired { due_at: at(160) });
    check(
        &a_job().finished_at(100).ttl(0),
        100,
        &Reason::Expired { due_at: at(100) },
    );
}

#[test]
fn defers_a_finish_time_in_the_future() {
    check(
        &a_job().finished_at(1_000).ttl(0),
        0,
        &Reason::NotDue { due_at: at(1_000) },
    );
}

#[test]
fn treats_a_ttl_of_centuries_as_never() {
    check(
        &a_job().finished_at(0).ttl(i64::MAX),
        9,
        &Reason::NotDue {
            due_at: Timestamp::MAX,
        },
    );
}

#[test]
fn wakes_at_the_due_instant_and_changes_nothing_before() {
    let job = a_job().finished_at(0).ttl(60);
    let scene = Scene::new(Ttl).seeing(&job);
    let early = scene.decide(&job.key(), 0);
    assert_eq!(early.wake_at, Some(at(60)));
    assert_eq!(scene.decide(&job.key(), 59), early);
    assert_ne!(scene.decide(&job.key(), 60), early);
}

#[test]
fn deletes_in_foreground_exactly_what_it_saw() {
    let job = a_job().finished_at(0).ttl(1).rv(42);
    let decision = Scene::new(Ttl).seeing(&job).decide(&job.key(), 1);
    let seen = job.build().seen();
    let delete = Write::Delete {
        at: seen,
        how: Propagation::Foreground,
    };
    assert_eq!(*decision.actions, [Action::Api(delete)]);
}

#[test]
fn a_raised_or_removed_ttl_wins() {
    let job = a_job().finished_at(0).ttl(1);
    let scene = Scene::new(Ttl).seeing(&job);
    let raised = scene.clone().seeing(&a_job().finished_at(0).ttl(100).rv(2));
    assert_eq!(
        raised.decide(&job.key(), 50).reason,
        Reason::NotDue { due_at: at(100) }
    );
    let removed = scene.seeing(&a_job().finished_at(0).rv(2));
    assert_eq!(removed.decide(&job.key(), 50).reason, Reason::NoTtl);
}
