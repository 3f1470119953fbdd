//! What single kinds do beyond the table: Namespace, Pod, Secret, definitions of
//! custom resources.
//!
//! Mirrors the `PrepareForCreate` and `PrepareForUpdate` of upstream's strategies; metadata rules
//! that hold for all kinds are in `validate`.

mod definition;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::document::Document;
use crate::field::FieldError;
use crate::registry::{Rules, Type};
use crate::route::Part;

const NAME_LABEL: &str = "kubernetes.io/metadata.name";

/// Completes an object that is to be created. Its metadata is complete already.
pub(crate) fn prepare_create(ty: &Type, object: &mut Document, now: Timestamp) {
    if ty.has_status {
        object.rest.remove("status");
    }
    object.metadata.generation = i64::from(ty.has_generation);
    match ty.rules {
        Rules::Plain | Rules::Secret => {}
        Rules::Namespace => {
            let finalizers = object
                .section("spec")
                .entry("finalizers")
                .or_insert(json!([]));
            let has_own = finalizers
                .as_array()
                .is_some_and(|list| list.contains(&json!("kubernetes")));
            if let Some(list) = finalizers.as_array_mut().filter(|_| !has_own) {
                list.push(json!("kubernetes"));
            }
            object.replace("status", Some(json!({ "phase": "Active" })));
        }
        Rules::Pod => {
            let spec = object.section("spec");
            spec.entry("terminationGracePeriodSeconds")
                .or_insert(json!(30));
            spec.entry("restartPolicy").or_insert(json!("Always"));
            object.replace("status", Some(json!({ "phase": "Pending" })));
        }
        Rules::Definition => definition::prepare(object, now),
    }
    normalise(ty, object);
}

/// Puts the parts of an object that this endpoint may not change back to what they were, and counts
/// the generation.
pub(crate) fn prepare_update(
    ty: &Type,
    part: Part,
    old: &Document,
    new: &mut Document,
    now: Timestamp,
) {
    let old_at = |member: &str| old.rest.get(member).cloned();
    match part {
        Part::Main => {
            if ty.has_status {
                new.replace("status", old_at("status"));
            }
            if ty.rules == Rules::Namespace {
                restore_spec_finalizers(old, new);
            }
            if ty.rules == Rules::Definition {
                definition::prepare(new, now);
            }
        }
        Part::Status => {
            let status = new.rest.remove("status");
            new.rest.clone_from(&old.rest);
            new.replace("status", status);
            // Custom resources: only the status; pods: owners belong to the main endpoint.
            if ty.is_custom() {
                let sent = std::mem::take(&mut new.metadata.resource_version);
                new.metadata.clone_from(&old.metadata);
                new.metadata.resource_version = sent;
            } else if ty.rules == Rules::Pod {
                new.metadata
                    .owner_references
                    .clone_from(&old.metadata.owner_references);
            }
        }
        Part::Finalize => {
            let finalizers = new
                .at(&["spec", "finalizers"])
                .cloned()
                .unwrap_or(json!([]));
            new.rest.clone_from(&old.rest);
            new.section("spec").insert("finalizers".into(), finalizers);
        }
    }
    normalise(ty, new);
    if part == Part::Main && ty.has_generation && content(ty, old) != content(ty, new) {
        new.metadata.generation += 1;
    }
}

/// What a kind refuses beyond its metadata.
pub(crate) fn validate(ty: &Type, object: &Document) -> Vec<FieldError> {
    match ty.rules {
        Rules::Definition => definition::validate(object),
        Rules::Plain | Rules::Namespace | Rules::Pod | Rules::Secret => Vec::new(),
    }
}

/// Whether a terminating object without metadata.finalizers may go.
pub(crate) fn may_go(ty: &Type, object: &Document) -> bool {
    ty.rules != Rules::Namespace || !has_spec_finalizers(object)
}

/// Whether the content of a namespace is still to be removed.
pub(crate) fn has_spec_finalizers(object: &Document) -> bool {
    object
        .at(&["spec", "finalizers"])
        .and_then(Value::as_array)
        .is_some_and(|list| !list.is_empty())
}

fn normalise(ty: &Type, object: &mut Document) {
    match ty.rules {
        Rules::Plain | Rules::Pod | Rules::Definition => {}
        Rules::Namespace => {
            let name = object.metadata.name.clone();
            object.metadata.labels.insert(NAME_LABEL.into(), name);
        }
        Rules::Secret => {
            if let Some(Value::Object(texts)) = object.rest.remove("stringData") {
                let data = object.section("data");
                for (key, text) in texts {
                    data.insert(key, STANDARD.encode(text.as_str().unwrap_or("")).into());
                }
            }
            object.rest.entry("type").or_insert(json!("Opaque"));
        }
    }
}

fn restore_spec_finalizers(old: &Document, new: &mut Document) {
    match old.at(&["spec", "finalizers"]).cloned() {
        Some(finalizers) => new.section("spec").insert("finalizers".into(), finalizers),
        None => new.section("spec").remove("finalizers"),
    };
}

/// What the generation counts: all but metadata, and but status where it has its own endpoint.
fn content<'a>(ty: &Type, object: &'a Document) -> Vec<(&'a String, &'a Value)> {
    object
        .rest
        .iter()
        .filter(|(member, _)| !ty.has_status || *member != "status")
        .collect()
}
