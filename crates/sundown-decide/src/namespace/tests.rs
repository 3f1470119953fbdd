//! The end of a namespace, scene by scene.

use serde_json::{Value, json};
use sundown_model::{ACTIONS_MAX, Action, Explain, Part, Patch, Propagation, Write};

use super::{Namespaces, Reason};
use crate::testing::{A, Scene, a};

fn terminating() -> A {
    a("namespace", "here")
        .deleting(&[])
        .with("/spec/finalizers", json!(["kubernetes"]))
}

fn scene() -> Scene<Namespaces> {
    Scene::new(Namespaces)
}

fn decide(scene: &Scene<Namespaces>) -> sundown_model::Decision<Reason> {
    let decision = scene.decide(&terminating().key(), 7);
    assert!(!decision.reason.code().is_empty() && !decision.reason.sentence().is_empty());
    decision
}

#[track_caller]
fn patch(decision: &sundown_model::Decision<Reason>, expect: Part) -> Value {
    match decision.actions.as_slice() {
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

#[test]
fn leaves_a_namespace_alone_that_is_in_use_or_gone() {
    assert_eq!(decide(&scene()).reason, Reason::Gone);
    let used = scene()
        .seeing(&a("namespace", "here"))
        .seeing(&a("pod", "pod"));
    assert_eq!(decide(&used), sundown_model::Decision::idle(Reason::Active));
}

#[test]
fn deletes_exactly_what_is_in_it() {
    let inside = a("pod", "inside");
    let outside = a("pod", "outside").namespace("elsewhere");
    let scene = scene()
        .seeing(&terminating())
        .seeing(&inside)
        .seeing(&outside);
    let decision = decide(&scene);
    assert_eq!(decision.reason, Reason::Empties { count: 1 });
    let delete = Write::Delete {
        at: inside.build().seen(),
        how: Propagation::Background,
    };
    assert_eq!(decision.actions, vec![Action::Api(delete)]);
}

#[test]
fn takes_a_bounded_number_at_a_time() {
    let many = (0..ACTIONS_MAX + 5).fold(scene().seeing(&terminating()), |scene, index| {
        scene.seeing(&a("pod", &format!("pod-{index}")))
    });
    let decision = decide(&many);
    assert_eq!(
        decision.reason,
        Reason::Empties {
            count: ACTIONS_MAX + 5
        }
    );
    assert_eq!(decision.actions.len(), ACTIONS_MAX);
}

#[test]
fn says_once_what_keeps_it() {
    let stuck = a("pod", "stuck").deleting(&["example.com/mine"]);
    let scene = scene().seeing(&terminating()).seeing(&stuck);
    let decision = decide(&scene);
    assert!(matches!(&decision.reason, Reason::Blocked { by } if by.len() == 1));
    assert_eq!(decision.reason.blockers().len(), 1);
    let conditions = patch(&decision, Part::Status)["status"]["conditions"].clone();
    assert_eq!(
        conditions[0]["message"],
        "Some resources are remaining: pods. has 1 resource instances"
    );
    assert_eq!(
        conditions[1]["message"],
        "Some content in the namespace has finalizers remaining: example.com/mine in 1 resource instances",
    );
    let told = scene.seeing(&terminating().with("/status/conditions", conditions).rv(2));
    let decision = decide(&told);
    assert!(matches!(decision.reason, Reason::Blocked { .. }));
    assert!(decision.actions.is_empty(), "said already");
}

#[test]
fn a_condition_keeps_its_time_while_its_status_stays() {
    let stuck = |name: &str| a("pod", name).deleting(&["example.com/mine"]);
    let scene = scene().seeing(&terminating()).seeing(&stuck("one"));
    let mut conditions = patch(&decide(&scene), Part::Status)["status"]["conditions"].clone();
    conditions[0]["lastTransitionTime"] = json!("2029-01-01T00:00:00Z");
    let scene = scene.seeing(&stuck("two"));
    let scene = scene.seeing(&terminating().with("/status/conditions", conditions).rv(2));
    let again = patch(&decide(&scene), Part::Status)["status"]["conditions"].clone();
    assert_eq!(
        again[0]["lastTransitionTime"],
        json!("2029-01-01T00:00:00Z")
    );
}

#[test]
fn is_released_only_when_a_barrier_proves_that_nothing_is_left() {
    let scene = scene().caught_up().seeing(&terminating());
    let decision = decide(&scene);
    assert_eq!(
        decision.reason,
        Reason::AwaitsObservation { blind: Vec::new() }
    );
    assert_eq!(decision.needs.len(), 1);
    let decision = decide(&scene.caught_up());
    assert_eq!(decision.reason, Reason::Empty);
    assert_eq!(
        patch(&decision, Part::Finalize),
        json!({ "spec": { "finalizers": [] } })
    );
}

#[test]
fn finalizers_of_others_in_spec_stay() {
    let both = terminating().with("/spec/finalizers", json!(["example.com/x", "kubernetes"]));
    let decision = decide(&scene().seeing(&both).caught_up());
    assert_eq!(
        patch(&decision, Part::Finalize),
        json!({ "spec": { "finalizers": ["example.com/x"] } })
    );
    let released = terminating().with("/spec/finalizers", json!(["example.com/x"]));
    assert_eq!(decide(&scene().seeing(&released)).reason, Reason::Released);
}
