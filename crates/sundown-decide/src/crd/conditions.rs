//! How far the deletion of the instances has come, in the condition that upstream writes and tools
//! read.

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::emptying::says;

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

/// Since when it is known that no instance is left; None while it is not.
pub(super) fn completed_at(present: &[Value]) -> Option<Timestamp> {
    let found = present.iter().find(|it| says(it, &completed()))?;
    let at = found["lastTransitionTime"].as_str()?;
    at.parse().ok()
}
