//! A selector that is taken away from a job that runs: the job runs on where it was submitted to, and whose that
//! cluster is says its owner.

use serde_json::{Value, json};
use sundown_model::ray;

use super::super::{RayJobs, Reason};
use super::others::{delete, on_shared};
use super::{cluster_key, counter, end, make_ready, running, stage, status};
use crate::testing::ray::{Stage, a_cluster, a_ray_job, cluster_spec};

/// Takes the selector away. Without a description of a cluster that is refused.
fn deselect(stage: &mut Stage<RayJobs>, spec: &Value) {
    stage.edit(&counter(), "/spec/clusterSelector", Value::Null);
    stage.edit(&counter(), "/spec/rayClusterSpec", spec.clone());
    stage.wait(1);
}

/// A job that waits on the cluster of somebody else for its user to submit, who did.
fn interactive_on_shared() -> Stage<RayJobs> {
    let job = a_ray_job()
        .with("/spec/submissionMode", json!("InteractiveMode"))
        .with("/spec/clusterSelector", json!({"ray.io/cluster": "demo"}))
        .with("/spec/rayClusterSpec", Value::Null);
    let mut stage = stage(job);
    stage.put(a_cluster());
    stage.settle(&counter());
    make_ready(&mut stage);
    assert_eq!(stage.settle(&counter()).reason, Reason::AwaitsSubmission);
    stage.ray.set("train", ray::JobStatus::Running);
    stage.edit(&counter(), "/spec/jobId", json!("train"));
    assert_eq!(stage.settle(&counter()).reason, Reason::Runs);
    stage
}

#[test]
fn a_job_whose_selector_is_taken_away_runs_on() {
    for begun in [on_shared(), interactive_on_shared()] {
        for spec in [Value::Null, cluster_spec()] {
            let mut stage = begun.clone();
            deselect(&mut stage, &spec);
            assert_eq!(stage.settle(&counter()).reason, Reason::Runs);
            assert_eq!(status(&stage, "jobDeploymentStatus"), "Running");
            end(&mut stage, ray::JobStatus::Succeeded);
            stage.settle(&counter());
            assert_eq!(status(&stage, "jobDeploymentStatus"), "Complete");
            assert!(stage.objects.contains_key(&a_cluster().key()));
        }
    }
}

#[test]
fn no_attempt_follows_one_on_a_cluster_of_somebody_else() {
    let mut stage = on_shared();
    deselect(&mut stage, &cluster_spec());
    stage.edit(&counter(), "/spec/backoffLimit", json!(1));
    end(&mut stage, ray::JobStatus::Failed);
    stage.settle(&counter());
    assert_eq!(status(&stage, "jobDeploymentStatus"), "Failed");
    assert_eq!(stage.of("rayclusters").len(), 1);
}

#[test]
fn a_job_whose_selector_was_taken_away_is_stopped_when_it_is_deleted() {
    for begun in [on_shared(), interactive_on_shared()] {
        for spec in [Value::Null, cluster_spec()] {
            for is_seen in [false, true] {
                let mut stage = begun.clone();
                deselect(&mut stage, &spec);
                if is_seen {
                    stage.settle(&counter());
                }
                delete(&mut stage);
                assert_eq!(stage.ray.stops, 1);
            }
        }
    }
}

/// It would rest beside what it runs.
#[test]
fn a_job_on_a_cluster_of_somebody_else_is_not_suspended() {
    let mut stage = on_shared();
    deselect(&mut stage, &cluster_spec());
    stage.edit(&counter(), "/spec/shutdownAfterJobFinishes", json!(true));
    stage.edit(&counter(), "/spec/suspend", json!(true));
    assert_eq!(stage.settle(&counter()).reason, Reason::Runs);
    assert_eq!(status(&stage, "jobDeploymentStatus"), "Running");
}

/// It goes on living, with what runs there.
#[test]
fn a_job_whose_cluster_was_taken_from_it_is_stopped_before_it_rests() {
    for is_deaf in [false, true] {
        let mut stage = running(a_ray_job().with("/spec/shutdownAfterJobFinishes", json!(true)));
        let cluster = cluster_key(&stage);
        stage.ray.is_deaf = is_deaf;
        stage.edit(&counter(), "/spec/suspend", json!(true));
        while status(&stage, "jobDeploymentStatus") != "Suspending" {
            stage.step(&counter());
        }
        stage.edit(&cluster, "/metadata/ownerReferences", json!([]));
        let begun_at = stage.now;
        while status(&stage, "jobDeploymentStatus") == "Suspending" {
            let decision = stage.step(&counter());
            if decision.needs.is_empty() && decision.actions.is_empty() {
                stage.now = decision.wake_at.expect("it waits for a time");
            }
        }
        assert!(stage.ray.stops > 0);
        assert_eq!(stage.said().contains("FailedToStopRayJob"), is_deaf);
        let took = stage.now.duration_since(begun_at).as_secs();
        assert_eq!(took >= 60, is_deaf, "{took}");
        assert!(stage.objects.contains_key(&cluster));
    }
}
