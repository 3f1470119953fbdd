//! That instances are being deleted, in the condition that upstream writes and tools read.

use jiff::Timestamp;
use serde_json::{Value, json};

/// The conditions with `Terminating` as it should be; None when it stands there already.
pub(super) fn in_progress(present: &[Value], now: Timestamp) -> Option<Value> {
    let mut wanted = json!({
        "type": "Terminating", "status": "True", "reason": "InstanceDeletionInProgress",
        "message": "CustomResource deletion is in progress",
    });
    let old = present.iter().find(|it| it["type"] == wanted["type"]);
    let is_same = |old: &Value| {
        ["status", "reason", "message"]
            .iter()
            .all(|it| old[it] == wanted[it])
    };
    if old.is_some_and(is_same) {
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
