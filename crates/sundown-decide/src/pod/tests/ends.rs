//! The end of a finished pod: what it ran in goes, what it left stays.

use serde_json::json;
use sundown_model::node::{self, Call};
use sundown_model::{DeedOutcome, DeedRefusal, Subject};

use super::life::{Life, a_pod, run, signals, starts, uid};
use crate::pod::Reason;
use crate::testing::at;

/// Each finished pod kept an init, a network and a few descriptors; a few hundred stopped the node.
#[test]
fn a_finished_pod_gives_its_place_back_when_nothing_of_it_runs() {
    let sidecar = json!([{ "name": "side", "image": "i", "restartPolicy": "Always" }]);
    let mut life = Life::of(a_pod().with("/spec/initContainers", sidecar));
    life.settle(0);
    let side = node::Run {
        container: "side".into(),
        ..run(0)
    };
    life.exits(&run(0), 5, 0);
    let calls = life.settle(5);
    assert_eq!(signals(&calls), [15]);
    assert!(releases(&calls) == 0, "its sidecar runs");
    assert_eq!(life.status("/phase"), "Succeeded");
    assert_eq!(placed(&life), "True");
    life.exits(&side, 6, 0);
    // Another one takes over here: the node and the record tell the rest.
    let mut other = Life::of(life.pod.clone());
    other.node = life.node.clone();
    other.report();
    assert_eq!(releases(&other.settle(6)), 0, "it may be deleted at once");
    assert_eq!(releases(&other.settle(7)), 1);
    assert_eq!(placed(&other), "False");
    assert_eq!(other.decide(7).reason, Reason::Finished);
    // A node that was killed has only records of it, and there is nothing to give back.
    let mut lost = Life::of(other.pod.clone());
    lost.node = other.node.clone();
    lost.node.lost = Some("the node process ended".to_owned());
    lost.report();
    assert!(lost.settle(8).is_empty());
    assert_eq!(lost.pod.json, other.pod.json);
    other.delete(40, 30);
    let calls = other.settle(10);
    assert!(matches!(&calls[..], [Call::Remove { .. }]), "{calls:?}");
}

/// Its time to end was counted from every new look, so it never came.
#[test]
fn a_deaf_sidecar_is_killed_after_an_init_container_failed() {
    let inits = json!([
        { "name": "side", "image": "i", "restartPolicy": "Always" },
        { "name": "other", "image": "i", "restartPolicy": "Always" },
        { "name": "first", "image": "i" },
    ]);
    let mut life = Life::of(a_pod().with("/spec/initContainers", inits));
    life.settle(0);
    let of = |name: &str| node::Run {
        container: name.into(),
        ..run(0)
    };
    life.exits(&of("first"), 5, 1);
    assert_eq!(signals(&life.settle(5)), [15, 15]);
    assert_eq!(life.status("/phase"), "Failed");
    life.exits(&of("other"), 20, 0);
    assert!(life.settle(34).is_empty());
    assert_eq!(life.decide(34).wake_at, Some(at(35)));
    assert_eq!(signals(&life.settle(35)), [9]);
    life.exits(&of("side"), 36, 137);
    assert_eq!(releases(&life.settle(36)), 1);
}

#[test]
fn a_release_that_failed_is_tried_again() {
    let mut life = Life::of(a_pod());
    life.settle(0);
    life.exits(&run(0), 5, 0);
    life.turn(5);
    life.turn(7);
    let refused = DeedOutcome::Refused(DeedRefusal::new(
        node::Refused::NotDone,
        "attempt 0 of container main still runs",
    ));
    let scene = life.scene.clone();
    life.scene = scene.done(Subject::Release(uid()), 7, refused);
    assert_eq!(releases(&life.settle(8)), 1);
}

#[test]
fn a_pod_that_is_deleted_when_it_has_just_ended_is_removed_in_one_step() {
    let mut life = Life::of(a_pod());
    life.settle(0);
    life.exits(&run(0), 5, 0);
    assert!(life.settle(6).is_empty());
    life.delete(36, 30);
    let calls = life.settle(6);
    assert!(matches!(&calls[..], [Call::Remove { .. }]), "{calls:?}");
}

/// Words came first in a decision, and left no room for anything else: what became of a pod with more than
/// twenty containers was never recorded.
#[test]
fn a_pod_of_many_containers_is_recorded_though_there_is_much_to_tell() {
    let containers: Vec<_> = (0..100)
        .map(|number| json!({ "name": format!("c{number}"), "image": "i" }))
        .collect();
    let mut life = Life::of(a_pod().with("/spec/containers", json!(containers)));
    assert_eq!(starts(&life.settle(0)).len(), 100);
    assert_eq!(life.status("/phase"), "Running");
    for number in 0..100 {
        let container = format!("c{number}").into();
        let run = node::Run {
            container,
            ..run(0)
        };
        life.exits(&run, 5, 0);
    }
    life.settle(5);
    assert_eq!(life.status("/phase"), "Succeeded");
}

fn releases(calls: &[Call]) -> usize {
    let is_release = |call: &&Call| matches!(call, Call::Release { .. });
    calls.iter().filter(is_release).count()
}

fn placed(life: &Life) -> String {
    let conditions = life.status("/conditions");
    let mut conditions = conditions.as_array().unwrap().iter();
    let placed = conditions.find(|it| it["type"] == "PodReadyToStartContainers");
    placed.unwrap()["status"].as_str().unwrap().to_owned()
}
