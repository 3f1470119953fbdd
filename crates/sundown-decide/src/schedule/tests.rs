//! What fits, what does not, and who waits.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use sundown_model::{Action, Cache, Change, Controller as _, Decision, Part, Write};

use super::{Key, Reason, Scheduler};
use crate::testing::{A, Scene, a, at};

fn a_node() -> A {
    a("node", "sundown").with(
        "/status/allocatable",
        json!({ "cpu": "2", "memory": "4Gi", "pods": "110" }),
    )
}

fn a_pod(name: &str, cpu: &str) -> A {
    let container = json!({ "name": "main", "resources": { "requests": { "cpu": cpu } } });
    a("pod", name)
        .with("/spec/containers", json!([container]))
        .with("/spec/schedulerName", json!("default-scheduler"))
}

fn bound(pod: A, seconds: i64) -> A {
    let at = at(seconds).to_string();
    let scheduled = json!({ "type": "PodScheduled", "status": "True", "lastTransitionTime": at });
    pod.with("/spec/nodeName", json!("sundown"))
        .with("/status/phase", json!("Pending"))
        .with("/status/conditions", json!([scheduled]))
}

fn scene(all: &[&A]) -> Scene<Scheduler> {
    all.iter()
        .fold(Scene::new(Scheduler), |scene, it| scene.seeing(it))
}

fn reason(all: &[&A], pod: &A) -> Reason {
    scene(all).decide(&Key::Pod(pod.key()), 0).reason
}

fn obstacle(pod: &A, node: &A) -> String {
    let Reason::Unschedulable { message } = reason(&[node, pod], pod) else {
        panic!("it does not fit");
    };
    message
}

fn names_bound(all: &[&A], seconds: i64) -> Vec<String> {
    let decision = scene(all).decide(&Key::Round, seconds);
    let bound = decision.actions.iter().filter_map(|action| match action {
        Action::Api(Write::Patch {
            at,
            part: Part::Binding,
            ..
        }) => Some(at.key().name.to_string()),
        Action::Api(_) | Action::Tell(_) | Action::Do(_) => None,
    });
    bound.collect()
}

#[test]
fn a_pod_that_fits_is_bound_as_it_was_seen() {
    let pod = a_pod("p", "100m").rv(7);
    let decision = scene(&[&a_node(), &pod]).decide(&Key::Round, 0);
    assert_eq!(
        decision.reason,
        Reason::Round {
            bound: 1,
            waiting: 0
        }
    );
    let Some(Action::Api(Write::Patch { at, part, .. })) = decision.actions.first() else {
        panic!("binds");
    };
    assert_eq!((at, part), (&pod.build().seen(), &Part::Binding));
    assert_eq!(reason(&[&a_node(), &pod], &pod), Reason::Binds);
}

#[test]
fn without_a_node_nothing_is_said() {
    let pod = a_pod("p", "1");
    let decision = scene(&[&pod]).decide(&Key::Round, 0);
    assert_eq!(decision.reason, Reason::NoNode);
    assert!(decision.actions.is_empty());
    assert_eq!(reason(&[&pod], &pod), Reason::NoNode);
}

#[test]
fn those_who_wait_for_no_node_of_ours_are_left_alone() {
    let node = a_node();
    let other = a_pod("p", "1").with("/spec/schedulerName", json!("mine"));
    assert_eq!(reason(&[&node, &other], &other), Reason::NotPending);
    let has = bound(a_pod("p", "1"), 0);
    assert_eq!(reason(&[&node, &has], &has), Reason::NotPending);
    assert_eq!(reason(&[&node], &has), Reason::Gone);
}

#[test]
fn what_is_taken_is_not_there_for_others() {
    let node = a_node();
    let (first, second) = (a_pod("a", "400m"), a_pod("b", "400m"));
    let all: Vec<_> = ["c", "d", "e", "f"].map(|name| a_pod(name, "400m")).into();
    let mut seen = vec![&node, &first, &second];
    seen.extend(&all);
    let taken = names_bound(&seen, 0);
    assert_eq!(
        taken,
        ["a", "b", "c", "d", "e"],
        "2 cores are five times 400m"
    );
    let decision = scene(&seen).decide(&Key::Round, 0);
    let marked = decision.actions.iter().any(|action| {
        matches!(action, Action::Api(Write::Patch { at, part: Part::Status, .. }) if &*at.key().name == "f")
    });
    assert!(marked, "the last one says why");
}

#[test]
fn what_is_over_takes_nothing() {
    let over = bound(a_pod("a", "2"), 0).with("/status/phase", json!("Succeeded"));
    assert_eq!(names_bound(&[&a_node(), &over, &a_pod("b", "2")], 0), ["b"]);
}

#[test]
fn why_something_does_not_fit_is_said_once() {
    let pod = a_pod("p", "3");
    let node = a_node();
    let message = "0/1 nodes are available: 1 Insufficient cpu. It needs 3 CPU, 2 of 2 free; \
                   lower the requests, or offer more: stop this control plane and start it again with \
                   --cpus 3.";
    assert_eq!(obstacle(&pod, &node), message);
    let decision = scene(&[&node, &pod]).decide(&Key::Round, 0);
    assert_eq!(decision.actions.len(), 2, "a condition and an event");
    let told = json!([{
        "type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message,
    }]);
    let marked = pod.with("/status/conditions", told).rv(2);
    let again = scene(&[&node, &marked]).decide(&Key::Round, 0);
    assert!(again.actions.is_empty(), "{:?}", again.actions);
}

/// Each of them was told in every round that it does not fit, and filled the round alone.
#[test]
fn pods_that_do_not_fit_keep_no_other_from_its_node() {
    let node = a_node();
    let misfits: Vec<A> = (0..100)
        .map(|it| a_pod(&format!("a{it:03}"), "3"))
        .collect();
    let fits = a_pod("z", "100m");
    let mut seen: Vec<&A> = std::iter::once(&node).chain(&misfits).collect();
    seen.push(&fits);
    assert_eq!(names_bound(&seen, 0), ["z"]);
    let marked = |decision: &Decision<Reason>| {
        let marks = decision.actions.iter().filter(|action| {
            matches!(
                action,
                Action::Api(Write::Patch {
                    part: Part::Status,
                    ..
                })
            )
        });
        marks.count()
    };
    let first = scene(&seen).decide(&Key::Round, 0);
    assert_eq!((first.actions.len(), marked(&first)), (64, 31));
    // Those that were told leave the next round to the others.
    let seen: Vec<&A> = std::iter::once(&node).chain(&misfits).collect();
    let told: Vec<A> = misfits.iter().map(|it| marked_as_told(it, &seen)).collect();
    let mut seen: Vec<&A> = std::iter::once(&node).chain(&told[..50]).collect();
    seen.extend(&misfits[50..]);
    let next = scene(&seen).decide(&Key::Round, 0);
    assert_eq!(marked(&next), 32);
    let seen: Vec<&A> = std::iter::once(&node).chain(&told).collect();
    assert!(scene(&seen).decide(&Key::Round, 0).actions.is_empty());
}

/// With the condition that a round of these gives it.
fn marked_as_told(pod: &A, seen: &[&A]) -> A {
    let Reason::Unschedulable { message } = reason(seen, pod) else {
        panic!("it does not fit");
    };
    let condition = json!({
        "type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message,
    });
    pod.clone().with("/status/conditions", json!([condition]))
}

/// It was told figures of before, and those of after in the next round.
#[test]
fn a_pod_is_told_what_is_free_after_all_are_bound() {
    let node = a_node();
    let (large, small) = (a_pod("a", "3"), a_pod("b", "400m"));
    let Reason::Unschedulable { message } = reason(&[&node, &large, &small], &large) else {
        panic!("it does not fit");
    };
    assert!(message.contains("1.6 of 2 free (b 0.4)"), "{message}");
}

#[test]
fn every_rule_that_cannot_be_met_is_named() {
    let node = a_node().with("/metadata/labels", json!({ "zone": "here" }));
    let affinity = |kind: &str, what: Value| json!({ kind: { "requiredDuringSchedulingIgnoredDuringExecution": what } });
    let zone = |value: &str| {
        json!({ "nodeSelectorTerms": [{ "matchExpressions": [
        { "key": "zone", "operator": "In", "values": [value] } ] }] })
    };
    let near =
        json!([{ "labelSelector": { "matchLabels": { "app": "x" } }, "topologyKey": "zone" }]);
    let cases = [
        (
            "/spec/nodeSelector",
            json!({ "gpu": "yes" }),
            "node affinity/selector",
        ),
        (
            "/spec/affinity",
            affinity("nodeAffinity", zone("there")),
            "node affinity/selector",
        ),
        (
            "/spec/affinity",
            affinity("podAffinity", near.clone()),
            "pod affinity rules",
        ),
    ];
    for (pointer, value, expect) in cases {
        let message = obstacle(&a_pod("p", "1").with(pointer, value), &node);
        assert!(message.contains(expect), "{message}");
    }
    let fits = a_pod("p", "1").with("/spec/affinity", affinity("nodeAffinity", zone("here")));
    assert_eq!(reason(&[&node, &fits], &fits), Reason::Binds);
    let apart = a_pod("p", "1").with("/spec/affinity", affinity("podAntiAffinity", near));
    let other = bound(
        a_pod("q", "100m").with("/metadata/labels", json!({ "app": "x" })),
        0,
    );
    assert!(matches!(
        reason(&[&node, &other, &apart], &apart),
        Reason::Unschedulable { .. }
    ));
    let taint = json!([{ "key": "k", "value": "v", "effect": "NoSchedule" }]);
    let tainted = a_node().with("/spec/taints", taint);
    let message = obstacle(&a_pod("p", "1"), &tainted);
    assert!(message.contains("untolerated taint {k: v}"), "{message}");
    let bears = json!([{ "key": "k", "operator": "Exists" }]);
    let bears = a_pod("p", "1").with("/spec/tolerations", bears);
    assert_eq!(reason(&[&tainted, &bears], &bears), Reason::Binds);
    let closed = a_node().with("/spec/unschedulable", json!(true));
    assert!(obstacle(&a_pod("p", "1"), &closed).contains("unschedulable"));
}

#[test]
fn a_gated_pod_waits_for_its_gates() {
    let pod = a_pod("p", "1").with("/spec/schedulingGates", json!([{ "name": "g" }]));
    assert_eq!(reason(&[&a_node(), &pod], &pod), Reason::Gated);
}

#[test]
fn only_so_many_heavy_pods_start_at_once() {
    let node = a_node().with(
        "/status/allocatable",
        json!({ "cpu": "2", "memory": "4Gi" }),
    );
    let ray = |name: &str| {
        let container = json!({ "name": "main", "image": "rayproject/ray:2.9.0" });
        a("pod", name).with("/spec/containers", json!([container]))
    };
    let (first, second, third) = (ray("a"), ray("b"), ray("c"));
    assert_eq!(
        names_bound(&[&node, &first, &second, &third], 0),
        ["a", "b"]
    );
    let (first, second) = (bound(ray("a"), 0), bound(ray("b"), 0));
    let waits = scene(&[&node, &first, &second, &third]);
    let explained = waits.decide(&Key::Pod(third.key()), 10);
    assert_eq!(explained.reason, Reason::AwaitsStarts { starting: 2 });
    let round = waits.decide(&Key::Round, 10);
    assert_eq!(round.wake_at, Some(at(300)), "nobody is held up for ever");
    let mut ready = first.clone();
    let conditions = ready.json["status"]["conditions"].as_array_mut().unwrap();
    conditions.push(json!({ "type": "Ready", "status": "True" }));
    assert_eq!(names_bound(&[&node, &ready, &second, &third], 10), ["c"]);
    assert_eq!(names_bound(&[&node, &first, &second, &third], 300), ["c"]);
}

/// The node offers more CPUs than the machine has; that makes no start faster.
#[test]
fn as_many_heavy_pods_start_at_once_as_the_machine_has_cores() {
    let node = a_node()
        .with("/status/allocatable", json!({ "cpu": "8" }))
        .with("/metadata/labels", json!({ "sundown.dev/cores": "2" }));
    let pods = ["a", "b", "c"].map(|name| a_pod(name, "1"));
    let seen = [&node, &pods[0], &pods[1], &pods[2]];
    assert_eq!(names_bound(&seen, 0), ["a", "b"]);
}

/// Each pod of a queue was written to whenever one of those before it came to its end.
#[test]
fn only_those_next_in_line_are_told_new_figures() {
    let old = "0/1 nodes are available: 1 Insufficient cpu. It needs 3 CPU, 0 of 2 free.";
    let told = json!([{
        "type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": old,
    }]);
    let node = a_node();
    let mut pods: Vec<A> = ["a", "b", "c", "d", "e", "f"]
        .map(|name| a_pod(name, "3").with("/status/conditions", told.clone()))
        .into();
    pods.push(a_pod("g", "3"));
    let seen: Vec<&A> = std::iter::once(&node).chain(&pods).collect();
    let decision = scene(&seen).decide(&Key::Round, 0);
    let marked = decision.actions.iter().filter_map(|action| match action {
        Action::Api(Write::Patch { at, .. }) => Some(at.key().name.to_string()),
        Action::Api(_) | Action::Tell(_) | Action::Do(_) => None,
    });
    let marked: Vec<String> = marked.collect();
    assert_eq!(
        marked,
        ["a", "b", "c", "d", "g"],
        "one was told nothing yet"
    );
}

fn a_ray_pod(name: &str, role: &str, cluster: &str) -> A {
    let container = json!({ "name": "main", "image": "rayproject/ray:2.9.0" });
    let labels = json!({ "ray.io/node-type": role, "ray.io/cluster": cluster });
    a("pod", name)
        .with("/metadata/labels", labels)
        .with("/spec/containers", json!([container]))
}

fn a_worker(name: &str, cluster: &str) -> A {
    let waits = json!([{ "name": "wait-gcs-ready", "image": "rayproject/ray:2.9.0" }]);
    a_ray_pod(name, "worker", cluster).with("/spec/initContainers", waits)
}

/// An init container of a pod runs.
fn initializing(pod: A, container: &str) -> A {
    let status = json!([{ "name": container, "state": { "running": {} } }]);
    bound(pod, 0).with("/status/initContainerStatuses", status)
}

/// Workers are bound in the order of their names and wait for their head in an init container; the head
/// waited five minutes for them to be ready.
#[test]
fn a_head_waits_neither_behind_its_workers_nor_for_them() {
    let node = a_node();
    let head = a_ray_pod("z-head", "head", "z");
    let (first, second) = (a_worker("a", "z"), a_worker("b", "z"));
    let third = a_worker("c", "z");
    assert_eq!(
        names_bound(&[&node, &first, &second, &third, &head], 0),
        ["z-head", "a"]
    );
    let waiting = [first, second].map(|it| initializing(it, "wait-gcs-ready"));
    let [first, second] = &waiting;
    let seen = [&node, first, second, &third, &head];
    assert_eq!(names_bound(&seen, 10), ["z-head"], "others wait for them");
    let passed = waiting.clone().map(|pod| {
        let ended = json!([{ "name": "wait-gcs-ready", "state": { "terminated": {} } }]);
        let mut pod = pod.with("/status/initContainerStatuses", ended);
        let conditions = pod.json["status"]["conditions"].as_array_mut().unwrap();
        conditions.push(json!({ "type": "Initialized", "status": "True" }));
        pod
    });
    let seen = [&node, &passed[0], &passed[1], &head];
    assert_eq!(reason(&seen, &head), Reason::AwaitsStarts { starting: 2 });
}

/// A worker waited five minutes for the workers of another cluster, whose head could not start.
#[test]
fn who_waits_for_a_head_holds_up_only_those_who_wait_for_the_same() {
    let node = a_node();
    let stuck = ["a", "b"].map(|name| initializing(a_worker(name, "stuck"), "wait-gcs-ready"));
    let [first, second] = &stuck;
    let beside = a_worker("c", "stuck");
    let other = a_worker("d", "other");
    let seen = [&node, first, second, &beside, &other];
    assert_eq!(names_bound(&seen, 10), ["d"]);
    let held = Reason::AwaitsStarts { starting: 2 };
    assert_eq!(reason(&seen, &beside), held, "they will start together");
    // The same name in another namespace is another cluster.
    let elsewhere = a_worker("e", "stuck");
    let elsewhere = elsewhere.with("/metadata/namespace", json!("elsewhere"));
    assert_eq!(
        reason(&[&node, first, second, &elsewhere], &elsewhere),
        Reason::Binds
    );
}

#[test]
fn what_another_init_container_does_may_be_work() {
    let node = a_node();
    let own = json!([{ "name": "compiles" }, { "name": "wait-gcs-ready" }]);
    let at_work = ["a", "b"].map(|name| {
        let worker = a_worker(name, "one").with("/spec/initContainers", own.clone());
        initializing(worker, "compiles")
    });
    let other = a_worker("d", "other");
    let seen = [&node, &at_work[0], &at_work[1], &other];
    let held = Reason::AwaitsStarts { starting: 2 };
    assert_eq!(reason(&seen, &other), held);
}

#[test]
fn who_matters_more_or_came_first_comes_first() {
    let node = a_node();
    let old = a_pod("z", "2").with("/metadata/creationTimestamp", json!("2029-01-01T00:00:00Z"));
    let young = a_pod("a", "2").with("/metadata/creationTimestamp", json!("2029-01-02T00:00:00Z"));
    assert_eq!(names_bound(&[&node, &old, &young], 0), ["z"]);
    let important = young.with("/spec/priority", json!(10));
    assert_eq!(names_bound(&[&node, &old, &important], 0), ["a"]);
}

#[test]
fn only_a_change_that_matters_to_others_makes_a_round() {
    let pod = bound(a_pod("p", "100m"), 0);
    let touches = |old: &A, new: &A| {
        let (old, new) = (old.build(), new.build());
        let mut touched = BTreeSet::new();
        let mut scheduler = Scheduler;
        scheduler.observe(
            &Change::Updated { old, new },
            &Cache::default(),
            &mut touched,
        );
        !touched.is_empty()
    };
    let with = |pointer: &str, value: Value| pod.clone().with(pointer, value);
    let address = with("/status/podIP", json!("10.0.0.1"));
    assert!(!touches(&pod, &address), "its address is its own affair");
    assert!(!touches(&pod, &with("/status/phase", json!("Running"))));
    assert!(touches(&pod, &with("/status/phase", json!("Succeeded"))));
    let ready = json!([{ "type": "Ready", "status": "True" }]);
    assert!(touches(&pod, &with("/status/conditions", ready)));
    assert!(touches(&pod, &pod.clone().deleting(&["x"])));
    let worker = bound(a_worker("w", "c"), 0);
    let waits = initializing(a_worker("w", "c"), "wait-gcs-ready");
    assert!(touches(&worker, &waits), "it makes way for others");
    assert!(touches(&pod, &with("/spec/containers", json!([]))));
    let pending = a_pod("p", "100m");
    assert!(touches(&pending, &pod), "it was bound");
    let gated = pending.clone().with("/spec/schedulingGates", json!([{}]));
    assert!(touches(&gated, &pending));
}
