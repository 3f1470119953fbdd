//! When a namespace gets its account.

use std::collections::BTreeSet;
use std::sync::Arc;

use sundown_model::{Action, Change, Write};

use super::*;
use crate::testing::{A, Scene, a};

fn namespace() -> A {
    a("namespace", "here")
}

fn account() -> Arc<Object> {
    let json = json!({ "metadata": {
        "name": "default", "namespace": "here", "uid": "u", "resourceVersion": "1",
    } });
    let form = sundown_model::Form::metadata();
    let account = Object::read(&SERVICE_ACCOUNT.resource(), &json, &form);
    Arc::new(account.expect("a whole object"))
}

fn decide(scene: &Scene<Accounts>) -> Decision<Reason> {
    let decision = scene.decide(&namespace().key(), 0);
    assert!(!decision.reason.code().is_empty() && !decision.reason.sentence().is_empty());
    decision
}

#[test]
fn a_namespace_gets_its_account_once() {
    let scene = Scene::new(Accounts);
    assert_eq!(decide(&scene).reason, Reason::Gone);
    let scene = scene.seeing(&namespace());
    let decision = decide(&scene);
    assert_eq!(decision.reason, Reason::LacksAccount);
    let [Action::Api(Write::Create(draft))] = &decision.actions[..] else {
        panic!("one account");
    };
    assert_eq!(
        (&*draft.key.name, draft.key.namespace_str()),
        ("default", "here")
    );
}

#[test]
fn a_namespace_with_its_account_is_left_alone() {
    let scene = Scene::new(Accounts).seeing(&namespace());
    let decision = decide(&scene.seeing_as_it_is(account()));
    assert_eq!(decision, Decision::idle(Reason::HasAccount));
}

#[test]
fn a_terminating_namespace_gets_none() {
    let going = namespace().deleting(&["example.com/x"]);
    let decision = decide(&Scene::new(Accounts).seeing(&going));
    assert_eq!(decision, Decision::idle(Reason::Terminating));
}

#[test]
fn the_end_of_the_account_touches_its_namespace() {
    let mut touched = BTreeSet::new();
    let gone = Change::Deleted(account());
    Accounts.observe(&gone, &Cache::default(), &mut touched);
    assert_eq!(touched, BTreeSet::from([namespace().key()]));
}
