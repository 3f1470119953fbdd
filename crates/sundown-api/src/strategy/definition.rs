//! Definitions of custom resources: what is filled in, and what a write or a DELETE does to their
//! status.
//!
//! Whether they get their names is settled with the commit, in `custom::names`; schemas are used by
//! `custom`; instances are removed by a controller.

mod check;
mod columns;
mod go_schema;
mod hoisted;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::custom::names::Condition;
use crate::document::{Document, whole_seconds};

pub(super) use check::{changes, validate};

/// Keeps a definition until a controller has removed its instances.
const CLEANUP: &str = "customresourcecleanup.apiextensions.k8s.io";

/// Completes a definition that is to be created.
pub(super) fn prepare_create(object: &mut Document) {
    default(object);
    let status = json!({
        "acceptedNames": { "kind": "", "plural": "" }, "conditions": null, "storedVersions": [],
    });
    object.replace("status", Some(status));
    add_stored_version(object);
}

/// Completes a definition that is to be updated. Its status is the stored one.
pub(super) fn prepare_update(object: &mut Document) {
    default(object);
    add_stored_version(object);
}

/// What the first DELETE does; those that follow are as for any object.
pub(crate) fn terminate(object: &mut Document, now: Timestamp) {
    object.metadata.deletion_timestamp = Some(whole_seconds(now));
    let finalizers = &mut object.metadata.finalizers;
    if !finalizers.iter().any(|name| name == CLEANUP) {
        finalizers.push(CLEANUP.to_owned());
    }
    let message =
        "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon";
    Condition::new("Terminating", "True", "InstanceDeletionPending", message)
        .set(object.section("status"), now);
}

fn default(object: &mut Document) {
    let kind = object.text_at(&["spec", "names", "kind"]).to_owned();
    let spec = object.section("spec");
    if let Some(names) = spec.get_mut("names").and_then(Value::as_object_mut) {
        let mut default = |member: &str, value: String| {
            let is_open = names.get(member).is_none_or(|it| it == "");
            if is_open && !kind.is_empty() {
                names.insert(member.into(), value.into());
            }
        };
        default("singular", kind.to_lowercase());
        default("listKind", format!("{kind}List"));
    }
    spec.entry("conversion")
        .or_insert(json!({ "strategy": "None" }));
}

fn add_stored_version(object: &mut Document) {
    let storage = versions(object).iter().filter(|it| it["storage"] == true);
    let storage: Vec<Value> = storage.filter_map(|it| it.get("name").cloned()).collect();
    let stored = object
        .section("status")
        .entry("storedVersions")
        .or_insert(json!([]));
    if !stored.is_array() {
        *stored = json!([]);
    }
    if let Some(stored) = stored.as_array_mut() {
        for version in storage {
            if !stored.contains(&version) {
                stored.push(version);
            }
        }
    }
}

fn versions(object: &Document) -> &[Value] {
    let versions = object.at(&["spec", "versions"]).and_then(Value::as_array);
    versions.map_or(&[], Vec::as_slice)
}
