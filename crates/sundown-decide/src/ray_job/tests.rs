//! What becomes of jobs, story by story: from the beginning to the end, and off the road.

mod apart;
mod asleep;
mod away;
mod cleanup;
mod deselected;
mod edits;
mod failing;
mod held;
mod others;
mod refused;
mod submitting;
mod unserved;

use serde_json::{Value, json};
use sundown_model::{Explain, ObjectKey, ray};

use super::{RayJobs, Reason};
use crate::testing::ray::{Stage, a_cluster, a_ray_job, key};
use crate::testing::{A, a};

/// The key of the job of all stories.
pub(super) fn counter() -> ObjectKey {
    a_ray_job().key()
}

pub(super) fn stage(job: A) -> Stage<RayJobs> {
    Stage::new(RayJobs::default()).with(job)
}

pub(super) fn status<'a>(stage: &'a Stage<RayJobs>, field: &str) -> &'a str {
    stage.json(&counter())["status"][field]
        .as_str()
        .unwrap_or("")
}

/// The cluster that the job runs on.
pub(super) fn cluster_key(stage: &Stage<RayJobs>) -> ObjectKey {
    key("ray.io", "rayclusters", status(stage, "rayClusterName"))
}

/// Makes the cluster of a job ready, with the service of its head.
pub(super) fn make_ready(stage: &mut Stage<RayJobs>) {
    let cluster = cluster_key(stage);
    stage.edit(&cluster, "/status", json!({"state": "ready"}));
    let owner = stage.objects[&cluster].clone();
    let ports = json!([{"name": "dashboard", "port": 8265}]);
    let service = a("service", &format!("{}-head-svc", cluster.name));
    let mut service = service.with("/spec/ports", ports).owned_by(&owner);
    service.json["metadata"]["ownerReferences"][0]["controller"] = json!(true);
    stage.put(service);
}

/// A job whose cluster is ready, before anything is submitted.
pub(super) fn with_cluster(job: A) -> Stage<RayJobs> {
    let mut stage = stage(job);
    assert_eq!(stage.settle(&counter()).reason, Reason::AwaitsCluster);
    make_ready(&mut stage);
    stage
}

/// A job that runs in Ray.
pub(super) fn running(job: A) -> Stage<RayJobs> {
    let mut stage = with_cluster(job);
    assert_eq!(stage.settle(&counter()).reason, Reason::Runs);
    stage
}

/// The job has ended so in Ray.
pub(super) fn end(stage: &mut Stage<RayJobs>, status: ray::JobStatus) {
    let ids: Vec<String> = stage.ray.jobs.keys().cloned().collect();
    for id in ids {
        stage.ray.set(&id, status);
    }
    stage.wait(1);
}

/// The codes of all decisions until one asks for nothing.
pub(super) fn road(stage: &mut Stage<RayJobs>) -> Vec<&'static str> {
    let mut codes = Vec::new();
    for _ in 0..60 {
        let decision = stage.step(&counter());
        codes.push(decision.reason.code());
        assert!(!decision.reason.sentence().is_empty());
        let _ = decision.reason.blockers();
        if decision.needs.is_empty() && decision.actions.is_empty() {
            return codes;
        }
    }
    panic!("no end: {codes:?}");
}

fn check(job: A, expect: &Reason) {
    assert_eq!(&stage(job).decide(&counter()).reason, expect);
}

#[test]
fn leaves_alone_what_is_not_there_or_not_its_own() {
    let gone = Stage::new(RayJobs::default()).decide(&counter());
    assert_eq!(gone.reason, Reason::Gone);
    let elsewhere = json!("kueue.x-k8s.io/multikueue");
    check(
        a_ray_job().with("/spec/managedBy", elsewhere),
        &Reason::ManagedElsewhere,
    );
}

#[test]
fn a_job_over_http_goes_its_way_and_is_executed_once() {
    let mut stage = stage(a_ray_job());
    assert_eq!(
        road(&mut stage),
        ["Begins", "Begins", "MakesCluster", "AwaitsCluster"]
    );
    let finalizers = &stage.json(&counter())["metadata"]["finalizers"];
    assert_eq!(finalizers, &json!(["ray.io/rayjob-finalizer"]));
    make_ready(&mut stage);
    let expect = [
        "ClusterReady",
        "AsksRay",
        "AsksRay",
        "StoresIntent",
        "AsksRay",
        "Submits",
        "Submitted",
        "AsksRay",
        "Runs",
        "AsksRay",
        "Runs",
    ];
    assert_eq!(road(&mut stage), expect);
    assert_eq!(status(&stage, "jobDeploymentStatus"), "Running");
    assert_eq!(status(&stage, "jobStatus"), "RUNNING");
    assert!(
        stage
            .objects
            .contains_key(&key("", "services", "counter-head-svc"))
    );
    end(&mut stage, ray::JobStatus::Succeeded);
    assert_eq!(road(&mut stage), ["AsksRay", "Ends", "Kept"]);
    assert_eq!(status(&stage, "jobDeploymentStatus"), "Complete");
    assert_eq!(stage.json(&counter())["status"]["succeeded"], 1);
    assert_eq!(
        stage.ray.executions.values().copied().collect::<Vec<_>>(),
        [1]
    );
    let rest = stage.decide(&counter());
    assert!(rest.wake_at.is_none(), "a job that has ended is silent");
}

#[test]
fn asks_as_often_as_it_shall_and_writes_only_what_is_new() {
    let mut stage = running(a_ray_job());
    let writes = stage.writes.len();
    let young = stage.decide(&counter());
    assert!(young.needs.is_empty() && young.actions.is_empty());
    let next = young.wake_at.unwrap();
    stage.now = next;
    assert_eq!(stage.decide(&counter()).needs.len(), 1);
    stage.settle(&counter());
    assert_eq!(stage.writes.len(), writes);
}

#[test]
fn mirrors_the_status_of_its_cluster() {
    let mut stage = running(a_ray_job());
    let cluster = cluster_key(&stage);
    stage.edit(&cluster, "/status/maxWorkerReplicas", json!(7));
    stage.settle(&counter());
    let mirror = &stage.json(&counter())["status"]["rayClusterStatus"];
    assert_eq!(mirror["maxWorkerReplicas"], 7);
}

#[test]
fn waits_for_a_dashboard_that_it_can_name() {
    let mut stage = stage(a_ray_job());
    stage.settle(&counter());
    let cluster = cluster_key(&stage);
    stage.edit(&cluster, "/status", json!({"state": "ready"}));
    assert_eq!(stage.settle(&counter()).reason, Reason::AwaitsDashboard);
    assert_eq!(status(&stage, "message"), "");
    let ports = json!([{"name": "client", "port": 10001}]);
    let service = a("service", &format!("{}-head-svc", cluster.name));
    stage.put(service.with("/spec/ports", ports));
    assert_eq!(stage.settle(&counter()).reason, Reason::AwaitsDashboard);
    let field = "headGroupSpec.template.spec.containers[0].ports in spec.rayClusterSpec";
    assert!(status(&stage, "message").contains(field));
    assert!(stage.said().contains("DashboardPortNotFound"));
    make_ready(&mut stage);
    assert_eq!(stage.settle(&counter()).reason, Reason::Runs);
    assert_eq!(status(&stage, "message"), "");
}

#[test]
fn takes_another_name_when_somebody_elses_cluster_has_its_name() {
    let mut stage = stage(a_ray_job());
    stage.step(&counter());
    stage.step(&counter());
    let taken = cluster_key(&stage);
    let theirs = a("raycluster", &taken.name).uid("theirs");
    stage.put(theirs);
    assert_eq!(stage.step(&counter()).reason, Reason::ClusterTaken);
    stage.settle(&counter());
    assert_ne!(cluster_key(&stage), taken);
    assert_eq!(stage.json(&taken)["metadata"]["uid"], "theirs");
    assert_eq!(stage.of("rayclusters").len(), 2);
}

#[test]
fn leaves_a_service_of_somebody_else_alone_and_goes_on() {
    let service = a("service", "counter-head-svc")
        .uid("theirs")
        .with("/spec/selector", json!({"a": "b"}));
    let before = service.json["spec"].clone();
    let mut stage = with_cluster(a_ray_job()).with(service.clone());
    assert_eq!(stage.settle(&counter()).reason, Reason::Runs);
    assert_eq!(stage.json(&service.key())["spec"], before);
    assert!(stage.said().contains("FailedToCreateService"));
}

/// Found by the simulator: whoever died right after Running was stored never made it.
#[test]
fn a_service_that_is_missing_while_a_job_runs_is_made() {
    let service = key("", "services", "counter-head-svc");
    let mut stage = with_cluster(a_ray_job());
    assert_eq!(stage.step(&counter()).reason, Reason::ClusterReady);
    stage.remove(&service);
    while stage.step(&counter()).reason != Reason::StoresIntent {}
    assert!(
        stage.objects.contains_key(&service),
        "before it is submitted"
    );
    assert_eq!(stage.settle(&counter()).reason, Reason::Runs);
    stage.remove(&service);
    assert_eq!(stage.settle(&counter()).reason, Reason::Runs);
    assert!(stage.objects.contains_key(&service), "while it runs");
}

#[test]
fn an_interactive_job_waits_until_somebody_has_submitted() {
    let job = a_ray_job().with("/spec/submissionMode", json!("InteractiveMode"));
    let mut stage = with_cluster(job);
    assert_eq!(stage.settle(&counter()).reason, Reason::AwaitsSubmission);
    assert_eq!(status(&stage, "jobDeploymentStatus"), "Waiting");
    stage.ray.set("mine", ray::JobStatus::Running);
    stage.edit(&counter(), "/spec/jobId", json!("mine"));
    assert_eq!(stage.settle(&counter()).reason, Reason::Runs);
    assert_eq!(status(&stage, "jobId"), "mine");
    assert!(
        stage.ray.executions.is_empty(),
        "nothing is submitted for it"
    );
}

#[test]
fn a_job_is_suspended_whole_and_comes_back_as_another_attempt() {
    let mut stage = running(a_ray_job().with("/spec/shutdownAfterJobFinishes", json!(true)));
    let first = cluster_key(&stage);
    stage.edit(&counter(), "/spec/suspend", json!(true));
    assert_eq!(
        road(&mut stage),
        [
            "AsksRay",
            "Suspends",
            "Clears",
            "Clears",
            "Clears",
            "Cleared",
            "Suspended"
        ]
    );
    assert!(!stage.objects.contains_key(&first));
    assert_eq!(status(&stage, "rayClusterName"), "");
    assert_eq!(stage.decide(&counter()).wake_at, None);
    stage.edit(&counter(), "/spec/suspend", json!(false));
    stage.edit(&counter(), "/metadata/generation", json!(3));
    stage.settle(&counter());
    assert_ne!(cluster_key(&stage), first);
    make_ready(&mut stage);
    assert_eq!(stage.settle(&counter()).reason, Reason::Runs);
    let counts: Vec<u32> = stage.ray.executions.values().copied().collect();
    assert_eq!(counts, [1, 1], "two attempts, one execution each");
}

#[test]
fn suspending_waits_for_a_cluster_that_somebody_holds() {
    let mut stage = running(a_ray_job().with("/spec/shutdownAfterJobFinishes", json!(true)));
    let cluster = cluster_key(&stage);
    stage.edit(&cluster, "/metadata/finalizers", json!(["x/y"]));
    stage.edit(&counter(), "/spec/suspend", json!(true));
    let expect = Reason::Clears {
        left: vec![cluster.clone()],
    };
    assert_eq!(stage.settle(&counter()).reason, expect);
    stage.edit(&counter(), "/spec/suspend", json!(false));
    assert_eq!(
        stage.settle(&counter()).reason,
        expect,
        "it runs to its end"
    );
    stage.remove(&cluster);
    assert_eq!(
        stage.settle(&counter()).reason,
        Reason::AwaitsCluster,
        "and begins anew"
    );
}

#[test]
fn an_invalid_job_says_so_and_recovers_when_it_is_mended() {
    let mut stage = stage(a_ray_job().with("/spec/ttlSecondsAfterFinished", json!(-1)));
    assert!(matches!(
        stage.settle(&counter()).reason,
        Reason::Invalid { .. }
    ));
    assert_eq!(status(&stage, "jobDeploymentStatus"), "ValidationFailed");
    assert!(stage.said().contains("InvalidRayJobSpec"));
    assert_eq!(
        stage.decide(&counter()).actions.len(),
        1,
        "only the word is left"
    );
    stage.edit(&counter(), "/spec/ttlSecondsAfterFinished", json!(0));
    assert_eq!(stage.step(&counter()).reason, Reason::Recovers);
    assert_eq!(stage.settle(&counter()).reason, Reason::AwaitsCluster);
}

#[test]
fn an_invalid_edit_does_not_take_its_state_from_a_job_that_runs() {
    let mut stage = running(a_ray_job());
    stage.edit(&counter(), "/spec/ttlSecondsAfterFinished", json!(-1));
    stage.wait(1);
    stage.settle(&counter());
    assert_eq!(status(&stage, "jobDeploymentStatus"), "Running");
    assert!(stage.said().contains("InvalidRayJobSpec"));
    end(&mut stage, ray::JobStatus::Succeeded);
    assert!(matches!(
        stage.settle(&counter()).reason,
        Reason::Invalid { .. }
    ));
    assert_eq!(status(&stage, "jobDeploymentStatus"), "Complete");
    assert!(
        stage.objects.contains_key(&cluster_key(&stage)),
        "nothing goes by a broken rule"
    );
}

#[test]
fn refuses_by_name_what_is_not_supported_yet() {
    for (pointer, value, field) in [
        (
            "/spec/submissionMode",
            json!("SidecarMode"),
            "spec.submissionMode SidecarMode",
        ),
        (
            "/spec/rayClusterSpec/enableInTreeAutoscaling",
            json!(true),
            "spec.rayClusterSpec.enableInTreeAutoscaling",
        ),
    ] {
        let mut stage = stage(a_ray_job().with(pointer, value));
        let why = crate::ray::unsupported::message(field);
        assert_eq!(
            stage.settle(&counter()).reason,
            Reason::Invalid { why: why.clone() }
        );
        assert_eq!(status(&stage, "message"), why);
        assert!(stage.of("rayclusters").is_empty());
    }
}

#[test]
fn a_job_on_a_cluster_of_somebody_else_runs_there_and_leaves_it() {
    let select = json!({"ray.io/cluster": "demo"});
    let job = a_ray_job()
        .with("/spec/clusterSelector", select)
        .with("/spec/rayClusterSpec", Value::Null);
    let job = job.with("/spec/shutdownAfterJobFinishes", json!(true));
    let mut stage = stage(job);
    assert_eq!(stage.settle(&counter()).reason, Reason::AwaitsCluster);
    assert!(stage.said().contains("RayClusterNotFound"));
    stage.put(a_cluster());
    make_ready(&mut stage);
    assert_eq!(stage.settle(&counter()).reason, Reason::Runs);
    end(&mut stage, ray::JobStatus::Succeeded);
    assert_eq!(stage.settle(&counter()).reason, Reason::Kept);
    assert!(stage.objects.contains_key(&a_cluster().key()));
}

#[test]
fn what_a_job_ran_on_waits_for_the_reader_of_its_log() {
    let job = a_ray_job().with("/spec/shutdownAfterJobFinishes", json!(true));
    let read = json!({ super::ANNOTATION_READER: "run" });
    let mut stage = running(job.with("/metadata/annotations", read));
    let cluster = cluster_key(&stage);
    end(&mut stage, ray::JobStatus::Succeeded);
    let decision = stage.settle(&counter());
    assert!(
        matches!(decision.reason, Reason::NotDue { .. }),
        "{decision:?}"
    );
    assert!(
        decision.wake_at.is_some(),
        "a reader that is gone is not waited for"
    );
    assert!(stage.objects.contains_key(&cluster));
    stage.edit(&counter(), "/metadata/annotations", json!({}));
    stage.settle(&counter());
    assert!(!stage.objects.contains_key(&cluster));
}

#[test]
fn touches_jobs_by_what_they_own_and_run_on() {
    let stage = running(a_ray_job());
    let cluster = stage.objects[&cluster_key(&stage)].build();
    let service = key("", "services", &format!("{}-head-svc", cluster.key().name));
    let plain = a("service", "plain").build();
    for (object, expect) in [
        (&cluster, true),
        (&stage.objects[&service].build(), true),
        (&plain, false),
    ] {
        let mut touched = std::collections::BTreeSet::new();
        super::touch(object, &stage.scene.cache, &mut touched);
        assert_eq!(touched.contains(&counter()), expect, "{}", object.key());
    }
}

/// As a head that somebody adopted: a cluster that was taken away must not be waited for as if nothing
/// had happened.
#[test]
fn a_job_hears_of_a_cluster_that_was_taken_away() {
    let stage = running(a_ray_job());
    let cluster = stage.objects[&cluster_key(&stage)].clone();
    let taken = cluster.clone().with("/metadata/ownerReferences", json!([]));
    let change = sundown_model::Change::Updated {
        old: cluster.build(),
        new: taken.build(),
    };
    let mut touched = std::collections::BTreeSet::new();
    let cache = sundown_model::Cache::default();
    sundown_model::Controller::observe(&mut RayJobs::default(), &change, &cache, &mut touched);
    assert!(touched.contains(&counter()));
}

#[test]
fn the_road_is_told_by_these_words() {
    for (reason, code) in [
        (Reason::Begins, "Begins"),
        (Reason::MakesCluster, "MakesCluster"),
        (Reason::AsksRay, "AsksRay"),
        (Reason::Suspends, "Suspends"),
        (Reason::Cleared, "Cleared"),
        (Reason::Suspended, "Suspended"),
    ] {
        assert_eq!(reason.code(), code);
    }
}
