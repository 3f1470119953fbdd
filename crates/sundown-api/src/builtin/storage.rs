//! Claims and volumes: what they have when nobody says otherwise and what they may not have.

use serde_json::{Map, Value, json};

use super::place::At;
use super::{labels, section, set};
use crate::dns;
use crate::document::Document;
use crate::field::{Errors, FieldError};
use crate::quantity::Quantity;

const MODES: [&str; 4] = [
    "ReadOnlyMany",
    "ReadWriteMany",
    "ReadWriteOnce",
    "ReadWriteOncePod",
];

/// Fills in a claim.
pub(super) fn default_claim(object: &mut Document) {
    set(object.section("spec"), "volumeMode", json!("Filesystem"));
    set(object.section("status"), "phase", json!("Pending"));
}

/// Fills in a claim that a stateful set is to make.
pub(super) fn default_claim_template(claim: &mut Map<String, Value>) {
    set(claim, "apiVersion", json!("v1"));
    set(claim, "kind", json!("PersistentVolumeClaim"));
    set(section(claim, "spec"), "volumeMode", json!("Filesystem"));
    set(section(claim, "status"), "phase", json!("Pending"));
}

/// Fills in a volume.
pub(super) fn default_volume(object: &mut Document) {
    let spec = object.section("spec");
    set(spec, "persistentVolumeReclaimPolicy", json!("Retain"));
    set(spec, "volumeMode", json!("Filesystem"));
    if let Some(Value::Object(path)) = spec.get_mut("hostPath") {
        set(path, "type", json!(""));
    }
    set(object.section("status"), "phase", json!("Pending"));
}

/// What is wrong with a claim.
pub(super) fn validate_claim(object: &Document) -> Errors {
    let spec = At::new(object.rest.get("spec"), "spec");
    let mut errors = Errors::default();
    access_modes(&spec, "at least 1 access mode is required", &mut errors);
    let selector = spec.child("selector");
    if selector.is_set() {
        labels::validate(&selector, &mut errors);
    }
    let wanted = spec.down(&["resources", "requests", "storage"]);
    let at = At::new(Some(wanted.value), "spec.resources[storage]");
    if !wanted.is_set() {
        errors.push(at.required(""));
    } else if amount(&at) <= 0 {
        errors.push(at.invalid("must be greater than zero"));
    }
    class_and_mode(&spec, &mut errors);
    errors
}

/// What is wrong with a volume.
pub(super) fn validate_volume(object: &Document) -> Errors {
    let spec = At::new(object.rest.get("spec"), "spec");
    let mut errors = Errors::default();
    access_modes(&spec, "", &mut errors);
    let capacity = spec.child("capacity");
    let storage = capacity.child("storage");
    if !storage.is_set() {
        errors.push(capacity.required(""));
        errors.push(capacity.unsupported(&["storage"]));
    } else if amount(&storage) <= 0 {
        let at = At::new(Some(storage.value), "spec.capacity[storage]");
        errors.push(at.invalid("must be greater than zero"));
    }
    let policies = ["Delete", "Recycle", "Retain"];
    let policy = spec.child("persistentVolumeReclaimPolicy");
    policy.one_of(&policies, &mut errors);
    class_and_mode(&spec, &mut errors);
    errors
}

/// What is wrong with a class; upstream tells of a missing provisioner at the end.
pub(super) fn validate_class(object: &Document) -> Errors {
    let mut errors = Errors::default();
    let at = |member: &str| At::new(object.rest.get(member), member.to_owned());
    let policy = at("reclaimPolicy");
    if !["Delete", "Retain"].contains(&policy.text()) {
        errors.push(policy.unsupported(&["Delete", "Retain"]));
    }
    let mode = at("volumeBindingMode");
    if !["Immediate", "WaitForFirstConsumer"].contains(&mode.text()) {
        errors.push(mode.unsupported(&["Immediate", "WaitForFirstConsumer"]));
    }
    let provisioner = at("provisioner");
    if provisioner.text().is_empty() {
        errors.push(provisioner.required(""));
    } else {
        for why in dns::qualified_name(&provisioner.text().to_lowercase()) {
            errors.push(provisioner.invalid(&why));
        }
    }
    errors
}

/// What of a class may not change. Upstream does not show the new value.
pub(super) fn validate_change(old: &Document, new: &Document) -> Errors {
    let members = [
        "parameters",
        "provisioner",
        "reclaimPolicy",
        "volumeBindingMode",
    ];
    let changed = members
        .into_iter()
        .filter(|member| old.rest.get(*member) != new.rest.get(*member));
    changed
        .map(|member| FieldError::invalid(member, Value::Null, super::place::IMMUTABLE))
        .collect()
}

fn access_modes(spec: &At<'_>, why: &str, errors: &mut Errors) {
    let modes = spec.child("accessModes");
    if modes.items().next().is_none() {
        errors.push(modes.required(why));
    }
    for mode in modes.items() {
        if !MODES.contains(&mode.text()) {
            let path = modes.path.clone();
            errors.push(FieldError::unsupported(path, mode.text(), &MODES));
        }
    }
    let has_single = modes.items().any(|mode| mode.text() == "ReadWriteOncePod");
    if has_single && modes.items().count() > 1 {
        let why = "may not use ReadWriteOncePod with other access modes";
        errors.push(modes.forbidden(why));
    }
}

fn class_and_mode(spec: &At<'_>, errors: &mut Errors) {
    let class = spec.child("storageClassName");
    if !class.text().is_empty() {
        class.named(dns::subdomain, errors);
    }
    let mode = spec.child("volumeMode");
    if mode.is_set() && !["Block", "Filesystem"].contains(&mode.text()) {
        errors.push(mode.unsupported(&["Block", "Filesystem"]));
    }
}

fn amount(at: &At<'_>) -> i128 {
    Quantity::parse(at.text()).map_or(0, Quantity::billionths)
}
