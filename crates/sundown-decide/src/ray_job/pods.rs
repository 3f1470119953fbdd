//! The pods of the cluster that a job ran on. Whoever deleted that cluster, they run on for their grace period,
//! or for as long as their node cannot be reached: the next attempt must not begin beside them.

use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sundown_kinds::constants::LABEL_CLUSTER;
use sundown_model::{Action, Cache, Need, Object, ObjectKey, Part};

use super::lapse::Lapse;
use super::view::{Cluster, Sight, later};
use crate::kinds::{POD, RAY_CLUSTER};
use crate::ray::{beside, controller_key, controller_of, patch};

/// Since when pods of the last cluster are waited for, on the `RayJob`: neither an edit of it nor another
/// controller begins the wait anew. An annotation, because upstream's definitions would prune a field.
pub const ANNOTATION_APART: &str = "sundown.dev/apart";

#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Apart {
    /// The name of the cluster, which each attempt has anew.
    cluster: Arc<str>,
    since: Timestamp,
}

/// What is left of the pods of a cluster that is gone.
#[derive(Debug, PartialEq)]
pub(super) enum Standing {
    Gone,
    /// All pods have to be observed before that can be said.
    Unseen(Need),
    /// That is to be stored, before they are waited for.
    Found {
        pods: Vec<ObjectKey>,
        note: Action,
    },
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
    let config = sight.scope.config;
    let lapses = config.lapses(Lapse::BeginsBesidePods)
        || (config.lapses(Lapse::TrustsSelector) && sight.job.selects_cluster());
    // One that is there is of another: its pods are none of this job's business. But a wait that has begun was for
    // pods of this job's own, whoever made a cluster in their cluster's place meanwhile and points at it.
    let is_of_other =
        matches!(sight.cluster, Cluster::There(..)) && since(sight.object, &cluster.name).is_none();
    if cluster.name.is_empty() || is_of_other || lapses {
        return Standing::Gone;
    }
    let proof = sight.scope.facts.live(&cluster);
    let gone = proof.map_or_else(|| sight.seen(), |it| it.asked);
    if !sight.scope.facts.is_fresh(&POD.resource(), gone) {
        return Standing::Unseen(Need::Barrier(vec![POD.resource()]));
    }
    let pods = pods_of(sight, &cluster);
    if pods.is_empty() {
        return Standing::Gone;
    }
    let Some(since) = since(sight.object, &cluster.name) else {
        let note = begin(sight, &cluster.name);
        return Standing::Found { pods, note };
    };
    let until = later(since, sight.scope.config.limits.apart);
    if sight.now() < until {
        Standing::Left { pods, until }
    } else {
        Standing::Overdue(pods)
    }
}

/// Since when pods of this cluster are waited for; None if that was not stored yet.
pub(super) fn since(job: &Object, cluster: &str) -> Option<Timestamp> {
    let all = job.field("/metadata/annotations")?;
    let text = all.get(ANNOTATION_APART)?.as_str()?;
    let apart: Apart = serde_json::from_str(text).ok()?;
    (*apart.cluster == *cluster).then_some(apart.since)
}

/// Stores that a wait for what is left of this cluster begins.
pub(super) fn begin(sight: &Sight<'_>, cluster: &str) -> Action {
    let apart = Apart {
        cluster: cluster.into(),
        since: sight.now(),
    };
    let text = json!(apart).to_string();
    let change = json!({"metadata": {"annotations": {ANNOTATION_APART: text}}});
    patch(sight.object, Part::Main, change)
}

/// Whether a pod belongs to a cluster that is there: nothing waits for its end.
pub(super) fn is_of_present(pod: &Object, cluster: &ObjectKey, cache: &Cache) -> bool {
    let present = cache.get(cluster).map(|it| it.uid());
    present.is_some() && controller_of(pod).map(|it| &it.uid) == present
}

/// What is read of a pod.
pub(super) const POD_FIELDS: &[&str] = &[
    "/metadata/labels",
    "/status/containerStatuses",
    "/status/initContainerStatuses",
    "/status/phase",
];

/// Whether nothing of a pod runs any more, nor will. One that outlived its deadline has failed from the moment in
/// which its containers are told to end, and they have their grace.
pub(super) fn has_ended(pod: &Object) -> bool {
    let phase = pod.field("/status/phase").and_then(Value::as_str);
    let lists = ["/status/containerStatuses", "/status/initContainerStatuses"];
    let lists = lists.iter().filter_map(|it| pod.field(it)?.as_array());
    let is_running = |container: &Value| container["state"]["running"].is_object();
    matches!(phase, Some("Succeeded" | "Failed")) && !lists.flatten().any(is_running)
}

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
        Cluster::Foreign(other) | Cluster::There(other, _) => Some(other.uid()),
        Cluster::Absent => None,
    };
    let is_left = |pod: &&Arc<Object>| {
        !has_ended(pod)
            && cluster_of(pod).is_some_and(|it| it == *cluster)
            && controller_of(pod).is_none_or(|it| Some(&it.uid) != other)
    };
    let namespace = cluster.namespace.iter();
    let pods = namespace.flat_map(|it| sight.scope.cache.of_within(&POD.resource(), it));
    pods.filter(is_left).map(|pod| pod.key().clone()).collect()
}
