//! Label selectors inside of objects: what is wrong with them, and what they select.

use std::collections::BTreeMap;

use serde_json::Value;

use super::place::At;
use crate::dns;
use crate::field::{Errors, FieldError};

/// What is wrong with a label selector.
pub(super) fn validate(selector: &At<'_>, errors: &mut Errors) {
    selector.child("matchLabels").labels(errors);
    for rule in selector.child("matchExpressions").items() {
        let values = rule.child("values");
        let count = values.value.as_array().map_or(0, Vec::len);
        match rule.text_of("operator") {
            "In" | "NotIn" if count == 0 => {
                let why = "must be specified when `operator` is 'In' or 'NotIn'";
                errors.push(values.required(why));
            }
            "Exists" | "DoesNotExist" if count > 0 => {
                let why = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
                errors.push(values.forbidden(why));
            }
            "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
            _ => {
                let operator = rule.child("operator");
                let shown = rule.text_of("operator");
                let why = "not a valid selector operator";
                errors.push(FieldError::invalid(operator.path, shown, why));
            }
        }
        rule.child("key").named(dns::qualified_name, errors);
        for value in values.items() {
            value.named(dns::label_value, errors);
        }
    }
}

/// Whether a label selector can be used at all.
pub(super) fn is_sound(selector: &At<'_>) -> bool {
    let mut errors = Errors::default();
    validate(selector, &mut errors);
    errors.is_empty()
}

/// Whether a label selector has no rules.
pub(super) fn is_empty(selector: &Value) -> bool {
    let is_empty = |member: &str| match &selector[member] {
        Value::Object(map) => map.is_empty(),
        Value::Array(list) => list.is_empty(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => true,
    };
    is_empty("matchLabels") && is_empty("matchExpressions")
}

/// Whether a label selector selects these labels. A missing selector selects nothing.
pub(super) fn selects(selector: &Value, labels: &BTreeMap<String, String>) -> bool {
    if !selector.is_object() {
        return false;
    }
    let wanted = selector["matchLabels"].as_object().into_iter().flatten();
    let has_labels = wanted
        .into_iter()
        .all(|(key, value)| labels.get(key).map(String::as_str) == value.as_str());
    let rules = selector["matchExpressions"]
        .as_array()
        .into_iter()
        .flatten();
    has_labels && rules.into_iter().all(|rule| rule_selects(rule, labels))
}

fn rule_selects(rule: &Value, labels: &BTreeMap<String, String>) -> bool {
    let own = labels.get(rule["key"].as_str().unwrap_or(""));
    let is_named = own.is_some_and(|own| {
        let mut values = rule["values"].as_array().into_iter().flatten();
        values.any(|value| value.as_str() == Some(own))
    });
    match rule["operator"].as_str().unwrap_or("") {
        "In" => is_named,
        "NotIn" => !is_named,
        "Exists" => own.is_some(),
        "DoesNotExist" => own.is_none(),
        _ => false,
    }
}

/// A map of JSON as labels.
pub(super) fn of(value: &Value) -> BTreeMap<String, String> {
    let text = |value: &Value| value.as_str().unwrap_or("").to_owned();
    let map = value.as_object().into_iter().flatten();
    map.map(|(key, value)| (key.clone(), text(value))).collect()
}
