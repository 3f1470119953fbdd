//! The machine slept: the process lives on and knows what it knew, but what was before the sleep and what comes
//! after it are not in a row. One failed question after it ended a job that ran well.

use serde_json::json;
use sundown_model::ray;

use super::super::{RayJobs, Reason};
use super::{counter, end, running, status, with_cluster};
use crate::testing::ray::{Stage, a_ray_job};

/// Longer than every bound; nothing is forgotten.
fn sleep(stage: &mut Stage<RayJobs>) {
    stage.wait(100_000);
}

/// Ray fails to answer four questions.
fn fail_four_times(stage: &mut Stage<RayJobs>) {
    stage.ray.is_down = true;
    for _ in 0..4 {
        stage.wait(2);
        stage.settle(&counter());
    }
}

#[test]
fn one_failed_question_after_a_sleep_ends_nothing() {
    let mut stage = running(a_ray_job());
    fail_four_times(&mut stage);
    sleep(&mut stage);
    stage.settle(&counter());
    assert_eq!(status(&stage, "jobDeploymentStatus"), "Running");
    stage.ray.is_down = false;
    stage.wait(2);
    assert_eq!(stage.settle(&counter()).reason, Reason::Runs);
}

#[test]
fn a_ray_that_is_silent_after_a_sleep_is_given_up_soon() {
    let mut stage = running(a_ray_job());
    fail_four_times(&mut stage);
    sleep(&mut stage);
    for _ in 0..3 {
        stage.settle(&counter());
        stage.wait(2);
    }
    assert_eq!(status(&stage, "reason"), "JobStatusCheckTimeoutExceeded");
}

#[test]
fn a_result_of_the_sleep_is_not_thrown_away_by_one_failed_question() {
    let job = a_ray_job()
        .with("/spec/shutdownAfterJobFinishes", json!(true))
        .with("/spec/ttlSecondsAfterFinished", json!(600));
    let mut stage = running(job);
    fail_four_times(&mut stage);
    sleep(&mut stage);
    end(&mut stage, ray::JobStatus::Succeeded);
    stage.edit(&counter(), "/spec/suspend", json!(true));
    stage.settle(&counter());
    stage.ray.is_down = false;
    stage.wait(2);
    stage.settle(&counter());
    assert_eq!(status(&stage, "jobDeploymentStatus"), "Complete");
}

#[test]
fn one_busy_answer_after_a_sleep_does_not_end_the_submission() {
    let mut stage = with_cluster(a_ray_job());
    while stage.step(&counter()).reason != Reason::StoresIntent {}
    stage.ray.breaks = Some("500: no agent");
    for _ in 0..20 {
        stage.step(&counter());
    }
    sleep(&mut stage);
    let submits = (0..20).any(|_| stage.step(&counter()).reason == Reason::Submits);
    assert!(submits, "it is tried again");
    stage.ray.breaks = None;
    assert_eq!(stage.settle(&counter()).reason, Reason::Runs);
    assert_eq!(stage.ray.executions.values().sum::<u32>(), 1);
}
