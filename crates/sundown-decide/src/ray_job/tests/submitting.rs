//! A job is submitted at most once per attempt, whatever is lost on the way.

use serde_json::json;
use sundown_model::ObjectKey;
use sundown_model::ray::{self, Refused};

use super::super::{ANNOTATION_SUBMISSION, RayJobs, Reason};
use super::{counter, end, road, running, status, with_cluster};
use crate::testing::A;
use crate::testing::ray::{Stage, a_ray_job, key};

fn executions(stage: &Stage<RayJobs>) -> u32 {
    stage.ray.executions.values().sum()
}

fn by_submitter() -> A {
    a_ray_job().with("/spec/submissionMode", json!("K8sJobMode"))
}

fn submitter() -> ObjectKey {
    key("batch", "jobs", "counter")
}

fn set_submitter(stage: &mut Stage<RayJobs>, kind: &str) {
    let condition = json!({"type": kind, "status": "True", "reason": "R", "message": "M"});
    stage.edit(&submitter(), "/status/conditions", json!([condition]));
    stage.wait(1);
}

/// A job whose submitter was made.
fn with_submitter() -> Stage<RayJobs> {
    let mut stage = with_cluster(by_submitter());
    assert_eq!(stage.settle(&counter()).reason, Reason::AwaitsSubmission);
    stage
}

#[test]
fn the_session_is_stored_before_anything_is_submitted() {
    let mut stage = with_cluster(a_ray_job());
    while stage.decide(&counter()).reason != Reason::StoresIntent {
        stage.step(&counter());
    }
    stage.step(&counter());
    assert_eq!(executions(&stage), 0);
    let text = &stage.json(&counter())["metadata"]["annotations"][ANNOTATION_SUBMISSION];
    let intent: serde_json::Value = serde_json::from_str(text.as_str().unwrap()).unwrap();
    assert_eq!(intent["session"], "session");
    assert_eq!(intent["submissionId"], status(&stage, "jobId"));
}

#[test]
fn an_answer_that_is_lost_is_asked_for_and_not_repeated() {
    let mut stage = with_cluster(a_ray_job());
    stage.ray.loses_answer = true;
    assert_eq!(stage.settle(&counter()).reason, Reason::Runs);
    assert_eq!(executions(&stage), 1);
}

#[test]
fn a_refusal_for_now_is_tried_again_and_a_known_id_is_a_success() {
    for refusal in [Refused::Busy, Refused::Unreachable, Refused::Unauthorized] {
        let mut stage = with_cluster(a_ray_job());
        stage.ray.refuses = Some(refusal);
        assert_eq!(stage.settle(&counter()).reason, Reason::Runs, "{refusal:?}");
        assert_eq!(executions(&stage), 1);
    }
    let mut stage = with_cluster(a_ray_job());
    stage.ray.refuses = Some(Refused::AlreadyExists);
    let mut codes = Vec::new();
    while codes.last() != Some(&Reason::Submits) {
        codes.push(stage.step(&counter()).reason);
    }
    stage.now -= jiff::SignedDuration::from_secs(1);
    assert_eq!(stage.decide(&counter()).reason, Reason::Submitted);
}

#[test]
fn what_ray_refuses_for_good_has_failed_to_be_submitted() {
    let mut stage = with_cluster(a_ray_job());
    stage.ray.refuses = Some(Refused::Invalid);
    stage.settle(&counter());
    assert_eq!(status(&stage, "jobDeploymentStatus"), "Failed");
    assert_eq!(status(&stage, "reason"), "SubmissionFailed");
    assert_eq!(executions(&stage), 0);
}

#[test]
fn a_head_that_was_replaced_gets_nothing_that_was_meant_for_the_one_before() {
    let mut stage = with_cluster(a_ray_job());
    while stage.step(&counter()).reason != Reason::StoresIntent {}
    stage.ray.restart();
    let codes = road(&mut stage);
    assert!(codes.contains(&"Fails"), "{codes:?}");
    assert_eq!(status(&stage, "reason"), "AppFailed");
    assert!(status(&stage, "message").contains("head was replaced"));
    assert_eq!(executions(&stage), 0);
}

#[test]
fn a_job_that_ray_has_forgotten_is_lost_and_not_submitted_again() {
    let mut stage = running(a_ray_job());
    stage.ray.restart();
    stage.wait(1);
    stage.settle(&counter());
    assert_eq!(status(&stage, "jobDeploymentStatus"), "Failed");
    assert!(status(&stage, "message").contains("knows it no more"));
    assert_eq!(executions(&stage), 1);
}

#[test]
fn a_lost_attempt_is_followed_by_another_only_as_the_limit_says() {
    let mut stage = running(a_ray_job().with("/spec/backoffLimit", json!(1)));
    let first = status(&stage, "rayClusterName").to_owned();
    stage.ray.restart();
    stage.wait(1);
    assert_eq!(stage.settle(&counter()).reason, Reason::AwaitsCluster);
    assert_ne!(status(&stage, "rayClusterName"), first);
    assert_eq!(stage.json(&counter())["status"]["failed"], 1);
    super::make_ready(&mut stage);
    assert_eq!(stage.settle(&counter()).reason, Reason::Runs);
    stage.ray.restart();
    stage.wait(1);
    stage.settle(&counter());
    assert_eq!(status(&stage, "jobDeploymentStatus"), "Failed");
    assert_eq!(stage.json(&counter())["status"]["failed"], 2);
    assert!(stage.ray.executions.values().all(|count| *count == 1));
    assert_eq!(executions(&stage), 2);
}

#[test]
fn the_submitter_is_fenced_to_the_session_that_was_seen() {
    let stage = with_submitter();
    let env = &stage.json(&submitter())["spec"]["template"]["spec"]["containers"][0]["env"];
    let fence = json!({"name": "SUNDOWN_RAY_SESSION", "value": "session"});
    assert!(env.as_array().unwrap().contains(&fence));
    assert!(stage.said().contains("CreatedRayJobSubmitter"));
}

#[test]
fn the_end_of_a_submitter_decides_nothing_while_ray_knows_the_job() {
    let mut stage = with_submitter();
    let id = status(&stage, "jobId").to_owned();
    stage.ray.set(&id, ray::JobStatus::Running);
    set_submitter(&mut stage, "Failed");
    assert_eq!(stage.settle(&counter()).reason, Reason::Runs);
    // Ended long ago, with the operator away all the time: Ray's word counts.
    stage.wait(3600);
    end(&mut stage, ray::JobStatus::Succeeded);
    stage.settle(&counter());
    assert_eq!(status(&stage, "jobDeploymentStatus"), "Complete");
    assert_eq!(status(&stage, "jobStatus"), "SUCCEEDED");
}

#[test]
fn a_submitter_that_ended_without_a_trace_in_ray_has_failed() {
    for (kind, reason, message) in [
        (
            "Failed",
            "SubmissionFailed",
            "Job submission has failed. Reason: R. Message: M",
        ),
        (
            "Complete",
            "AppFailed",
            "Submitter completed but Ray job not found in RayCluster.",
        ),
    ] {
        let mut stage = with_submitter();
        set_submitter(&mut stage, kind);
        stage.settle(&counter());
        assert_eq!(status(&stage, "reason"), reason);
        assert_eq!(status(&stage, "message"), message);
        assert!(
            stage.objects.contains_key(&submitter()),
            "its log can be read"
        );
    }
}

#[test]
fn a_job_that_has_ended_waits_for_the_log_of_its_submitter_but_not_for_ever() {
    let ended = || {
        let mut stage = with_submitter();
        let id = status(&stage, "jobId").to_owned();
        stage.ray.set(&id, ray::JobStatus::Succeeded);
        stage.wait(1);
        let decision = stage.settle(&counter());
        assert!(matches!(decision.reason, Reason::AwaitsSubmitter { .. }));
        assert_eq!(status(&stage, "jobStatus"), "SUCCEEDED");
        assert_eq!(status(&stage, "jobDeploymentStatus"), "Running");
        stage
    };
    let mut stage = ended();
    set_submitter(&mut stage, "Complete");
    stage.settle(&counter());
    assert_eq!(status(&stage, "jobDeploymentStatus"), "Complete");
    assert_eq!(status(&stage, "reason"), "");
    let mut stage = ended();
    stage.wait(301);
    stage.settle(&counter());
    assert_eq!(status(&stage, "jobDeploymentStatus"), "Complete");
    assert_eq!(
        status(&stage, "reason"),
        "JobDeploymentStatusTransitionGracePeriodExceeded"
    );
}

#[test]
fn a_submitter_that_somebody_deleted_is_made_again_only_while_ray_knows_nothing() {
    let mut stage = with_submitter();
    stage.remove(&submitter());
    stage.wait(1);
    stage.settle(&counter());
    assert!(stage.objects.contains_key(&submitter()));
    let id = status(&stage, "jobId").to_owned();
    stage.ray.set(&id, ray::JobStatus::Running);
    stage.remove(&submitter());
    stage.wait(1);
    assert_eq!(stage.settle(&counter()).reason, Reason::Runs);
    assert!(!stage.objects.contains_key(&submitter()));
}

#[test]
fn a_job_of_somebody_else_with_the_name_of_the_submitter_is_left_alone() {
    let foreign = crate::testing::a("job", "counter").uid("theirs");
    let mut stage = with_cluster(by_submitter()).with(foreign);
    stage.settle(&counter());
    assert_eq!(status(&stage, "reason"), "SubmissionFailed");
    assert_eq!(stage.json(&submitter())["metadata"]["uid"], "theirs");
}

/// Found by the simulator: somebody adopted the Job just after it had submitted, and an answer of Ray from
/// before that made the job fail while it ran.
#[test]
fn a_submitter_that_was_taken_away_decides_nothing_before_ray_is_asked_again() {
    let mut stage = with_submitter();
    let id = status(&stage, "jobId").to_owned();
    stage.ray.set(&id, ray::JobStatus::Running);
    stage.edit(&submitter(), "/metadata/ownerReferences", json!([]));
    assert_eq!(stage.settle(&counter()).reason, Reason::Runs);
    assert_eq!(status(&stage, "jobDeploymentStatus"), "Running");
}

#[test]
fn an_id_that_the_user_chose_serves_every_attempt() {
    let job = a_ray_job().with("/spec/jobId", json!("mine"));
    let mut stage = running(job.with("/spec/backoffLimit", json!(1)));
    stage.ray.restart();
    stage.wait(1);
    assert_eq!(stage.settle(&counter()).reason, Reason::AwaitsCluster);
    super::make_ready(&mut stage);
    assert_eq!(stage.settle(&counter()).reason, Reason::Runs);
    assert_eq!(executions(&stage), 2, "one in each of two clusters");
}

fn is_told_as_deleted(stage: &Stage<RayJobs>) -> bool {
    stage.said().contains("DeletedRayJobSubmitter")
}

/// It asked a Ray that was gone, for ever.
#[test]
fn a_lost_attempt_takes_its_submitter_with_it() {
    let runs = || {
        let mut stage = with_submitter();
        let id = status(&stage, "jobId").to_owned();
        stage.ray.set(&id, ray::JobStatus::Running);
        stage.wait(1);
        assert_eq!(stage.settle(&counter()).reason, Reason::Runs);
        stage
    };
    let mut forgotten = runs();
    forgotten.ray.restart();
    let mut deleted = runs();
    let cluster = super::cluster_key(&deleted);
    deleted.remove(&cluster);
    for mut stage in [forgotten, deleted] {
        stage.wait(1);
        stage.settle(&counter());
        assert_eq!(status(&stage, "jobDeploymentStatus"), "Failed");
        assert_eq!(status(&stage, "reason"), "AppFailed");
        assert!(!stage.objects.contains_key(&submitter()));
        assert!(is_told_as_deleted(&stage));
    }
}

#[test]
fn a_submitter_that_follows_no_more_goes_when_its_grace_is_over() {
    let mut stage = with_submitter();
    let id = status(&stage, "jobId").to_owned();
    stage.ray.set(&id, ray::JobStatus::Succeeded);
    stage.wait(1);
    stage.settle(&counter());
    assert!(stage.objects.contains_key(&submitter()));
    stage.wait(301);
    stage.settle(&counter());
    assert_eq!(status(&stage, "jobDeploymentStatus"), "Complete");
    assert!(!stage.objects.contains_key(&submitter()));
}

#[test]
fn a_submitter_that_a_dead_operator_left_running_goes_after_the_end() {
    let mut stage = with_submitter();
    stage.edit(&counter(), "/status/jobDeploymentStatus", json!("Failed"));
    stage.settle(&counter());
    assert!(!stage.objects.contains_key(&submitter()));
    let mut stage = with_submitter();
    set_submitter(&mut stage, "Complete");
    stage.edit(&counter(), "/status/jobDeploymentStatus", json!("Failed"));
    stage.settle(&counter());
    assert!(
        stage.objects.contains_key(&submitter()),
        "its log can be read"
    );
}

/// Ray was asked, the submitter submitted and was seen to be gone, and the answer of before counted.
#[test]
fn a_deadline_believes_ray_only_when_nothing_can_be_submitted_any_more() {
    let job = by_submitter().with("/spec/activeDeadlineSeconds", json!(60));
    let mut stage = with_cluster(job);
    assert_eq!(stage.settle(&counter()).reason, Reason::AwaitsSubmission);
    let id = status(&stage, "jobId").to_owned();
    stage.wait(61);
    while stage.objects.contains_key(&submitter()) {
        let reason = stage.step(&counter()).reason;
        assert!(matches!(reason, Reason::AsksRay | Reason::Stops { .. }));
    }
    stage.ray.set(&id, ray::JobStatus::Running);
    for _ in 0..20 {
        stage.step(&counter());
        stage.now += jiff::SignedDuration::from_millis(50);
    }
    assert_eq!(stage.ray.stops, 1);
    assert_eq!(status(&stage, "reason"), "DeadlineExceeded");
    assert_eq!(status(&stage, "jobStatus"), "STOPPED");
}

#[test]
fn a_submitter_that_does_not_end_is_told_when_the_time_to_stop_is_over() {
    let job = by_submitter().with("/spec/activeDeadlineSeconds", json!(60));
    let mut stage = with_cluster(job);
    stage.settle(&counter());
    stage.edit(&submitter(), "/metadata/finalizers", json!(["x/y"]));
    stage.wait(61);
    assert!(matches!(
        stage.settle(&counter()).reason,
        Reason::Stops { .. }
    ));
    assert!(stage.decide(&counter()).wake_at.is_some());
    stage.wait(61);
    stage.settle(&counter());
    assert_eq!(status(&stage, "reason"), "DeadlineExceeded");
    assert!(status(&stage, "message").ends_with("its submitter could not be ended in time"));
}

/// Its success was known and stored, and it ran again from the beginning.
#[test]
fn a_job_that_has_ended_is_not_suspended_while_its_submitter_is_waited_for() {
    let job = by_submitter().with("/spec/shutdownAfterJobFinishes", json!(true));
    let mut stage = with_cluster(job);
    stage.settle(&counter());
    let id = status(&stage, "jobId").to_owned();
    stage.ray.set(&id, ray::JobStatus::Succeeded);
    stage.wait(1);
    stage.settle(&counter());
    assert_eq!(status(&stage, "jobDeploymentStatus"), "Running");
    stage.edit(&counter(), "/spec/suspend", json!(true));
    stage.settle(&counter());
    assert_eq!(status(&stage, "jobDeploymentStatus"), "Running");
    set_submitter(&mut stage, "Complete");
    stage.settle(&counter());
    assert_eq!(status(&stage, "jobDeploymentStatus"), "Complete");
    assert_eq!(status(&stage, "jobStatus"), "SUCCEEDED");
}

#[test]
fn what_ray_said_when_it_broke_is_told_at_the_end() {
    let mut stage = with_cluster(a_ray_job());
    stage.ray.breaks = Some("answered 500: no space left on device");
    for _ in 0..3000 {
        if stage.step(&counter()).reason == Reason::Submits {
            stage.wait(10);
        }
    }
    assert_eq!(status(&stage, "reason"), "SubmissionFailed");
    let expect = "Job submission has failed: it is not known whether the job was taken: \
                  answered 500: no space left on device";
    assert_eq!(status(&stage, "message"), expect);
}
