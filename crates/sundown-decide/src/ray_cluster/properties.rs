//! What holds for every cluster, whatever happens to it: layer 2 of the test ladder.

use fastrand::Rng;
use serde_json::json;
use sundown_model::{Action, Decision, Form, Object, ObjectKey, Write};

use super::{RayClusters, Reason};
use crate::ray::is_owned;
use crate::ray::view::RAY_FIELDS;
use crate::testing::ray::{Stage, a_cluster, ready_status};
use crate::testing::seeds::{any_json, for_seeds, odd_object, one_of, percent};
use crate::testing::{A, Scene, a, at};

const CASES: u64 = 150;

fn demo() -> ObjectKey {
    a_cluster().key()
}

/// A pod that says that it belongs to the cluster, and does not.
fn impostor(name: &str) -> A {
    let labels =
        json!({"ray.io/cluster": "demo", "ray.io/node-type": "worker", "ray.io/group": "small"});
    let owner = json!({"apiVersion": "ray.io/v1", "kind": "RayCluster", "name": "demo",
                       "uid": "of-a-predecessor", "controller": true});
    a("pod", name)
        .with("/metadata/labels", labels)
        .referring(owner)
}

fn happen(stage: &mut Stage<RayClusters>, rng: &mut Rng) {
    let pods: Vec<ObjectKey> = stage.of("pods").into_iter().map(A::key).collect();
    let group = "/spec/workerGroupSpecs/0";
    match rng.u32(..9) {
        0 => stage.edit(&demo(), &format!("{group}/replicas"), json!(rng.i32(0..9))),
        1 => stage.edit(&demo(), "/spec/suspend", json!(rng.bool())),
        2 => stage.edit(&demo(), &format!("{group}/suspend"), json!(rng.bool())),
        3 => stage.edit(&demo(), "/metadata/generation", json!(rng.i64(1..9))),
        4 => stage.wait(rng.i64(1..60)),
        _ if pods.is_empty() => {}
        5 => stage.remove(one_of(rng, &pods)),
        6 => stage.edit(one_of(rng, &pods), "/status", ready_status()),
        7 => {
            let phase = *one_of(rng, &["Failed", "Succeeded", "Pending"]);
            stage.edit(one_of(rng, &pods), "/status", json!({"phase": phase}));
        }
        _ => {
            let going = stage.objects[one_of(rng, &pods)].clone().deleting(&["x/y"]);
            stage.put(going);
        }
    }
}

fn judge(stage: &Stage<RayClusters>, decision: &Decision<Reason>) {
    let cluster = stage.objects[&demo()].build();
    assert!(decision.needs.is_empty());
    for action in &decision.actions {
        if let Action::Api(Write::Delete { at, .. } | Write::Patch { at, .. }) = action {
            let target = stage.objects[at.key()].build();
            assert_eq!(at, &target.seen());
            assert!(
                *at.key() == demo() || is_owned(&target, &cluster),
                "{}",
                at.key()
            );
        }
    }
}

fn live(rng: &mut Rng) -> Stage<RayClusters> {
    let mut stage = Stage::new(RayClusters::default()).with(a_cluster());
    stage.put(impostor("impostor"));
    for _ in 0..25 {
        for _ in 0..rng.usize(..4) {
            let before = stage.clone();
            let decision = stage.step(&demo());
            judge(&before, &decision);
        }
        happen(&mut stage, rng);
    }
    stage
}

#[test]
fn whatever_happens_only_its_own_pods_go_and_the_numbers_come_right() {
    for_seeds(CASES, |rng| {
        let mut stage = live(rng);
        stage.wait(120);
        // What somebody holds goes in the end: a suspension waits for it.
        let going = stage.of("pods").into_iter().map(A::build);
        let going: Vec<_> = going.filter(|pod| pod.is_deleting()).collect();
        for pod in going {
            stage.remove(pod.key());
        }
        stage.settle(&demo());
        let cluster = stage.objects[&demo()].build();
        let own = stage.of("pods").into_iter().map(A::build);
        let own = own.filter(|pod| is_owned(pod, &cluster) && !pod.is_deleting());
        let spec = &stage.json(&demo())["spec"];
        let group = &spec["workerGroupSpecs"][0];
        let wanted = match (spec["suspend"] == true, group["suspend"] == true) {
            (true, _) => 0,
            (false, true) => 1,
            (false, false) => 1 + group["replicas"].as_u64().unwrap().min(5),
        };
        assert_eq!(own.count() as u64, wanted);
    });
}

#[test]
fn what_was_decided_and_carried_out_is_not_decided_again() {
    for_seeds(CASES, |rng| {
        let mut stage = live(rng);
        stage.settle(&demo());
        let again = stage.decide(&demo());
        assert!(
            again.actions.iter().all(|it| matches!(it, Action::Tell(_))),
            "{again:?}"
        );
        assert!(again.wake_at.is_none_or(|at| at > stage.now), "{again:?}");
    });
}

#[test]
fn no_cluster_is_too_odd_to_decide_on() {
    let mut form = Form::metadata();
    form.add(RAY_FIELDS);
    for_seeds(CASES * 4, |rng| {
        let mut json = odd_object(rng);
        if percent(rng, 60) {
            json = a_cluster().json;
            let pointers = [
                "/spec",
                "/status",
                "/spec/headGroupSpec",
                "/spec/workerGroupSpecs/0",
                "/spec/workerGroupSpecs/0/template",
            ];
            let pointer = *one_of(rng, &pointers);
            *json
                .pointer_mut(pointer)
                .unwrap_or(&mut serde_json::Value::Null) = any_json(rng, 4);
        }
        let Ok(cluster) = Object::read(&a_cluster().resource, &json, &form) else {
            return;
        };
        let scene = Scene::new(RayClusters::default()).seeing_as_it_is(cluster.clone().into());
        for now in [jiff::Timestamp::MIN, at(0), jiff::Timestamp::MAX] {
            let _ = scene.decide_at(cluster.key(), now);
        }
    });
}
