//! What the API server does not let a job make is told with its cause, in an event and in the status.
//!
//! A submitter whose template had no restart policy was once told as created, and its job ran for ever.

use serde_json::json;
use sundown_model::{RefusalReason, ray};

use super::super::{RayJobs, Reason};
use super::{cluster_key, counter, end, make_ready, running, stage, status, with_cluster};
use crate::testing::ray::{Stage, a_ray_job};

fn by_submitter(attempts: u32, refusal: RefusalReason) -> Stage<RayJobs> {
    let job = a_ray_job().with("/spec/submissionMode", json!("K8sJobMode"));
    let mut stage = with_cluster(job.with("/spec/backoffLimit", json!(attempts - 1)));
    stage.refuses = Some(("jobs", refusal));
    while stage.step(&counter()).reason != Reason::Submits {}
    stage
}

#[test]
fn a_submitter_that_is_not_allowed_is_told_and_tried_again() {
    let mut stage = by_submitter(1, RefusalReason::Forbidden);
    let why = "Failed to create new Kubernetes Job here/counter: no room".to_owned();
    let refused = Reason::Refused { why: why.clone() };
    while stage.step(&counter()).reason != refused {}
    assert_eq!(status(&stage, "message"), why);
    assert_eq!(status(&stage, "jobDeploymentStatus"), "Running");
    assert!(stage.said().contains("FailedToCreateRayJobSubmitter"));
    assert!(!stage.said().contains("CreatedRayJobSubmitter"));
    stage.refuses = None;
    stage.wait(1);
    assert_eq!(stage.settle(&counter()).reason, Reason::AwaitsSubmission);
    assert_eq!(status(&stage, "message"), "");
    assert!(stage.said().contains("CreatedRayJobSubmitter"));
}

#[test]
fn a_submitter_that_makes_no_sense_has_failed_to_submit() {
    let mut stage = by_submitter(1, RefusalReason::Invalid);
    stage.settle(&counter());
    assert_eq!(status(&stage, "jobDeploymentStatus"), "Failed");
    assert_eq!(status(&stage, "reason"), "SubmissionFailed");
    assert!(status(&stage, "message").ends_with("here/counter: no room"));
    assert!(stage.said().contains("FailedToCreateRayJobSubmitter"));
}

/// The submitters of all attempts have one name.
#[test]
fn an_attempt_is_not_blamed_for_the_submitter_of_the_one_before_it() {
    let mut stage = by_submitter(2, RefusalReason::Invalid);
    stage.refuses = None;
    assert_eq!(stage.settle(&counter()).reason, Reason::AwaitsCluster);
    assert_eq!(stage.json(&counter())["status"]["failed"], 1);
    make_ready(&mut stage);
    assert_eq!(stage.settle(&counter()).reason, Reason::AwaitsSubmission);
}

#[test]
fn a_cluster_that_is_refused_is_told_and_tried_again() {
    let mut stage = stage(a_ray_job());
    stage.refuses = Some(("rayclusters", RefusalReason::Forbidden));
    while stage.step(&counter()).reason != Reason::MakesCluster {}
    stage.step(&counter());
    let message = status(&stage, "message").to_owned();
    assert!(message.starts_with("Failed to create RayCluster here/counter-"));
    assert!(message.ends_with(": no room"));
    assert!(stage.said().contains("FailedToCreateRayCluster"));
    assert!(!stage.said().contains("CreatedRayCluster"));
    stage.refuses = None;
    assert_eq!(stage.settle(&counter()).reason, Reason::AwaitsCluster);
    assert_eq!(status(&stage, "message"), "");
    assert!(stage.said().contains("CreatedRayCluster"));
}

#[test]
fn a_service_that_is_refused_is_told_and_holds_nothing_up() {
    let mut stage = with_cluster(a_ray_job());
    stage.refuses = Some(("services", RefusalReason::Invalid));
    for _ in 0..30 {
        stage.step(&counter());
    }
    assert_eq!(status(&stage, "jobStatus"), "RUNNING");
    assert!(stage.said().contains("FailedToCreateService"));
    assert!(!stage.said().contains("CreatedService"));
}

/// The second attempt has another cluster, which the service shall lead to.
#[test]
fn a_service_that_cannot_be_moved_is_told_and_tried_again_only_along_with_something_new() {
    let mut stage = running(a_ray_job().with("/spec/backoffLimit", json!(1)));
    stage.settle(&counter());
    stage.refuses = Some(("services", RefusalReason::Forbidden));
    let lost = cluster_key(&stage);
    stage.remove(&lost);
    stage.settle(&counter());
    make_ready(&mut stage);
    assert_eq!(stage.settle(&counter()).reason, Reason::Runs);
    let writes = stage.writes.len();
    for _ in 0..5 {
        stage.wait(1);
        stage.settle(&counter());
    }
    assert_eq!(stage.writes.len(), writes, "Ray is asked as often as ever");
    end(&mut stage, ray::JobStatus::Succeeded);
    stage.settle(&counter());
    assert!(stage.said().contains("FailedToUpdateService"));
    assert!(!stage.said().contains("UpdatedService"));
}

#[test]
fn a_service_is_told_as_moved_when_it_is() {
    let mut stage = running(a_ray_job().with("/spec/backoffLimit", json!(1)));
    let lost = cluster_key(&stage);
    stage.remove(&lost);
    stage.settle(&counter());
    assert!(!stage.said().contains("UpdatedService"), "it was made here");
    make_ready(&mut stage);
    assert_eq!(stage.settle(&counter()).reason, Reason::Runs);
    assert!(stage.said().contains("UpdatedService"));
}
