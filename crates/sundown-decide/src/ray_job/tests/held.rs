//! What the API server does not let the controller delete, and what a user took away from its owner, must
//! hold no job for ever.

use serde_json::json;
use sundown_model::{Action, Decision, ObjectKey, RefusalFact, RefusalReason, Write, ray};

use super::super::{RayJobs, Reason};
use super::{counter, status, with_cluster};
use crate::testing::A;
use crate::testing::ray::{Stage, a_ray_job, key};

fn submitter() -> ObjectKey {
    key("batch", "jobs", "counter")
}

/// Carries out one decision, but the submitter may not be deleted; the engine waits after a refusal.
fn step(stage: &mut Stage<RayJobs>, how: Fails) -> Decision<Reason> {
    let decision = stage.decide(&counter());
    let is_refused = |it: &Action| matches!(it, Action::Api(Write::Delete { at, .. }) if *at.key() == submitter());
    if !decision.actions.iter().any(is_refused) {
        return stage.step(&counter());
    }
    let uid = stage.objects[&submitter()].build().uid().clone();
    let facts = &mut stage.scene.facts;
    facts.set_failed_delete(submitter(), uid.clone(), stage.now);
    if how == Fails::Refused {
        let fact = RefusalFact {
            refused_at: stage.now,
            reason: RefusalReason::Forbidden,
            message: "not yours".to_owned(),
        };
        facts.set_refused_delete(submitter(), uid, fact);
    }
    stage.wait(5);
    decision
}

/// How a deletion comes to nothing: the API server says why, or is busy, broken or not heard.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Fails {
    Refused,
    Somehow,
}

/// Decides and waits as it says until the job has ended or is gone, for ten minutes at most.
fn live_on(stage: &mut Stage<RayJobs>, how: Fails) {
    let end = stage.now + jiff::SignedDuration::from_mins(10);
    while stage.now < end && is_open(stage) {
        let decision = step(stage, how);
        if decision.needs.is_empty() && decision.actions.is_empty() {
            stage.now = decision.wake_at.expect("it waits for a time");
        }
    }
}

fn is_open(stage: &Stage<RayJobs>) -> bool {
    stage.objects.contains_key(&counter()) && status(stage, "jobDeploymentStatus") != "Failed"
}

/// A job that Ray runs, with a submitter that follows it.
fn submitted(job: A) -> Stage<RayJobs> {
    let mut stage = with_cluster(job.with("/spec/submissionMode", json!("K8sJobMode")));
    assert_eq!(stage.settle(&counter()).reason, Reason::AwaitsSubmission);
    let id = status(&stage, "jobId").to_owned();
    stage.ray.set(&id, ray::JobStatus::Running);
    stage.wait(1);
    assert_eq!(stage.settle(&counter()).reason, Reason::Runs);
    stage
}

#[test]
fn a_submitter_that_may_not_be_deleted_keeps_no_job_from_being_stopped() {
    for how in [Fails::Refused, Fails::Somehow] {
        let mut stage = submitted(a_ray_job());
        let now = stage.now.to_string();
        stage.edit(&counter(), "/metadata/deletionTimestamp", json!(now));
        live_on(&mut stage, how);
        assert_eq!(stage.ray.stops, 1, "{how:?}");
        assert!(!stage.objects.contains_key(&counter()), "not for ever");
    }
}

#[test]
fn a_submitter_that_may_not_be_deleted_keeps_no_deadline_from_being_obeyed() {
    for how in [Fails::Refused, Fails::Somehow] {
        let mut stage = submitted(a_ray_job().with("/spec/activeDeadlineSeconds", json!(60)));
        stage.wait(61);
        live_on(&mut stage, how);
        assert_eq!(stage.ray.stops, 1, "{how:?}");
        assert_eq!(status(&stage, "reason"), "DeadlineExceeded");
    }
}

/// The time may be over before the controller looked: the submitter goes first all the same.
#[test]
fn a_submitter_is_tried_to_be_deleted_before_ray_is_told_though_the_time_is_over() {
    let mut stage = submitted(a_ray_job().with("/spec/activeDeadlineSeconds", json!(60)));
    stage.wait(100_000);
    stage.forget();
    live_on(&mut stage, Fails::Refused);
    let uid = stage.objects[&submitter()].build().uid().clone();
    let fact = stage.scene.facts.refused_delete(&submitter(), &uid);
    assert!(fact.is_some(), "it was tried");
    assert_eq!(stage.ray.stops, 1);
}
