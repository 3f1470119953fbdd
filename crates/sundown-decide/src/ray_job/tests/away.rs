//! No controller looked for longer than every bound: the machine slept, or the process was stopped.

use serde_json::json;
use sundown_model::ray::{self, Refused};

use super::super::{RayJobs, Reason};
use super::{cluster_key, counter, end, running, status, with_cluster};
use crate::testing::ray::{Stage, a_ray_job, key};
use crate::testing::{A, a};

/// Longer than every bound; and whatever was known is forgotten.
fn sleep(stage: &mut Stage<RayJobs>) {
    stage.wait(100_000);
    stage.forget();
}

/// Decides and waits as it says until nothing more is to come, or for ten minutes.
fn live_on(stage: &mut Stage<RayJobs>) {
    let end = stage.now + jiff::SignedDuration::from_mins(10);
    while stage.now < end && stage.objects.contains_key(&counter()) {
        let decision = stage.step(&counter());
        if decision.needs.is_empty() && decision.actions.is_empty() {
            match decision.wake_at {
                Some(at) => stage.now = at,
                None => return,
            }
        }
    }
}

fn delete(stage: &mut Stage<RayJobs>) {
    let now = stage.now.to_string();
    stage.edit(&counter(), "/metadata/deletionTimestamp", json!(now));
}

/// Every job that Ray knows has ended.
fn is_quiet(stage: &Stage<RayJobs>) -> bool {
    let mut jobs = stage.ray.jobs.values();
    jobs.all(|job| job.status.is_terminal())
}

#[test]
fn a_job_that_was_deleted_meanwhile_is_stopped_before_it_goes() {
    let mut stage = running(a_ray_job());
    delete(&mut stage);
    sleep(&mut stage);
    live_on(&mut stage);
    assert!(!stage.objects.contains_key(&counter()));
    assert_eq!(stage.ray.stops, 1);
    assert!(!stage.said().contains("FailedToStopRayJob"));
}

#[test]
fn a_job_whose_time_ran_out_meanwhile_is_stopped() {
    let mut stage = running(a_ray_job().with("/spec/activeDeadlineSeconds", json!(60)));
    sleep(&mut stage);
    live_on(&mut stage);
    assert_eq!(stage.ray.stops, 1);
    assert!(is_quiet(&stage));
    assert_eq!(status(&stage, "reason"), "DeadlineExceeded");
    assert!(!status(&stage, "message").contains("could not be stopped"));
}

#[test]
fn a_job_that_cannot_be_stopped_was_told_to_and_asked_for_once_more() {
    let mut stage = running(a_ray_job().with("/spec/activeDeadlineSeconds", json!(60)));
    stage.ray.is_deaf = true;
    sleep(&mut stage);
    live_on(&mut stage);
    assert!(stage.ray.stops > 0);
    assert!(status(&stage, "message").ends_with("Ray says that it still runs"));

    let mut stage = running(a_ray_job());
    delete(&mut stage);
    sleep(&mut stage);
    stage.ray.is_down = true;
    live_on(&mut stage);
    assert!(!stage.objects.contains_key(&counter()), "not for ever");
    assert!(stage.said().contains("FailedToStopRayJob"));
    assert!(stage.ray.refused_stops > 0);
}

#[test]
fn a_submitter_is_ended_before_the_job_of_a_deadline_that_passed_meanwhile() {
    let job = a_ray_job()
        .with("/spec/submissionMode", json!("K8sJobMode"))
        .with("/spec/activeDeadlineSeconds", json!(60));
    let mut stage = with_cluster(job);
    stage.settle(&counter());
    let submitter = key("batch", "jobs", "counter");
    assert!(stage.objects.contains_key(&submitter));
    sleep(&mut stage);
    live_on(&mut stage);
    assert!(!stage.objects.contains_key(&submitter));
    assert_eq!(status(&stage, "reason"), "DeadlineExceeded");
}

#[test]
fn one_failed_question_after_a_long_absence_ends_nothing() {
    let mut stage = running(a_ray_job());
    stage.ray.is_down = true;
    stage.wait(1);
    stage.settle(&counter());
    assert!(!status(&stage, "jobStatusCheckFailureStartTime").is_empty());
    sleep(&mut stage);
    stage.settle(&counter());
    assert_eq!(status(&stage, "jobDeploymentStatus"), "Running");
    stage.ray.is_down = false;
    stage.wait(2);
    assert_eq!(stage.settle(&counter()).reason, Reason::Runs);
    stage.ray.is_down = true;
    live_on(&mut stage);
    assert_eq!(status(&stage, "reason"), "JobStatusCheckTimeoutExceeded");
}

#[test]
fn one_busy_answer_after_a_long_absence_does_not_end_the_submission() {
    let mut stage = with_cluster(a_ray_job());
    stage.ray.refuses = Some(Refused::Busy);
    while stage.step(&counter()).reason != Reason::StoresIntent {}
    sleep(&mut stage);
    assert_eq!(stage.settle(&counter()).reason, Reason::Runs);
    assert_eq!(stage.ray.executions.values().sum::<u32>(), 1);
}

fn suspendable() -> A {
    a_ray_job().with("/spec/shutdownAfterJobFinishes", json!(true))
}

#[test]
fn a_result_that_was_not_asked_for_yet_is_not_lost_by_suspending() {
    let mut stage = running(suspendable().with("/spec/ttlSecondsAfterFinished", json!(600)));
    end(&mut stage, ray::JobStatus::Succeeded);
    stage.edit(&counter(), "/spec/suspend", json!(true));
    stage.settle(&counter());
    assert_eq!(status(&stage, "jobDeploymentStatus"), "Complete");
    assert_eq!(status(&stage, "jobStatus"), "SUCCEEDED");
}

#[test]
fn a_ray_that_is_silent_does_not_keep_a_job_from_being_suspended() {
    let mut stage = running(suspendable());
    stage.ray.is_down = true;
    stage.edit(&counter(), "/spec/suspend", json!(true));
    live_on(&mut stage);
    assert_eq!(status(&stage, "jobDeploymentStatus"), "Suspended");
}

#[test]
fn what_is_flawed_is_not_obeyed() {
    let flaws = [
        ("/spec/suspend", json!(true)),
        ("/spec/activeDeadlineSeconds", json!(0)),
        ("/spec/activeDeadlineSeconds", json!(-5)),
    ];
    for (field, value) in flaws {
        let mut stage = running(a_ray_job());
        stage.edit(&counter(), field, value);
        stage.wait(1);
        stage.settle(&counter());
        assert_eq!(status(&stage, "jobDeploymentStatus"), "Running", "{field}");
        assert!(stage.said().contains("InvalidRayJobSpec"), "{field}");
        assert_eq!(stage.ray.stops, 0, "{field}");
    }
    let mut waits = super::stage(a_ray_job());
    waits.settle(&counter());
    waits.edit(&counter(), "/spec/preRunningDeadlineSeconds", json!(0));
    waits.wait(1);
    waits.settle(&counter());
    assert_eq!(status(&waits, "jobDeploymentStatus"), "Initializing");
}

/// A pod of the cluster that the job runs on.
pub(super) fn a_pod_of(stage: &Stage<RayJobs>) -> A {
    let owner = stage.objects[&cluster_key(stage)].clone();
    let mut pod = a("pod", "head").uid("head").owned_by(&owner);
    pod.json["metadata"]["ownerReferences"][0]["controller"] = json!(true);
    pod
}

#[test]
fn no_attempt_begins_beside_a_pod_of_the_last_one() {
    let mut stage = running(a_ray_job().with("/spec/backoffLimit", json!(1)));
    let pod = a_pod_of(&stage);
    stage.put(pod.clone());
    let cluster = cluster_key(&stage);
    stage.remove(&cluster);
    let waits = stage.settle(&counter());
    let left = vec![pod.key()];
    assert_eq!(waits.reason, Reason::Clears { left });
    assert!(waits.wake_at.is_some(), "not for ever");
    assert_eq!(status(&stage, "jobDeploymentStatus"), "Retrying");
    stage.remove(&pod.key());
    assert_eq!(stage.settle(&counter()).reason, Reason::AwaitsCluster);
    assert!(!stage.said().contains("PodsOfLastAttemptLeft"));
}

#[test]
fn nothing_is_suspended_beside_its_pods_but_not_for_ever() {
    let mut stage = running(suspendable());
    let pod = a_pod_of(&stage);
    stage.put(pod.clone());
    stage.edit(&counter(), "/spec/suspend", json!(true));
    let waits = stage.settle(&counter());
    assert!(matches!(waits.reason, Reason::Clears { .. }), "{waits:?}");
    assert_eq!(status(&stage, "jobDeploymentStatus"), "Suspending");
    stage.wait(301);
    assert_eq!(stage.settle(&counter()).reason, Reason::Suspended);
    let told = stage.notes.iter();
    let mut told = told.filter(|it| &*it.reason == "PodsOfLastAttemptLeft");
    assert!(told.next().is_some_and(|it| it.message.contains("head")));
}

fn interactive() -> A {
    a_ray_job().with("/spec/submissionMode", json!("InteractiveMode"))
}

#[test]
fn what_the_user_submitted_is_stopped_though_ray_was_never_heard_about_it() {
    let mut stage = with_cluster(interactive());
    assert_eq!(stage.settle(&counter()).reason, Reason::AwaitsSubmission);
    stage.ray.set("mine", ray::JobStatus::Running);
    stage.edit(&counter(), "/spec/jobId", json!("mine"));
    delete(&mut stage);
    live_on(&mut stage);
    assert_eq!(stage.ray.stops, 1);
    assert!(is_quiet(&stage));
}

#[test]
fn a_job_that_the_user_submitted_and_that_cannot_be_stopped_is_named() {
    let mut stage = with_cluster(interactive());
    stage.settle(&counter());
    stage.ray.set("mine", ray::JobStatus::Running);
    stage.edit(&counter(), "/spec/jobId", json!("mine"));
    delete(&mut stage);
    stage.ray.is_down = true;
    live_on(&mut stage);
    let mut told = stage.notes.iter();
    let told = told.find(|it| &*it.reason == "FailedToStopRayJob");
    assert!(told.is_some_and(|it| it.message.starts_with("The Ray job mine of ")));
}

#[test]
fn an_interactive_job_gets_another_cluster_for_one_that_is_gone() {
    let mut stage = with_cluster(interactive());
    assert_eq!(stage.settle(&counter()).reason, Reason::AwaitsSubmission);
    let cluster = cluster_key(&stage);
    stage.remove(&cluster);
    assert_eq!(stage.settle(&counter()).reason, Reason::AwaitsCluster);
    assert_eq!(stage.of("rayclusters").len(), 1);
}

#[test]
fn a_status_without_a_cluster_holds_nothing() {
    let mut stage = running(a_ray_job());
    stage.edit(&counter(), "/status/rayClusterName", json!(""));
    delete(&mut stage);
    live_on(&mut stage);
    assert!(!stage.objects.contains_key(&counter()));
}

#[test]
fn a_rule_that_was_taken_back_a_moment_ago_deletes_nothing() {
    let mut stage = running(suspendable());
    end(&mut stage, ray::JobStatus::Succeeded);
    while status(&stage, "endTime").is_empty() {
        stage.step(&counter());
    }
    // The user changes the mind, and this controller has not seen it yet.
    let seen = stage.objects[&counter()].clone();
    let kept = seen
        .clone()
        .with("/spec/shutdownAfterJobFinishes", json!(false));
    stage.objects.insert(counter(), kept.rv(100_000));
    stage.wait(1);
    let asks = stage.step(&counter());
    assert_eq!(asks.needs.len(), 1, "{asks:?}");
    let waits = stage.decide(&counter());
    assert!(waits.actions.is_empty(), "{waits:?}");
    assert_eq!(stage.of("rayclusters").len(), 1);
}

#[test]
fn a_mended_job_that_runs_is_not_judged_by_the_time_that_it_had_to_begin() {
    let job = a_ray_job().with("/spec/preRunningDeadlineSeconds", json!(30));
    let mut stage = running(job);
    stage.edit(
        &counter(),
        "/status/jobDeploymentStatus",
        json!("ValidationFailed"),
    );
    stage.wait(100);
    assert_eq!(stage.settle(&counter()).reason, Reason::Runs);
    assert_eq!(stage.ray.stops, 0);

    let mut stage = running(a_ray_job());
    end(&mut stage, ray::JobStatus::Succeeded);
    stage.settle(&counter());
    let ended = status(&stage, "endTime").to_owned();
    stage.edit(
        &counter(),
        "/status/jobDeploymentStatus",
        json!("ValidationFailed"),
    );
    stage.wait(100);
    stage.settle(&counter());
    assert_eq!(status(&stage, "jobDeploymentStatus"), "Complete");
    assert_eq!(
        status(&stage, "endTime"),
        ended,
        "its rules count from there"
    );
}

/// It was taken back to Running and lost a second time: one attempt counted twice.
#[test]
fn a_job_that_was_lost_before_its_spec_was_invalid_is_not_lost_again() {
    let mut stage = running(a_ray_job());
    let cluster = cluster_key(&stage);
    stage.remove(&cluster);
    stage.settle(&counter());
    let failed = || (json!("Failed"), json!(1));
    let seen = |stage: &Stage<RayJobs>| {
        let status = stage.json(&counter())["status"].clone();
        (
            status["jobDeploymentStatus"].clone(),
            status["failed"].clone(),
        )
    };
    assert_eq!(seen(&stage), failed());
    stage.edit(
        &counter(),
        "/status/jobDeploymentStatus",
        json!("ValidationFailed"),
    );
    stage.settle(&counter());
    assert_eq!(seen(&stage), failed());
}

#[test]
fn a_service_that_is_refused_is_tried_again_only_along_with_something_new() {
    let mut stage = with_cluster(a_ray_job());
    stage.refuses = Some(("services", sundown_model::RefusalReason::Forbidden));
    assert_eq!(stage.settle(&counter()).reason, Reason::Runs);
    let writes = stage.writes.len();
    for _ in 0..5 {
        stage.wait(1);
        stage.settle(&counter());
    }
    assert_eq!(stage.writes.len(), writes, "Ray is asked as often as ever");
    end(&mut stage, ray::JobStatus::Succeeded);
    stage.settle(&counter());
    assert_eq!(status(&stage, "jobDeploymentStatus"), "Complete");
}
