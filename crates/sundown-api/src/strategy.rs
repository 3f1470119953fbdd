//! What single kinds do beyond the table: Namespace, Pod, Secret, definitions of
//! custom resources.
//!
//! Mirrors the `PrepareForCreate` and `PrepareForUpdate` of upstream's strategies; metadata rules
//! that hold for all kinds are in `validate`.

mod definition;

pub(crate) use definition::terminate as terminate_definition;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::document::Document;
use crate::field::{Errors, FieldError};
use crate::registry::{Rules, Type};
use crate::route::Part;
use crate::{builtin, decode, fields};

const NAME_LABEL: &str = "kubernetes.io/metadata.name";

/// Completes an object that is to be created. Its metadata is complete already.
pub(crate) fn prepare_create(ty: &Type, object: &mut Document) {
    if ty.has_status && !builtin::keeps_status(ty) {
        object.rest.remove("status");
    }
    if ty.has_status
        && ty.rules != Rules::Definition
        && !object.rest.contains_key("status")
        && let Some(status) =
            decode::fact_of(ty).and_then(|fact| fields::zero_member(fact, "status"))
    {
        object.replace("status", Some(status));
    }
    if ty.has_generation {
        object.metadata.generation = 1;
    }
    match ty.rules {
        Rules::Plain | Rules::Secret | Rules::Pod | Rules::Binding => {}
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
        Rules::Definition => definition::prepare_create(object),
    }
    normalise(ty, object);
}

/// Puts the parts of an object that this endpoint may not change back to what they were, and counts
/// the generation.
pub(crate) fn prepare_update(ty: &Type, part: Part, old: &Document, new: &mut Document) {
    let old_at = |member: &str| old.rest.get(member).cloned();
    match part {
        Part::Main | Part::Scale | Part::Binding | Part::Eviction | Part::Log => {
            if ty.has_status {
                new.replace("status", old_at("status"));
            }
            builtin::default(ty, new);
            if ty.rules == Rules::Namespace {
                restore_spec_finalizers(old, new);
            }
            if ty.rules == Rules::Definition {
                definition::prepare_update(new);
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
            builtin::prepare_status(ty, old, new);
        }
        Part::Finalize => {
            let sent = new.at(&["spec", "finalizers"]).and_then(Value::as_array);
            let finalizers = sent.filter(|list| !list.is_empty()).cloned();
            new.rest.clone_from(&old.rest);
            let spec = new.section("spec");
            match finalizers {
                Some(finalizers) => spec.insert("finalizers".into(), finalizers.into()),
                None => spec.remove("finalizers"),
            };
        }
    }
    normalise(ty, new);
    let is_changed = content(ty, old) != content(ty, new) || builtin::is_revised(ty, old, new);
    if builtin::is_whole(part) && ty.has_generation && is_changed {
        new.metadata.generation += 1;
    }
}

/// What a kind refuses beyond its metadata.
pub(crate) fn validate(ty: &Type, object: &Document) -> Errors {
    match ty.rules {
        Rules::Definition => definition::validate(object),
        Rules::Namespace => namespace_phase(object).into_iter().collect(),
        Rules::Plain | Rules::Pod | Rules::Secret | Rules::Binding => builtin::validate(ty, object),
    }
}

/// What an update of a kind must not change.
pub(crate) fn changes(ty: &Type, old: &Document, new: &Document) -> Errors {
    match ty.rules {
        Rules::Definition => definition::changes(old, new),
        Rules::Plain | Rules::Namespace | Rules::Pod | Rules::Secret | Rules::Binding => {
            Errors::default()
        }
    }
}

/// What a kind refuses in its status, whoever writes it.
pub(crate) fn validate_status(ty: &Type, object: &Document) -> Errors {
    let is_namespace = ty.rules == Rules::Namespace;
    let error = is_namespace.then(|| namespace_phase(object)).flatten();
    error.into_iter().collect()
}

/// A namespace terminates when it was deleted, and never otherwise.
fn namespace_phase(object: &Document) -> Option<FieldError> {
    let phase = object.text_at(&["status", "phase"]);
    let (expected, when) = if object.is_deleting() {
        ("Terminating", "is not empty")
    } else {
        ("Active", "is empty")
    };
    (phase != expected).then(|| {
        let why = format!("may only be '{expected}' if `deletionTimestamp` {when}");
        FieldError::invalid("status.Phase", phase, &why)
    })
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
        Rules::Plain | Rules::Pod | Rules::Definition | Rules::Binding => {}
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
