//! Stories about owners and dependents.

use serde_json::json;

use crate::op::{It, it};
use crate::scenario::Scenario;
use crate::trouble::Trouble;
use crate::workload;
use crate::world::HOLD_FINALIZER;

const APP: It = it("Deployment", "app");
const SET: It = it("ReplicaSet", "set");
const POD: It = it("Pod", "pod");
const OTHER_POD: It = it("Pod", "other-pod");
const OTHER: It = it("ConfigMap", "other");

pub(super) fn scenarios() -> Vec<Scenario> {
    vec![
        tree("background-tree").delete(APP, "Background").settle(),
        tree("foreground-tree").delete(APP, "Foreground").settle(),
        tree("orphan-tree").delete(APP, "Orphan").settle(),
        two_owners(),
        gone_before_the_start(),
        same_name_again(),
        wrong_places(),
        change_of_mind(),
        foreign_finalizer(),
        custom_resources(),
        late_child(),
        adopted_in_time(),
        circle("circle").delete(SET, "Foreground").settle(),
        circle_with_a_guest(),
        owner_of_itself(),
        two_policies("two-owners-foreground-orphan", "Foreground", "Orphan"),
        two_policies("two-owners-orphan-foreground", "Orphan", "Foreground"),
        two_policies("two-owners-background-orphan", "Background", "Orphan"),
        two_policies("two-owners-orphan-background", "Orphan", "Background"),
        tree("tree-on-a-full-disk")
            .delete(APP, "Foreground")
            .troubled(Trouble::Full)
            .settle(),
        tree("tree-of-lost-answers")
            .delete(APP, "Orphan")
            .troubled(Trouble::Lost)
            .settle(),
        tree("tree-that-is-forbidden")
            .delete(APP, "Background")
            .troubled(Trouble::Forbidden)
            .settle(),
        tree("tree-of-ignored-changes")
            .delete(APP, "Orphan")
            .troubled(Trouble::Ignored)
            .settle(),
        circle("circle-of-conflicts")
            .delete(POD, "Foreground")
            .troubled(Trouble::Conflict)
            .settle(),
    ]
}

/// Both owners of a pod go in the same moment, each in its own way.
fn two_policies(name: &'static str, first: &str, second: &str) -> Scenario {
    Scenario::new(name)
        .start()
        .create(APP)
        .create(OTHER)
        .own(POD, &[APP, OTHER])
        .own(OTHER_POD, &[APP])
        .settle()
        .delete(APP, first)
        .delete(OTHER, second)
        .settle()
}

/// Three that own each other around, each of which waits for the next.
fn circle(name: &'static str) -> Scenario {
    Scenario::new(name)
        .start()
        .create(APP)
        .own(SET, &[APP])
        .own(POD, &[SET])
        .adopt(APP, &[POD])
        .settle()
}

/// Something that is no member blocks one of them: it goes first.
fn circle_with_a_guest() -> Scenario {
    let held = json!({ "metadata": { "finalizers": [HOLD_FINALIZER] } });
    circle("circle-with-a-guest")
        .owning(OTHER_POD, vec![(SET, true)], held)
        .settle()
        .delete(APP, "Foreground")
        .settle()
        .patch(OTHER_POD, &json!({ "metadata": { "finalizers": [] } }))
        .settle()
}

fn owner_of_itself() -> Scenario {
    Scenario::new("owner-of-itself")
        .start()
        .create(OTHER)
        .adopt(OTHER, &[OTHER])
        .settle()
        .delete(OTHER, "Foreground")
        .settle()
}

/// A Deployment with a set with two pods, and something that nobody owns.
fn tree(name: &'static str) -> Scenario {
    Scenario::new(name)
        .start()
        .create(APP)
        .own(SET, &[APP])
        .own(POD, &[SET])
        .own(OTHER_POD, &[SET])
        .create(OTHER)
        .settle()
}

/// One owner goes in foreground, the other stays and protects.
fn two_owners() -> Scenario {
    Scenario::new("two-owners")
        .start()
        .create(APP)
        .create(OTHER)
        .own(POD, &[APP, OTHER])
        .own(OTHER_POD, &[APP])
        .settle()
        .delete(APP, "Foreground")
        .settle()
}

/// The operator finds a world whose owners went while nobody watched.
fn gone_before_the_start() -> Scenario {
    Scenario::new("gone-before-the-start")
        .create(APP)
        .own(SET, &[APP])
        .own(POD, &[SET])
        .create(OTHER)
        .own(OTHER_POD, &[OTHER])
        .delete(APP, "Background")
        .start()
        .settle()
}

/// An owner is deleted and another one takes its name before anybody looks.
fn same_name_again() -> Scenario {
    Scenario::new("same-name-again")
        .start()
        .create(APP)
        .own(POD, &[APP])
        .settle()
        .delete(APP, "Background")
        .create(APP)
        .own(OTHER_POD, &[APP])
        .settle()
}

/// References that can never hold: another namespace, and an owner that never was.
fn wrong_places() -> Scenario {
    let elsewhere = OTHER.within("kube-public");
    Scenario::new("wrong-places")
        .start()
        .create(elsewhere)
        .owning(POD, vec![(elsewhere, true)], json!({}))
        .owning(OTHER_POD, vec![(it("Secret", "nobody"), false)], json!({}))
        .settle()
}

/// Foreground first, then the dependents are to stay after all.
fn change_of_mind() -> Scenario {
    let hold = json!({ "metadata": { "finalizers": [HOLD_FINALIZER] } });
    Scenario::new("change-of-mind")
        .start()
        .create(APP)
        .owning(POD, vec![(APP, true)], hold)
        .owning(OTHER_POD, vec![(APP, false)], json!({}))
        .settle()
        .delete(APP, "Foreground")
        .delete(APP, "Orphan")
        .settle()
}

/// A dependent that is stuck blocks its owner until it is let go.
fn foreign_finalizer() -> Scenario {
    let hold = json!({ "metadata": { "finalizers": [HOLD_FINALIZER] } });
    Scenario::new("foreign-finalizer")
        .start()
        .create(APP)
        .owning(POD, vec![(APP, true)], hold)
        .settle()
        .delete(APP, "Foreground")
        .settle()
        .patch(POD, &json!({ "metadata": { "finalizers": null } }))
        .settle()
}

/// A kind is defined while the operator runs; its objects own and are owned.
fn custom_resources() -> Scenario {
    let widget = it("Widget", "widget");
    Scenario::new("custom-resources")
        .start()
        .settle()
        .does(workload::definition())
        .settle()
        .create(widget)
        .own(POD, &[widget])
        .own(it("Widget", "small"), &[widget])
        .settle()
        .delete(widget, "Foreground")
        .settle()
}

/// A dependent is made while its owner is being orphaned or emptied.
fn late_child() -> Scenario {
    Scenario::new("late-child")
        .start()
        .create(APP)
        .own(SET, &[APP])
        .settle()
        .delete(APP, "Orphan")
        .own(POD, &[APP])
        .settle()
        .create(APP)
        .own(OTHER_POD, &[APP])
        .delete(APP, "Foreground")
        .own(it("Secret", "late"), &[APP])
        .settle()
}

/// A dependent gets another owner in the moment its own one goes.
fn adopted_in_time() -> Scenario {
    Scenario::new("adopted-in-time")
        .start()
        .create(APP)
        .create(OTHER)
        .own(POD, &[APP])
        .own(OTHER_POD, &[APP])
        .settle()
        .delete(APP, "Background")
        .adopt(POD, &[OTHER])
        .settle()
}
