//! No attempt begins beside the pods of the last one, whoever owns them by then, and none waits for ever.

use std::collections::BTreeSet;

use serde_json::json;
use sundown_model::{Change, Controller, ObjectKey};

use super::super::{RayJobs, Reason};
use super::away::a_pod_of;
use super::{cluster_key, counter, running, stage, status};
use crate::testing::A;
use crate::testing::ray::{Stage, a_ray_job};

fn retried() -> Stage<RayJobs> {
    running(a_ray_job().with("/spec/backoffLimit", json!(1)))
}

/// A pod of the cluster after `kubectl delete raycluster --cascade=orphan`: only its label tells.
fn an_orphan_of(stage: &Stage<RayJobs>) -> A {
    let mut pod = a_pod_of(stage);
    pod.json["metadata"]["ownerReferences"] = json!([]);
    let name = cluster_key(stage).name.to_string();
    pod.with("/metadata/labels", json!({"ray.io/cluster": name}))
}

/// The jobs that are looked at when a pod is gone.
fn touched_by_the_end_of(stage: &mut Stage<RayJobs>, pod: &A) -> BTreeSet<ObjectKey> {
    let mut touched = BTreeSet::new();
    let change = Change::Deleted(pod.build());
    let scene = &mut stage.scene;
    scene
        .controller
        .observe(&change, &scene.cache, &mut touched);
    touched
}

/// The jobs that are looked at when a pod changes.
fn touched_by_the_change_of(stage: &mut Stage<RayJobs>, old: &A, new: &A) -> BTreeSet<ObjectKey> {
    let mut touched = BTreeSet::new();
    let (old, new) = (old.build(), new.build());
    let scene = &mut stage.scene;
    let change = Change::Updated { old, new };
    scene
        .controller
        .observe(&change, &scene.cache, &mut touched);
    touched
}

fn lose_cluster(stage: &mut Stage<RayJobs>) {
    let cluster = cluster_key(stage);
    stage.remove(&cluster);
}

#[test]
fn no_attempt_begins_beside_an_orphan_of_the_last_one() {
    let mut stage = retried();
    let pod = an_orphan_of(&stage);
    stage.put(pod.clone());
    lose_cluster(&mut stage);
    let left = vec![pod.key()];
    assert_eq!(stage.settle(&counter()).reason, Reason::Clears { left });
    stage.remove(&pod.key());
    assert!(touched_by_the_end_of(&mut stage, &pod).contains(&counter()));
    assert_eq!(stage.settle(&counter()).reason, Reason::AwaitsCluster);
}

#[test]
fn a_label_says_nothing_about_a_pod_that_another_controls() {
    let mut stage = retried();
    let owner = A::uid(a_ray_job(), "another");
    let mut pod = an_orphan_of(&stage).owned_by(&owner);
    pod.json["metadata"]["ownerReferences"][0]["controller"] = json!(true);
    stage.put(pod);
    lose_cluster(&mut stage);
    assert_eq!(stage.settle(&counter()).reason, Reason::AwaitsCluster);
}

#[test]
fn an_orphan_of_the_last_attempt_is_told_and_not_waited_for_for_ever() {
    let mut stage = retried();
    let pod = an_orphan_of(&stage);
    stage.put(pod.clone());
    lose_cluster(&mut stage);
    stage.settle(&counter());
    assert_eq!(status(&stage, "jobDeploymentStatus"), "Retrying");
    stage.wait(301);
    assert_eq!(stage.settle(&counter()).reason, Reason::AwaitsCluster);
    assert!(stage.said().contains("PodsOfLastAttemptLeft"));
    assert!(stage.objects.contains_key(&pod.key()), "it is the user's");
}

#[test]
fn neither_an_edit_nor_a_cluster_of_the_same_name_begins_the_wait_anew() {
    for is_replaced in [false, true] {
        let mut stage = retried();
        let pod = an_orphan_of(&stage);
        stage.put(pod.clone());
        let cluster = stage.objects[&cluster_key(&stage)].clone();
        lose_cluster(&mut stage);
        if is_replaced {
            let mut other = cluster.uid("other");
            other.json["metadata"]["ownerReferences"] = json!([]);
            stage.put(other);
        }
        let waits = stage.settle(&counter());
        assert_eq!(
            waits.reason,
            Reason::Clears {
                left: vec![pod.key()]
            }
        );
        let wake_at = waits.wake_at;
        stage.wait(200);
        stage.edit(&counter(), "/metadata/labels", json!({"edited": "yes"}));
        assert_eq!(stage.settle(&counter()).wake_at, wake_at);
        stage.wait(101);
        assert_eq!(stage.settle(&counter()).reason, Reason::AwaitsCluster);
        assert!(stage.said().contains("PodsOfLastAttemptLeft"));
    }
}

#[test]
fn the_next_cluster_does_not_bear_the_marks_of_the_last_attempt() {
    let mut stage = retried();
    let pod = an_orphan_of(&stage);
    stage.put(pod.clone());
    lose_cluster(&mut stage);
    stage.settle(&counter());
    stage.remove(&pod.key());
    stage.settle(&counter());
    let cluster = &stage.objects[&cluster_key(&stage)].json;
    let marks = cluster["metadata"]["annotations"].to_string();
    assert!(!marks.contains("sundown.dev/"), "{marks}");
}

#[test]
fn the_end_of_a_pod_whose_cluster_is_there_is_not_for_its_job() {
    let mut stage = retried();
    let pod = a_pod_of(&stage);
    assert!(touched_by_the_end_of(&mut stage, &pod).is_empty());
    lose_cluster(&mut stage);
    assert!(touched_by_the_end_of(&mut stage, &pod).contains(&counter()));
}

/// As on a node that tells the end of a pod by its deadline before its containers had their grace.
#[test]
fn a_pod_that_has_failed_runs_on_while_a_container_of_it_does() {
    for list in ["containerStatuses", "initContainerStatuses"] {
        let mut stage = retried();
        let ended = json!([{"name": "a", "state": {"terminated": {"exitCode": 143}}}]);
        let runs = json!([
            {"name": "a", "state": {"terminated": {"exitCode": 0}}},
            {"name": "b", "state": {"running": {}}},
        ]);
        let failed = a_pod_of(&stage).with("/status/phase", json!("Failed"));
        let list = format!("/status/{list}");
        let pod = failed.clone().with(&list, runs);
        stage.put(pod.clone());
        lose_cluster(&mut stage);
        let left = vec![pod.key()];
        assert_eq!(stage.settle(&counter()).reason, Reason::Clears { left });
        let ended = failed.with(&list, ended);
        let touched = touched_by_the_change_of(&mut stage, &pod, &ended);
        assert!(touched.contains(&counter()));
        stage.put(ended);
        assert_eq!(stage.settle(&counter()).reason, Reason::AwaitsCluster);
    }
}

/// Its cluster was deleted before the submission, once or twice, and the next one has another name.
#[test]
fn no_job_rests_beside_a_pod_of_a_cluster_that_it_had_before() {
    for count in [1, 2] {
        let job = a_ray_job().with("/spec/shutdownAfterJobFinishes", json!(true));
        let mut stage = stage(job);
        let mut pods = Vec::new();
        for index in 0..count {
            assert_eq!(stage.settle(&counter()).reason, Reason::AwaitsCluster);
            let cluster = cluster_key(&stage);
            stage.edit(&cluster, "/status", json!({"desiredWorkerReplicas": 2}));
            stage.settle(&counter());
            let mut pod = a_pod_of(&stage).uid(&format!("head-{index}"));
            pod.json["metadata"]["name"] = json!(format!("head-{index}"));
            stage.put(pod.clone());
            pods.push(pod);
            lose_cluster(&mut stage);
            stage.settle(&counter());
            assert_ne!(cluster_key(&stage), cluster);
        }
        stage.edit(&counter(), "/spec/suspend", json!(true));
        for pod in pods {
            let waits = stage.settle(&counter());
            let Reason::Clears { left } = &waits.reason else {
                panic!("{waits:?}");
            };
            assert!(left.contains(&pod.key()));
            assert!(waits.wake_at.is_some(), "not for ever");
            stage.remove(&pod.key());
            assert!(touched_by_the_end_of(&mut stage, &pod).contains(&counter()));
        }
        assert_eq!(stage.settle(&counter()).reason, Reason::Suspended);
        assert!(!stage.said().contains("PodsOfLastAttemptLeft"));
    }
}
