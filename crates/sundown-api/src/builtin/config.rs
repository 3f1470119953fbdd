//! The data of ConfigMaps and Secrets: keys become file names, and all of it has to fit.

use serde_json::Value;

use crate::document::Document;
use crate::field::FieldError;

const KEY_BYTES_MAX: usize = 253;
const DATA_BYTES_MAX: usize = 1024 * 1024;
const KEY: &str = "a valid config key must consist of alphanumeric characters, '-', '_' or '.' \
                   (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is \
                   '[-._a-zA-Z0-9]+')";

/// What is wrong with the data of a ConfigMap.
pub(super) fn validate_config_map(object: &Document) -> Vec<FieldError> {
    let (mut errors, mut bytes) = (Vec::new(), 0);
    for (key, value) in entries(object, "data") {
        keys("data", key, &mut errors);
        if object.at(&["binaryData", key]).is_some() {
            let why = "duplicate of key present in binaryData";
            errors.push(FieldError::invalid(format!("data[{key}]"), &**key, why));
        }
        bytes += value.as_str().unwrap_or("").len();
    }
    for (key, value) in entries(object, "binaryData") {
        keys("binaryData", key, &mut errors);
        bytes += decoded_bytes(value);
    }
    if bytes > DATA_BYTES_MAX {
        errors.push(FieldError::too_long("[]", DATA_BYTES_MAX));
    }
    errors
}

/// What is wrong with the data of a Secret of any type.
pub(super) fn validate_secret(object: &Document) -> Vec<FieldError> {
    let (mut errors, mut bytes) = (Vec::new(), 0);
    for (key, value) in entries(object, "data") {
        keys("data", key, &mut errors);
        bytes += decoded_bytes(value);
    }
    if bytes > DATA_BYTES_MAX {
        errors.push(FieldError::too_long("data", DATA_BYTES_MAX));
    }
    errors
}

fn entries<'a>(
    object: &'a Document,
    member: &str,
) -> impl Iterator<Item = (&'a String, &'a Value)> {
    let map = object.rest.get(member).and_then(Value::as_object);
    map.into_iter().flatten()
}

fn keys(member: &str, key: &str, errors: &mut Vec<FieldError>) {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    let mut wrong = Vec::new();
    if key.len() > KEY_BYTES_MAX {
        wrong.push(format!("must be no more than {KEY_BYTES_MAX} characters"));
    }
    if key.is_empty() || !key.bytes().all(fits) {
        wrong.push(KEY.into());
    }
    match key {
        "." | ".." => wrong.push(format!("must not be '{key}'")),
        _ if key.starts_with("..") => wrong.push("must not start with '..'".into()),
        _ => {}
    }
    let at = format!("{member}[{key}]");
    errors.extend(wrong.iter().map(|why| FieldError::invalid(&*at, key, why)));
}

/// How many bytes a base64 text stands for, padding aside.
fn decoded_bytes(value: &Value) -> usize {
    let text = value.as_str().unwrap_or("").trim_end_matches('=');
    text.len() * 3 / 4
}
