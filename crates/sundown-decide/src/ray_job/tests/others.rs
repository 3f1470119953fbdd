//! A stop is for the job that was submitted, and for no other of its name: on a cluster that is shared, ids may be
//! used again, and a cluster or its head may be replaced.

use jiff::SignedDuration;
use serde_json::{Value, json};
use sundown_model::ray;

use super::super::{RayJobs, Reason};
use super::{counter, make_ready, running, stage, status};
use crate::testing::ray::{Stage, a_cluster, a_ray_job};

/// A job named `train` that runs on a cluster of somebody else.
pub(super) fn on_shared() -> Stage<RayJobs> {
    let job = a_ray_job()
        .with("/spec/clusterSelector", json!({"ray.io/cluster": "demo"}))
        .with("/spec/rayClusterSpec", Value::Null)
        .with("/spec/jobId", json!("train"));
    let mut stage = stage(job);
    stage.put(a_cluster());
    stage.settle(&counter());
    make_ready(&mut stage);
    assert_eq!(stage.settle(&counter()).reason, Reason::Runs);
    stage
}

/// Another session, in which another `RayJob` submitted a job of the same name.
fn restart_with_another(stage: &mut Stage<RayJobs>) {
    stage.ray.restart();
    stage.ray.set("train", ray::JobStatus::Running);
}

/// Deletes the job, and lives until it is gone; at what time that was.
pub(super) fn delete(stage: &mut Stage<RayJobs>) -> SignedDuration {
    let begun_at = stage.now;
    let now = stage.now.to_string();
    stage.edit(&counter(), "/metadata/deletionTimestamp", json!(now));
    live_on(stage);
    stage.now.duration_since(begun_at)
}

/// Lives until the job is gone, for ten minutes at most.
fn live_on(stage: &mut Stage<RayJobs>) {
    let end = stage.now + SignedDuration::from_mins(10);
    while stage.now < end && stage.objects.contains_key(&counter()) {
        let decision = stage.step(&counter());
        if decision.needs.is_empty() && decision.actions.is_empty() {
            stage.now = decision.wake_at.expect("it waits for a time");
        }
    }
    assert!(!stage.objects.contains_key(&counter()), "not for ever");
}

#[track_caller]
fn assert_untouched(stage: &Stage<RayJobs>) {
    assert_eq!(stage.ray.stops, 0);
    assert_eq!(stage.ray.jobs["train"].status, ray::JobStatus::Running);
}

#[test]
fn a_job_of_the_same_id_on_a_cluster_that_was_made_again_goes_on() {
    for waits in [true, false] {
        let mut stage = on_shared();
        restart_with_another(&mut stage);
        stage.put(a_cluster().uid("again"));
        make_ready(&mut stage);
        if waits {
            stage.wait(1);
            stage.settle(&counter());
            assert_eq!(status(&stage, "jobDeploymentStatus"), "Failed");
            assert_eq!(status(&stage, "jobStatus"), "RUNNING");
        }
        delete(&mut stage);
        assert_untouched(&stage);
    }
}

#[test]
fn a_job_of_the_same_id_on_a_head_that_was_replaced_goes_on() {
    let mut stage = on_shared();
    stage.ray.restart();
    stage.wait(1);
    stage.settle(&counter());
    assert_eq!(status(&stage, "reason"), "AppFailed");
    restart_with_another(&mut stage);
    delete(&mut stage);
    assert_untouched(&stage);
}

#[test]
fn a_stop_goes_to_the_session_of_the_job_and_to_no_other() {
    let mut stage = on_shared();
    restart_with_another(&mut stage);
    delete(&mut stage);
    assert_untouched(&stage);
    assert!(!stage.said().contains("FailedToStopRayJob"));
}

/// The id was stopped before in this process, by another `RayJob` on a cluster of that name.
#[test]
fn a_stop_of_an_earlier_story_does_not_count_as_this_ones() {
    let mut stage = on_shared();
    stage.ray.is_deaf = true;
    let mut other = stage.clone();
    delete(&mut other);
    assert!(other.ray.stops > 0);
    stage.scene.facts = other.scene.facts;
    stage.ray.is_deaf = false;
    stage.now = other.now + SignedDuration::from_mins(10);
    let now = stage.now.to_string();
    stage.edit(&counter(), "/metadata/deletionTimestamp", json!(now));
    stage.wait(1_000);
    live_on(&mut stage);
    assert_eq!(stage.ray.stops, 1);
    assert!(!stage.said().contains("FailedToStopRayJob"));
}

/// As of a job of Ray Client.
#[test]
fn what_ray_refuses_to_stop_holds_a_job_no_longer_than_it_may_and_is_quoted() {
    let mut stage = running(a_ray_job());
    stage.ray.refuses_stop = true;
    let took = delete(&mut stage);
    assert!(took >= SignedDuration::from_secs(59), "{took}");
    assert!(took < SignedDuration::from_secs(70), "{took}");
    let mut told = stage.notes.iter();
    let told = told.find(|it| &*it.reason == "FailedToStopRayJob");
    let told = format!("{told:?}");
    assert!(told.contains("no"), "{told}");
    assert!(!told.contains("still runs"), "{told}");
}

/// The instant of a deletion is the API server's, and its clock may be ahead of ours.
#[test]
fn a_stop_is_not_repeated_at_once_when_the_clock_of_the_server_is_ahead() {
    for is_deaf in [true, false] {
        let mut stage = running(a_ray_job());
        stage.ray.is_deaf = is_deaf;
        stage.ray.refuses_stop = !is_deaf;
        let ahead = stage.now + SignedDuration::from_secs(30);
        let ahead = json!(ahead.to_string());
        stage.edit(&counter(), "/metadata/deletionTimestamp", ahead);
        for _ in 0..100 {
            stage.step(&counter());
        }
        let told = stage.ray.stops + stage.ray.refused_stops;
        assert!((1..=3).contains(&told), "{told}");
        live_on(&mut stage);
    }
}
