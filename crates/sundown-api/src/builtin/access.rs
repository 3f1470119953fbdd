//! Roles and their bindings: what they have when nobody says otherwise and what they may not have.

use serde_json::{Value, json};

use super::place::{At, IMMUTABLE};
use super::{each, section, set};
use crate::document::Document;
use crate::field::{Errors, FieldError};

const GROUP: &str = "rbac.authorization.k8s.io";

/// Upstream stores protobuf, which does not tell an empty list from none.
pub(super) fn default_role(object: &mut Document) {
    if object
        .at(&["rules"])
        .and_then(Value::as_array)
        .is_some_and(Vec::is_empty)
    {
        object.replace("rules", Some(Value::Null));
    }
}

/// Fills in a binding.
pub(super) fn default_binding(object: &mut Document) {
    let role = section(&mut object.rest, "roleRef");
    if role
        .get("apiGroup")
        .and_then(Value::as_str)
        .is_none_or(str::is_empty)
    {
        role.insert("apiGroup".into(), json!(GROUP));
    }
    for subject in each(&mut object.rest, "subjects") {
        if subject
            .get("kind")
            .is_some_and(|kind| kind == "User" || kind == "Group")
        {
            set(subject, "apiGroup", json!(GROUP));
        }
    }
}

/// What is wrong with a role; upstream tells of missing verbs at the end.
pub(super) fn validate_role(kind: &str, object: &Document) -> Errors {
    let (mut errors, mut verbs) = (Errors::default(), Errors::default());
    for rule in At::new(object.rest.get("rules"), "rules").items() {
        let is_empty = |member: &str| rule.child(member).items().next().is_none();
        if is_empty("verbs") {
            verbs.push(rule.child("verbs").required(""));
        }
        if !is_empty("nonResourceURLs") {
            let urls = rule.child("nonResourceURLs");
            if kind == "Role" {
                errors.push(urls.invalid("namespaced rules cannot apply to non-resource URLs"));
            }
            if !is_empty("apiGroups") || !is_empty("resources") || !is_empty("resourceNames") {
                let why = "rules cannot apply to both regular resources and non-resource URLs";
                errors.push(urls.invalid(why));
            }
            continue;
        }
        if is_empty("apiGroups") {
            let why = "resource rules must supply at least one api group";
            errors.push(rule.child("apiGroups").required(why));
        }
        if is_empty("resources") {
            let why = "resource rules must supply at least one resource";
            errors.push(rule.child("resources").required(why));
        }
    }
    errors.append(verbs);
    errors
}

/// What is wrong with a binding.
pub(super) fn validate_binding(kind: &str, object: &Document) -> Errors {
    let mut errors = Errors::default();
    let role = At::new(object.rest.get("roleRef"), "roleRef");
    let group = role.child("apiGroup");
    if group.text() != GROUP {
        errors.push(group.unsupported(&[GROUP]));
    }
    let known: &[&str] = if kind == "RoleBinding" {
        &["Role", "ClusterRole"]
    } else {
        &["ClusterRole"]
    };
    if !known.contains(&role.text_of("kind")) {
        let at = role.path_of("kind");
        errors.push(FieldError::unsupported(at, role.text_of("kind"), known));
    }
    for subject in At::new(object.rest.get("subjects"), "subjects").items() {
        validate_subject(kind, &subject, &mut errors);
    }
    let name = role.child("name");
    if name.text().is_empty() {
        errors.push(name.required(""));
    }
    errors
}

fn validate_subject(kind: &str, subject: &At<'_>, errors: &mut Errors) {
    let group = subject.child("apiGroup");
    match subject.text_of("kind") {
        "ServiceAccount" => {
            let namespace = subject.child("namespace");
            if namespace.text().is_empty() && kind == "ClusterRoleBinding" {
                errors.push(namespace.required(""));
            }
        }
        "User" | "Group" if group.text() != GROUP => errors.push(group.unsupported(&[GROUP])),
        "User" | "Group" => {}
        _ => {
            let kinds = ["ServiceAccount", "User", "Group"];
            errors.push(subject.child("kind").unsupported(&kinds));
        }
    }
    let name = subject.child("name");
    if name.text().is_empty() {
        errors.push(name.required(""));
    }
}

/// A binding stays with its role. Upstream shows the names of its own struct.
pub(super) fn validate_change(old: &Document, new: &Document) -> Errors {
    if old.at(&["roleRef"]) == new.at(&["roleRef"]) {
        return Errors::default();
    }
    let text = |member: &str| json!(new.text_at(&["roleRef", member]));
    let shown = format!(
        "{{\"APIGroup\":{},\"Kind\":{},\"Name\":{}}}",
        text("apiGroup"),
        text("kind"),
        text("name")
    );
    Errors::from([FieldError::invalid_as("roleRef", &shown, IMMUTABLE)])
}
