//! Deadlines, silence, losses, and the end of the `RayJob` itself.

use serde_json::json;
use sundown_model::ray;

use super::super::{RayJobs, Reason};
use super::{cluster_key, counter, end, road, running, stage, status, with_cluster};
use crate::testing::ray::{Stage, a_ray_job};

#[test]
fn a_deadline_stops_the_job_and_is_not_tried_again() {
    let job = a_ray_job()
        .with("/spec/activeDeadlineSeconds", json!(60))
        .with("/spec/backoffLimit", json!(3));
    let mut stage = running(job);
    let before = stage.decide(&counter());
    assert!(before.actions.is_empty());
    stage.wait(61);
    assert_eq!(road(&mut stage), ["AsksRay", "Stops", "Stops"]);
    stage.wait(1);
    assert_eq!(road(&mut stage), ["AsksRay", "Fails", "Kept"]);
    assert_eq!(stage.ray.stops, 1);
    assert_eq!(status(&stage, "jobDeploymentStatus"), "Failed");
    assert_eq!(status(&stage, "reason"), "DeadlineExceeded");
    assert_eq!(status(&stage, "jobStatus"), "STOPPED");
    assert!(status(&stage, "message").ends_with("ActiveDeadlineSeconds: 60"));
}

#[test]
fn a_job_that_ended_in_time_is_not_overdue_because_nobody_looked() {
    let mut stage = running(a_ray_job().with("/spec/activeDeadlineSeconds", json!(60)));
    stage.wait(3600);
    end(&mut stage, ray::JobStatus::Succeeded);
    stage.settle(&counter());
    assert_eq!(status(&stage, "jobDeploymentStatus"), "Complete");
    assert_eq!(stage.ray.stops, 0);
}

#[test]
fn a_deadline_wakes_in_time_also_before_the_job_runs() {
    let mut stage = stage(a_ray_job().with("/spec/preRunningDeadlineSeconds", json!(30)));
    let waits = stage.settle(&counter());
    let start: jiff::Timestamp = status(&stage, "startTime").parse().unwrap();
    assert_eq!(
        waits.wake_at,
        Some(start + jiff::SignedDuration::from_secs(30))
    );
    stage.wait(31);
    let expect = Reason::Fails {
        why: "PreRunningDeadlineExceeded",
    };
    assert_eq!(stage.step(&counter()).reason, expect);
}

#[test]
fn silence_is_borne_for_a_while_and_then_the_end() {
    let mut stage = running(a_ray_job());
    stage.ray.is_down = true;
    stage.wait(1);
    assert!(matches!(
        stage.settle(&counter()).reason,
        Reason::NoAnswer { .. }
    ));
    assert!(!status(&stage, "jobStatusCheckFailureStartTime").is_empty());
    for _ in 0..29 {
        stage.wait(10);
        assert!(matches!(
            stage.settle(&counter()).reason,
            Reason::NoAnswer { .. }
        ));
    }
    stage.wait(11);
    stage.settle(&counter());
    assert_eq!(status(&stage, "reason"), "JobStatusCheckTimeoutExceeded");
    assert_eq!(
        status(&stage, "jobStatus"),
        "RUNNING",
        "only Ray says what it is"
    );
}

#[test]
fn an_answer_ends_the_silence_also_one_that_knows_nothing() {
    let mut stage = with_cluster(a_ray_job().with("/spec/submissionMode", json!("K8sJobMode")));
    stage.ray.is_down = true;
    stage.settle(&counter());
    assert!(!status(&stage, "jobStatusCheckFailureStartTime").is_empty());
    stage.ray.is_down = false;
    stage.wait(2);
    assert_eq!(stage.settle(&counter()).reason, Reason::AwaitsSubmission);
    assert_eq!(status(&stage, "jobStatusCheckFailureStartTime"), "");
}

#[test]
fn a_cluster_that_is_deleted_under_a_job_takes_the_attempt_with_it() {
    let mut stage = running(a_ray_job());
    let cluster = cluster_key(&stage);
    stage.remove(&cluster);
    assert_eq!(
        stage.decide(&counter()).reason,
        Reason::AsksForCluster,
        "absence is proven"
    );
    stage.settle(&counter());
    assert_eq!(status(&stage, "reason"), "AppFailed");
    assert!(status(&stage, "message").contains("was deleted while"));
    assert!(
        stage.of("rayclusters").is_empty(),
        "and is not made again in silence"
    );
}

#[test]
fn a_cluster_that_goes_before_anything_was_submitted_is_made_again() {
    let mut stage = with_cluster(a_ray_job());
    assert_eq!(stage.step(&counter()).reason, Reason::ClusterReady);
    let cluster = cluster_key(&stage);
    stage.remove(&cluster);
    assert_eq!(stage.settle(&counter()).reason, Reason::AwaitsCluster);
    assert_eq!(stage.of("rayclusters").len(), 1);
    assert_eq!(status(&stage, "jobDeploymentStatus"), "Initializing");
}

fn deleted(mut stage: Stage<RayJobs>) -> Stage<RayJobs> {
    let now = stage.now.to_string();
    stage.edit(&counter(), "/metadata/deletionTimestamp", json!(now));
    stage.wait(1);
    stage
}

#[test]
fn what_runs_is_stopped_before_the_job_goes() {
    let mut stage = deleted(running(a_ray_job()));
    let codes = codes_until_gone(&mut stage);
    assert_eq!(codes, ["Stops", "Stops", "Stops", "Stops", "Releases"]);
    assert_eq!(stage.ray.stops, 1);
}

#[test]
fn what_never_began_is_let_go_without_a_question() {
    let mut fresh = stage(a_ray_job());
    fresh.settle(&counter());
    let mut stage = deleted(fresh);
    assert_eq!(codes_until_gone(&mut stage), ["Releases"]);
    assert_eq!(stage.ray.stops, 0);
}

#[test]
fn a_cluster_that_is_gone_has_nothing_to_stop() {
    let mut stage = running(a_ray_job());
    let cluster = cluster_key(&stage);
    stage.remove(&cluster);
    let mut stage = deleted(stage);
    assert_eq!(codes_until_gone(&mut stage), ["AsksForCluster", "Releases"]);
}

#[test]
fn a_ray_that_is_silent_does_not_hold_a_job_for_ever() {
    let mut stage = deleted(running(a_ray_job()));
    stage.ray.is_down = true;
    assert!(matches!(
        stage.settle(&counter()).reason,
        Reason::Stops { .. }
    ));
    assert!(stage.decide(&counter()).wake_at.is_some());
    stage.wait(61);
    assert_eq!(codes_until_gone(&mut stage).last(), Some(&"Releases"));
    assert!(
        stage
            .notes
            .iter()
            .any(|note| note.warning && &*note.reason == "FailedToStopRayJob")
    );
}

#[test]
fn other_finalizers_are_kept_and_a_released_job_is_left_alone() {
    let mut stage = deleted(running(a_ray_job()));
    let both = json!(["x/y", "ray.io/rayjob-finalizer"]);
    stage.edit(&counter(), "/metadata/finalizers", both);
    assert!(matches!(
        stage.settle(&counter()).reason,
        Reason::Stops { .. }
    ));
    stage.wait(1);
    assert_eq!(stage.settle(&counter()).reason, Reason::Released);
    assert_eq!(
        stage.json(&counter())["metadata"]["finalizers"],
        json!(["x/y"])
    );
    let unreadable = a_ray_job()
        .deleting(&["ray.io/rayjob-finalizer"])
        .with("/spec/suspend", json!(3));
    assert_eq!(
        super::stage(unreadable).decide(&counter()).reason,
        Reason::Releases
    );
}

fn codes_until_gone(stage: &mut Stage<RayJobs>) -> Vec<&'static str> {
    use sundown_model::Explain;
    let mut codes = Vec::new();
    while stage.objects.contains_key(&counter()) {
        let decision = stage.step(&counter());
        codes.push(decision.reason.code());
        assert!(codes.len() < 30, "{codes:?}");
        if decision.needs.is_empty() && decision.actions.is_empty() {
            stage.now = decision.wake_at.unwrap();
        }
    }
    codes
}

/// Asks Ray, which answers about jobs and not about its version.
fn ask_without_session(stage: &mut Stage<RayJobs>) -> bool {
    use sundown_model::{Need, Question, Reply, ReplyFact};
    let decision = stage.decide(&counter());
    let [Need::Ray(query @ ray::Query::Session { .. })] = &decision.needs[..] else {
        return false;
    };
    let failure = ray::Failure {
        kind: ray::FailureKind::Unreachable,
        message: "no version".to_owned(),
    };
    let seen = stage.scene.cache.seen_step(&counter()).unwrap();
    let fact = ReplyFact {
        asked: seen.next(),
        answered_at: stage.now,
        reply: Reply::Ray(Err(failure)),
    };
    let question = Question::Ray(query.clone());
    stage.scene.facts.set_reply(question, fact);
    true
}

/// It was once judged by the other question, which is answered well, and the job waited for ever.
#[test]
fn a_ray_that_answers_about_jobs_but_not_about_its_session_is_given_up() {
    for mode in ["HTTPMode", "K8sJobMode"] {
        let job = a_ray_job().with("/spec/submissionMode", json!(mode));
        let mut stage = with_cluster(job);
        let begun_at = stage.now;
        let end = begun_at + jiff::SignedDuration::from_mins(10);
        while stage.now < end && status(&stage, "jobDeploymentStatus") != "Failed" {
            if ask_without_session(&mut stage) {
                continue;
            }
            let decision = stage.step(&counter());
            if decision.needs.is_empty() && decision.actions.is_empty() {
                stage.now = decision.wake_at.unwrap();
            }
        }
        let reason = status(&stage, "reason");
        assert_eq!(reason, "JobStatusCheckTimeoutExceeded", "{mode}");
        assert!(status(&stage, "message").ends_with("no version"), "{mode}");
        let took = stage.now.duration_since(begun_at);
        // The instant is stored in whole seconds.
        assert!(
            took > jiff::SignedDuration::from_secs(298),
            "{mode}: {took}"
        );
    }
}
