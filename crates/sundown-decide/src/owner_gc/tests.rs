//! The rules of collection as small scenes. A deletion test says what survives, by identity.

use serde_json::json;
use sundown_model::{Action, Explain, Need, Propagation, Write};

use super::graph::Graph;
use super::{OwnerGc, Reason};
use crate::testing::{A, Scene, a, at};

fn scene() -> Scene<OwnerGc> {
    Scene::new(OwnerGc::default())
}

fn owner() -> A {
    a("configmap", "owner")
}

fn child() -> A {
    a("pod", "child").owned_by(&owner())
}

#[track_caller]
fn reason_of(scene: &Scene<OwnerGc>, object: &A) -> Reason {
    let decision = scene.decide(&object.key(), 0);
    assert_eq!(
        scene.controller.graph(),
        &Graph::of(&scene.cache),
        "incremental equals rebuilt"
    );
    assert!(!decision.reason.code().is_empty() && !decision.reason.sentence().is_empty());
    decision.reason
}

#[track_caller]
fn deletion_of(scene: &Scene<OwnerGc>, object: &A) -> Propagation {
    match scene.decide(&object.key(), 0).actions.first() {
        Some(Action::Api(Write::Delete { at, how })) => {
            assert_eq!(at, &object.build().seen(), "deletes what it saw");
            *how
        }
        other => panic!("expected a delete, got {other:?}"),
    }
}

#[track_caller]
fn patch_of(scene: &Scene<OwnerGc>, object: &A) -> serde_json::Value {
    match &scene.decide(&object.key(), 0).actions[..] {
        [
            Action::Api(Write::Patch {
                at,
                patch: sundown_model::Patch::Merge(patch),
                ..
            }),
        ] => {
            assert_eq!(at, &object.build().seen(), "patches what it saw");
            patch.clone()
        }
        other => panic!("expected one patch, got {other:?}"),
    }
}

#[test]
fn never_touches_what_has_no_owner() {
    assert_eq!(
        reason_of(&scene().seeing(&owner()), &owner()),
        Reason::NoOwners
    );
    assert_eq!(reason_of(&scene(), &owner()), Reason::Gone);
}

#[test]
fn keeps_a_dependent_while_its_owner_lives() {
    let scene = scene().seeing(&owner()).seeing(&child());
    let holders = vec![owner().key()];
    assert_eq!(reason_of(&scene, &child()), Reason::Owned { holders });
}

#[test]
fn an_owner_with_a_finalizer_of_its_own_still_holds() {
    let scene = scene()
        .seeing(&owner().deleting(&["example.com/mine"]))
        .seeing(&child());
    assert_eq!(
        reason_of(&scene, &child()),
        Reason::Owned {
            holders: vec![owner().key()]
        }
    );
}

#[test]
fn a_gap_in_the_cache_is_a_question_and_not_an_answer() {
    let scene = scene().seeing(&child());
    let needs = vec![Need::Live(owner().key())];
    assert_eq!(
        reason_of(&scene, &child()),
        Reason::AsksAboutOwners {
            needs: needs.clone()
        }
    );
    assert_eq!(scene.decide(&child().key(), 0).needs, needs);
}

/// Only a few thousand answers are remembered: who asks for more at once never has all of them.
#[test]
fn owners_are_asked_about_piece_by_piece_and_only_so_many() {
    let owned_by = |count: usize| {
        let owners: Vec<_> = (0..count)
            .map(|number| a("configmap", &format!("owner-{number}")))
            .collect();
        let mut child = a("pod", "child");
        for owner in &owners {
            child = child.owned_by(owner);
        }
        child
    };
    let child = owned_by(1_024);
    let decision = scene().seeing(&child).decide(&child.key(), 0);
    assert_eq!(decision.needs.len(), 64);
    let child = owned_by(1_025);
    assert_eq!(
        reason_of(&scene().seeing(&child), &child),
        Reason::TooManyOwners { count: 1_025 }
    );
}

/// All its owners were asked about at once, each time that an orphaning one came: 50,000 requests.
#[test]
fn of_what_is_being_deleted_only_the_kinds_of_its_owners_are_asked_about() {
    let orphan = a("configmap", "orphan").deleting(&["orphan"]);
    let mut child = a("pod", "child").deleting(&["example.com/mine"]);
    for number in 0..100 {
        child = child.owned_by(&a("configmap", &format!("owner-{number}")));
    }
    let scene = scene().seeing(&child.owned_by(&orphan)).seeing(&orphan);
    let decision = scene.decide(&a("pod", "child").key(), 0);
    let configmaps = orphan.key().resource.clone();
    assert_eq!(decision.needs, [Need::Barrier(vec![configmaps])]);
}

#[test]
fn a_live_answer_proves_absence_only_if_asked_after_the_reference_was_seen() {
    let before = scene().reading(&owner().key(), None).seeing(&child());
    assert!(matches!(
        reason_of(&before, &child()),
        Reason::AsksAboutOwners { .. }
    ));
    let after = scene().seeing(&child()).reading(&owner().key(), None);
    assert_eq!(reason_of(&after, &child()), Reason::OwnersGone);
    assert_eq!(deletion_of(&after, &child()), Propagation::Background);
}

#[test]
fn a_seen_deletion_of_the_owner_needs_no_read() {
    let scene = scene()
        .seeing(&owner())
        .seeing(&child())
        .seeing_the_end_of(&owner());
    assert_eq!(deletion_of(&scene, &child()), Propagation::Background);
}

#[test]
fn a_successor_with_the_same_name_is_another_owner() {
    let successor = owner().uid("uid-successor").rv(9);
    let scene = scene().seeing(&child()).seeing(&successor);
    assert!(matches!(
        reason_of(&scene, &child()),
        Reason::AsksAboutOwners { .. }
    ));
    let scene = scene.reading(&owner().key(), Some(&successor));
    assert_eq!(reason_of(&scene, &child()), Reason::OwnersGone);
}

#[test]
fn the_same_uid_at_another_place_is_no_owner() {
    let elsewhere = owner().namespace("elsewhere");
    let scene = scene()
        .seeing(&elsewhere)
        .seeing(&child())
        .reading(&owner().key(), None);
    assert_eq!(reason_of(&scene, &child()), Reason::OwnersGone);
    let decision = scene.decide(&child().key(), 0);
    let told = decision.actions.iter().find_map(|action| match action {
        Action::Tell(note) => Some(note.message.clone()),
        Action::Api(_) | Action::Do(_) => None,
    });
    let expect = "ownerRef [v1/ConfigMap, namespace: here, name: owner, uid: uid-owner] \
                  does not exist in namespace \"here\"";
    assert_eq!(told.as_deref(), Some(expect));
}

#[test]
fn an_owner_that_cannot_be_watched_holds_by_a_live_answer_of_limited_age() {
    let scene = scene()
        .seeing(&child())
        .reading(&owner().key(), Some(&owner()));
    assert!(matches!(reason_of(&scene, &child()), Reason::Owned { .. }));
    assert_eq!(scene.decide(&child().key(), 0).wake_at, Some(at(600)));
    assert!(scene.decide(&child().key(), 599).needs.is_empty());
    let later = scene.decide(&child().key(), 600);
    assert_eq!(later.needs, vec![Need::Live(owner().key())]);
}

#[test]
fn one_living_owner_protects_and_dead_references_are_pruned() {
    let other = a("job", "other");
    let child = child().owned_by(&other);
    let scene = scene()
        .seeing(&other)
        .seeing(&child)
        .reading(&owner().key(), None);
    let holders = vec![other.key()];
    assert_eq!(
        reason_of(&scene, &child),
        Reason::PrunesReferences { holders }
    );
    let left = patch_of(&scene, &child)["metadata"]["ownerReferences"].clone();
    assert_eq!(left.as_array().map(Vec::len), Some(1));
    assert_eq!(left[0]["uid"], json!("uid-other"));
}

#[test]
fn never_concludes_anything_from_a_kind_that_is_not_served() {
    let unknown = json!({ "apiVersion": "x.io/v1", "kind": "X", "name": "x", "uid": "uid-x" });
    let child = child().referring(unknown);
    let scene = scene().seeing(&child).reading(&owner().key(), None);
    let reason = reason_of(&scene, &child);
    assert!(matches!(&reason, Reason::UnknownOwnerKind { kind, .. } if kind == "X"));
    assert_eq!(reason.blockers().len(), 1);
    assert!(scene.decide(&child.key(), 0).actions.is_empty());
}

#[test]
fn leaves_a_cluster_scoped_object_with_a_namespaced_owner_alone() {
    let child = a("namespace", "child").owned_by(&owner());
    let scene = scene().seeing(&child).seeing(&owner());
    assert_eq!(
        reason_of(&scene, &child),
        Reason::Misplaced {
            owner: "owner".to_owned()
        }
    );
    let actions = scene.decide(&child.key(), 0).actions;
    assert!(
        matches!(&actions[..], [Action::Tell(_)]),
        "a word, and no write: {actions:?}"
    );
}

#[test]
fn a_waiting_owner_counts_only_if_it_still_waited_when_the_dependent_was_seen() {
    let waiting = owner().deleting(&["foregroundDeletion"]);
    let scene = scene().seeing(&waiting).caught_up().seeing(&child());
    let barrier = vec![Need::Barrier(vec![owner().key().resource])];
    assert_eq!(scene.decide(&child().key(), 0).needs, barrier);
    let scene = scene.caught_up();
    assert_eq!(
        reason_of(&scene, &child()),
        Reason::OwnersWaiting {
            owners: vec![owner().key()]
        }
    );
    assert_eq!(deletion_of(&scene, &child()), Propagation::Background);
}

#[test]
fn a_dependent_with_dependents_follows_its_waiting_owner_in_foreground() {
    let waiting = owner().deleting(&["foregroundDeletion"]);
    let grandchild = a("job", "grandchild").owned_by(&child());
    let scene = scene()
        .seeing(&waiting)
        .seeing(&child())
        .seeing(&grandchild)
        .caught_up();
    assert_eq!(deletion_of(&scene, &child()), Propagation::Foreground);
}

#[test]
fn a_living_owner_protects_from_a_waiting_one() {
    let (waiting, other) = (owner().deleting(&["foregroundDeletion"]), a("job", "other"));
    let child = child().owned_by(&other);
    let scene = scene()
        .seeing(&waiting)
        .seeing(&other)
        .seeing(&child)
        .caught_up();
    let left = patch_of(&scene, &child)["metadata"]["ownerReferences"].clone();
    assert_eq!(left[0]["uid"], json!("uid-other"));
}

#[test]
fn keeps_the_way_of_deletion_that_the_object_already_asks_for() {
    let gone = |child: &A| scene().seeing(child).reading(&owner().key(), None);
    let orphan = child().with("/metadata/finalizers", json!(["orphan"]));
    assert_eq!(deletion_of(&gone(&orphan), &orphan), Propagation::Orphan);
    let foreground = child().with("/metadata/finalizers", json!(["foregroundDeletion"]));
    assert_eq!(
        deletion_of(&gone(&foreground), &foreground),
        Propagation::Foreground
    );
}

#[test]
fn a_foreground_owner_is_not_released_before_all_kinds_are_caught_up() {
    let waiting = owner().deleting(&["foregroundDeletion"]);
    let scene = scene().caught_up().seeing(&waiting);
    let reason = reason_of(&scene, &waiting);
    assert_eq!(reason, Reason::AwaitsObservation { blind: Vec::new() });
    let scene = scene.caught_up();
    assert_eq!(reason_of(&scene, &waiting), Reason::Emptied);
    assert_eq!(
        patch_of(&scene, &waiting),
        json!({ "metadata": { "finalizers": null } })
    );
}

#[test]
fn only_blocking_dependents_hold_a_foreground_owner() {
    let waiting = owner().deleting(&["foregroundDeletion", "example.com/mine"]);
    let blocking = a("pod", "blocking").blocking(&owner());
    let both = scene()
        .seeing(&waiting)
        .seeing(&child())
        .seeing(&blocking)
        .caught_up();
    let dependents = vec![blocking.key()];
    let reason = reason_of(&both, &waiting);
    assert_eq!(reason, Reason::WaitsForDependents { dependents });
    assert_eq!(reason.blockers().len(), 1);
    let scene = both.seeing_the_end_of(&blocking);
    assert_eq!(reason_of(&scene, &waiting), Reason::Emptied);
    let patch = patch_of(&scene, &waiting);
    assert_eq!(patch["metadata"]["finalizers"], json!(["example.com/mine"]));
}

#[test]
fn a_stranger_with_the_right_uid_at_the_wrong_place_does_not_block() {
    let waiting = owner().deleting(&["foregroundDeletion"]);
    let stranger = a("pod", "stranger")
        .namespace("elsewhere")
        .blocking(&owner());
    let scene = scene().seeing(&waiting).seeing(&stranger).caught_up();
    assert_eq!(reason_of(&scene, &waiting), Reason::Emptied);
}

#[test]
fn orphaning_lets_each_dependent_go_and_then_the_owner() {
    let orphaning = owner().deleting(&["orphan"]);
    let scene = scene().seeing(&orphaning).seeing(&child()).caught_up();
    assert_eq!(reason_of(&scene, &child()), Reason::LetGo);
    let patch = patch_of(&scene, &child());
    assert_eq!(patch, json!({ "metadata": { "ownerReferences": null } }));
    let dependents = vec![child().key()];
    assert_eq!(
        reason_of(&scene, &orphaning),
        Reason::LetsDependentsGo { dependents }
    );
    let scene = scene.seeing(&a("pod", "child").rv(2));
    assert_eq!(reason_of(&scene, &orphaning), Reason::AllLetGo);
    assert_eq!(
        patch_of(&scene, &orphaning),
        json!({ "metadata": { "finalizers": null } })
    );
}

#[test]
fn an_orphaned_dependent_that_is_being_deleted_is_let_go_as_well() {
    let orphaning = owner().deleting(&["orphan"]);
    let child = child().deleting(&["example.com/mine"]);
    let scene = scene().seeing(&orphaning).seeing(&child);
    assert!(matches!(
        reason_of(&scene, &child),
        Reason::AsksAboutOwners { .. }
    ));
    assert_eq!(reason_of(&scene.caught_up(), &child), Reason::LetGo);
}

#[test]
fn says_which_foreign_finalizer_an_object_waits_for() {
    let object = owner().deleting(&["example.com/mine"]);
    let reason = reason_of(&scene().seeing(&object), &object);
    let finalizers = vec!["example.com/mine".to_owned()];
    assert_eq!(
        reason,
        Reason::Terminating {
            key: object.key(),
            finalizers
        }
    );
    assert_eq!(reason.blockers().len(), 1);
}

#[test]
fn events_are_neither_owners_nor_collected() {
    let event = a("event", "event").owned_by(&owner());
    let scene = scene().seeing(&event).reading(&owner().key(), None);
    assert_eq!(reason_of(&scene, &event), Reason::Gone);
    assert!(
        !scene
            .controller
            .graph()
            .has_dependents(owner().build().uid())
    );
}

#[test]
fn the_order_of_observation_does_not_matter() {
    let objects = [
        owner().deleting(&["foregroundDeletion"]),
        child(),
        a("job", "x").blocking(&owner()),
    ];
    let decide = |order: [usize; 3]| {
        let scene = order
            .iter()
            .fold(scene(), |scene, index| scene.seeing(&objects[*index]));
        let scene = scene.caught_up();
        objects
            .each_ref()
            .map(|object| scene.decide(&object.key(), 0))
    };
    let first = decide([0, 1, 2]);
    for order in [[0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
        assert_eq!(decide(order), first);
    }
}

/// An object that waits for its dependents and has these owners.
fn waiting(name: &str, owners: &[&A]) -> A {
    let it = a("configmap", name).deleting(&["foregroundDeletion"]);
    owners.iter().fold(it, |it, owner| it.blocking(owner))
}

#[test]
fn owners_that_wait_for_each_other_around_a_circle_go() {
    let (one, two) = (waiting("one", &[]), waiting("two", &[]));
    let three = waiting("three", &[&two]);
    let (two, one) = (two.blocking(&one), one.blocking(&three));
    let all = [&one, &two, &three];
    let seen = all.into_iter().fold(scene(), Scene::seeing);
    assert!(!seen.decide(&one.key(), 0).needs.is_empty());
    let seen = seen.caught_up();
    for member in all {
        let others: Vec<_> = all.iter().map(|it| it.key()).collect();
        let others = others.into_iter().filter(|it| *it != member.key());
        let mut others: Vec<_> = others.collect();
        others.sort();
        let Reason::Circle { others: told } = reason_of(&seen, member) else {
            panic!("{:?}", reason_of(&seen, member));
        };
        let mut told = told;
        told.sort();
        assert_eq!(told, others);
        assert_eq!(
            patch_of(&seen, member)["metadata"]["finalizers"],
            json!(null)
        );
    }
}

#[test]
fn a_circle_waits_for_what_blocks_it_from_outside_and_for_members_that_stay() {
    let one = waiting("one", &[]);
    let two = waiting("two", &[&one]);
    let one = one.blocking(&two);
    let guest = a("pod", "guest").blocking(&two);
    let seen = scene().seeing(&one).seeing(&two).seeing(&guest).caught_up();
    for member in [&one, &two] {
        assert!(matches!(
            reason_of(&seen, member),
            Reason::WaitsForDependents { .. }
        ));
    }
    let seen = seen.seeing_the_end_of(&guest);
    assert!(matches!(reason_of(&seen, &one), Reason::Circle { .. }));
    let stays = a("configmap", "two").blocking(&one).rv(99);
    let seen = scene().seeing(&one).seeing(&stays).caught_up();
    assert!(matches!(
        reason_of(&seen, &one),
        Reason::WaitsForDependents { .. }
    ));
}

#[test]
fn an_owner_of_itself_goes() {
    let own = a("configmap", "own");
    let own = own.clone().blocking(&own).deleting(&["foregroundDeletion"]);
    let seen = scene().seeing(&own).caught_up();
    let others = Vec::new();
    assert_eq!(reason_of(&seen, &own), Reason::Circle { others });
}
