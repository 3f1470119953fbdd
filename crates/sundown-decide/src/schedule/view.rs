//! What the scheduler reads of pods and of the node.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::Value;
use sundown_model::{Object, ObjectKey};

use crate::json::{instant, items, text};
use crate::quantity;

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

/// Amounts by resource, in thousandths.
pub(super) type Amounts = BTreeMap<String, i128>;

/// A pod.
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a statement of its own about the object"
)]
#[derive(Debug, Clone)]
pub(super) struct PodView<'a> {
    pub(super) object: &'a Object,
    pub(super) is_bound: bool,
    pub(super) is_over: bool,
    pub(super) is_ours: bool,
    pub(super) is_gated: bool,
    pub(super) is_ready: bool,
    pub(super) is_heavy: bool,
    /// When it was bound.
    pub(super) bound_at: Option<Timestamp>,
    pub(super) requests: Amounts,
    /// Who comes first: the more important, then the older.
    pub(super) order: (i64, String, ObjectKey),
}

impl<'a> PodView<'a> {
    pub(super) fn of(object: &'a Object) -> Self {
        let word = |pointer| object.field(pointer).and_then(Value::as_str).unwrap_or("");
        let conditions = items(object.field("/status/conditions"));
        let of = |name: &str| conditions.iter().find(|it| text(it, "type") == name);
        let is_true = |it: &&Value| text(it, "status") == "True";
        let containers = items(object.field("/spec/containers"));
        let requests = requests(object);
        let cpu = requests.get("cpu").copied().unwrap_or(0);
        let mut images = containers.iter().map(|it| text(it, "image"));
        let priority = object.field("/spec/priority").and_then(Value::as_i64);
        Self {
            object,
            is_bound: !word("/spec/nodeName").is_empty(),
            is_over: matches!(word("/status/phase"), "Succeeded" | "Failed"),
            is_ours: matches!(word("/spec/schedulerName"), "" | "default-scheduler"),
            is_gated: !items(object.field("/spec/schedulingGates")).is_empty(),
            is_ready: of("Ready").is_some_and(|it| is_true(&it)),
            is_heavy: cpu >= HEAVY_MILLI || images.any(is_heavy_image),
            bound_at: of("PodScheduled")
                .filter(is_true)
                .and_then(|it| instant(it, "lastTransitionTime")),
            requests,
            order: (
                -priority.unwrap_or(0),
                word("/metadata/creationTimestamp").to_owned(),
                object.key().clone(),
            ),
        }
    }

    /// Whether it waits for a node.
    pub(super) fn is_pending(&self) -> bool {
        !self.is_bound && !self.is_over && self.is_ours && !self.object.is_deleting()
    }

    /// Whether it takes from what the node has.
    pub(super) fn is_placed_on(&self, node: &str) -> bool {
        let own = self.object.field("/spec/nodeName").and_then(Value::as_str);
        own == Some(node) && !self.is_over
    }
}

fn is_heavy_image(image: &str) -> bool {
    let path = image.strip_prefix("docker.io/").unwrap_or(image);
    path.starts_with(HEAVY_IMAGES)
}

/// What a pod asks for: its containers together, or its most demanding init container.
fn requests(object: &Object) -> Amounts {
    let mut total = Amounts::new();
    for container in items(object.field("/spec/containers")) {
        add(&mut total, container.pointer("/resources/requests"));
    }
    let mut beside = Amounts::new();
    let mut peak = Amounts::new();
    for container in items(object.field("/spec/initContainers")) {
        let own = container.pointer("/resources/requests");
        if text(container, "restartPolicy") == "Always" {
            add(&mut beside, own);
            add(&mut total, own);
            continue;
        }
        let mut now = beside.clone();
        add(&mut now, own);
        for (name, amount) in now {
            let most = peak.entry(name).or_default();
            *most = amount.max(*most);
        }
    }
    for (name, amount) in peak {
        let all = total.entry(name).or_default();
        *all = amount.max(*all);
    }
    add(&mut total, object.field("/spec/overhead"));
    *total.entry("pods".to_owned()).or_default() += 1_000;
    total
}

fn add(total: &mut Amounts, amounts: Option<&Value>) {
    for (name, amount) in read(amounts) {
        *total.entry(name).or_default() += amount;
    }
}

/// Amounts as they stand in a manifest; what is no quantity is left out.
pub(super) fn read(amounts: Option<&Value>) -> Amounts {
    let amounts = amounts.and_then(Value::as_object).into_iter().flatten();
    let amount = |value: &Value| match value {
        Value::String(text) => quantity::milli(text),
        Value::Number(number) => quantity::milli(&number.to_string()),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    };
    let read = amounts.filter_map(|(name, value)| Some((name.clone(), amount(value)?)));
    read.collect()
}
