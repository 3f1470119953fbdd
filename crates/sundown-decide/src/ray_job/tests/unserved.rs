//! The kind of the clusters is not served any more: no cluster is there, and no read would say so.

use std::sync::Arc;

use serde_json::json;
use sundown_model::{Catalog, Change, Controller};

use super::super::{RayJobs, Reason};
use super::{cluster_key, counter, running, status};
use crate::testing::catalog;
use crate::testing::ray::{Stage, a_ray_job};

/// `kubectl delete crd rayclusters.ray.io`: clusters go first, then the kind.
fn withdraw(stage: &mut Stage<RayJobs>) {
    let cluster = cluster_key(stage);
    stage.remove(&cluster);
    let kinds = catalog();
    let kinds = kinds.iter().filter(|ty| ty.resource != cluster.resource);
    let kinds = Catalog::new(kinds.map(|ty| (**ty).clone()));
    stage.scene.cache.set_catalog(Arc::new(kinds));
}

#[test]
fn a_job_without_the_kind_of_its_cluster_fails_and_goes() {
    let mut stage = running(a_ray_job());
    withdraw(&mut stage);
    stage.settle(&counter());
    assert_eq!(status(&stage, "jobDeploymentStatus"), "Failed");
    let now = json!(stage.now.to_string());
    stage.edit(&counter(), "/metadata/deletionTimestamp", now);
    stage.wait(1);
    for _ in 0..10 {
        if stage.objects.contains_key(&counter()) {
            stage.step(&counter());
        }
    }
    assert!(!stage.objects.contains_key(&counter()));
    assert_eq!(stage.ray.stops, 0);
}

/// A kind that is not known yet may be of a cluster that is there.
#[test]
fn that_a_kind_is_not_known_yet_proves_nothing() {
    let mut stage = running(a_ray_job());
    withdraw(&mut stage);
    let asks = stage.decide(&counter());
    assert_eq!(asks.reason, Reason::AsksForCluster);
    assert!(asks.actions.is_empty() && asks.needs.len() == 1, "{asks:?}");
}

#[test]
fn jobs_hear_of_kinds_that_come_and_go() {
    let mut stage = running(a_ray_job());
    let cluster = stage.objects[&cluster_key(&stage)].build();
    withdraw(&mut stage);
    for change in [Change::Forgotten(cluster), Change::Catalog] {
        let mut touched = std::collections::BTreeSet::new();
        let scene = &mut stage.scene;
        scene
            .controller
            .observe(&change, &scene.cache, &mut touched);
        assert!(touched.contains(&counter()), "{change:?}");
    }
}
