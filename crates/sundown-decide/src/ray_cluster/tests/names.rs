//! Names that another cluster holds. The second of two clusters with one name once waited for ever,
//! because nobody told it that the first one was gone.

use std::collections::BTreeSet;

use serde_json::json;
use sundown_model::{Change, Controller, ObjectKey};

use super::super::{RayClusters, Reason};
use super::{a_cluster, demo, pods, stage};
use crate::testing::A;
use crate::testing::ray::{Stage, key};

/// Another cluster with the same names.
fn twin() -> A {
    let it = a_cluster().with("/metadata/name", json!("twin"));
    it.uid("uid-twin")
}

fn touched_by_the_end_of(stage: &Stage<RayClusters>, object: &ObjectKey) -> BTreeSet<ObjectKey> {
    let change = Change::Deleted(stage.objects[object].build());
    let mut touched = BTreeSet::new();
    RayClusters::default().observe(&change, &stage.scene.cache, &mut touched);
    touched
}

#[test]
fn a_cluster_hears_when_another_one_lets_go_of_the_name_of_its_service() {
    let named = |it: A| {
        let name = json!("shared");
        it.with("/spec/headGroupSpec/headService/metadata/name", name)
    };
    let mut stage = stage(named(a_cluster())).with(named(twin()));
    stage.settle(&demo());
    let service = key("", "services", "shared");
    let waits = Reason::ServiceTaken {
        service: service.clone(),
    };
    assert_eq!(stage.settle(&twin().key()).reason, waits);
    let touched = touched_by_the_end_of(&stage, &service);
    assert_eq!(touched, [demo(), twin().key()].into());
    stage.remove(&service);
    assert!(matches!(
        stage.step(&twin().key()).reason,
        Reason::Changes { .. }
    ));
}

#[test]
fn a_cluster_says_that_the_name_of_its_head_is_taken_and_hears_when_it_is_free() {
    let named = |it: A| {
        let name = json!("boss");
        it.with("/spec/headGroupSpec/template/metadata/name", name)
    };
    let mut stage = stage(named(a_cluster())).with(named(twin()));
    stage.settle(&demo());
    let boss = key("", "pods", "boss");
    assert_eq!(pods(&stage, "head"), std::slice::from_ref(&boss));
    let waits = stage.settle(&twin().key());
    let Reason::Refused { why } = &waits.reason else {
        panic!("{waits:?}");
    };
    assert!(why.starts_with("Failed to create head Pod here/boss, another Pod"));
    assert!(stage.said().contains("FailedToCreateHeadPod"));
    let touched = touched_by_the_end_of(&stage, &boss);
    assert_eq!(touched, [demo(), twin().key()].into());
    let worker = pods(&stage, "worker").remove(0);
    assert_eq!(touched_by_the_end_of(&stage, &worker).len(), 1);
    stage.remove(&boss);
    stage.settle(&twin().key());
    assert_eq!(pods(&stage, "head"), [boss]);
}
