//! What holds for every job, whatever happens to it: layer 2 of the test ladder.

use fastrand::Rng;
use serde_json::json;
use sundown_model::ray::Refused;
use sundown_model::{Action, Decision, Form, Object, ObjectKey, What, Write, ray};

use super::intent::Intent;
use super::tests::{cluster_key, counter, make_ready, stage};
use super::{RayJobs, Reason};
use crate::ray::view::RAY_FIELDS;
use crate::testing::ray::{Stage, a_cluster, a_ray_job, key};
use crate::testing::seeds::{any_json, for_seeds, odd_object, one_of, percent};
use crate::testing::{A, Scene, at};

const CASES: u64 = 150;
const EVENTS: usize = 25;

fn some_job(rng: &mut Rng) -> A {
    let mode = *one_of(rng, &["HTTPMode", "K8sJobMode", "InteractiveMode"]);
    let mut job = a_ray_job().with("/spec/submissionMode", json!(mode));
    if percent(rng, 25) {
        let select = json!({"ray.io/cluster": "demo"});
        return job.with("/spec/clusterSelector", select);
    }
    if percent(rng, 50) {
        job = job.with("/spec/shutdownAfterJobFinishes", json!(true));
    }
    if percent(rng, 50) && mode != "InteractiveMode" {
        job = job.with("/spec/backoffLimit", json!(rng.i32(0..3)));
    }
    if percent(rng, 30) {
        job = job.with("/spec/activeDeadlineSeconds", json!(rng.i32(1..100)));
    }
    job
}

/// Something that the world does.
fn happen(stage: &mut Stage<RayJobs>, rng: &mut Rng) {
    let Some(job) = stage.objects.get(&counter()) else {
        return;
    };
    let id = job.json["status"]["jobId"]
        .as_str()
        .unwrap_or("")
        .to_owned();
    let submitter = key("batch", "jobs", "counter");
    let cluster = cluster_key(stage);
    match rng.u32(..14) {
        0 => stage.ray.restart(),
        1 => stage.ray.is_down = !stage.ray.is_down,
        2 => stage.ray.loses_answer = true,
        3 => {
            let refusals = [Refused::Busy, Refused::AlreadyExists, Refused::Invalid];
            stage.ray.refuses = Some(*one_of(rng, &refusals));
        }
        4 | 5 if stage.ray.jobs.contains_key(&id) => {
            let ends = [
                ray::JobStatus::Succeeded,
                ray::JobStatus::Failed,
                ray::JobStatus::Stopped,
            ];
            let how = *one_of(rng, &ends);
            stage.ray.set(&id, how);
        }
        6 | 7 if stage.objects.contains_key(&submitter) => {
            let kind = *one_of(rng, &["Complete", "Failed"]);
            let condition = json!([{"type": kind, "status": "True"}]);
            stage.edit(&submitter, "/status/conditions", condition);
        }
        8 if percent(rng, 30) => stage.remove(&cluster),
        9 => stage.edit(&counter(), "/spec/suspend", json!(rng.bool())),
        10 if percent(rng, 30) => {
            let now = stage.now.to_string();
            stage.edit(&counter(), "/metadata/deletionTimestamp", json!(now));
        }
        11 => stage.wait(rng.i64(1..400)),
        // A restart of the operator: what it knew is gone, what is stored is not.
        12 => stage.forget(),
        _ if stage.objects.contains_key(&cluster) => make_ready(stage),
        _ => stage.wait(1),
    }
}

/// What every single decision keeps to.
fn judge(stage: &Stage<RayJobs>, decision: &Decision<Reason>) {
    let Some(job) = stage.objects.get(&counter()).map(A::build) else {
        return;
    };
    let selects = job.field("/spec/clusterSelector").is_some();
    for action in &decision.actions {
        match action {
            Action::Api(Write::Delete { at, .. } | Write::Finish { at }) => {
                let victim = stage.objects[at.key()].build();
                assert_eq!(at, &victim.seen(), "it deletes what it saw");
                let is_own = *at.key() == counter() || crate::ray::is_owned(&victim, &job);
                assert!(is_own, "{} is not its own", at.key());
                let is_cluster = at.key().resource.plural() == "rayclusters";
                assert!(!(selects && is_cluster), "a cluster that it only points at");
            }
            Action::Do(deed) => {
                if let What::Ray(ray::Call::Submit {
                    session,
                    job: submission,
                    ..
                }) = &deed.what
                {
                    let intent = Intent::of(&job).expect("nothing is submitted without an intent");
                    assert_eq!(intent.session.as_ref(), Some(session));
                    assert_eq!(intent.submission_id, submission.submission_id);
                }
            }
            Action::Api(Write::Create(_) | Write::Patch { .. }) | Action::Tell(_) => {}
        }
    }
}

fn live(rng: &mut Rng) -> Stage<RayJobs> {
    let mut stage = stage(some_job(rng)).with(a_cluster());
    for _ in 0..EVENTS {
        for _ in 0..rng.usize(..6) {
            let before = stage.clone();
            let decision = stage.step(&counter());
            judge(&before, &decision);
            assert!(
                stage.ray.executions.values().all(|count| *count <= 1),
                "one per attempt"
            );
        }
        happen(&mut stage, rng);
    }
    stage
}

#[test]
fn whatever_happens_each_attempt_is_executed_once_and_nothing_foreign_goes() {
    for_seeds(CASES, |rng| {
        let stage = live(rng);
        let demo = a_cluster().key();
        let is_removed_by_the_world = !stage.objects.contains_key(&demo);
        let own: Vec<&ObjectKey> = stage
            .writes
            .iter()
            .filter_map(|write| match write {
                Write::Delete { at, .. } | Write::Finish { at } => Some(at.key()),
                Write::Create(_) | Write::Patch { .. } => None,
            })
            .collect();
        assert!(is_removed_by_the_world || !own.contains(&&demo));
        let status = stage
            .objects
            .get(&counter())
            .map(|job| job.json["status"].clone());
        let failed = status
            .and_then(|status| status["failed"].as_i64())
            .unwrap_or(0);
        assert!(failed <= 3, "attempts are bounded");
    });
}

#[test]
fn what_was_decided_and_carried_out_is_not_decided_again() {
    for_seeds(CASES, |rng| {
        let mut stage = live(rng);
        stage.ray.is_down = false;
        stage.settle(&counter());
        let again = stage.decide(&counter());
        assert!(again.needs.is_empty(), "{again:?}");
        assert!(
            again.actions.iter().all(|it| matches!(it, Action::Tell(_))),
            "{again:?}"
        );
        assert!(again.wake_at.is_none_or(|at| at > stage.now), "{again:?}");
    });
}

#[test]
fn no_job_is_too_odd_to_decide_on() {
    let mut form = Form::metadata();
    form.add(RAY_FIELDS);
    for_seeds(CASES * 4, |rng| {
        let mut json = odd_object(rng);
        if percent(rng, 60) {
            json = a_ray_job().json;
            let pointers = [
                "/spec",
                "/status",
                "/spec/rayClusterSpec",
                "/metadata/annotations",
                "/metadata/finalizers",
            ];
            for _ in 0..rng.usize(1..3) {
                let (up, name) = one_of(rng, &pointers).rsplit_once('/').unwrap();
                if let Some(serde_json::Value::Object(map)) = json.pointer_mut(up) {
                    map.insert(name.to_owned(), any_json(rng, 3));
                }
            }
            let states = [
                "Initializing",
                "Running",
                "Waiting",
                "Complete",
                "Retrying",
                "odd",
            ];
            let state =
                json!({"jobDeploymentStatus": one_of(rng, &states), "startTime": any_json(rng, 0)});
            if percent(rng, 50) {
                json["status"] = state;
            }
        }
        let resource = a_ray_job().resource;
        let Ok(job) = Object::read(&resource, &json, &form) else {
            return;
        };
        let scene = Scene::new(RayJobs::default()).seeing_as_it_is(job.clone().into());
        for now in [jiff::Timestamp::MIN, at(0), jiff::Timestamp::MAX] {
            let _ = scene.decide_at(job.key(), now);
        }
    });
}
