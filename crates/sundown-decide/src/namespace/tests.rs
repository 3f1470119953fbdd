//! The end of a namespace, scene by scene.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use sundown_model::{
    Action, Blocker, Change, Controller, Decision, Explain, Part, Patch, Propagation, Resource,
    Write,
};

use super::{Namespaces, Reason};
use crate::testing::{A, Scene, a, at};

fn terminating() -> A {
    a("namespace", "here")
        .deleting(&[])
        .with("/spec/finalizers", json!(["kubernetes"]))
}

fn scene() -> Scene<Namespaces> {
    Scene::new(Namespaces::default())
}

fn decide(scene: &Scene<Namespaces>) -> Decision<Reason> {
    decide_on(scene, &terminating())
}

fn decide_on(scene: &Scene<Namespaces>, about: &A) -> Decision<Reason> {
    let decision = scene.decide(&about.key(), 7);
    assert!(!decision.reason.code().is_empty() && !decision.reason.sentence().is_empty());
    decision
}

#[track_caller]
fn patch(decision: &Decision<Reason>, expect: Part) -> Value {
    match &decision.actions[..] {
        [
            Action::Api(Write::Patch {
                part,
                patch: Patch::Merge(patch),
                ..
            }),
        ] => {
            assert_eq!(*part, expect);
            patch.clone()
        }
        other => panic!("expected one patch, got {other:?}"),
    }
}

#[track_caller]
fn conditions(decision: &Decision<Reason>) -> Value {
    patch(decision, Part::Status)["status"]["conditions"].clone()
}

fn goes(object: &A) -> Decision<Reason> {
    let delete = Write::Delete {
        at: object.build().seen(),
        how: Propagation::Background,
    };
    Decision::act(Action::Api(delete), Reason::GoesAlong)
}

fn touched(scene: &Scene<Namespaces>, change: &Change) -> BTreeSet<String> {
    let mut touched = BTreeSet::new();
    let mut controller = scene.controller.clone();
    controller.observe(change, &scene.cache, &mut touched);
    touched.iter().map(|key| key.name.to_string()).collect()
}

fn names(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(ToString::to_string).collect()
}

#[test]
fn leaves_a_namespace_alone_that_is_in_use_or_gone() {
    assert_eq!(decide(&scene()).reason, Reason::Gone);
    let pod = a("pod", "pod");
    let used = scene().seeing(&a("namespace", "here")).seeing(&pod);
    assert_eq!(decide(&used), Decision::idle(Reason::Active));
    assert_eq!(decide_on(&used, &pod), Decision::idle(Reason::Active));
    let unknown = scene().seeing(&pod);
    assert_eq!(decide_on(&unknown, &pod).reason, Reason::Gone);
}

#[test]
fn deletes_exactly_what_is_in_it() {
    let inside = a("pod", "inside");
    let outside = a("pod", "outside").namespace("elsewhere");
    let scene = scene()
        .seeing(&terminating())
        .seeing(&a("namespace", "elsewhere"))
        .seeing(&inside)
        .seeing(&outside);
    let waits = Decision::idle(Reason::Empties { count: 1 });
    assert_eq!(decide(&scene), waits);
    assert_eq!(decide_on(&scene, &inside), goes(&inside));
    assert_eq!(decide_on(&scene, &outside).reason, Reason::Active);
    let going = inside.deleting(&["example.com/mine"]).rv(2);
    let scene = scene.seeing(&going);
    let waits = Decision::idle(Reason::Terminating);
    assert_eq!(decide_on(&scene, &going), waits);
}

/// KEP-5080: a pod that ends may still need its `ConfigMap`, its claim and its account.
#[test]
fn everything_else_goes_only_when_no_pod_can_be_left() {
    let (pod, notes) = (a("pod", "pod"), a("configmap", "notes"));
    let pod = pod.deleting(&["example.com/mine"]);
    let scene = scene().seeing(&terminating());
    let scene = scene.seeing(&pod).seeing(&notes).caught_up();
    let waits = Decision::idle(Reason::AwaitsPods { pods: 1 });
    assert_eq!(decide_on(&scene, &notes), waits);
    let told = conditions(&decide(&scene));
    let left = "Some resources are remaining: pods. has 1 resource instances";
    assert_eq!(told[3]["message"], left, "the pod is waited for");
    let scene = scene.seeing_the_end_of(&pod);
    assert_eq!(decide_on(&scene, &notes), goes(&notes));
    assert_eq!(decide(&scene).reason, Reason::Empties { count: 1 });
}

#[test]
fn a_pod_that_was_not_seen_yet_is_looked_for_first() {
    let notes = a("configmap", "notes");
    let scene = scene().caught_up().seeing(&terminating()).seeing(&notes);
    let waits = Decision::idle(Reason::AwaitsPods { pods: 0 });
    assert_eq!(decide_on(&scene, &notes), waits);
    let decision = decide(&scene);
    let reason = Reason::AwaitsObservation { blind: Vec::new() };
    assert_eq!(decision.reason, reason);
    assert_eq!(decision.needs.len(), 1);
    assert_eq!(decide_on(&scene.caught_up(), &notes), goes(&notes));
}

#[test]
fn what_is_to_be_deleted_next_is_touched() {
    let (pod, notes) = (a("pod", "pod"), a("configmap", "notes"));
    let before = scene().seeing(&pod).seeing(&notes);
    let now = before.clone().seeing(&terminating());
    let change = Change::Updated {
        old: a("namespace", "here").build(),
        new: terminating().build(),
    };
    assert_eq!(touched(&before, &Change::Added(pod.build())), names(&[]));
    assert_eq!(touched(&now, &change), names(&["here", "notes", "pod"]));
    let fresh = Change::Freshness(Resource::new("", "pods"));
    assert_eq!(touched(&now, &fresh), names(&[]), "a pod is left");
    let gone = Change::Deleted(pod.build());
    assert_eq!(touched(&now, &gone), names(&["here", "notes", "pod"]));
    let now = now.seeing_the_end_of(&pod);
    assert_eq!(touched(&now, &fresh), names(&["notes"]));
    let refused = Change::Refused(notes.key());
    assert_eq!(touched(&now, &refused), names(&["here"]));
    assert_eq!(now.controller.audit(&now.cache), Ok(()));
    let about = |object: &A| now.controller.keys_about(&object.build());
    assert_eq!(about(&notes), vec![notes.key()]);
    assert_eq!(about(&terminating()), vec![terminating().key()]);
    assert!(about(&a("pod", "pod").namespace("elsewhere")).is_empty());
}

#[test]
fn says_once_what_keeps_it_in_the_five_conditions_of_upstream() {
    let stuck = a("configmap", "stuck").deleting(&["example.com/mine"]);
    let scene = scene().seeing(&terminating()).seeing(&stuck).caught_up();
    let decision = decide(&scene);
    assert!(matches!(&decision.reason, Reason::Blocked(left) if left.held.len() == 1));
    assert_eq!(decision.reason.blockers().len(), 1);
    let conditions = conditions(&decision);
    let said: Vec<String> = conditions
        .as_array()
        .unwrap()
        .iter()
        .map(|it| ["type", "status", "reason", "message"].map(|name| it[name].as_str().unwrap()))
        .map(|it| it.join(" "))
        .collect();
    let expected = [
        "NamespaceDeletionDiscoveryFailure False ResourcesDiscovered All resources successfully discovered",
        "NamespaceDeletionGroupVersionParsingFailure False ParsedGroupVersions All legacy kube types successfully parsed",
        "NamespaceDeletionContentFailure False ContentDeleted All content successfully deleted, may be waiting on finalization",
        "NamespaceContentRemaining True SomeResourcesRemain Some resources are remaining: configmaps. has 1 resource instances",
        "NamespaceFinalizersRemaining True SomeFinalizersRemain Some content in the namespace has finalizers remaining: example.com/mine in 1 resource instances",
    ];
    assert_eq!(said, expected);
    let told = scene.seeing(&terminating().with("/status/conditions", conditions).rv(2));
    let decision = decide(&told.caught_up());
    assert!(matches!(decision.reason, Reason::Blocked(_)));
    assert!(decision.actions.is_empty(), "said already");
}

#[test]
fn a_condition_keeps_its_time_while_its_status_stays() {
    let stuck = |name: &str| a("pod", name).deleting(&["example.com/mine"]);
    let scene = scene().seeing(&terminating()).seeing(&stuck("one"));
    let mut before = conditions(&decide(&scene));
    before[3]["lastTransitionTime"] = json!("2029-01-01T00:00:00Z");
    let other = json!({ "type": "Other", "status": "True" });
    before.as_array_mut().unwrap().push(other.clone());
    let scene = scene.seeing(&stuck("two"));
    let scene = scene.seeing(&terminating().with("/status/conditions", before).rv(2));
    let again = conditions(&decide(&scene));
    assert_eq!(again[0], other, "conditions of others stay");
    let since = &again[4]["lastTransitionTime"];
    assert_eq!(since, &json!("2029-01-01T00:00:00Z"));
}

/// The messages hold counts: each object that went was a write.
#[test]
fn the_status_is_written_once_a_second_at_most() {
    let stuck = |name: &str| a("pod", name).deleting(&["example.com/mine"]);
    let mut scene = scene().seeing(&terminating()).seeing(&stuck("one"));
    let namespace = terminating().key();
    scene.facts.set_written(namespace.clone(), at(7));
    let decision = scene.decide(&namespace, 7);
    assert!(matches!(decision.reason, Reason::Told { left: 1 }));
    assert_eq!(decision.wake_at, Some(at(8)));
    assert!(decision.actions.is_empty());
    patch(&scene.decide(&namespace, 8), Part::Status);
}

/// Each refusal that comes again asks the namespace: what is left is not looked through each time.
#[test]
fn what_is_left_is_not_counted_while_nothing_may_be_written() {
    let (bad, open) = (a("configmap", "bad"), a("configmap", "open"));
    let elsewhere = a("configmap", "elsewhere");
    let mut scene = scene().seeing(&terminating()).seeing(&bad).seeing(&open);
    scene = scene
        .refusing(&bad, "no")
        .refusing(&elsewhere, "no")
        .caught_up();
    assert_eq!(decide(&scene).reason, Reason::Empties { count: 1 });
    scene.facts.set_written(terminating().key(), at(7));
    let decision = scene.decide(&terminating().key(), 7);
    assert_eq!(decision.reason, Reason::Told { left: 2 });
    assert_eq!(decision.wake_at, Some(at(8)));
}

/// Always the first 64 were tried: as many refusals kept all others from being tried at all.
#[test]
fn what_may_not_be_deleted_holds_up_nothing_else_and_is_named() {
    let bad = |name: &str| a("configmap", name);
    let good = a("secret", "good");
    let scene = scene().seeing(&terminating()).seeing(&good).caught_up();
    let scene = (0..100).fold(scene, |scene, index| {
        let bad = bad(&format!("bad-{index}"));
        scene.seeing(&bad).refusing(&bad, "no ConfigMaps")
    });
    assert_eq!(decide_on(&scene, &good), goes(&good));
    // Those that were refused are among them: they are tried again.
    assert_eq!(decide(&scene).reason, Reason::Empties { count: 101 });
    let scene = scene.seeing_the_end_of(&good);
    let decision = decide(&scene);
    let told = conditions(&decision);
    assert_eq!(told[2]["reason"], "ContentDeletionFailed");
    let message = "Failed to delete all resource types, 1 remaining: no ConfigMaps";
    assert_eq!(told[2]["message"], message);
    let blockers = decision.reason.blockers();
    assert_eq!(blockers.len(), 100);
    let object = bad("bad-0").key();
    assert_eq!(blockers[0], Blocker::Refused { object });
    // It is tried again by itself; a successor of the name was never refused.
    assert_eq!(decide_on(&scene, &bad("bad-0")), goes(&bad("bad-0")));
    let successor = bad("bad-0").uid("uid-of-a-successor").rv(2);
    let scene = scene.seeing(&successor);
    assert_eq!(decide(&scene).reason, Reason::Empties { count: 1 });
}

/// More refusals than are remembered: nothing was ever told, as the rest seemed to be on its way.
#[test]
fn more_refusals_than_are_remembered_are_told_too() {
    let scene = (0..4_200).fold(scene().seeing(&terminating()), |scene, index| {
        let bad = a("configmap", &format!("bad-{index}"));
        scene.seeing(&bad).refusing(&bad, "no ConfigMaps")
    });
    let told = conditions(&decide(&scene.caught_up()));
    assert_eq!(told[2]["reason"], "ContentDeletionFailed");
}

#[test]
fn is_released_only_when_a_barrier_proves_that_nothing_is_left() {
    let scene = scene().caught_up().seeing(&terminating());
    let decision = decide(&scene);
    let reason = Reason::AwaitsObservation { blind: Vec::new() };
    assert_eq!(decision.reason, reason);
    assert_eq!(decision.needs.len(), 1);
    let decision = decide(&scene.caught_up());
    assert_eq!(decision.reason, Reason::Empty);
    assert_eq!(
        patch(&decision, Part::Finalize),
        json!({ "spec": { "finalizers": [] } })
    );
}

#[test]
fn finalizers_of_others_in_spec_stay_and_the_conditions_say_that_we_are_done() {
    let both = terminating().with("/spec/finalizers", json!(["example.com/x", "kubernetes"]));
    let decision = decide(&scene().seeing(&both).caught_up());
    assert_eq!(decision.reason, Reason::Emptied);
    let told = conditions(&decision);
    assert_eq!(told[3]["reason"], "ContentRemoved");
    let both = both.with("/status/conditions", told).rv(2);
    let decision = decide(&scene().seeing(&both).caught_up());
    assert_eq!(decision.reason, Reason::Empty);
    assert_eq!(
        patch(&decision, Part::Finalize),
        json!({ "spec": { "finalizers": ["example.com/x"] } })
    );
    let released = terminating().with("/spec/finalizers", json!(["example.com/x"]));
    assert_eq!(decide(&scene().seeing(&released)).reason, Reason::Released);
}
