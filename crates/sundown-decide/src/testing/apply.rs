//! What an API server makes of a write, as far as deletion is concerned.

use serde_json::{Value, json};
use sundown_model::{Patch, Propagation, Write};

use super::{A, at};
use crate::kinds::{FOREGROUND, ORPHAN};

/// What became of an object.
#[derive(Debug, Clone)]
pub(crate) enum Became {
    Changed(A),
    Gone,
}

/// Carries out a write that was decided on this very state of an object.
pub(crate) fn apply(write: &Write, object: &A) -> Became {
    let mut after = object.clone();
    let metadata = &mut after.json["metadata"];
    let seen = match write {
        Write::Patch { at, patch, .. } => {
            let Patch::Merge(patch) = patch;
            merge(&mut after.json, patch);
            at
        }
        Write::Delete { at: seen, how } => {
            let kept = finalizers(metadata).into_iter();
            let mut kept: Vec<String> = kept
                .filter(|name| name != FOREGROUND && name != ORPHAN)
                .collect();
            match how {
                Propagation::Background => {}
                Propagation::Foreground => kept.push(FOREGROUND.to_owned()),
                Propagation::Orphan => kept.push(ORPHAN.to_owned()),
            }
            metadata["finalizers"] = json!(kept);
            metadata["deletionTimestamp"] = json!(at(0).to_string());
            seen
        }
        Write::Finish { .. } => return Became::Gone,
        Write::Create(_) => panic!("the controllers here create nothing"),
    };
    assert_eq!(seen, &object.build().seen(), "writes to what it saw");
    let metadata = &after.json["metadata"];
    if !metadata["deletionTimestamp"].is_null() && finalizers(metadata).is_empty() {
        return Became::Gone;
    }
    let revision: u64 = object.build().rv().to_string().parse().unwrap();
    Became::Changed(after.rv(revision + 1))
}

fn finalizers(metadata: &Value) -> Vec<String> {
    serde_json::from_value(metadata["finalizers"].clone()).unwrap_or_default()
}

/// JSON merge patch, RFC 7386.
pub(crate) fn merge(target: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = json!({});
    }
    let map = target.as_object_mut().unwrap();
    for (name, value) in patch {
        if value.is_null() {
            map.remove(name);
        } else {
            merge(map.entry(name.clone()).or_insert(Value::Null), value);
        }
    }
}
