//! Storage that was deleted while in use, scene by scene.
//!
//! A claim that was deleted while a pod used it stayed for ever, and with it its namespace: only a
//! DELETE looked for users, and none came after the pod had gone.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use sundown_model::{
    Action, Blocker, Change, Controller, Decision, Explain, Part, Patch, Resource, Write,
};

use super::{Reason, StorageProtection};
use crate::kinds::{CLAIM_PROTECTION, VOLUME_PROTECTION};
use crate::testing::{A, Scene, a};

fn claim() -> A {
    a("persistentvolumeclaim", "data").with("/metadata/finalizers", json!([CLAIM_PROTECTION]))
}

fn deleted() -> A {
    claim().deleting(&[CLAIM_PROTECTION])
}

/// A pod on a node that mounts the claim.
fn user() -> A {
    let volume = json!({ "name": "v", "persistentVolumeClaim": { "claimName": "data" } });
    a("pod", "user").with("/spec/nodeName", json!("node")).with(
        "/spec/volumes",
        json!([{ "name": "other", "emptyDir": {} }, volume]),
    )
}

/// A volume that the claim is bound to.
fn volume() -> A {
    let claim = json!({ "namespace": "here", "name": "data", "uid": "uid-data" });
    a("persistentvolume", "disk")
        .deleting(&[VOLUME_PROTECTION])
        .with("/spec/claimRef", claim)
        .with("/status/phase", json!("Bound"))
}

fn scene() -> Scene<StorageProtection> {
    Scene::new(StorageProtection)
}

fn decide(scene: &Scene<StorageProtection>, about: &A) -> Decision<Reason> {
    let decision = scene.decide(&about.key(), 7);
    assert!(!decision.reason.code().is_empty() && !decision.reason.sentence().is_empty());
    decision
}

#[track_caller]
fn finalizers_left(decision: &Decision<Reason>) -> Value {
    assert_eq!(decision.reason, Reason::Unused);
    match &decision.actions[..] {
        [
            Action::Api(Write::Patch {
                part: Part::Main,
                patch: Patch::Merge(patch),
                ..
            }),
        ] => patch["metadata"]["finalizers"].clone(),
        other => panic!("expected one patch, got {other:?}"),
    }
}

fn in_use(by: &A) -> Decision<Reason> {
    Decision::idle(Reason::InUse { by: vec![by.key()] })
}

#[test]
fn leaves_storage_alone_that_is_wanted_gone_or_let_go() {
    assert_eq!(decide(&scene(), &claim()).reason, Reason::Gone);
    let wanted = scene().seeing(&claim()).caught_up();
    assert_eq!(decide(&wanted, &claim()), Decision::idle(Reason::Wanted));
    let other = claim().deleting(&["example.com/mine"]);
    let other = decide(&scene().seeing(&other).caught_up(), &claim());
    assert_eq!(other, Decision::idle(Reason::Released));
}

#[test]
fn a_deleted_claim_stays_while_a_pod_uses_it_and_goes_with_the_last_one() {
    let scene = scene().seeing(&deleted()).seeing(&user()).caught_up();
    let decision = decide(&scene, &claim());
    assert_eq!(decision, in_use(&user()));
    let user_key = user().key();
    let blocker = Blocker::User { user: user_key };
    assert_eq!(decision.reason.blockers(), vec![blocker]);
    let decision = decide(&scene.seeing_the_end_of(&user()), &claim());
    assert_eq!(finalizers_left(&decision), Value::Null);
}

/// Upstream's rule: the volume is in use until the object of the pod is gone.
#[test]
fn a_pod_that_ended_or_is_ending_still_uses_its_claim() {
    let over = user().with("/status/phase", json!("Succeeded"));
    let scene = scene().seeing(&deleted()).seeing(&over).caught_up();
    assert_eq!(decide(&scene, &claim()), in_use(&user()));
    let going = over.deleting(&["example.com/mine"]).rv(2);
    assert_eq!(decide(&scene.seeing(&going), &claim()), in_use(&user()));
}

#[test]
fn pods_without_a_node_elsewhere_or_with_other_claims_are_no_users() {
    let waits = user().with("/spec/nodeName", json!(""));
    let elsewhere = user().namespace("elsewhere").uid("uid-elsewhere");
    let named = json!([{ "name": "v", "persistentVolumeClaim": { "claimName": "other" } }]);
    let other = a("pod", "other").with("/spec/nodeName", json!("node"));
    let other = other.with("/spec/volumes", named);
    let scene = scene().seeing(&deleted());
    let scene = scene.seeing(&waits).seeing(&elsewhere).seeing(&other);
    let decision = decide(&scene.caught_up(), &claim());
    assert_eq!(finalizers_left(&decision), Value::Null);
}

#[test]
fn a_claim_that_was_made_for_a_pod_is_used_by_that_pod_until_it_is_shut_down() {
    let pod = a("pod", "user").with("/spec/nodeName", json!("node")).with(
        "/spec/volumes",
        json!([{ "name": "data", "ephemeral": {} }]),
    );
    let owner = json!({ "apiVersion": "v1", "kind": "Pod", "name": "user", "uid": "uid-user", "controller": true });
    let made = a("persistentvolumeclaim", "user-data").deleting(&[CLAIM_PROTECTION]);
    let of_another = scene().seeing(&made).seeing(&pod).caught_up();
    finalizers_left(&decide(&of_another, &made));
    let made = made.referring(owner);
    let scene = scene().seeing(&made).seeing(&pod).caught_up();
    assert_eq!(decide(&scene, &made), in_use(&pod));
    let down = pod.deleting(&["example.com/mine"]).rv(2);
    finalizers_left(&decide(&scene.seeing(&down), &made));
}

#[test]
fn a_claim_is_let_go_only_when_all_pods_were_seen() {
    let scene = scene().caught_up().seeing(&deleted());
    let decision = decide(&scene, &claim());
    assert_eq!(decision.reason, Reason::AwaitsObservation { blind: None });
    assert!(decision.actions.is_empty() && decision.needs.len() == 1);
    let blind = Reason::AwaitsObservation {
        blind: Some(Resource::new("", "pods")),
    };
    assert_eq!(blind.blockers().len(), 1);
    assert!(blind.sentence().contains("pods"));
}

#[test]
fn finalizers_of_others_stay() {
    let both = claim().deleting(&["example.com/mine", CLAIM_PROTECTION]);
    let decision = decide(&scene().seeing(&both).caught_up(), &claim());
    assert_eq!(finalizers_left(&decision), json!(["example.com/mine"]));
}

#[test]
fn a_bound_volume_stays_while_its_claim_is_there_and_goes_after_it() {
    let scene = scene().seeing(&volume()).seeing(&claim());
    assert_eq!(decide(&scene, &volume()), in_use(&claim()));
    let decision = decide(&scene.seeing_the_end_of(&claim()), &volume());
    assert_eq!(finalizers_left(&decision), Value::Null);
}

/// The absence of a claim that was never seen has to be proven.
#[test]
fn a_bound_volume_without_its_claim_goes_once_all_claims_were_seen() {
    let successor = claim().uid("uid-of-a-successor");
    let scene = scene().seeing(&volume()).seeing(&successor);
    let decision = decide(&scene, &volume());
    assert_eq!(decision.reason, Reason::AwaitsObservation { blind: None });
    assert_eq!(decision.needs.len(), 1);
    finalizers_left(&decide(&scene.caught_up(), &volume()));
}

#[test]
fn a_volume_that_is_not_bound_goes_at_once() {
    let released = volume().with("/status/phase", json!("Released"));
    finalizers_left(&decide(
        &scene().seeing(&released).seeing(&claim()),
        &volume(),
    ));
    let nameless = volume().with("/spec/claimRef", Value::Null);
    let decision = decide(&scene().seeing(&nameless).caught_up(), &volume());
    finalizers_left(&decision);
}

#[test]
fn users_touch_only_storage_that_is_to_go() {
    let touched = |scene: &Scene<StorageProtection>, change: &Change| {
        let mut touched = BTreeSet::new();
        let mut controller = scene.controller.clone();
        controller.observe(change, &scene.cache, &mut touched);
        touched
    };
    let pod = Change::Deleted(user().build());
    let wanted = scene().seeing(&claim());
    assert!(touched(&wanted, &pod).is_empty());
    let scene = scene().seeing(&deleted()).seeing(&volume());
    assert_eq!(touched(&scene, &pod), BTreeSet::from([claim().key()]));
    let gone = Change::Deleted(claim().build());
    let both = BTreeSet::from([claim().key(), volume().key()]);
    assert_eq!(touched(&scene, &gone), both);
    let keys = scene.controller.keys_about(&claim().build());
    assert_eq!(keys, vec![claim().key()]);
    assert!(scene.controller.keys_about(&user().build()).is_empty());
}
