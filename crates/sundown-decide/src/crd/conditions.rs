//! How far the deletion of the instances has come, in the condition that upstream writes and tools
//! read.

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde_json::{Value, json};

/// Instances are being deleted.
pub(super) fn in_progress() -> Value {
    json!({
        "type": "Terminating", "status": "True", "reason": "InstanceDeletionInProgress",
        "message": "CustomResource deletion is in progress",
    })
}

/// Nothing more can be done for now: what is left is on its way, or was refused for these reasons.
pub(super) fn after<'a>(refusals: impl Iterator<Item = &'a str>) -> Value {
    let all: BTreeSet<&str> = refusals.collect();
    // As upstream writes several errors at once.
    let list = all.iter().copied().collect::<Vec<_>>().join(", ");
    let list = match all.len() {
        0 => return in_progress(),
        1 => list,
        _ => format!("[{list}]"),
    };
    json!({
        "type": "Terminating", "status": "True", "reason": "InstanceDeletionFailed",
        "message": format!("could not issue all deletes: {list}"),
    })
}

/// No instance is left.
pub(super) fn completed() -> Value {
    json!({
        "type": "Terminating", "status": "False", "reason": "InstanceDeletionCompleted",
        "message": "removed all instances",
    })
}

/// The conditions with one of them as it should be; None when it stands there already.
pub(super) fn with(mut wanted: Value, present: &[Value], now: Timestamp) -> Option<Value> {
    let old = present.iter().find(|it| it["type"] == wanted["type"]);
    if old.is_some_and(|old| says(old, &wanted)) {
        return None;
    }
    // The time is that of the transition, so it stays while the status does.
    let since = old.filter(|old| old["status"] == wanted["status"]);
    let since = since.and_then(|old| old.get("lastTransitionTime")).cloned();
    let at = || json!(now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string());
    wanted["lastTransitionTime"] = since.unwrap_or_else(at);
    let others = present.iter().filter(|it| it["type"] != wanted["type"]);
    Some(others.cloned().chain([wanted.clone()]).collect())
}

/// Since when it is known that no instance is left; None while it is not.
pub(super) fn completed_at(present: &[Value]) -> Option<Timestamp> {
    let found = present.iter().find(|it| says(it, &completed()))?;
    let at = found["lastTransitionTime"].as_str()?;
    at.parse().ok()
}

fn says(condition: &Value, wanted: &Value) -> bool {
    ["type", "status", "reason", "message"]
        .iter()
        .all(|it| condition[it] == wanted[it])
}
