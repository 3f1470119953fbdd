//! The pods of the cluster that a job ran on. Whoever deleted that cluster, they run on for their grace period,
//! or for as long as their node cannot be reached: the next attempt must not begin beside them.

use std::sync::Arc;

use jiff::Timestamp;
use sundown_kinds::constants::LABEL_CLUSTER;
use sundown_model::{Need, Object, ObjectKey, Step};

use super::lapse::Lapse;
use super::view::{Cluster, Sight, later};
use crate::kinds::{POD, RAY_CLUSTER};
use crate::ray::{beside, controller_key, controller_of};

/// What is left of the pods of a cluster that is gone.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Standing {
    Gone,
    /// All pods have to be observed before that can be said.
    Unseen(Need),
    Left {
        pods: Vec<ObjectKey>,
        until: Timestamp,
    },
    /// They had their time.
    Overdue(Vec<ObjectKey>),
}

/// # Assumes
/// It is proven that the cluster is gone.
pub(super) fn standing(sight: &Sight<'_>) -> Standing {
    let cluster = sight.cluster_key();
    let lapses = sight.scope.config.lapses(Lapse::BeginsBesidePods);
    if cluster.name.is_empty() || sight.job.selects_cluster() || lapses {
        return Standing::Gone;
    }
    let proof = sight.scope.facts.live(&cluster);
    let gone = proof.map_or_else(Step::default, |it| it.asked);
    if !sight.scope.facts.is_fresh(&POD.resource(), gone) {
        return Standing::Unseen(Need::Barrier(vec![POD.resource()]));
    }
    let pods = pods_of(sight, &cluster);
    if pods.is_empty() {
        return Standing::Gone;
    }
    let since = proof.map_or(sight.now(), |it| it.answered_at);
    let until = later(since, sight.scope.config.limits.apart);
    if sight.now() < until {
        Standing::Left { pods, until }
    } else {
        Standing::Overdue(pods)
    }
}

/// What is read of a pod.
pub(super) const POD_FIELDS: &[&str] = &["/metadata/labels"];

/// The cluster that a pod belongs to. The collector takes the reference away when a cluster is deleted and its
/// pods are orphaned; then only the label tells.
pub(super) fn cluster_of(pod: &Object) -> Option<ObjectKey> {
    if controller_of(pod).is_some() {
        return controller_key(pod, &RAY_CLUSTER);
    }
    let name = pod.field("/metadata/labels")?.get(LABEL_CLUSTER)?;
    Some(beside(pod.key(), &RAY_CLUSTER, name.as_str()?))
}

/// By name: which uid the cluster had is not always stored. One of the same name that is there now has
/// another, and its pods are its own.
fn pods_of(sight: &Sight<'_>, cluster: &ObjectKey) -> Vec<ObjectKey> {
    let other = match &sight.cluster {
        Cluster::Foreign(other) => Some(other.uid()),
        Cluster::Absent | Cluster::There(..) => None,
    };
    let is_left = |pod: &&Arc<Object>| {
        pod.key().namespace == cluster.namespace
            && cluster_of(pod).is_some_and(|it| it == *cluster)
            && controller_of(pod).is_none_or(|it| Some(&it.uid) != other)
    };
    let pods = POD.resource();
    let left = sight.scope.cache.of(&pods).filter(is_left);
    left.map(|pod| pod.key().clone()).collect()
}
