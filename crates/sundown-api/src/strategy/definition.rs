//! Definitions of custom resources: names, versions and the conditions that say they are served.
//!
//! Definitions are established by the commit that creates them, since the registry follows in the
//! same commit. Schemas are kept but not looked at.

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::document::{Document, whole_seconds};
use crate::field::FieldError;

/// Fills in names and sets the status that upstream's controllers would set.
pub(super) fn prepare(object: &mut Document, now: Timestamp) {
    let kind = object.text_at(&["spec", "names", "kind"]).to_owned();
    let storage = storage_version(object);
    if let Some(names) = object
        .section("spec")
        .get_mut("names")
        .and_then(Value::as_object_mut)
    {
        let mut default = |member: &str, value: String| {
            names.entry(member).or_insert_with(|| Value::from(value));
        };
        default("singular", kind.to_lowercase());
        default("listKind", format!("{kind}List"));
    }
    let names = object.at(&["spec", "names"]).cloned().unwrap_or(json!({}));
    let at = whole_seconds(now).to_string();
    let status = object.section("status");
    status.insert("acceptedNames".into(), names);
    let stored = status.entry("storedVersions").or_insert(json!([]));
    if let (Some(stored), Some(storage)) = (stored.as_array_mut(), storage)
        && !stored.contains(&storage)
    {
        stored.push(storage);
    }
    ensure_condition(
        status,
        &at,
        "NamesAccepted",
        "NoConflicts",
        "no conflicts found",
    );
    let message = "the initial names have been accepted";
    ensure_condition(status, &at, "Established", "InitialNamesAccepted", message);
}

/// What would keep the definition from being served.
pub(super) fn validate(object: &Document) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for path in [
        &["spec", "group"][..],
        &["spec", "names", "plural"],
        &["spec", "names", "kind"],
    ] {
        if object.text_at(path).is_empty() {
            errors.push(FieldError::required(path.join("."), ""));
        }
    }
    let (group, plural) = (
        object.text_at(&["spec", "group"]),
        object.text_at(&["spec", "names", "plural"]),
    );
    let name = object.metadata.name.as_str();
    if name != format!("{plural}.{group}") {
        let why = "must be spec.names.plural+\".\"+spec.group";
        errors.push(FieldError::invalid("metadata.name", name, why));
    }
    let scope = object.text_at(&["spec", "scope"]);
    if !["Cluster", "Namespaced"].contains(&scope) {
        errors.push(FieldError::unsupported(
            "spec.scope",
            scope,
            &["Cluster", "Namespaced"],
        ));
    }
    if storage_version(object).is_none() {
        let why = "must have exactly one version marked as storage version";
        errors.push(FieldError::invalid(
            "spec.versions",
            versions(object).to_vec(),
            why,
        ));
    }
    for (index, version) in versions(object).iter().enumerate() {
        if version
            .get("name")
            .and_then(Value::as_str)
            .is_none_or(str::is_empty)
        {
            errors.push(FieldError::required(
                format!("spec.versions[{index}].name"),
                "",
            ));
        }
    }
    errors
}

fn versions(object: &Document) -> &[Value] {
    object
        .at(&["spec", "versions"])
        .and_then(Value::as_array)
        .map_or(&[], Vec::as_slice)
}

fn storage_version(object: &Document) -> Option<Value> {
    let mut storage = versions(object)
        .iter()
        .filter(|version| version["storage"] == json!(true));
    match (storage.next(), storage.next()) {
        (Some(one), None) => one.get("name").cloned(),
        _ => None,
    }
}

fn ensure_condition(
    status: &mut Map<String, Value>,
    at: &str,
    condition: &str,
    reason: &str,
    message: &str,
) {
    let conditions = status.entry("conditions").or_insert(json!([]));
    let Some(list) = conditions.as_array_mut() else {
        return;
    };
    if !list.iter().any(|own| own["type"] == json!(condition)) {
        list.push(json!({
            "lastTransitionTime": at, "message": message, "reason": reason,
            "status": "True", "type": condition,
        }));
    }
}
