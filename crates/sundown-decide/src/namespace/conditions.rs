//! What keeps a namespace, in the five conditions that upstream writes and tools read.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Value, json};
use sundown_model::{Facts, Object};

use crate::emptying;

/// One condition: its type, then reason and message when all is well.
struct Kind {
    name: &'static str,
    reason: &'static str,
    message: &'static str,
}

const DISCOVERY: Kind = Kind {
    name: "NamespaceDeletionDiscoveryFailure",
    reason: "ResourcesDiscovered",
    message: "All resources successfully discovered",
};
const PARSING: Kind = Kind {
    name: "NamespaceDeletionGroupVersionParsingFailure",
    reason: "ParsedGroupVersions",
    message: "All legacy kube types successfully parsed",
};
const DELETION: Kind = Kind {
    name: "NamespaceDeletionContentFailure",
    reason: "ContentDeleted",
    message: "All content successfully deleted, may be waiting on finalization",
};
const REMAINING: Kind = Kind {
    name: "NamespaceContentRemaining",
    reason: "ContentRemoved",
    message: "All content successfully removed",
};
const FINALIZERS: Kind = Kind {
    name: "NamespaceFinalizersRemaining",
    reason: "ContentHasNoFinalizers",
    message: "All content-preserving finalizers finished",
};

/// The conditions for what is left; None when they stand there already.
///
/// Upstream (`status_condition_utils.go`) says nothing of what is left while pods are: "All content
/// successfully removed" would then stand there. Here the pods are named. Nothing is decided before
/// all kinds are known, so that discovery cannot have failed here.
pub(super) fn of(
    left: &[&Arc<Object>],
    facts: &Facts,
    present: &[Value],
    now: Timestamp,
) -> Option<Value> {
    let wanted = [
        DISCOVERY.is_well(),
        PARSING.is_well(),
        failed(left, facts),
        REMAINING.unless_empty(
            "SomeResourcesRemain",
            "Some resources are remaining: ",
            &by_resource(left),
        ),
        FINALIZERS.unless_empty(
            "SomeFinalizersRemain",
            "Some content in the namespace has finalizers remaining: ",
            &by_finalizer(left),
        ),
    ];
    emptying::conditions(&wanted, present, now)
}

impl Kind {
    fn is_well(&self) -> Value {
        json!({
            "type": self.name, "status": "False", "reason": self.reason, "message": self.message,
        })
    }

    fn unless_empty(&self, reason: &str, lead: &str, list: &str) -> Value {
        if list.is_empty() {
            return self.is_well();
        }
        let message = format!("{lead}{list}");
        json!({ "type": self.name, "status": "True", "reason": reason, "message": message })
    }
}

/// Upstream deletes collections and is told one error for each; here that of the first object stands
/// for its resource.
fn failed(left: &[&Arc<Object>], facts: &Facts) -> Value {
    let errors = left.iter().filter_map(|it| {
        let refusal = emptying::refusal(it, facts)?;
        Some((it.key().resource.clone(), refusal.message.as_str()))
    });
    let mut by_resource = BTreeMap::new();
    for (resource, message) in errors {
        by_resource.entry(resource).or_insert(message);
    }
    let mut messages: Vec<&str> = by_resource.values().copied().collect();
    messages.sort_unstable();
    let lead = format!(
        "Failed to delete all resource types, {} remaining: ",
        messages.len()
    );
    DELETION.unless_empty("ContentDeletionFailed", &lead, &messages.join(", "))
}

fn by_resource(left: &[&Arc<Object>]) -> String {
    let counts = count(left.iter().map(|object| object.key().resource.to_string()));
    let parts = counts.iter().map(|(what, count)| {
        // Upstream's form: a core resource ends in a dot, as its group is empty.
        let dot = if what.contains('.') { "" } else { "." };
        format!("{what}{dot} has {count} resource instances")
    });
    parts.collect::<Vec<_>>().join(", ")
}

fn by_finalizer(left: &[&Arc<Object>]) -> String {
    let names = left
        .iter()
        .flat_map(|object| object.finalizers().iter().map(ToString::to_string));
    let counts = count(names);
    let parts = counts
        .iter()
        .map(|(what, count)| format!("{what} in {count} resource instances"));
    parts.collect::<Vec<_>>().join(", ")
}

fn count(names: impl Iterator<Item = String>) -> BTreeMap<String, usize> {
    names.fold(BTreeMap::new(), |mut counts, name| {
        *counts.entry(name).or_default() += 1;
        counts
    })
}
