//! What keeps a namespace, in the conditions that upstream writes and tools read.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Value, json};
use sundown_model::Object;

/// The conditions for what is left; None when they stand there already.
pub(super) fn of(left: &[&Arc<Object>], present: &[Value], now: Timestamp) -> Option<Value> {
    let remaining = condition(
        "NamespaceContentRemaining",
        ("ContentRemoved", "All content successfully removed"),
        (
            "SomeResourcesRemain",
            "Some resources are remaining: ",
            &by_resource(left),
        ),
    );
    let finalizers = condition(
        "NamespaceFinalizersRemaining",
        (
            "ContentHasNoFinalizers",
            "All content-preserving finalizers finished",
        ),
        (
            "SomeFinalizersRemain",
            "Some content in the namespace has finalizers remaining: ",
            &by_finalizer(left),
        ),
    );
    let wanted = [remaining, finalizers];
    let stands = |wanted: &Value| {
        present.iter().any(|it| {
            ["type", "status", "reason", "message"]
                .iter()
                .all(|name| it[name] == wanted[name])
        })
    };
    if wanted.iter().all(stands) {
        return None;
    }
    let at = now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    let dated = wanted.into_iter().map(|mut condition| {
        let old = present
            .iter()
            .find(|it| it["type"] == condition["type"] && it["status"] == condition["status"]);
        // The time is that of the transition, so it stays while the status does.
        let since = old.and_then(|it| it.get("lastTransitionTime")).cloned();
        condition["lastTransitionTime"] = since.unwrap_or_else(|| json!(at));
        condition
    });
    Some(dated.collect())
}

fn condition(name: &str, none: (&str, &str), some: (&str, &str, &str)) -> Value {
    let (reason, lead, list) = some;
    if list.is_empty() {
        return json!({ "type": name, "status": "False", "reason": none.0, "message": none.1 });
    }
    json!({ "type": name, "status": "True", "reason": reason, "message": format!("{lead}{list}") })
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
