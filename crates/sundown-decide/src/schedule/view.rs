//! What the scheduler reads of pods and of the node.

use jiff::Timestamp;
use serde_json::Value;
use sundown_kinds::constants::{CONTAINER_WAIT_FOR_GCS, LABEL_CLUSTER};
use sundown_model::{Object, ObjectKey};

use super::amounts::{Amounts, Asking, requests};
use crate::json::{instant, items, text};

/// The fields of a Pod that a watch has to keep.
pub(super) const POD_FIELDS: &[&str] = &[
    "/metadata/creationTimestamp",
    "/metadata/labels",
    "/spec/affinity",
    "/spec/containers",
    "/spec/initContainers",
    "/spec/nodeName",
    "/spec/nodeSelector",
    "/spec/overhead",
    "/spec/priority",
    "/spec/schedulerName",
    "/spec/schedulingGates",
    "/spec/tolerations",
    "/status/conditions",
    "/status/initContainerStatuses",
    "/status/phase",
];

/// The fields of a Node that a watch has to keep.
pub(super) const NODE_FIELDS: &[&str] = &[
    "/metadata/labels",
    "/spec/taints",
    "/spec/unschedulable",
    "/status/allocatable",
];

/// A pod that asks for so much cpu is heavy to start.
const HEAVY_MILLI: i128 = 500;
/// And so is one of these images: a Ray node starts a dozen processes.
const HEAVY_IMAGES: &str = "rayproject/";

/// A pod.
#[derive(Debug, Clone)]
pub(super) struct PodView<'a> {
    pub(super) object: &'a Object,
    pub(super) is_gated: bool,
    pub(super) is_ready: bool,
    pub(super) is_heavy: bool,
    /// When it was bound.
    pub(super) bound_at: Option<Timestamp>,
    pub(super) requests: Amounts,
    /// Who comes first: the more important, then the older, then the head before its workers.
    pub(super) order: (i64, String, bool, ObjectKey),
}

impl<'a> PodView<'a> {
    pub(super) fn of(object: &'a Object) -> Self {
        let conditions = items(object.field("/status/conditions"));
        let mut bound = conditions.iter();
        let bound = bound.find(|it| text(it, "type") == "PodScheduled");
        let containers = items(object.field("/spec/containers"));
        let requests = requests(Asking {
            containers: object.field("/spec/containers"),
            init_containers: object.field("/spec/initContainers"),
            overhead: object.field("/spec/overhead"),
        });
        let cpu = requests.get("cpu").copied().unwrap_or(0);
        let mut images = containers.iter().map(|it| text(it, "image"));
        let priority = object.field("/spec/priority").and_then(Value::as_i64);
        Self {
            object,
            is_gated: !items(object.field("/spec/schedulingGates")).is_empty(),
            is_ready: is_ready(object),
            is_heavy: cpu >= HEAVY_MILLI || images.any(is_heavy_image),
            bound_at: bound
                .filter(|it| text(it, "status") == "True")
                .and_then(|it| instant(it, "lastTransitionTime")),
            requests,
            order: (
                -priority.unwrap_or(0),
                word(object, "/metadata/creationTimestamp").to_owned(),
                !is_head(object),
                object.key().clone(),
            ),
        }
    }
}

/// Whether others wait for this pod: the head of a Ray cluster.
pub(super) fn is_head(pod: &Object) -> bool {
    let labels = pod.field("/metadata/labels");
    labels.is_some_and(|labels| text(labels, "ray.io/node-type") == "head")
}

/// A Ray cluster: its namespace and name.
pub(super) type Cluster<'a> = (&'a str, &'a str);

/// The Ray cluster that a pod says it is of.
pub(super) fn cluster_of(pod: &Object) -> Option<Cluster<'_>> {
    let name = pod.field("/metadata/labels")?.get(LABEL_CLUSTER)?;
    Some((pod.key().namespace_str(), name.as_str()?))
}

/// The cluster whose head a pod waits for right now, in the init container that does nothing else.
pub(super) fn awaited_cluster(pod: &Object) -> Option<Cluster<'_>> {
    let mut statuses = items(pod.field("/status/initContainerStatuses")).iter();
    let is_waiting = statuses.any(|it| {
        text(it, "name") == CONTAINER_WAIT_FOR_GCS && it.pointer("/state/running").is_some()
    });
    cluster_of(pod).filter(|_| is_waiting)
}

/// Whether its own work has not begun: a worker waits for its head in an init container.
pub(super) fn is_initializing(pod: &Object) -> bool {
    let mut conditions = items(pod.field("/status/conditions")).iter();
    let has_passed =
        conditions.any(|it| text(it, "type") == "Initialized" && text(it, "status") == "True");
    !items(pod.field("/spec/initContainers")).is_empty() && !has_passed
}

/// Whether a pod waits for a node.
pub(super) fn is_pending(pod: &Object) -> bool {
    let is_ours = matches!(word(pod, "/spec/schedulerName"), "" | "default-scheduler");
    word(pod, "/spec/nodeName").is_empty() && is_ours && !is_over(pod) && !pod.is_deleting()
}

/// Whether a pod takes from what the node has.
pub(super) fn is_placed_on(pod: &Object, node: &str) -> bool {
    word(pod, "/spec/nodeName") == node && !is_over(pod)
}

/// Whether a round can end otherwise after this change. Most changes of a pod are its own affair: a
/// hundred pods that start would otherwise make hundreds of rounds over each other.
pub(super) fn is_worth_a_round(old: &Object, new: &Object) -> bool {
    let standing = |pod: &Object| {
        let waits = awaited_cluster(pod).is_some();
        (is_over(pod), is_ready(pod), pod.is_deleting(), waits)
    };
    is_pending(old)
        || is_pending(new)
        || standing(old) != standing(new)
        || old.field("/spec") != new.field("/spec")
}

fn is_over(pod: &Object) -> bool {
    matches!(word(pod, "/status/phase"), "Succeeded" | "Failed")
}

fn is_ready(pod: &Object) -> bool {
    let mut conditions = items(pod.field("/status/conditions")).iter();
    conditions.any(|it| text(it, "type") == "Ready" && text(it, "status") == "True")
}

fn word<'a>(pod: &'a Object, pointer: &str) -> &'a str {
    pod.field(pointer).and_then(Value::as_str).unwrap_or("")
}

fn is_heavy_image(image: &str) -> bool {
    let path = image.strip_prefix("docker.io/").unwrap_or(image);
    path.starts_with(HEAVY_IMAGES)
}
