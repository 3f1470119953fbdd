//! Edits in the middle of an attempt: what makes no sense waits, and whose a cluster is does not change by it.

use serde_json::{Value, json};
use sundown_model::{Change, Controller, RefusalReason, ray};

use super::super::{RayJobs, Reason};
use super::away::a_pod_of;
use super::{cluster_key, counter, end, make_ready, running, status, with_cluster};
use crate::testing::A;
use crate::testing::ray::{Stage, a_ray_job, key};

fn executions(stage: &Stage<RayJobs>) -> u32 {
    stage.ray.executions.values().sum()
}

#[test]
fn a_flawed_edit_before_the_submission_waits_to_be_mended() {
    for mode in ["HTTPMode", "K8sJobMode"] {
        let job = a_ray_job()
            .with("/spec/submissionMode", json!(mode))
            .with("/spec/backoffLimit", json!(1));
        let mut stage = with_cluster(job);
        while stage.step(&counter()).reason != Reason::StoresIntent {}
        stage.edit(&counter(), "/spec/runtimeEnvYAML", json!("- a"));
        let waits = stage.settle(&counter());
        assert!(matches!(waits.reason, Reason::Invalid { .. }), "{waits:?}");
        assert_eq!(status(&stage, "jobDeploymentStatus"), "Running", "{mode}");
        assert_eq!(stage.json(&counter())["status"]["failed"], 0);
        stage.edit(&counter(), "/spec/runtimeEnvYAML", json!("{}"));
        stage.settle(&counter());
        let submitter = key("batch", "jobs", "counter");
        let is_made = stage.objects.contains_key(&submitter);
        assert_eq!(u32::from(is_made) + executions(&stage), 1, "{mode}");
    }
}

fn suspendable() -> A {
    a_ray_job().with("/spec/shutdownAfterJobFinishes", json!(true))
}

fn select(stage: &mut Stage<RayJobs>) {
    let name = status(stage, "rayClusterName").to_owned();
    let selector = json!({ "ray.io/cluster": name });
    stage.edit(&counter(), "/spec/clusterSelector", selector);
}

#[test]
fn a_selector_that_is_added_keeps_no_cluster_from_going_with_its_attempt() {
    let mut stage = running(suspendable());
    let cluster = cluster_key(&stage);
    stage.edit(&counter(), "/spec/suspend", json!(true));
    while status(&stage, "jobDeploymentStatus") != "Suspending" {
        stage.step(&counter());
    }
    select(&mut stage);
    while status(&stage, "jobDeploymentStatus") == "Suspending" {
        stage.step(&counter());
    }
    assert!(!stage.objects.contains_key(&cluster));
}

#[test]
fn a_selector_that_is_added_keeps_no_cluster_from_going_after_the_end() {
    let mut stage = running(suspendable());
    let cluster = cluster_key(&stage);
    select(&mut stage);
    end(&mut stage, ray::JobStatus::Succeeded);
    stage.settle(&counter());
    assert_eq!(status(&stage, "jobDeploymentStatus"), "Complete");
    assert!(!stage.objects.contains_key(&cluster));
}

/// For its grace period the head of the old one answers to its name.
#[test]
fn a_cluster_that_is_made_again_before_the_submission_has_another_name() {
    let mut stage = with_cluster(a_ray_job());
    assert_eq!(stage.step(&counter()).reason, Reason::ClusterReady);
    let old = cluster_key(&stage);
    stage.remove(&old);
    assert_eq!(stage.settle(&counter()).reason, Reason::AwaitsCluster);
    assert_ne!(cluster_key(&stage), old);
    make_ready(&mut stage);
    assert_eq!(stage.settle(&counter()).reason, Reason::Runs);
    assert_eq!(executions(&stage), 1);
}

#[test]
fn a_pod_that_has_ended_holds_no_attempt() {
    let mut stage = running(a_ray_job().with("/spec/backoffLimit", json!(1)));
    let pod = a_pod_of(&stage);
    stage.put(pod.clone());
    let cluster = cluster_key(&stage);
    stage.remove(&cluster);
    let waits = stage.settle(&counter());
    assert!(matches!(waits.reason, Reason::Clears { .. }), "{waits:?}");
    let ended = pod.clone().with("/status/phase", json!("Failed"));
    let change = Change::Updated {
        old: pod.build(),
        new: ended.build(),
    };
    let mut touched = std::collections::BTreeSet::new();
    let scene = &mut stage.scene;
    scene
        .controller
        .observe(&change, &scene.cache, &mut touched);
    assert!(touched.contains(&counter()));
    stage.put(ended);
    assert_eq!(stage.settle(&counter()).reason, Reason::AwaitsCluster);
    assert!(!stage.said().contains("PodsOfLastAttemptLeft"));
}

/// The engine waits longer after each failure, and would look at the job once a minute.
#[test]
fn a_service_that_the_server_cannot_take_is_not_tried_with_every_look() {
    let mut stage = with_cluster(a_ray_job());
    stage.refuses = Some(("services", RefusalReason::Busy));
    assert_eq!(stage.settle(&counter()).reason, Reason::Runs);
    let writes = stage.writes.len();
    for _ in 0..20 {
        stage.wait(1);
        stage.settle(&counter());
    }
    assert_eq!(stage.writes.len(), writes);
    stage.refuses = None;
    stage.wait(60);
    stage.settle(&counter());
    let service = key("", "services", "counter-head-svc");
    assert!(stage.objects.contains_key(&service), "but after a while");
}

/// Only the user submits, at any time, and may name the job after the edit.
#[test]
fn what_the_user_submits_after_a_flawed_edit_is_followed() {
    for is_named_late in [false, true] {
        let job = a_ray_job().with("/spec/submissionMode", json!("InteractiveMode"));
        let mut stage = with_cluster(job);
        stage.settle(&counter());
        let (named, flawed) = (
            ("/spec/jobId", json!("mine")),
            ("/spec/suspend", json!(true)),
        );
        let mut edits = [named, flawed];
        if is_named_late {
            edits.reverse();
        }
        let waits = edits.map(|(field, value)| {
            stage.edit(&counter(), field, value);
            stage.settle(&counter())
        });
        stage.ray.set("mine", ray::JobStatus::Succeeded);
        stage.now = waits[1].wake_at.expect("it asks again");
        stage.settle(&counter());
        assert_eq!(status(&stage, "jobDeploymentStatus"), "Complete");
    }
}

/// Found by a Ray that took a request long after it had been given up.
#[test]
fn a_submission_that_lands_after_a_flawed_edit_is_followed() {
    for forgets in [false, true] {
        let mut stage = with_cluster(a_ray_job());
        stage.ray.breaks = Some("no answer");
        while stage.step(&counter()).reason != Reason::Submits {}
        stage.edit(&counter(), "/spec/runtimeEnvYAML", json!("- a"));
        if forgets {
            stage.forget();
        }
        let waits = stage.settle(&counter());
        assert!(matches!(waits.reason, Reason::Invalid { .. }), "{waits:?}");
        let id = status(&stage, "jobId").to_owned();
        stage.ray.set(&id, ray::JobStatus::Succeeded);
        stage.now = waits.wake_at.expect("it asks again");
        stage.settle(&counter());
        assert_eq!(status(&stage, "jobDeploymentStatus"), "Complete");
    }
}

#[test]
fn what_was_never_submitted_is_not_asked_for_for_ever_while_a_flaw_holds_it() {
    let mut stage = with_cluster(a_ray_job());
    while stage.step(&counter()).reason != Reason::StoresIntent {}
    stage.edit(&counter(), "/spec/runtimeEnvYAML", json!("- a"));
    for _ in 0..3_000 {
        let waits = stage.settle(&counter());
        assert!(matches!(waits.reason, Reason::Invalid { .. }), "{waits:?}");
        match waits.wake_at {
            Some(at) => stage.now = at,
            None => return,
        }
    }
    panic!("it asks for ever");
}

#[test]
fn a_selector_that_is_added_takes_no_retry_away() {
    let mut stage = running(a_ray_job().with("/spec/backoffLimit", json!(2)));
    select(&mut stage);
    end(&mut stage, ray::JobStatus::Failed);
    stage.settle(&counter());
    assert_eq!(stage.json(&counter())["status"]["failed"], 1);
    assert_eq!(status(&stage, "jobDeploymentStatus"), "ValidationFailed");
    stage.edit(&counter(), "/spec/clusterSelector", Value::Null);
    assert_eq!(stage.settle(&counter()).reason, Reason::AwaitsCluster);
    make_ready(&mut stage);
    assert_eq!(stage.settle(&counter()).reason, Reason::Runs);
    assert_eq!(executions(&stage), 2);
}

/// How often it may be tried again is not known until the spec says so.
#[test]
fn an_attempt_that_failed_waits_for_a_limit_that_makes_sense() {
    let interactive = ("/spec/submissionMode", json!("InteractiveMode"));
    for is_lost in [true, false] {
        for (field, flaw) in [("/spec/backoffLimit", json!(-1)), interactive.clone()] {
            for (limit, expect) in [(2, "Initializing"), (0, "Failed")] {
                let mut stage = running(a_ray_job().with("/spec/backoffLimit", json!(2)));
                stage.edit(&counter(), field, flaw.clone());
                if is_lost {
                    let cluster = cluster_key(&stage);
                    stage.remove(&cluster);
                } else {
                    end(&mut stage, ray::JobStatus::Failed);
                }
                let waits = stage.settle(&counter());
                assert!(matches!(waits.reason, Reason::Invalid { .. }), "{waits:?}");
                assert_eq!(status(&stage, "jobDeploymentStatus"), "Running");
                assert_eq!(stage.json(&counter())["status"]["failed"], 0);
                stage.edit(&counter(), "/spec/submissionMode", json!("HTTPMode"));
                stage.edit(&counter(), "/spec/backoffLimit", json!(limit));
                stage.settle(&counter());
                assert_eq!(status(&stage, "jobDeploymentStatus"), expect);
                assert_eq!(stage.json(&counter())["status"]["failed"], 1);
            }
        }
    }
}
