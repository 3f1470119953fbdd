//! Rules of metadata at create and update, in the words of upstream's
//! `apimachinery/pkg/api/validation/objectmeta.go`. What a kind wants beyond them is in `strategy`.

use std::collections::{BTreeMap, BTreeSet};

use crate::dns;
use crate::document::{Document, Metadata, OwnerReference};
use crate::field::{Errors, FieldError};
use crate::registry::{Rules, Type};

pub(crate) const ORPHAN: &str = "orphan";
pub(crate) const FOREGROUND: &str = "foregroundDeletion";

const ANNOTATIONS_BYTES_MAX: usize = 256 * 1024;
/// So many warnings are more than an answer carries; the others would take memory and never be sent.
const WARNING_COUNT_MAX: usize = 100;
const IMMUTABLE: &str = "field is immutable";

/// What is wrong with the metadata of an object that is to be stored.
pub(crate) fn metadata(ty: &Type, metadata: &Metadata) -> Errors {
    let mut errors = name(ty, metadata);
    errors.append(embedded_metadata(ty, metadata));
    errors
}

/// The same of a resource inside of another one, which needs no name.
pub(crate) fn embedded_metadata(ty: &Type, metadata: &Metadata) -> Errors {
    let mut errors = Errors::default();
    labels(&metadata.labels, &mut errors);
    annotations(&metadata.annotations, &mut errors);
    owner_references(&metadata.owner_references, &mut errors);
    finalizers(ty, &metadata.finalizers, &mut errors);
    errors
}

/// What is wrong with the step from one state to the next.
pub(crate) fn update(old: &Document, new: &Document) -> Errors {
    let (old, new) = (&old.metadata, &new.metadata);
    let mut errors = Errors::default();
    if old.deletion_timestamp.is_some() {
        let known: BTreeSet<&String> = old.finalizers.iter().collect();
        let added = new.finalizers.iter().filter(|it| !known.contains(it));
        let added: Vec<String> = added.map(|finalizer| format!("{finalizer:?}")).collect();
        if !added.is_empty() {
            let why = format!(
                "no new finalizers can be added if the object is being deleted, found new \
                 finalizers []string{{{}}}",
                added.join(", ")
            );
            errors.push(FieldError::forbidden("metadata.finalizers", &why));
        }
    }
    let mut text = |field: &str, old: &str, new: &str| {
        if old != new {
            errors.push(FieldError::invalid(
                format!("metadata.{field}"),
                new,
                IMMUTABLE,
            ));
        }
    };
    text("name", &old.name, &new.name);
    text("namespace", &old.namespace, &new.namespace);
    text("uid", &old.uid, &new.uid);
    if old.deletion_timestamp != new.deletion_timestamp {
        let sent = new.deletion_timestamp.map(|at| at.to_string());
        errors.push(FieldError::invalid(
            "metadata.deletionTimestamp",
            sent,
            IMMUTABLE,
        ));
    }
    if old.deletion_grace_period_seconds != new.deletion_grace_period_seconds {
        let sent = new.deletion_grace_period_seconds;
        errors.push(FieldError::invalid(
            "metadata.deletionGracePeriodSeconds",
            sent,
            IMMUTABLE,
        ));
    }
    errors
}

/// Removes references that say the same twice; the warning that upstream gives for it.
pub(crate) fn dedup_owner_references(metadata: &mut Metadata, is_patch: bool) -> Option<String> {
    let mut kept: Vec<OwnerReference> = Vec::new();
    let mut known = BTreeSet::new();
    let mut repeated: Vec<String> = Vec::new();
    let mut told = BTreeSet::new();
    for reference in std::mem::take(&mut metadata.owner_references) {
        if known.insert(reference.clone()) {
            kept.push(reference);
        } else if told.insert(reference.uid.clone()) {
            repeated.push(reference.uid);
        }
    }
    metadata.owner_references = kept;
    let when = if is_patch {
        " after mutating admission happens"
    } else {
        ""
    };
    (!repeated.is_empty()).then(|| {
        format!(
            ".metadata.ownerReferences contains duplicate entries{when}; API server dedups owner \
             references in 1.20+, and may reject such requests as early as 1.24; please fix your \
             requests; duplicate UID(s) observed: {}",
            repeated.join(", ")
        )
    })
}

/// Warnings for finalizer names that are allowed on custom resources only.
pub(crate) fn finalizer_warnings(ty: &Type, metadata: &Metadata) -> Vec<String> {
    let bare = metadata
        .finalizers
        .iter()
        .filter(|name| ty.is_custom() && !is_standard(name));
    bare.filter(|name| !name.contains('/'))
        .take(WARNING_COUNT_MAX)
        .map(|name| {
            let path = if name.contains('.') {
                " including a path (/)"
            } else {
                ""
            };
            format!(
                "metadata.finalizers: {name:?}: prefer a domain-qualified finalizer name{path} to \
                 avoid accidental conflicts with other finalizer writers"
            )
        })
        .collect()
}

fn name(ty: &Type, metadata: &Metadata) -> Errors {
    if metadata.name.is_empty() {
        return Errors::from([FieldError::required(
            "metadata.name",
            "name or generateName is required",
        )]);
    }
    let check = if ty.label_names {
        dns::label
    } else if ty.resource.group() == crate::authorize::GROUP {
        dns::path_segment
    } else {
        dns::subdomain
    };
    // Upstream counts the names of objects in characters, and all others in bytes.
    let wrong = check(&metadata.name).into_iter();
    wrong
        .map(|why| why.replace(" bytes", " characters"))
        .map(|why| FieldError::invalid("metadata.name", &*metadata.name, &why))
        .collect()
}

fn labels(labels: &BTreeMap<String, String>, errors: &mut Errors) {
    for (key, value) in labels {
        for why in dns::qualified_name(key) {
            errors.push(FieldError::invalid("metadata.labels", &**key, &why));
        }
        for why in dns::label_value(value) {
            errors.push(FieldError::invalid("metadata.labels", &**value, &why));
        }
    }
}

fn annotations(annotations: &BTreeMap<String, String>, errors: &mut Errors) {
    for key in annotations.keys() {
        // Upstream forgives upper case in the keys of annotations only.
        for why in dns::qualified_name(&key.to_lowercase()) {
            errors.push(FieldError::invalid("metadata.annotations", &**key, &why));
        }
    }
    let bytes: usize = annotations
        .iter()
        .map(|(key, value)| key.len() + value.len())
        .sum();
    if bytes > ANNOTATIONS_BYTES_MAX {
        errors.push(FieldError::too_long(
            "metadata.annotations",
            ANNOTATIONS_BYTES_MAX,
        ));
    }
}

fn owner_references(references: &[OwnerReference], errors: &mut Errors) {
    for (index, reference) in references.iter().enumerate() {
        let at = |field: &str| format!("metadata.ownerReferences[{index}].{field}");
        let version = &reference.api_version;
        if version.is_empty() {
            errors.push(FieldError::required(at("apiVersion"), "must not be empty"));
        } else if version.matches('/').count() > 1 || version.ends_with('/') {
            let why = "must be <group>/<version> or <version>";
            errors.push(FieldError::invalid(at("apiVersion"), &**version, why));
        }
        let others = [
            ("kind", &reference.kind),
            ("name", &reference.name),
            ("uid", &reference.uid),
        ];
        for (field, value) in others {
            if value.is_empty() {
                errors.push(FieldError::required(at(field), "must not be empty"));
            }
        }
        if version == "v1" && reference.kind == "Event" {
            let why = "/v1, Kind=Event is disallowed from being an owner";
            errors.push(FieldError::invalid_as(
                format!("metadata.ownerReferences[{index}]"),
                &shown(reference),
                why,
            ));
        }
    }
    let mut controllers = references
        .iter()
        .filter(|owner| owner.controller == Some(true));
    if let (Some(first), Some(second)) = (controllers.next(), controllers.next()) {
        let why = format!(
            "Only one reference can have Controller set to true. Found \"true\" in references for \
             {}/{} and {}/{}",
            first.kind, first.name, second.kind, second.name
        );
        let all: Vec<String> = references.iter().map(shown).collect();
        errors.push(FieldError::invalid_as(
            "metadata.ownerReferences",
            &format!("[{}]", all.join(",")),
            &why,
        ));
    }
}

/// As Go prints it: members in the order of their declaration.
fn shown(reference: &OwnerReference) -> String {
    serde_json::to_string(reference).expect("a reference is plain data")
}

fn finalizers(ty: &Type, finalizers: &[String], errors: &mut Errors) {
    for (index, finalizer) in finalizers.iter().enumerate() {
        let wrong = dns::qualified_name(finalizer);
        let is_bare = wrong.is_empty() && !finalizer.contains('/') && !is_standard(finalizer);
        for why in &wrong {
            errors.push(FieldError::invalid(
                "metadata.finalizers",
                &**finalizer,
                why,
            ));
        }
        // Upstream asks this of the kinds of its own registry only, and definitions are none.
        if is_bare && !ty.is_custom() && ty.rules != Rules::Definition {
            let why = "name is neither a standard finalizer name nor is it fully qualified";
            let field = format!("metadata.finalizers[{index}]");
            errors.push(FieldError::invalid(field, &**finalizer, why));
        }
    }
    let has = |name: &str| finalizers.iter().any(|finalizer| finalizer == name);
    if has(ORPHAN) && has(FOREGROUND) {
        let why = "finalizer orphan and foregroundDeletion cannot be both set";
        errors.push(FieldError::invalid(
            "metadata.finalizers",
            finalizers.to_vec(),
            why,
        ));
    }
}

fn is_standard(finalizer: &str) -> bool {
    matches!(finalizer, "kubernetes" | ORPHAN | FOREGROUND)
}
