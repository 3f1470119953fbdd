//! What becomes of clusters, story by story.

mod names;
mod refused;

use serde_json::{Value, json};
use sundown_model::{Action, Explain, ObjectKey, Write};

use super::{RayClusters, Reason};
use crate::testing::ray::{Stage, a_cluster, key, ready_status};
use crate::testing::{A, a, at};

fn demo() -> ObjectKey {
    a_cluster().key()
}

fn stage(cluster: A) -> Stage<RayClusters> {
    Stage::new(RayClusters::default()).with(cluster)
}

/// A cluster whose pods are all there and ready.
fn ready() -> Stage<RayClusters> {
    ready_from(a_cluster())
}

fn ready_from(cluster: A) -> Stage<RayClusters> {
    let mut stage = stage(cluster);
    stage.settle(&demo());
    make_ready(&mut stage);
    assert_eq!(stage.settle(&demo()).reason, Reason::Ready);
    stage
}

fn make_ready(stage: &mut Stage<RayClusters>) {
    for pod in keys(stage, "pods") {
        stage.edit(&pod, "/status", ready_status());
    }
}

fn keys(stage: &Stage<RayClusters>, plural: &str) -> Vec<ObjectKey> {
    stage.of(plural).into_iter().map(A::key).collect()
}

fn pods(stage: &Stage<RayClusters>, node_type: &str) -> Vec<ObjectKey> {
    let all = stage.of("pods").into_iter();
    let some = all.filter(|pod| pod.json["metadata"]["labels"]["ray.io/node-type"] == node_type);
    some.map(A::key).collect()
}

fn status(stage: &Stage<RayClusters>) -> &Value {
    &stage.json(&demo())["status"]
}

#[track_caller]
fn check(cluster: A, expect: &Reason) {
    let decision = stage(cluster).decide(&demo());
    assert_eq!(&decision.reason, expect);
    assert!(!expect.sentence().is_empty() && !expect.code().is_empty());
    let writes = decision.actions.iter();
    let creates = writes.filter(|it| matches!(it, Action::Api(Write::Create(_))));
    assert_eq!(creates.count(), 0, "nothing is made");
}

#[test]
fn leaves_alone_what_is_not_there_not_its_own_or_on_its_way_out() {
    let gone = Stage::new(RayClusters::default()).decide(&demo());
    assert_eq!(gone.reason, Reason::Gone);
    let elsewhere = json!("kueue.x-k8s.io/multikueue");
    check(
        a_cluster().with("/spec/managedBy", elsewhere),
        &Reason::ManagedElsewhere,
    );
    check(a_cluster().deleting(&["x/y"]), &Reason::Deleting);
}

#[test]
fn says_what_is_wrong_and_makes_nothing() {
    let why = "headGroupSpec should have at least one container".to_owned();
    let headless = a_cluster().with("/spec/headGroupSpec/template/spec/containers", json!([]));
    check(headless.clone(), &Reason::Invalid { why: why.clone() });
    let mut stage = stage(headless);
    stage.settle(&demo());
    let note = &stage.notes[0];
    assert_eq!(&*note.reason, "InvalidRayClusterSpec");
    assert_eq!(
        note.message,
        format!("The RayCluster spec is invalid here/demo: {why}")
    );
    // Its status was empty, and `sundown run` waited for it without end.
    assert_eq!(status(&stage)["state"], "failed");
    assert_eq!(status(&stage)["reason"], why);
    let malformed = a_cluster().with("/spec/suspend", json!("yes"));
    let why = "spec.suspend: expected a boolean".to_owned();
    check(malformed, &Reason::Invalid { why });
}

#[test]
fn refuses_by_name_what_nothing_makes_yet() {
    for (pointer, value, field) in [
        (
            "/spec/enableInTreeAutoscaling",
            json!(true),
            "spec.enableInTreeAutoscaling",
        ),
        (
            "/spec/authOptions",
            json!({"mode": "token"}),
            "spec.authOptions",
        ),
        (
            "/spec/gcsFaultToleranceOptions",
            json!({"redisAddress": "redis:6379"}),
            "spec.gcsFaultToleranceOptions",
        ),
        (
            "/spec/headGroupSpec/enableIngress",
            json!(true),
            "spec.headGroupSpec.enableIngress",
        ),
        (
            "/spec/workerGroupSpecs/0/numOfHosts",
            json!(65),
            "spec.workerGroupSpecs[0].numOfHosts above 64",
        ),
    ] {
        let cluster = a_cluster().with(pointer, value);
        let field = field.to_owned();
        check(
            cluster.clone(),
            &Reason::Unsupported {
                field: field.clone(),
            },
        );
        let mut stage = stage(cluster);
        let after = stage.settle(&demo());
        assert_eq!(
            status(&stage)["reason"],
            crate::ray::unsupported::message(&field)
        );
        assert_eq!(status(&stage)["state"], "failed");
        assert!(stage.notes[0].warning && stage.notes[0].message.contains(&field));
        assert_eq!(after.reason, Reason::Unsupported { field });
        assert!(stage.of("pods").is_empty() && stage.of("services").is_empty());
    }
}

#[test]
fn makes_service_head_and_workers_and_tells_when_all_are_ready() {
    let mut stage = stage(a_cluster());
    let first = stage.step(&demo());
    assert_eq!(
        first.reason,
        Reason::Changes {
            creates: 4,
            deletes: 0
        }
    );
    assert_eq!(stage.settle(&demo()).reason, Reason::AwaitsPods);
    assert_eq!(stage.of("services").len(), 1);
    assert_eq!(pods(&stage, "head").len(), 1);
    let workers = pods(&stage, "worker");
    let index = |pod: &ObjectKey| {
        stage.json(pod)["metadata"]["labels"]["ray.io/worker-group-replica-index"].clone()
    };
    let mut indices: Vec<Value> = workers.iter().map(index).collect();
    indices.sort_by_key(ToString::to_string);
    assert_eq!(indices, [json!("0"), json!("1")]);
    make_ready(&mut stage);
    assert_eq!(stage.settle(&demo()).reason, Reason::Ready);
    assert_eq!(status(&stage)["state"], "ready");
    assert_eq!(status(&stage)["readyWorkerReplicas"], 2);
    assert_eq!(status(&stage)["observedGeneration"], 1);
    let said = stage.said();
    for reason in ["CreatedService", "CreatedHeadPod", "CreatedWorkerPod"] {
        assert!(said.contains(reason), "{reason}");
    }
}

#[test]
fn names_are_the_same_for_the_same_and_new_after_an_edit() {
    let name = |cluster: A| {
        let mut stage = stage(cluster);
        stage.settle(&demo());
        pods(&stage, "head")[0].name.to_string()
    };
    assert_eq!(name(a_cluster()), name(a_cluster()));
    let edited = a_cluster().with("/metadata/generation", json!(2));
    assert_ne!(name(a_cluster()), name(edited));
    assert_ne!(name(a_cluster()), name(a_cluster().uid("another")));
}

#[test]
fn pods_that_only_carry_the_labels_are_neither_counted_nor_deleted() {
    let foreign = a("pod", "foreign")
        .with("/metadata/labels", json!({"ray.io/cluster": "demo", "ray.io/node-type": "head", "ray.io/group": "headgroup"}))
        .with("/status", json!({"phase": "Failed"}));
    let named = "/spec/workerGroupSpecs/0/scaleStrategy";
    let cluster = a_cluster().with(named, json!({"workersToDelete": ["foreign"]}));
    let mut stage = stage(cluster).with(foreign);
    stage.settle(&demo());
    assert_eq!(pods(&stage, "head").len(), 2, "one is made beside it");
    stage.edit(&demo(), "/spec/suspend", json!(true));
    stage.settle(&demo());
    assert_eq!(
        keys(&stage, "pods"),
        [key("", "pods", "foreign")],
        "and it survives all"
    );
}

#[test]
fn does_nothing_beside_a_service_of_somebody_else() {
    let service = a("service", "demo-head-svc");
    let mut stage = stage(a_cluster()).with(service.clone());
    let expect = Reason::ServiceTaken {
        service: service.key(),
    };
    assert_eq!(stage.settle(&demo()).reason, expect);
    assert!(stage.of("pods").is_empty());
    assert!(stage.said().contains("FailedToCreateService"));
    let mut touched = std::collections::BTreeSet::new();
    super::touch(&service.build(), &stage.scene.cache, &mut touched);
    assert!(touched.contains(&demo()), "its end is heard of");
}

/// Found by the simulator: a head that somebody adopted was never replaced.
#[test]
fn a_cluster_hears_of_a_pod_that_was_taken_away() {
    let mut stage = stage(a_cluster());
    stage.settle(&demo());
    let pod = stage.of("pods")[0].clone();
    let change = sundown_model::Change::Updated {
        old: pod.build(),
        new: pod.with("/metadata/ownerReferences", json!([])).build(),
    };
    let mut touched = std::collections::BTreeSet::new();
    sundown_model::Controller::observe(
        &mut super::RayClusters::default(),
        &change,
        &stage.scene.cache,
        &mut touched,
    );
    assert!(touched.contains(&demo()));
}

#[test]
fn suspends_to_the_end_and_comes_back_with_new_pods() {
    let mut stage = ready();
    let before = keys(&stage, "pods");
    stage.edit(&demo(), "/spec/suspend", json!(true));
    assert_eq!(
        stage.step(&demo()).reason,
        Reason::Suspended,
        "first it is told"
    );
    assert_eq!(stage.decide(&demo()).reason, Reason::Suspends { left: 3 });
    assert_eq!(stage.settle(&demo()).reason, Reason::Suspended);
    assert!(stage.of("pods").is_empty());
    assert_eq!(stage.of("services").len(), 1, "services stay");
    assert_eq!(status(&stage)["state"], "suspended");
    // Removing the field resumes as well as false does.
    stage.edit(&demo(), "/spec/suspend", Value::Null);
    stage.edit(&demo(), "/metadata/generation", json!(2));
    assert_eq!(stage.settle(&demo()).reason, Reason::AwaitsPods);
    assert_eq!(stage.of("pods").len(), 3);
    assert!(keys(&stage, "pods").iter().all(|pod| !before.contains(pod)));
}

#[test]
fn suspends_a_group_and_deletes_the_pods_of_one_that_was_removed() {
    let mut stage = ready();
    stage.edit(&demo(), "/spec/workerGroupSpecs/0/suspend", json!(true));
    stage.settle(&demo());
    assert_eq!(
        (pods(&stage, "head").len(), pods(&stage, "worker").len()),
        (1, 0)
    );
    let mut stage = ready();
    stage.edit(&demo(), "/spec/workerGroupSpecs", json!([]));
    assert_eq!(stage.settle(&demo()).reason, Reason::Ready);
    assert_eq!(
        (pods(&stage, "head").len(), pods(&stage, "worker").len()),
        (1, 0)
    );
}

#[test]
fn scales_inside_the_bounds_and_takes_unready_then_newest_first() {
    let mut stage = ready();
    let replicas = "/spec/workerGroupSpecs/0/replicas";
    stage.edit(&demo(), replicas, json!(99));
    stage.settle(&demo());
    assert_eq!(pods(&stage, "worker").len(), 5, "clamped");
    let workers = pods(&stage, "worker");
    for (age, pod) in (0..).zip(&workers) {
        let born = at(-100 - age).to_string();
        stage.edit(pod, "/metadata/creationTimestamp", json!(born));
        stage.edit(pod, "/status", ready_status());
    }
    // The oldest is not ready.
    stage.edit(&workers[4], "/status", json!({"phase": "Pending"}));
    stage.edit(&demo(), replicas, json!(3));
    stage.settle(&demo());
    assert_eq!(
        pods(&stage, "worker"),
        workers[1..4],
        "the newest and the unready went"
    );
}

#[test]
fn replaces_a_worker_that_goes_without_waiting_for_its_end() {
    let mut stage = ready();
    let lost = pods(&stage, "worker")[0].clone();
    let going = stage.objects[&lost].clone().deleting(&["x/y"]);
    stage.put(going);
    stage.settle(&demo());
    assert_eq!(pods(&stage, "worker").len(), 3);
    assert!(stage.objects.contains_key(&lost));
}

#[test]
fn replaces_spent_pods_but_not_faster_than_they_end() {
    let mut stage = ready();
    let worker = pods(&stage, "worker")[0].clone();
    let born = stage.json(&worker)["metadata"]["creationTimestamp"].clone();
    stage.edit(&worker, "/status", json!({"phase": "Failed"}));
    let early = stage.settle(&demo());
    let due = born.as_str().unwrap().parse::<jiff::Timestamp>().unwrap() + super::head::LIFE_MIN;
    assert_eq!(early.wake_at, Some(due));
    assert!(stage.objects.contains_key(&worker));
    stage.wait(20);
    stage.settle(&demo());
    assert!(stage.said().contains("DeletedWorkerPod"));
    assert_eq!(pods(&stage, "worker").len(), 2);
    let fresh = pods(&stage, "worker")
        .into_iter()
        .all(|pod| stage.json(&pod)["status"]["phase"] != "Failed");
    assert!(fresh, "a new one came for it");
}

#[test]
fn a_container_that_ended_makes_a_pod_spent_only_if_it_does_not_come_back() {
    let ended = json!([{"name": "ray-head", "state": {"terminated": {"exitCode": 1}}}]);
    for (policy, goes) in [("Never", true), ("Always", false)] {
        let mut stage = ready();
        stage.wait(60);
        let head = pods(&stage, "head")[0].clone();
        stage.edit(&head, "/spec/restartPolicy", json!(policy));
        stage.edit(&head, "/status/containerStatuses", ended.clone());
        let decision = stage.decide(&demo());
        let deletes = decision
            .actions
            .iter()
            .any(|it| matches!(it, Action::Api(Write::Delete { at, .. }) if *at.key() == head));
        assert_eq!(deletes, goes, "{policy}");
    }
}

#[test]
fn waits_for_a_head_that_goes_but_not_for_ever() {
    let mut stage = ready();
    let head = pods(&stage, "head")[0].clone();
    let going = stage.objects[&head].clone().deleting(&["x/y"]);
    stage.put(going);
    let until = at(30);
    let waits = stage.settle(&demo());
    assert_eq!(waits.reason, Reason::AwaitsEndOfHead { until });
    assert_eq!(waits.wake_at, Some(until));
    assert_eq!(pods(&stage, "head").len(), 1);
    stage.wait(31);
    stage.settle(&demo());
    assert_eq!(
        pods(&stage, "head").len(),
        2,
        "a node that is lost does not hold it"
    );
}

#[test]
fn a_lost_head_stays_lost_where_an_annotation_says_so() {
    let never = json!({"ray.io/disable-provisioned-head-restart": "true"});
    let mut stage = ready_from(a_cluster().with("/metadata/annotations", never));
    let head = pods(&stage, "head")[0].clone();
    stage.remove(&head);
    assert_eq!(stage.settle(&demo()).reason, Reason::HeadLost);
    assert!(pods(&stage, "head").is_empty());
}

#[test]
fn deletes_by_name_only_its_own_pods_of_the_group() {
    let mut stage = ready();
    let workers = pods(&stage, "worker");
    let head = pods(&stage, "head")[0].name.to_string();
    let list = json!({"workersToDelete": [&*workers[0].name, head, "nobody"]});
    stage.edit(&demo(), "/spec/workerGroupSpecs/0/scaleStrategy", list);
    let decision = stage.decide(&demo());
    let deletes: Vec<_> = decision
        .actions
        .iter()
        .filter_map(|it| match it {
            Action::Api(Write::Delete { at, .. }) => Some(at.key().clone()),
            Action::Api(_) | Action::Tell(_) | Action::Do(_) => None,
        })
        .collect();
    assert_eq!(deletes, [workers[0].clone()]);
}

#[test]
fn makes_all_pods_anew_when_the_spec_changed_and_it_shall() {
    let image = "/spec/headGroupSpec/template/spec/containers";
    let other = json!([{"name": "ray-head", "image": "rayproject/ray:2.56.0"}]);
    let mut kept = ready();
    let before = keys(&kept, "pods");
    kept.edit(&demo(), image, other.clone());
    kept.settle(&demo());
    assert_eq!(
        keys(&kept, "pods"),
        before,
        "without the strategy nothing happens"
    );
    let mut stage =
        ready_from(a_cluster().with("/spec/upgradeStrategy", json!({"type": "Recreate"})));
    stage.edit(&demo(), image, other);
    stage.edit(&demo(), "/metadata/generation", json!(2));
    assert_eq!(stage.step(&demo()).reason, Reason::Recreates);
    stage.settle(&demo());
    assert!(keys(&stage, "pods").iter().all(|pod| !before.contains(pod)));
}

#[test]
fn takes_over_heads_of_other_operators_by_rewriting_their_annotations() {
    let mut stage =
        ready_from(a_cluster().with("/spec/upgradeStrategy", json!({"type": "Recreate"})));
    let before = keys(&stage, "pods");
    let head = pods(&stage, "head")[0].clone();
    let theirs =
        json!({"ray.io/kuberay-version": "v1.6.2", "ray.io/upgrade-strategy-recreate-hash": "X"});
    stage.edit(&head, "/metadata/annotations", theirs);
    assert_eq!(stage.settle(&demo()).reason, Reason::Ready);
    assert_eq!(keys(&stage, "pods"), before);
    assert_ne!(
        stage.json(&head)["metadata"]["annotations"]["ray.io/kuberay-version"],
        "v1.6.2"
    );
}

#[test]
fn replicas_of_several_hosts_come_and_go_as_a_whole() {
    let cluster = a_cluster().with("/spec/workerGroupSpecs/0/numOfHosts", json!(3));
    let mut stage = ready_from(cluster);
    assert_eq!(pods(&stage, "worker").len(), 6);
    assert_eq!(stage.of("services").len(), 2, "their hosts find each other");
    let lost = pods(&stage, "worker")[0].clone();
    let replica =
        stage.json(&lost)["metadata"]["labels"]["ray.io/worker-group-replica-name"].clone();
    stage.remove(&lost);
    let decision = stage.decide(&demo());
    assert!(
        matches!(decision.reason, Reason::Changes { deletes: 2, .. }),
        "{decision:?}"
    );
    stage.settle(&demo());
    assert_eq!(pods(&stage, "worker").len(), 6);
    assert!(replica.is_string());
    stage.edit(&demo(), "/spec/workerGroupSpecs/0/replicas", json!(1));
    stage.settle(&demo());
    assert_eq!(pods(&stage, "worker").len(), 3);
}

#[test]
fn one_decision_is_bounded_and_the_next_ones_do_the_rest() {
    let group = "/spec/workerGroupSpecs/0";
    let cluster = a_cluster()
        .with(&format!("{group}/maxReplicas"), json!(500))
        .with(&format!("{group}/replicas"), json!(150));
    let mut stage = stage(cluster);
    stage.settle(&demo());
    assert_eq!(pods(&stage, "worker").len(), 150);
    let hosts = a_cluster().with(&format!("{group}/numOfHosts"), json!(64));
    let mut stage = self::stage(hosts);
    stage.settle(&demo());
    assert_eq!(pods(&stage, "worker").len(), 128);
}
