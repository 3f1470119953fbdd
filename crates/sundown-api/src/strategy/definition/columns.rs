//! What is wrong with the small parts of a version: subresources, printer columns, selectable fields.

use serde_json::Value;
use sundown_schema::{FieldPathFault, field_path};

use crate::field::{Errors, FieldError};

const COLUMN_TYPES: &[&str] = &["boolean", "date", "integer", "number", "string"];
const COLUMN_FORMATS: &[&str] = &[
    "byte",
    "date",
    "date-time",
    "double",
    "float",
    "int32",
    "int64",
    "password",
];
/// As many as upstream indexes.
const SELECTABLE_MAX: usize = 8;

fn text<'a>(value: &'a Value, member: &str) -> &'a str {
    value.get(member).and_then(Value::as_str).unwrap_or("")
}

fn list(value: Option<&Value>) -> &[Value] {
    value.and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// What is wrong with the subresources of a version.
pub(super) fn subresources(value: Option<&Value>, path: &str) -> Errors {
    let Some(scale) = value
        .and_then(|it| it.get("scale"))
        .filter(|it| !it.is_null())
    else {
        return Errors::default();
    };
    let mut errors = Errors::default();
    for (member, roots, why) in [
        (
            "specReplicasPath",
            &[".spec."][..],
            "should be a json path under .spec",
        ),
        (
            "statusReplicasPath",
            &[".status."],
            "should be a json path under .status",
        ),
        (
            "labelSelectorPath",
            &[".spec.", ".status."],
            "should be a json path under either .spec or .status",
        ),
    ] {
        let (own, at) = (text(scale, member), format!("{path}.scale.{member}"));
        if own.is_empty() {
            let is_optional = member == "labelSelectorPath";
            errors.extend((!is_optional).then(|| FieldError::required(at, "")));
        } else if let Some(error) = simple_path(own, &at) {
            errors.push(error);
        } else if !roots.iter().any(|root| own.starts_with(root)) {
            errors.push(FieldError::invalid(at, own, why));
        }
    }
    errors
}

/// What is wrong with printer columns.
pub(super) fn columns(value: Option<&Value>, path: &str) -> Errors {
    let mut errors = Errors::default();
    for (index, column) in list(value).iter().enumerate() {
        let at = |member: &str| format!("{path}[{index}].{member}");
        if text(column, "name").is_empty() {
            errors.push(FieldError::required(at("name"), ""));
        }
        let known = format!("must be one of {}", COLUMN_TYPES.join(","));
        match text(column, "type") {
            "" => errors.push(FieldError::required(at("type"), &known)),
            own if !COLUMN_TYPES.contains(&own) => {
                errors.push(FieldError::invalid(at("type"), own, &known));
            }
            _ => {}
        }
        let format = text(column, "format");
        if !format.is_empty() && !COLUMN_FORMATS.contains(&format) {
            let known = format!("must be one of {}", COLUMN_FORMATS.join(","));
            errors.push(FieldError::invalid(at("format"), format, &known));
        }
        match text(column, "jsonPath") {
            "" => errors.push(FieldError::required(at("JSONPath"), "")),
            own => errors.extend(simple_path(own, &at("JSONPath"))),
        }
    }
    errors
}

fn simple_path(own: &str, at: &str) -> Option<FieldError> {
    let why = "must be a simple json path starting with .";
    (!own.starts_with('.')).then(|| FieldError::invalid(at, own, why))
}

/// What is wrong with selectable fields.
pub(super) fn selectable(value: Option<&Value>, schema: &Value, path: &str) -> Errors {
    let mut errors = Errors::default();
    let mut seen: Vec<Vec<String>> = Vec::new();
    for (index, field) in list(value).iter().enumerate() {
        let (own, at) = (text(field, "jsonPath"), format!("{path}[{index}].jsonPath"));
        if own.is_empty() {
            errors.push(FieldError::required(at, ""));
            continue;
        }
        let found = match field_path(own, schema) {
            Ok(found) => found,
            Err(FieldPathFault(why)) => {
                let why = format!("is an invalid path: {why}");
                errors.push(FieldError::invalid(at, own, &why));
                continue;
            }
        };
        if found.members.first().is_some_and(|it| it == "metadata") {
            let why = "must not point to fields in metadata";
            errors.push(FieldError::invalid(&*at, own, why));
        }
        if !["string", "boolean", "integer"].contains(&text(found.schema, "type")) {
            let why = "must point to a field of type string, boolean or integer. Enum string fields \
                       and strings with formats are allowed.";
            errors.push(FieldError::invalid(&*at, own, why));
        }
        if seen.contains(&found.members) {
            let shown = format!("Duplicate value: {}", Value::from(own));
            errors.push(FieldError::raw("FieldValueDuplicate", at, shown));
        } else {
            seen.push(found.members);
        }
    }
    if seen.len() > SELECTABLE_MAX {
        let count = seen.len();
        let text = format!("Too many: {count}: must have at most {SELECTABLE_MAX} items");
        errors.push(FieldError::raw("FieldValueTooMany", path.to_owned(), text));
    }
    errors
}
