//! How far the deletion of the instances has come, in the condition that upstream writes and tools
//! read.

use jiff::Timestamp;
use serde_json::{Value, json};

/// Instances are being deleted.
pub(super) fn in_progress() -> Value {
    json!({
        "type": "Terminating", "status": "True", "reason": "InstanceDeletionInProgress",
        "message": "CustomResource deletion is in progress",
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
