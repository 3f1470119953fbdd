//! Stories about storage that is deleted while in use.

use serde_json::{Value, json};
use sundown_api::Method;

use crate::op::{It, Op, it};
use crate::scenario::Scenario;

use super::namespace;

const CLAIM: It = it("PersistentVolumeClaim", "data").within("team");
const SPARE: It = it("PersistentVolumeClaim", "spare").within("team");
const POD: It = it("Pod", "user").within("team");
const OWNER: It = it("ConfigMap", "owner").within("team");

pub(super) fn scenarios() -> Vec<Scenario> {
    vec![
        // A pod on a node uses the claim when both are deleted with their namespace.
        Scenario::new("namespace-with-a-claim")
            .with_storage()
            .start()
            .does(namespace::create())
            .create(CLAIM)
            .create(SPARE)
            .does(Op::create(POD, &mounting("data")))
            .settle()
            .does(namespace::delete())
            .settle()
            .does(ended(POD))
            .settle(),
        // The claim and its volume are deleted first; a foreground owner waits for the claim.
        Scenario::new("claim-deleted-while-used")
            .with_storage()
            .start()
            .does(namespace::create())
            .create(OWNER)
            .own(CLAIM, &[OWNER])
            .does(volume())
            .does(bound())
            .does(Op::create(POD, &mounting("data")))
            .settle()
            .does(delete_volume())
            .delete(OWNER, "Foreground")
            .settle()
            .does(ended(POD))
            .settle(),
    ]
}

/// A pod on a node that mounts a claim.
fn mounting(claim: &str) -> Value {
    let volume = json!({ "name": "v", "persistentVolumeClaim": { "claimName": claim } });
    json!({ "spec": { "nodeName": "far", "volumes": [volume] } })
}

/// The last word of a kubelet on a pod.
fn ended(it: It) -> Op {
    let options = json!({ "gracePeriodSeconds": 0 });
    let label = format!("the kubelet lets go of {it}");
    Op::new(Method::Delete, it.path(), Some(&options), label)
}

const VOLUMES: &str = "/api/v1/persistentvolumes";

fn volume() -> Op {
    let body = json!({
        "apiVersion": "v1", "kind": "PersistentVolume", "metadata": { "name": "disk" },
        "spec": {
            "capacity": { "storage": "1Gi" }, "accessModes": ["ReadWriteOnce"],
            "hostPath": { "path": "/data" },
            "claimRef": { "namespace": "team", "name": "data" },
        },
    });
    let label = "create volume disk".to_owned();
    Op::new(Method::Post, VOLUMES.to_owned(), Some(&body), label)
}

/// What a binder says of it.
fn bound() -> Op {
    let path = format!("{VOLUMES}/disk/status");
    let body = json!({ "status": { "phase": "Bound" } });
    Op::new(Method::Patch, path, Some(&body), "bind disk".to_owned())
}

fn delete_volume() -> Op {
    let label = "delete volume disk".to_owned();
    Op::new(Method::Delete, format!("{VOLUMES}/disk"), None, label)
}
