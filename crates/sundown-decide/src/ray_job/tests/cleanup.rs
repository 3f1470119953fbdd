//! What goes after the end of a job, and when.

use serde_json::{Value, json};
use sundown_kinds::ray_job::DeletionPolicy;
use sundown_model::ray;

use super::super::{Limits, RayJobs, Reason};
use super::{cluster_key, counter, end, running, status};
use crate::testing::A;
use crate::testing::ray::{Stage, a_cluster, a_ray_job};

/// A job that has ended so, and when that was stored.
fn ended(job: A, how: ray::JobStatus) -> Stage<RayJobs> {
    let mut stage = running(job);
    end(&mut stage, how);
    while status(&stage, "endTime").is_empty() {
        stage.step(&counter());
    }
    stage
}

fn due(stage: &Stage<RayJobs>, seconds: i64) -> jiff::Timestamp {
    let ended: jiff::Timestamp = status(stage, "endTime").parse().unwrap();
    ended + jiff::SignedDuration::from_secs(seconds)
}

fn rule(policy: &str, condition: &str, ttl: i32) -> Value {
    let (field, value) = condition.split_once('=').unwrap();
    json!({"policy": policy, "condition": {field: value, "ttlSeconds": ttl}})
}

fn rules(rules: &[Value]) -> A {
    a_ray_job().with("/spec/deletionStrategy", json!({"deletionRules": rules}))
}

#[test]
fn shutdown_deletes_the_cluster_at_its_ttl_and_keeps_the_job() {
    let job = a_ray_job().with("/spec/shutdownAfterJobFinishes", json!(true));
    let job = job.with("/spec/ttlSecondsAfterFinished", json!(10));
    let mut stage = ended(job, ray::JobStatus::Failed);
    let at = due(&stage, 10);
    let early = stage.settle(&counter());
    assert_eq!(early.reason, Reason::NotDue { at });
    assert_eq!(early.wake_at, Some(at));
    stage.now = at - jiff::SignedDuration::from_millis(1);
    assert_eq!(stage.decide(&counter()).reason, Reason::NotDue { at });
    stage.now = at;
    let policy = DeletionPolicy::DeleteCluster;
    assert_eq!(stage.step(&counter()).reason, Reason::Confirms { policy });
    assert_eq!(stage.decide(&counter()).reason, Reason::Deletes { policy });
    assert_eq!(stage.settle(&counter()).reason, Reason::CleanedUp);
    assert!(stage.of("rayclusters").is_empty());
    assert!(stage.objects.contains_key(&counter()));
    assert!(stage.said().contains("DeletedRayCluster"));
    assert_eq!(stage.decide(&counter()).wake_at, None);
}

#[test]
fn an_end_in_the_future_is_warned_of_and_the_ttl_counts_from_it() {
    let job = a_ray_job().with("/spec/shutdownAfterJobFinishes", json!(true));
    let job = job.with("/spec/ttlSecondsAfterFinished", json!(10));
    let mut stage = ended(job, ray::JobStatus::Failed);
    let (ended_at, at) = (due(&stage, 0), due(&stage, 10));
    // The clock is set back by an hour.
    stage.now = ended_at - jiff::SignedDuration::from_hours(1);
    let early = stage.settle(&counter());
    assert_eq!(early.reason, Reason::EndInFuture { ended_at, at });
    assert!(stage.said().contains("FinishTimeInFuture"));
    stage.now = early.wake_at.unwrap();
    assert!(stage.now < ended_at);
    assert_eq!(stage.decide(&counter()).reason, Reason::NotDue { at });
    stage.now = at;
    assert_eq!(stage.settle(&counter()).reason, Reason::CleanedUp);
    assert!(stage.of("rayclusters").is_empty());
}

#[test]
fn shutdown_deletes_the_job_itself_where_the_operator_says_so() {
    let job = a_ray_job().with("/spec/shutdownAfterJobFinishes", json!(true));
    let mut stage = ended(job, ray::JobStatus::Succeeded);
    stage.scene.controller =
        RayJobs::new(sundown_kinds::Settings::default(), Limits::CLUSTER).deleting_finished();
    let policy = DeletionPolicy::DeleteSelf;
    assert_eq!(stage.decide(&counter()).reason, Reason::Deletes { policy });
}

#[test]
fn three_stages_go_in_order_and_leave_the_later_ones_alone() {
    let on = "jobStatus=SUCCEEDED";
    let job = rules(&[
        rule("DeleteSelf", on, 55),
        rule("DeleteWorkers", on, 15),
        rule("DeleteCluster", on, 35),
    ]);
    let mut stage = ended(job, ray::JobStatus::Succeeded);
    let cluster = cluster_key(&stage);
    let first = due(&stage, 15);
    assert_eq!(
        stage.settle(&counter()).reason,
        Reason::NotDue { at: first }
    );
    stage.now = first;
    let next = due(&stage, 35);
    assert_eq!(stage.settle(&counter()).reason, Reason::NotDue { at: next });
    let groups = &stage.json(&cluster)["spec"]["workerGroupSpecs"];
    assert_eq!(groups[0]["suspend"], true);
    assert_eq!(groups[0]["replicas"], 2, "nothing else of it changed");
    stage.now = next;
    assert_eq!(
        stage.settle(&counter()).reason,
        Reason::NotDue {
            at: due(&stage, 55)
        }
    );
    assert!(!stage.objects.contains_key(&cluster) && stage.objects.contains_key(&counter()));
    stage.now = due(&stage, 55);
    for _ in 0..2 {
        stage.step(&counter());
    }
    assert!(!stage.objects.contains_key(&counter()));
}

#[test]
fn of_all_that_is_overdue_the_greatest_goes_first() {
    let on = "jobStatus=FAILED";
    let job = rules(&[
        rule("DeleteWorkers", on, 1),
        rule("DeleteSelf", on, 3),
        rule("DeleteCluster", on, 2),
    ]);
    let mut stage = ended(job, ray::JobStatus::Failed);
    stage.wait(100);
    let policy = DeletionPolicy::DeleteSelf;
    assert_eq!(stage.decide(&counter()).reason, Reason::Deletes { policy });
}

#[test]
fn rules_may_keep_everything() {
    let on = "jobDeploymentStatus=Failed";
    let mut stage = ended(rules(&[rule("DeleteNone", on, 0)]), ray::JobStatus::Failed);
    assert_eq!(stage.settle(&counter()).reason, Reason::CleanedUp);
    assert_eq!(stage.of("rayclusters").len(), 1);
}

#[test]
fn an_outcome_that_no_rule_covers_is_told() {
    let job = rules(&[rule("DeleteCluster", "jobStatus=SUCCEEDED", 0)]);
    let mut stage = ended(job, ray::JobStatus::Stopped);
    assert_eq!(stage.settle(&counter()).reason, Reason::Uncovered);
    let note = stage.notes.last().unwrap();
    assert!(
        note.warning && note.message.contains("\"STOPPED\""),
        "{note:?}"
    );
}

#[test]
fn the_old_policies_cover_every_outcome_or_say_that_they_do_not() {
    let strategy =
        json!({"onSuccess": {"policy": "DeleteWorkers"}, "onFailure": {"policy": "DeleteCluster"}});
    let job = a_ray_job().with("/spec/deletionStrategy", strategy);
    let deletes = |policy| Reason::Confirms { policy };
    for (how, shutdown, expect) in [
        (
            ray::JobStatus::Succeeded,
            false,
            deletes(DeletionPolicy::DeleteWorkers),
        ),
        (
            ray::JobStatus::Failed,
            false,
            deletes(DeletionPolicy::DeleteCluster),
        ),
        (
            ray::JobStatus::Stopped,
            true,
            deletes(DeletionPolicy::DeleteCluster),
        ),
        (ray::JobStatus::Stopped, false, Reason::Uncovered),
    ] {
        let job = job
            .clone()
            .with("/spec/shutdownAfterJobFinishes", json!(shutdown));
        assert_eq!(ended(job, how).decide(&counter()).reason, expect, "{how:?}");
    }
}

#[test]
fn a_job_on_a_cluster_of_somebody_else_may_delete_itself_but_never_that() {
    let job = rules(&[rule("DeleteSelf", "jobStatus=SUCCEEDED", 0)])
        .with("/spec/clusterSelector", json!({"ray.io/cluster": "demo"}))
        .with("/spec/rayClusterSpec", Value::Null);
    let mut stage = super::stage(job).with(a_cluster());
    stage.settle(&counter());
    super::make_ready(&mut stage);
    stage.settle(&counter());
    end(&mut stage, ray::JobStatus::Succeeded);
    for _ in 0..6 {
        stage.step(&counter());
    }
    assert!(!stage.objects.contains_key(&counter()));
    assert!(stage.objects.contains_key(&a_cluster().key()));
}

#[test]
fn an_end_that_nobody_dated_is_dated_once() {
    let status =
        json!({"jobDeploymentStatus": "Complete", "jobStatus": "SUCCEEDED", "succeeded": 1});
    let mut stage = super::stage(a_ray_job().with("/status", status));
    assert_eq!(stage.step(&counter()).reason, Reason::Ends);
    assert_eq!(stage.settle(&counter()).reason, Reason::Kept);
    assert_eq!(stage.json(&counter())["status"]["succeeded"], 1);
}

/// J13. What was wrong had nothing to do with what goes, and its cluster stayed for ever.
#[test]
fn an_invalid_edit_of_what_has_ended_does_not_keep_what_was_to_go() {
    let ending = || {
        let job = a_ray_job().with("/spec/shutdownAfterJobFinishes", json!(true));
        let mut stage = running(job.with("/spec/ttlSecondsAfterFinished", json!(60)));
        end(&mut stage, ray::JobStatus::Succeeded);
        let decision = stage.settle(&counter());
        assert!(matches!(decision.reason, Reason::NotDue { .. }));
        stage
    };
    for (pointer, value) in [
        ("/spec/backoffLimit", json!(-1)),
        ("/spec/runtimeEnvYAML", json!("- a")),
        (
            "/spec/rayClusterSpec/headGroupSpec/template/spec/containers",
            json!([]),
        ),
    ] {
        let mut stage = ending();
        let cluster = cluster_key(&stage);
        stage.edit(&counter(), pointer, value);
        let decision = stage.settle(&counter());
        assert!(decision.wake_at.is_some(), "{pointer}: {decision:?}");
        assert!(stage.said().contains("InvalidRayJobSpec"), "{pointer}");
        stage.wait(61);
        stage.settle(&counter());
        assert!(!stage.objects.contains_key(&cluster), "{pointer}");
        assert_eq!(status(&stage, "jobDeploymentStatus"), "Complete");
    }
    let mut stage = ending();
    let cluster = cluster_key(&stage);
    stage.edit(&counter(), "/spec/ttlSecondsAfterFinished", json!(-1));
    stage.wait(61);
    stage.settle(&counter());
    assert!(
        stage.objects.contains_key(&cluster),
        "nothing goes by a broken rule"
    );
    stage.edit(&counter(), "/spec/ttlSecondsAfterFinished", json!(0));
    stage.settle(&counter());
    assert!(
        !stage.objects.contains_key(&cluster),
        "a mended one is kept to"
    );
}
