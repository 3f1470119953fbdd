//! A pod waits for a `ConfigMap` or a Secret that is not there, and goes on when it comes. It used to
//! wait for the end of a pause of up to a minute, because nothing told it.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use sundown_model::node::{self, Call};
use sundown_model::{
    Change, Controller as _, DeedOutcome, DeedRefusal, ObjectKey, Resource, Subject,
};

use super::life::{Life, a_pod, run, starts, uid};
use crate::pod::Key;
use crate::testing::{A, a, at};

fn lacking(plural: &str, name: &str) -> DeedOutcome {
    let resource = Resource::new("", plural);
    let message = format!("{plural} {name:?} not found");
    let refusal = DeedRefusal::new(node::Refused::ConfigMapNotFound, message);
    DeedOutcome::Refused(refusal.for_lack_of(ObjectKey::namespaced(&resource, "here", name)))
}

/// What a change of an object touches.
fn touched(life: &Life, object: &A) -> BTreeSet<Key> {
    let mut controller = life.scene.controller.clone();
    let mut touched = BTreeSet::new();
    let change = Change::Added(object.build());
    controller.observe(&change, &life.scene.cache, &mut touched);
    touched
}

fn with_env(env: &Value) -> A {
    let container = json!({ "name": "main", "image": "i", "env": env });
    a_pod().with("/spec/containers", json!([container]))
}

#[test]
fn a_place_that_lacks_a_config_map_is_made_when_it_comes_and_not_before() {
    let volume = json!([{ "name": "v", "configMap": { "name": "c" } }]);
    let mut life = Life::of(a_pod().with("/spec/volumes", volume));
    let outcome = lacking("configmaps", "c");
    life.scene = life
        .scene
        .clone()
        .done(Subject::Pod(uid()), 0, outcome.clone());
    assert!(life.turn(5).1.is_empty(), "it is not there");
    assert_eq!(life.decide(5).wake_at, Some(at(60)), "at the latest");
    let map = a("configmap", "c");
    assert_eq!(touched(&life, &map), [life.key()].into());
    life.scene = life.scene.clone().seeing(&map);
    assert!(matches!(life.turn(6).1[..], [Call::Prepare(_)]));
    // It came, but without the key: the next change counts.
    life.scene = life.scene.clone().done(Subject::Pod(uid()), 7, outcome);
    assert!(life.turn(8).1.is_empty());
    life.scene = life.scene.clone().seeing(&map.rv(9));
    assert!(matches!(life.turn(9).1[..], [Call::Prepare(_)]));
}

#[test]
fn a_run_that_lacks_a_key_starts_when_its_config_map_changes() {
    let key = json!({ "configMapKeyRef": { "name": "c", "key": "k" } });
    let mut life = Life::of(with_env(&json!([{ "name": "A", "valueFrom": key }])));
    let map = a("configmap", "c");
    life.scene = life.scene.clone().seeing(&map);
    life.turn(0);
    life.report();
    life.turn(0);
    let outcome = lacking("configmaps", "c");
    life.scene = life.scene.clone().done(Subject::Run(run(0)), 1, outcome);
    life.turn(2);
    let waiting = life.status("/containerStatuses/0/state/waiting");
    assert_eq!(waiting["reason"], "CreateContainerConfigError");
    assert!(life.turn(3).1.is_empty());
    life.scene = life.scene.clone().seeing(&map.rv(7));
    assert_eq!(starts(&life.turn(4).1), [("main".to_owned(), 0)]);
}

#[test]
fn what_is_missing_is_tried_again_after_a_minute_even_so() {
    let mut life = Life::of(a_pod());
    let outcome = lacking("configmaps", "c");
    life.scene = life.scene.clone().done(Subject::Pod(uid()), 0, outcome);
    assert!(life.turn(59).1.is_empty());
    assert!(matches!(life.turn(60).1[..], [Call::Prepare(_)]));
}

#[test]
fn only_the_pods_that_name_an_object_are_touched_by_it() {
    let secret = |source: Value| with_env(&json!([{ "name": "A", "valueFrom": source }]));
    let all = |from: Value| {
        let container = json!({ "name": "main", "image": "i", "envFrom": [from] });
        a_pod().with("/spec/containers", json!([container]))
    };
    let volume = |source: Value| a_pod().with("/spec/volumes", json!([source]));
    let projected = json!({ "sources": [{ "secret": { "name": "s" } }] });
    for pod in [
        secret(json!({ "secretKeyRef": { "name": "s", "key": "k" } })),
        all(json!({ "secretRef": { "name": "s" } })),
        volume(json!({ "name": "v", "secret": { "secretName": "s" } })),
        volume(json!({ "name": "v", "projected": projected })),
    ] {
        let life = Life::of(pod.clone());
        assert_eq!(touched(&life, &a("secret", "s")), [life.key()].into());
        assert!(touched(&life, &a("secret", "other")).is_empty());
        assert!(touched(&life, &a("configmap", "s")).is_empty());
        let elsewhere = a("secret", "s").namespace("elsewhere");
        assert!(touched(&life, &elsewhere).is_empty());
        let over = Life::of(pod.with("/status/phase", json!("Succeeded")));
        assert!(touched(&over, &a("secret", "s")).is_empty());
    }
}

#[test]
fn nothing_of_what_they_hold_is_asked_for() {
    use crate::kinds::{CONFIG_MAP, SECRET};
    use sundown_model::Scope;
    let interests = crate::pod::Pods::INTERESTS.iter();
    let held =
        interests.filter(|it| [Scope::One(CONFIG_MAP), Scope::One(SECRET)].contains(&it.scope));
    assert_eq!(held.map(|it| it.fields.len()).collect::<Vec<_>>(), [0, 0]);
}
