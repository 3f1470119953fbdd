//! The single exit. Whatever leaves has passed here: granted, not braked, guarded by its type.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::json;
use sundown_model::{
    Deed, Draft, Grant, Note, ObjectKey, Permit, Port, Resource, Uid, Write, byte_count,
};

use crate::effect::Brake;
use crate::engine::Birth;
use crate::sent::SentWrite;

/// Whether a write may leave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pass {
    Free,
    /// Held back until the brake is released.
    Braked,
    /// The controller has no grant for it: a defect of ours, never sent.
    NotGranted,
}

pub(crate) fn check(write: &Write, grants: &[Grant], brake: &Brake) -> Pass {
    let (key, permit) = target(write);
    if !grants
        .iter()
        .any(|grant| grant.covers(&key.resource, permit))
    {
        return Pass::NotGranted;
    }
    if brake.holds(key) {
        Pass::Braked
    } else {
        Pass::Free
    }
}

/// The same for what is done beyond the API server.
pub(crate) fn check_deed(deed: &Deed, ports: &[Port], brake: &Brake) -> Pass {
    if !ports.contains(&deed.what.port()) {
        return Pass::NotGranted;
    }
    if brake.holds(&deed.about) {
        Pass::Braked
    } else {
        Pass::Free
    }
}

/// What a write touches, and by which right.
pub(crate) fn target(write: &Write) -> (&ObjectKey, Permit) {
    match write {
        Write::Create(draft) => (&draft.key, Permit::Create),
        Write::Patch { at, part, .. } => (at.key(), Permit::Patch(*part)),
        Write::Delete { at, .. } => (at.key(), Permit::Delete),
        Write::Finish { at } => (at.key(), Permit::Finish),
    }
}

/// Everyone may report: what a note becomes on the API server.
///
/// The name is made of the note itself, so that telling it twice changes nothing.
pub(crate) fn event_of(
    note: &Note,
    by: &str,
    api_version: &str,
    kind: &str,
    now: Timestamp,
) -> Draft {
    let namespace = note
        .about
        .namespace
        .as_ref()
        .map_or("default", |namespace| namespace.as_str());
    let mark = mark(note);
    let name = format!("{}.{mark:016x}", note.about.name);
    let at = now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    let body = json!({
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": { "name": name, "namespace": namespace },
        "involvedObject": {
            "apiVersion": api_version,
            "kind": kind,
            "namespace": note.about.namespace_str(),
            "name": &*note.about.name,
            "uid": note.uid.as_str(),
        },
        "reason": &*note.reason,
        "message": note.text(),
        "type": if note.warning { "Warning" } else { "Normal" },
        "source": { "component": by },
        "firstTimestamp": at,
        "lastTimestamp": at,
        "count": 1,
    });
    let key = ObjectKey::namespaced(&Resource::new("", "events"), namespace, &name);
    Draft::new(key, body)
}

/// What a note says, as a number: the same note told twice has the same. Of a quote only the length
/// counts: the number stands in records, from which the words of others must not be guessed.
pub(crate) fn mark(note: &Note) -> u64 {
    let words = [note.uid.as_str(), &note.reason, &note.message];
    if note.quote.is_empty() {
        return fnv1a(words);
    }
    let [uid, reason, message] = words;
    fnv1a([uid, reason, message, &byte_count(&note.quote).to_string()])
}

/// What a read may prove about a write that was to be told of; None: nothing, or nobody's.
pub(crate) fn birth(by: &str, write: &SentWrite) -> Option<Birth> {
    let SentWrite::Create(draft) = write else {
        return None;
    };
    let owners = draft.body["metadata"]["ownerReferences"].as_array()?;
    let owner = owners.iter().find(|it| it["controller"] == true)?;
    Some(Birth {
        by: by.to_owned(),
        owner: Uid::from(owner["uid"].as_str()?),
        told: draft.told.clone()?,
    })
}

/// Only the events that notes become are created without a grant.
pub(crate) fn is_event(draft: &Arc<Draft>) -> bool {
    draft.key.resource == Resource::new("", "events")
}

/// FNV-1a: a stable mark for a name, nothing more, so no hash crate is drawn in for it.
fn fnv1a<const N: usize>(parts: [&str; N]) -> u64 {
    let bytes = parts.iter().flat_map(|part| part.bytes().chain([0]));
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}
