//! The pods of the cluster that a job ran on. Whoever deleted that cluster, they run on for their grace period,
//! or for as long as their node cannot be reached: the next attempt must not begin beside them.

use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sundown_kinds::constants::LABEL_CLUSTER;
use sundown_model::{Action, Cache, Need, Object, ObjectKey, Part};

use super::lapse::Lapse;
use super::view::{Cluster, View, later};
use crate::actions::patch;
use crate::kinds::{POD, RAY_CLUSTER, RAY_JOB};
use crate::ray::{beside, controller_key, controller_of};

/// Which pods are waited for and since when, on the `RayJob`: neither an edit of it nor another controller begins
/// the wait anew. An annotation, because upstream's definitions would prune a field.
pub const ANNOTATION_APART: &str = "sundown.dev/apart";

/// How many clusters that an attempt had before are remembered. Each was deleted by a user before anything was
/// submitted, and the pods of so many are not there at once.
const BEFORE_MAX: usize = 16;

#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Apart {
    /// The name of the present cluster, which each attempt has anew.
    cluster: Arc<str>,
    /// None: nothing is waited for yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    since: Option<Timestamp>,
    /// The clusters that this attempt had before it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    before: Vec<Arc<str>>,
}

impl Apart {
    /// What is stored on a job; None if that is nothing, or about another cluster.
    fn of(job: &Object, cluster: &str) -> Option<Self> {
        let apart = Self::read(job)?;
        (*apart.cluster == *cluster).then_some(apart)
    }

    fn read(job: &Object) -> Option<Self> {
        let all = job.field("/metadata/annotations")?;
        serde_json::from_str(all.get(ANNOTATION_APART)?.as_str()?).ok()
    }

    fn store(&self, view: &View<'_>) -> Action {
        let text = json!(self).to_string();
        let change = json!({"metadata": {"annotations": {ANNOTATION_APART: text}}});
        patch(view.object, Part::Main, change)
    }
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
pub(super) fn standing(view: &View<'_>) -> Standing {
    let cluster = view.cluster_key();
    let config = view.config;
    let lapses = config.lapses(Lapse::BeginsBesidePods)
        || (config.lapses(Lapse::TrustsSelector) && view.job.selects_cluster());
    // One that is there is of another: its pods are none of this job's business. But a wait that has begun was for
    // pods of this job's own, whoever made a cluster in their cluster's place meanwhile and points at it.
    let is_of_other =
        matches!(view.cluster, Cluster::There(..)) && since(view.object, &cluster.name).is_none();
    let before = before(view.object, &cluster);
    if cluster.name.is_empty() || (is_of_other && before.is_empty()) || lapses {
        return Standing::Gone;
    }
    let proof = view.sight.facts.live(&cluster);
    let gone = proof.map_or_else(|| view.seen(), |it| it.asked);
    if !view.sight.facts.is_fresh(&POD.resource(), gone) {
        return Standing::Unseen(Need::Barrier(vec![POD.resource()]));
    }
    let own = (!is_of_other).then(|| pods_of(view, &cluster));
    let before = before.iter().flat_map(|it| pods_without(view, it));
    let pods: Vec<ObjectKey> = own.into_iter().flatten().chain(before).collect();
    if pods.is_empty() {
        return Standing::Gone;
    }
    let Some(since) = since(view.object, &cluster.name) else {
        let note = begin(view, &cluster.name);
        return Standing::Found { pods, note };
    };
    let until = later(since, view.config.limits.apart);
    if view.now() < until {
        Standing::Left { pods, until }
    } else {
        Standing::Overdue(pods)
    }
}

/// Since when pods of this cluster are waited for; None if that was not stored yet.
pub(super) fn since(job: &Object, cluster: &str) -> Option<Timestamp> {
    Apart::of(job, cluster)?.since
}

/// The clusters that an attempt had before this one.
fn before(job: &Object, cluster: &ObjectKey) -> Vec<ObjectKey> {
    let apart = Apart::of(job, &cluster.name);
    let names = apart.into_iter().flat_map(|it| it.before);
    names
        .map(|name| beside(job.key(), &RAY_CLUSTER, &name))
        .collect()
}

/// The jobs that had a cluster before the one that they have.
pub(super) fn jobs_before(cluster: &ObjectKey, cache: &Cache) -> Vec<ObjectKey> {
    let namespace = cluster.namespace.iter();
    let jobs = namespace.flat_map(|it| cache.of_within(&RAY_JOB.resource(), it));
    let had =
        |job: &&Arc<Object>| Apart::read(job).is_some_and(|it| it.before.contains(&cluster.name));
    jobs.filter(had).map(|job| job.key().clone()).collect()
}

/// Stores that a wait for what is left of this cluster begins.
pub(super) fn begin(view: &View<'_>, cluster: &str) -> Action {
    let stored = Apart::of(view.object, cluster);
    let apart = Apart {
        cluster: cluster.into(),
        since: Some(view.now()),
        before: stored.map_or_else(Vec::new, |it| it.before),
    };
    apart.store(view)
}

/// Stores that the cluster of an attempt is going to have another name; None if that is stored. The pods of the old
/// one may still be there.
pub(super) fn renames(view: &View<'_>, old: &ObjectKey, new: &str) -> Option<Action> {
    let job = view.object;
    if Apart::of(job, new).is_some_and(|it| it.before.contains(&old.name)) {
        return None;
    }
    let mut before = Apart::of(job, &old.name).map_or_else(Vec::new, |it| it.before);
    before.push(old.name.clone());
    let apart = Apart {
        cluster: new.into(),
        since: None,
        before: before.split_off(before.len().saturating_sub(BEFORE_MAX)),
    };
    Some(apart.store(view))
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
fn pods_of(view: &View<'_>, cluster: &ObjectKey) -> Vec<ObjectKey> {
    let other = match &view.cluster {
        Cluster::Foreign(other) | Cluster::There(other, _) => Some(other.uid()),
        Cluster::Absent => None,
    };
    left(view, cluster, |pod| {
        controller_of(pod).is_none_or(|it| Some(&it.uid) != other)
    })
}

/// The pods of a cluster of before that is not there.
fn pods_without(view: &View<'_>, cluster: &ObjectKey) -> Vec<ObjectKey> {
    left(view, cluster, |pod| {
        !is_of_present(pod, cluster, view.sight.cache)
    })
}

fn left(
    view: &View<'_>,
    cluster: &ObjectKey,
    is_waited_for: impl Fn(&Object) -> bool,
) -> Vec<ObjectKey> {
    let is_left = |pod: &&Arc<Object>| {
        !has_ended(pod) && cluster_of(pod).is_some_and(|it| it == *cluster) && is_waited_for(pod)
    };
    let namespace = cluster.namespace.iter();
    let pods = namespace.flat_map(|it| view.sight.cache.of_within(&POD.resource(), it));
    pods.filter(is_left).map(|pod| pod.key().clone()).collect()
}
