//! What users do in a random life: trees, jobs, changes of mind, all three ways to delete.

use fastrand::Rng;
use serde_json::json;

use crate::op::{It, Op, define, it};
use crate::scenario::Told;
use crate::world::{HOLD_FINALIZER, World};

/// Names are few, so that they are used again. What is made is owned by earlier ones; what is adopted may be
/// owned by any, so that there are circles, and owners of themselves.
const CAST: [It; 10] = [
    it("ConfigMap", "a"),
    it("Widget", "b"),
    it("Deployment", "c"),
    it("ReplicaSet", "d"),
    it("Job", "e"),
    it("Job", "f"),
    it("Pod", "g"),
    it("Secret", "h"),
    it("Widget", "i"),
    it("Pod", "j"),
];

const POLICIES: [&str; 3] = ["Background", "Foreground", "Orphan"];

/// What a user does next.
pub(crate) fn act(world: &World, rng: &mut Rng) -> Told {
    let index = rng.usize(0..CAST.len());
    let it = pick_namespace(CAST[index], rng);
    if world.find(it).is_none() {
        return create(it, index, rng);
    }
    match rng.u8(0..10) {
        0..=3 => Told::Request(Op::delete(it, POLICIES[rng.usize(0..3)])),
        4 => Told::Adopt {
            it,
            owners: owners(it, CAST.len(), rng),
        },
        5 => {
            let held = world
                .find(it)
                .is_some_and(|it| it.has_finalizer(HOLD_FINALIZER));
            hold(world, it, !held)
        }
        6 => Told::Request(Op::patch(
            it,
            &json!({ "metadata": { "labels": { "n": rng.u8(..).to_string() } } }),
        )),
        _ if it.kind == "Job" => job(world, it, rng),
        _ => Told::Request(Op::patch(
            it,
            &json!({ "metadata": { "annotations": { "n": rng.u8(..).to_string() } } }),
        )),
    }
}

/// The definition of the custom resource that takes part.
pub(crate) fn definition() -> Op {
    let body = json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": { "name": "widgets.example.com" },
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": { "plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList" },
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": { "openAPIV3Schema": { "type": "object", "x-kubernetes-preserve-unknown-fields": true } },
            }],
        },
    });
    define(&body)
}

fn pick_namespace(it: It, rng: &mut Rng) -> It {
    if rng.u8(0..8) == 0 {
        it.within("kube-public")
    } else {
        it
    }
}

fn create(it: It, index: usize, rng: &mut Rng) -> Told {
    let mut extra = json!({});
    if it.kind == "Job" && rng.bool() {
        extra = json!({ "spec": { "ttlSecondsAfterFinished": rng.i64(0..300) } });
    }
    if rng.u8(0..8) == 0 {
        extra["metadata"]["finalizers"] = json!([HOLD_FINALIZER]);
    }
    Told::Own {
        it,
        owners: owners(it, index, rng),
        extra,
    }
}

/// Up to two owners; now and then one that lives in another namespace, or nobody at all.
fn owners(it: It, index: usize, rng: &mut Rng) -> Vec<(It, bool)> {
    let count = if index == 0 { 0 } else { rng.usize(0..3) };
    let mut pick = |_| {
        let owner = CAST[rng.usize(0..index)];
        let stray = rng.u8(0..12) == 0;
        let namespace = if stray { "kube-public" } else { it.namespace };
        (owner.within(namespace), rng.bool())
    };
    let mut owners: Vec<_> = (0..count).map(&mut pick).collect();
    owners.sort();
    owners.dedup_by_key(|(owner, _)| *owner);
    owners
}

fn hold(world: &World, it: It, add: bool) -> Told {
    let present = world.find(it).map(|version| {
        let others = version.finalizers().filter(|name| *name != HOLD_FINALIZER);
        others.map(ToOwned::to_owned).collect::<Vec<_>>()
    });
    let mut finalizers = present.unwrap_or_default();
    if add {
        finalizers.push(HOLD_FINALIZER.to_owned());
    }
    Told::Request(Op::patch(
        it,
        &json!({ "metadata": { "finalizers": finalizers } }),
    ))
}

/// A job finishes, begins again, or gets another TTL.
fn job(world: &World, it: It, rng: &mut Rng) -> Told {
    let at = world.now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    let patch = match rng.u8(0..5) {
        0 => json!({ "status": { "conditions": [] } }),
        1 => {
            return Told::Request(Op::patch(
                it,
                &json!({ "spec": { "ttlSecondsAfterFinished": rng.i64(0..600) } }),
            ));
        }
        2 => {
            return Told::Request(Op::patch(
                it,
                &json!({ "spec": { "ttlSecondsAfterFinished": null } }),
            ));
        }
        _ => {
            let kind = if rng.bool() { "Complete" } else { "Failed" };
            json!({ "status": { "conditions": [
                { "type": kind, "status": "True", "lastTransitionTime": at },
            ] } })
        }
    };
    Told::Request(Op::patch_status(it, &patch))
}
