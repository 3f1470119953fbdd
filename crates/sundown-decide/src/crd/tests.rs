//! The end of a definition, scene by scene.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use sundown_model::{
    Action, Blocker, Change, Controller, Decision, Explain, Part, Patch, Propagation, Write,
};

use super::view::CLEANUP;
use super::{Definitions, Reason};
use crate::testing::{A, Scene, a, at};

fn definition() -> A {
    let established = json!({
        "type": "Established", "status": "True", "lastTransitionTime": at(0).to_string(),
    });
    a("customresourcedefinition", "suns.sky.io")
        .with("/spec/group", json!("sky.io"))
        .with("/spec/names", json!({ "plural": "suns" }))
        .with("/status/conditions", json!([established]))
}

fn terminating() -> A {
    definition().deleting(&[CLEANUP])
}

/// As it is once the controller has said that instances are being deleted.
fn told() -> A {
    let decision = decide(&scene().seeing(&terminating()).seeing(&a("sun", "one")));
    let conditions = patched(&decision.actions[0], Part::Status)["status"]["conditions"].clone();
    terminating().with("/status/conditions", conditions).rv(2)
}

/// As it is once the controller has said that no instance is left.
fn emptied() -> A {
    let decision = decide(&scene().seeing(&terminating()).caught_up());
    let conditions = patched(&decision.actions[0], Part::Status)["status"]["conditions"].clone();
    terminating().with("/status/conditions", conditions).rv(2)
}

fn scene() -> Scene<Definitions> {
    Scene::new(Definitions)
}

fn decide(scene: &Scene<Definitions>) -> Decision<Reason> {
    let decision = scene.decide(&definition().key(), 7);
    assert!(!decision.reason.code().is_empty() && !decision.reason.sentence().is_empty());
    decision
}

#[track_caller]
fn patched(action: &Action, expect: Part) -> Value {
    match action {
        Action::Api(Write::Patch {
            part,
            patch: Patch::Merge(patch),
            ..
        }) => {
            assert_eq!(*part, expect);
            patch.clone()
        }
        other @ (Action::Api(_) | Action::Tell(_) | Action::Do(_)) => {
            panic!("expected a patch, got {other:?}")
        }
    }
}

fn delete(object: &A) -> Action {
    Action::Api(Write::Delete {
        at: object.build().seen(),
        how: Propagation::Background,
    })
}

#[test]
fn leaves_a_definition_alone_that_is_in_use_or_gone() {
    assert_eq!(decide(&scene()).reason, Reason::Gone);
    let used = scene().seeing(&definition()).seeing(&a("sun", "one"));
    assert_eq!(decide(&used), Decision::idle(Reason::Active));
}

#[test]
fn deletes_exactly_the_instances_and_says_so() {
    let (one, two) = (a("sun", "one"), a("sun", "two").namespace("elsewhere"));
    let scene = scene()
        .seeing(&terminating())
        .seeing(&one)
        .seeing(&two)
        .seeing(&a("pod", "bystander"));
    let decision = decide(&scene);
    assert_eq!(decision.reason, Reason::Empties);
    let [first] = &decision.actions[..] else {
        panic!("it is said once");
    };
    let conditions = &patched(first, Part::Status)["status"]["conditions"];
    assert_eq!(conditions[0]["type"], "Established", "others stay");
    assert_eq!(conditions[1]["type"], "Terminating");
    assert_eq!(conditions[1]["reason"], "InstanceDeletionInProgress");
    for sun in [&one, &two] {
        let decision = scene.decide(&sun.key(), 7);
        assert_eq!(decision, Decision::act(delete(sun), Reason::GoesAlong));
    }
    let again = decide(&scene.seeing(&told()));
    assert_eq!(again, Decision::idle(Reason::Empties), "said already");
}

#[test]
fn instances_stay_while_their_definition_does() {
    let sun = a("sun", "one");
    let scene = |definition: A| scene().seeing(&sun).seeing(&definition);
    let decide = |scene: &Scene<Definitions>| {
        let reason = scene.decide(&sun.key(), 7).reason;
        assert!(!reason.code().is_empty() && !reason.sentence().is_empty());
        reason
    };
    assert_eq!(decide(&scene(definition())), Reason::Active);
    let never = terminating().with("/status/conditions", json!([]));
    assert_eq!(decide(&scene(never)), Reason::Active);
    let released = definition().deleting(&["example.com/x"]);
    assert_eq!(decide(&scene(released)), Reason::Released);
    let going = sun.clone().deleting(&["example.com/mine"]).rv(2);
    let going = scene(terminating()).seeing(&going);
    assert_eq!(decide(&going), Reason::Terminating);
    let gone = Scene::new(Definitions).seeing(&sun);
    assert_eq!(decide(&gone), Reason::Gone);
}

/// Always the first 64 were tried: as many refusals kept all others from being tried at all.
#[test]
fn a_refused_instance_holds_up_no_other_and_is_named_when_it_is_the_last() {
    let (bad, good) = (a("sun", "bad"), a("sun", "good"));
    let scene = scene().seeing(&told()).seeing(&bad).seeing(&good);
    let scene = scene.refusing(&bad, "not that one");
    assert_eq!(decide(&scene).reason, Reason::Empties);
    let decision = scene.decide(&good.key(), 7);
    assert_eq!(*decision.actions, [delete(&good)]);
    let scene = scene.seeing_the_end_of(&good);
    let decision = decide(&scene);
    let object = bad.key();
    assert_eq!(decision.reason.blockers(), [Blocker::Refused { object }]);
    let conditions = &patched(&decision.actions[0], Part::Status)["status"]["conditions"];
    assert_eq!(conditions[1]["reason"], "InstanceDeletionFailed");
    let message = "could not issue all deletes: not that one";
    assert_eq!(conditions[1]["message"], message);
    let worse = a("sun", "worse");
    let scene = scene.seeing(&worse).refusing(&worse, "nor that one");
    let conditions = &patched(&decide(&scene).actions[0], Part::Status)["status"]["conditions"];
    let message = "could not issue all deletes: [nor that one, not that one]";
    assert_eq!(conditions[1]["message"], message);
    let mut touched = BTreeSet::new();
    let mut controller = scene.controller.clone();
    controller.observe(&Change::Refused(bad.key()), &scene.cache, &mut touched);
    assert_eq!(touched, BTreeSet::from([definition().key()]));
}

#[test]
fn a_definition_that_becomes_terminating_touches_its_instances() {
    let scene = scene().seeing(&a("sun", "one")).seeing(&terminating());
    let mut touched = BTreeSet::new();
    let change = Change::Added(terminating().build());
    let mut controller = scene.controller.clone();
    controller.observe(&change, &scene.cache, &mut touched);
    let both = BTreeSet::from([definition().key(), a("sun", "one").key()]);
    assert_eq!(touched, both);
}

#[test]
fn finalizers_of_instances_are_respected_and_named() {
    let stuck = a("sun", "stuck").deleting(&["example.com/mine"]);
    let decision = decide(&scene().seeing(&terminating()).seeing(&stuck));
    assert!(matches!(&decision.reason, Reason::Blocked(left) if left.held.len() == 1));
    assert_eq!(decision.actions.len(), 1, "it says so");
    let blocker = Blocker::Finalizer {
        on: stuck.key(),
        finalizer: "example.com/mine".into(),
    };
    assert_eq!(decision.reason.blockers(), vec![blocker]);
    let again = decide(&scene().seeing(&told()).seeing(&stuck));
    assert!(matches!(again.reason, Reason::Blocked(_)));
    assert!(again.actions.is_empty(), "said already");
}

#[test]
fn a_condition_keeps_its_time_while_its_status_stays() {
    let pending = json!([{
        "type": "Terminating", "status": "True", "reason": "InstanceDeletionPending",
        "message": "soon", "lastTransitionTime": "2029-01-01T00:00:00Z",
    }, { "type": "Established", "status": "True" }]);
    let scene = scene()
        .seeing(&terminating().with("/status/conditions", pending))
        .seeing(&a("sun", "one"));
    let patch = patched(&decide(&scene).actions[0], Part::Status);
    let conditions = patch["status"]["conditions"].as_array().unwrap();
    let terminating: Vec<_> = conditions
        .iter()
        .filter(|it| it["type"] == "Terminating")
        .collect();
    assert_eq!(terminating.len(), 1);
    assert_eq!(
        terminating[0]["lastTransitionTime"],
        json!("2029-01-01T00:00:00Z")
    );
}

#[test]
fn is_released_only_when_a_barrier_proves_that_no_instance_is_left() {
    let scene = scene().caught_up().seeing(&terminating());
    let decision = decide(&scene);
    assert_eq!(decision.reason, Reason::AwaitsObservation { blind: None });
    assert!(decision.actions.is_empty() && decision.needs.len() == 1);
    let decision = decide(&scene.caught_up());
    assert_eq!(decision.reason, Reason::Emptied);
    let conditions = &patched(&decision.actions[0], Part::Status)["status"]["conditions"];
    assert_eq!(conditions[1]["reason"], "InstanceDeletionCompleted");
    let decision = decide(&self::scene().seeing(&emptied()).caught_up());
    assert_eq!(decision.reason, Reason::Empty);
    assert_eq!(
        patched(&decision.actions[0], Part::Main),
        json!({ "metadata": { "finalizers": null } })
    );
}

#[test]
fn is_released_only_when_the_collector_has_dealt_with_the_dependents_of_its_instances() {
    let owned = a("pod", "owned").owned_by(&a("sun", "one"));
    let scene = scene().seeing(&emptied()).seeing(&owned);
    let decision = decide(&scene.clone());
    assert_eq!(decision.reason, Reason::AwaitsObservation { blind: None });
    let decision = decide(&scene.clone().caught_up());
    let dependents = vec![owned.key()];
    assert_eq!(decision.reason, Reason::AwaitsCollector { dependents });
    assert_eq!(decision.wake_at, Some(at(67)), "a minute after it was said");
    let dependent = owned.key();
    assert_eq!(
        decision.reason.blockers(),
        vec![Blocker::Dependent { dependent }]
    );
    assert!(decision.actions.is_empty());
    let late = scene.caught_up().decide(&definition().key(), 67);
    assert_eq!(late.reason, Reason::Empty, "perhaps nobody collects");
}

#[test]
fn dependents_that_the_collector_leaves_alone_do_not_hold_the_definition() {
    let going = a("pod", "going").owned_by(&a("sun", "one"));
    let going = going.deleting(&["example.com/mine"]);
    let stray = a("namespace", "stray").owned_by(&a("sun", "one"));
    let scene = scene().seeing(&emptied()).seeing(&going).seeing(&stray);
    assert_eq!(decide(&scene.caught_up()).reason, Reason::Empty);
}

#[test]
fn the_end_of_a_dependent_touches_the_definition_of_its_owner() {
    let mut scene = scene().seeing(&emptied());
    let mut touched = BTreeSet::new();
    let owned = a("pod", "owned").owned_by(&a("sun", "one"));
    let gone = Change::Deleted(owned.build());
    scene.controller.observe(&gone, &scene.cache, &mut touched);
    assert_eq!(touched, BTreeSet::from([definition().key()]));
}

/// Each look at the definition counts all of its instances.
#[test]
fn of_instances_on_their_way_only_the_last_touches_the_definition() {
    let held = |name| a("sun", name).deleting(&["example.com/mine"]);
    let scene = scene().seeing(&terminating()).seeing(&held("last"));
    let mut controller = scene.controller.clone();
    let mut touches = |change: &Change| {
        let mut touched = BTreeSet::new();
        controller.observe(change, &scene.cache, &mut touched);
        touched.contains(&definition().key())
    };
    assert!(!touches(&Change::Deleted(held("one").build())));
    assert!(touches(&Change::Deleted(held("last").build())));
    assert!(
        touches(&Change::Deleted(a("sun", "unseen").build())),
        "it may have been refused"
    );
    let mut updates = |old: A, new: A| {
        let (old, new) = (old.build(), new.build());
        touches(&Change::Updated { old, new })
    };
    assert!(updates(a("sun", "one"), held("one")));
    assert!(!updates(held("one"), held("one").rv(9)));
}

/// It waited out its minute although the collector was through after a second.
#[test]
fn a_reference_to_an_instance_that_goes_touches_the_definition() {
    let (sun, other) = (a("sun", "one"), a("configmap", "other"));
    let scene = scene().seeing(&terminating()).seeing(&sun).seeing(&other);
    let mut controller = scene.controller.clone();
    for before in [a("pod", "planet"), a("pod", "planet").deleting(&["x"])] {
        let old = before.clone().owned_by(&sun).owned_by(&other).build();
        let new = before.owned_by(&other).rv(9).build();
        let mut touched = BTreeSet::new();
        controller.observe(&Change::Updated { old, new }, &scene.cache, &mut touched);
        assert!(touched.contains(&definition().key()));
    }
}

#[test]
fn finalizers_of_others_on_the_definition_stay() {
    let both = emptied().deleting(&["example.com/x", CLEANUP]);
    let decision = decide(&scene().seeing(&both).caught_up());
    assert_eq!(
        patched(&decision.actions[0], Part::Main),
        json!({ "metadata": { "finalizers": ["example.com/x"] } })
    );
    let released = definition().deleting(&["example.com/x"]);
    assert_eq!(decide(&scene().seeing(&released)).reason, Reason::Released);
}

#[test]
fn what_was_never_served_has_no_instances() {
    let never = terminating().with("/status/conditions", json!([]));
    // A kind of the same name that somebody else serves is none of its business.
    let decision = decide(&scene().seeing(&never).seeing(&a("sun", "one")));
    assert_eq!(decision.reason, Reason::NeverEstablished);
    assert_eq!(decision.actions.len(), 1);
    patched(&decision.actions[0], Part::Main);
}

#[test]
fn waits_while_no_version_is_served_and_names_it() {
    let unserved = terminating().with("/spec/names", json!({ "plural": "moons" }));
    let decision = decide(&scene().seeing(&unserved).caught_up());
    assert!(matches!(
        &decision.reason,
        Reason::AwaitsObservation { blind: Some(_) }
    ));
    assert!(decision.actions.is_empty() && decision.needs.is_empty());
    assert_eq!(decision.reason.blockers().len(), 1);
}

#[test]
fn instances_and_a_changed_catalog_touch_a_terminating_definition() {
    let mut scene = scene().seeing(&terminating());
    let mut touched = BTreeSet::new();
    let sun = Change::Deleted(a("sun", "one").build());
    scene.controller.observe(&sun, &scene.cache, &mut touched);
    assert_eq!(touched, BTreeSet::from([definition().key()]));
    touched.clear();
    scene
        .controller
        .observe(&Change::Catalog, &scene.cache, &mut touched);
    assert_eq!(touched, BTreeSet::from([definition().key()]));
    touched.clear();
    let pod = Change::Deleted(a("pod", "pod").build());
    scene.controller.observe(&pod, &scene.cache, &mut touched);
    assert!(touched.is_empty());
}
