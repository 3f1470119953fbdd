//! Whether a pod may run on the node, and in upstream's words why not.

use serde_json::Value;
use sundown_model::Object;

use super::amounts::{Amounts, read, sum};
use super::lack::{Resource, Taker, advice, lacks, obstacle};
use super::offer::CORES_LABEL;
use super::view::PodView;
use crate::json::{is_set, items, list, text};
use crate::selector::{holds, is_subset, selects};

/// The node, with what is taken of it.
#[derive(Debug, Clone)]
pub(super) struct NodeView<'a> {
    pub(super) object: &'a Object,
    pub(super) allocatable: Amounts,
    /// What each of those who are on it takes.
    pub(super) takers: Vec<Taker>,
    /// All of it.
    pub(super) taken: Amounts,
    /// Those who are on it.
    pub(super) pods: Vec<&'a Object>,
}

/// Why a pod does not fit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Obstacle {
    /// In upstream's words, without figures.
    pub(super) summary: String,
    /// What it asks for of resources of which there is not enough.
    pub(super) lacking: Amounts,
}

impl<'a> NodeView<'a> {
    pub(super) fn of(object: &'a Object) -> Self {
        Self {
            object,
            allocatable: read(object.field("/status/allocatable")),
            takers: Vec::new(),
            taken: Amounts::new(),
            pods: Vec::new(),
        }
    }

    /// How many cores there are to start things with: those of the machine, whatever is offered.
    pub(super) fn cores(&self) -> usize {
        let labels = self.object.field("/metadata/labels");
        let of_machine = labels.and_then(|it| text(it, CORES_LABEL).parse::<usize>().ok());
        let milli = self.allocatable.get("cpu").copied().unwrap_or(0);
        let offered = || usize::try_from(milli / 1_000).unwrap_or(1);
        of_machine.unwrap_or_else(offered).max(1)
    }

    pub(super) fn take(&mut self, pod: &PodView<'a>) {
        sum(&mut self.taken, &pod.requests);
        self.takers.push(Taker {
            name: pod.object.key().name.to_string(),
            amounts: pod.requests.clone(),
        });
        self.pods.push(pod.object);
    }

    /// Everything that speaks against a pod, in one sentence; None when it fits.
    pub(super) fn obstacle(&self, pod: &PodView<'_>) -> Option<Obstacle> {
        let lacking = lacks(&pod.requests, &self.allocatable, &self.taken);
        let mut all = self.rules(pod.object);
        all.extend(lacking.keys().map(|name| obstacle(name)));
        if all.is_empty() {
            return None;
        }
        all.sort();
        let summary = format!("0/1 nodes are available: {}.", all.join(", "));
        Some(Obstacle { summary, lacking })
    }

    /// What a pod lacks, in figures, and what to do about it; with what the line up to this pod asks for of it.
    pub(super) fn advice(&self, pod: &PodView<'_>, in_line: &Amounts) -> String {
        let lacking = lacks(&pod.requests, &self.allocatable, &self.taken);
        let sentences = lacking.iter().map(|(name, needed)| {
            let resource = Resource {
                name,
                needed: *needed,
                in_line: in_line.get(name).copied().unwrap_or(*needed),
                offered: self.allocatable.get(name).copied(),
                taken: self.taken.get(name).copied().unwrap_or(0),
            };
            format!(" {}.", advice(&resource, &self.takers))
        });
        sentences.collect()
    }

    fn rules(&self, pod: &Object) -> Vec<String> {
        let mut all = Vec::new();
        let node = self.object;
        if node.field("/spec/unschedulable") == Some(&Value::Bool(true)) {
            all.push("1 node(s) were unschedulable".to_owned());
        }
        let labels = node.field("/metadata/labels");
        let is_meant = is_subset(pod.field("/spec/nodeSelector"), labels);
        if !is_meant || !self.affine(pod) {
            all.push("1 node(s) didn't match Pod's node affinity/selector".to_owned());
        }
        let tolerations = items(pod.field("/spec/tolerations"));
        let mut taints = items(node.field("/spec/taints")).iter();
        if let Some(taint) = taints.find(|taint| repels(taint, tolerations)) {
            let (key, value) = (text(taint, "key"), text(taint, "value"));
            all.push(format!(
                "1 node(s) had untolerated taint {{{key}: {value}}}"
            ));
        }
        let terms = |kind: &str| {
            let path = format!("/{kind}/requiredDuringSchedulingIgnoredDuringExecution");
            items(pod.field("/spec/affinity").and_then(|it| it.pointer(&path)))
        };
        let near = terms("podAffinity").iter();
        let mut near = near.map(|term| self.has_near(pod, term) || means(pod, pod, term));
        if !near.all(|is_met| is_met) {
            all.push("1 node(s) didn't match pod affinity rules".to_owned());
        }
        let mut apart = terms("podAntiAffinity").iter();
        if apart.any(|term| self.has_near(pod, term)) {
            all.push("1 node(s) didn't match pod anti-affinity rules".to_owned());
        }
        all
    }

    /// Whether one of the required node terms holds, or there is none.
    fn affine(&self, pod: &Object) -> bool {
        let affinity = pod.field("/spec/affinity");
        let path = "/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution";
        let Some(required) = affinity.and_then(|it| it.pointer(path)) else {
            return true;
        };
        let labels = self.object.field("/metadata/labels");
        let label = |name: &str| labels.and_then(|it| it.get(name)).and_then(Value::as_str);
        let name = &*self.object.key().name;
        list(required, "nodeSelectorTerms").iter().any(|term| {
            let rules = list(term, "matchExpressions");
            let fields = list(term, "matchFields");
            let is_empty = rules.is_empty() && fields.is_empty();
            let is_named =
                |rule: &Value| text(rule, "key") == "metadata.name" && holds(rule, Some(name));
            !is_empty
                && rules
                    .iter()
                    .all(|rule| holds(rule, label(text(rule, "key"))))
                && fields.iter().all(is_named)
        })
    }

    /// Whether somebody on the node is meant. One node is every topology.
    fn has_near(&self, pod: &Object, term: &Value) -> bool {
        self.pods.iter().any(|other| means(pod, other, term))
    }
}

fn means(pod: &Object, other: &Object, term: &Value) -> bool {
    let namespaces = list(term, "namespaces");
    let own = pod.key().namespace_str();
    let theirs = other.key().namespace_str();
    let is_near = if namespaces.is_empty() {
        own == theirs || term.get("namespaceSelector").is_some()
    } else {
        namespaces.iter().any(|it| it.as_str() == Some(theirs))
    };
    is_near && selects(term.get("labelSelector"), other.field("/metadata/labels"))
}

fn repels(taint: &Value, tolerations: &[Value]) -> bool {
    let effect = text(taint, "effect");
    if !matches!(effect, "NoSchedule" | "NoExecute") {
        return false;
    }
    let is_tolerated = |it: &Value| {
        let is_effect = matches!(text(it, "effect"), "") || text(it, "effect") == effect;
        let key = text(it, "key");
        let is_key = key == text(taint, "key") || (key.is_empty() && exists(it));
        let is_value = exists(it) || text(it, "value") == text(taint, "value");
        is_effect && is_key && is_value
    };
    !tolerations.iter().any(is_tolerated)
}

fn exists(toleration: &Value) -> bool {
    text(toleration, "operator") == "Exists" && !is_set(toleration, "value")
}
