//! Resources inside of resources (`x-kubernetes-embedded-resource`): what their apiVersion, kind and
//! metadata must look like, wherever a schema says that there is one.

use serde_json::{Map, Value};
use sundown_schema::Schema;

use super::METADATA;
use crate::document::Metadata;
use crate::field::{Errors, FieldError};
use crate::registry::Type;
use crate::{dns, validate};

/// Takes out what metadata does not have; the paths of what went.
///
/// Errors: something that has to be a text or an object is none.
pub(super) fn coerce(schema: &Schema, object: &mut Value) -> Result<Vec<String>, FieldError> {
    let (mut unknown, mut first_error) = (Vec::new(), None);
    schema.for_each_embedded(object, &mut |path, map| {
        if let Err(error) = coerce_one(path, map, &mut unknown) {
            first_error.get_or_insert(error);
        }
    });
    first_error.map_or(Ok(unknown), Err)
}

fn coerce_one(
    path: &str,
    map: &mut Map<String, Value>,
    unknown: &mut Vec<String>,
) -> Result<(), FieldError> {
    for member in ["apiVersion", "kind"] {
        if let Some(value) = map.get(member).filter(|value| !value.is_string()) {
            let field = format!("{path}.{member}");
            return Err(FieldError::invalid(
                field,
                value.clone(),
                "must be a string",
            ));
        }
    }
    let field = format!("{path}.metadata");
    let Some(metadata) = map.get_mut("metadata") else {
        return Ok(());
    };
    let Value::Object(members) = metadata else {
        let why = "must be an object";
        return Err(FieldError::invalid(field, metadata.clone(), why));
    };
    members.retain(|name, _| {
        let is_known = METADATA.contains(&name.as_str());
        if !is_known {
            unknown.push(format!("{field}.{name}"));
        }
        is_known
    });
    match serde_json::from_value::<Metadata>(metadata.clone()) {
        Ok(_) => Ok(()),
        Err(error) => Err(FieldError::invalid(
            field,
            metadata.clone(),
            &error.to_string(),
        )),
    }
}

/// What is wrong with embedded resources.
pub(super) fn errors(schema: &Schema, ty: &Type, mut object: Value) -> Errors {
    let mut errors = Errors::default();
    schema.for_each_embedded(&mut object, &mut |path, map| {
        let text = |member: &str| map.get(member).and_then(Value::as_str).unwrap_or("");
        errors.extend(api_version(
            format!("{path}.apiVersion"),
            text("apiVersion"),
        ));
        errors.append(kind(&format!("{path}.kind"), text("kind")));
        let metadata = map.get("metadata").cloned().unwrap_or_default();
        // It was read when the object was taken.
        let metadata = serde_json::from_value::<Metadata>(metadata).unwrap_or_default();
        let wrong = validate::embedded_metadata(ty, &metadata);
        errors.append(wrong.map(|error| error.below(path)));
    });
    errors
}

fn api_version(field: String, version: &str) -> Option<FieldError> {
    if version.is_empty() {
        return Some(FieldError::required(field, ""));
    }
    let is_wrong = version.matches('/').count() > 1;
    is_wrong.then(|| {
        let why = format!("unexpected GroupVersion string: {version}");
        FieldError::invalid(field, version, &why)
    })
}

fn kind(field: &str, kind: &str) -> Errors {
    if kind.is_empty() {
        return Errors::from([FieldError::required(field, "")]);
    }
    let wrong = dns::letter_label(&kind.to_lowercase());
    if wrong.is_empty() {
        return Errors::default();
    }
    let why = format!(
        "may have mixed case, but should otherwise match: {}",
        wrong.join(",")
    );
    Errors::from([FieldError::invalid(field, kind, &why)])
}
