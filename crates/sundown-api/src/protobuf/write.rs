//! Answers in protobuf, from their JSON and the facts: the way back of reading.
//!
//! What is missing in JSON is left out on the wire; Go's decoder takes that for the zero value.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use serde_json::{Map, Value};

use super::{LIST_META, MAGIC, SCHEMA};
use crate::facts::{Fact, Field, Shape, facts};

const STATUS: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.Status";

/// An object, a list or a Status in its envelope; None for what has no message.
pub(crate) fn envelope(value: &Value) -> Option<Vec<u8>> {
    let text = |member: &str| value[member].as_str();
    let (api_version, kind) = (text("apiVersion")?, text("kind")?);
    let raw = message(api_version, kind, value)?;
    let mut type_meta = Vec::new();
    put_bytes(&mut type_meta, 1, api_version.as_bytes());
    put_bytes(&mut type_meta, 2, kind.as_bytes());
    let mut body = MAGIC.to_vec();
    put_bytes(&mut body, 1, &type_meta);
    put_bytes(&mut body, 2, &raw);
    put_bytes(&mut body, 3, b"");
    put_bytes(&mut body, 4, b"");
    Some(body)
}

/// An event of a watch, with its length in front as streams have it.
pub(crate) fn frame(event: &Value) -> Option<Vec<u8>> {
    let mut raw = Vec::new();
    put_bytes(&mut raw, 1, &envelope(&event["object"])?);
    let mut message = Vec::new();
    put_bytes(&mut message, 1, event["type"].as_str()?.as_bytes());
    put_bytes(&mut message, 2, &raw);
    let length = u32::try_from(message.len()).ok()?;
    Some([&length.to_be_bytes(), message.as_slice()].concat())
}

fn message(api_version: &str, kind: &str, value: &Value) -> Option<Vec<u8>> {
    let map = value.as_object()?;
    if kind == "Status" {
        return Some(object(facts().named(STATUS), map));
    }
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let fact_of = |kind: &str| match (group, kind) {
        // On the wire it is an object with nothing but its metadata, which is the first field of each.
        ("meta.k8s.io", "PartialObjectMetadata") => facts().kind("", "v1", "ConfigMap"),
        _ => facts().kind(group, version, kind),
    };
    let Some(items) = value["items"].as_array() else {
        return Some(object(fact_of(kind)?, map));
    };
    let fact = fact_of(kind.strip_suffix("List")?)?;
    let mut out = Vec::new();
    if let Some(meta) = value["metadata"].as_object() {
        put_bytes(&mut out, 1, &object(facts().named(LIST_META), meta));
    }
    for item in items.iter().filter_map(Value::as_object) {
        put_bytes(&mut out, 2, &object(fact, item));
    }
    Some(out)
}

fn object(fact: &Fact, map: &Map<String, Value>) -> Vec<u8> {
    let mut out = Vec::new();
    // What has no number is on no wire: the type of an object is said by its envelope alone.
    for field in fact.fields.iter().filter(|field| field.number > 0) {
        put_field(&mut out, field, map);
    }
    out
}

fn put_field(out: &mut Vec<u8>, field: &Field, map: &Map<String, Value>) {
    if let (Shape::Object(name), true) = (&field.shape, field.is_inline) {
        put_bytes(out, field.number, &object(facts().named(name), map));
        return;
    }
    let Some(value) = map.get(field.json).filter(|value| !value.is_null()) else {
        return;
    };
    if let (Shape::List(inner), Value::Array(list)) = (&field.shape, value) {
        for item in list {
            put(out, field.number, inner, item);
        }
    } else if let (Shape::Map(inner), Value::Object(entries)) = (&field.shape, value) {
        for (key, value) in entries {
            let mut entry = Vec::new();
            put_bytes(&mut entry, 1, key.as_bytes());
            put(&mut entry, 2, inner, value);
            put_bytes(out, field.number, &entry);
        }
    } else {
        put(out, field.number, &field.shape, value);
    }
}

fn put(out: &mut Vec<u8>, number: u32, shape: &Shape, value: &Value) {
    let text = value.as_str().unwrap_or("");
    match shape {
        Shape::String => put_bytes(out, number, text.as_bytes()),
        Shape::Bool => put_varint(out, number, i64::from(value.as_bool() == Some(true))),
        Shape::Int32 | Shape::Int64 => put_varint(out, number, value.as_i64().unwrap_or(0)),
        Shape::Double => put_double(out, number, value.as_f64().unwrap_or(0.0)),
        Shape::Bytes => put_bytes(out, number, &STANDARD.decode(text).unwrap_or_default()),
        Shape::Object(name) => {
            let empty = Map::new();
            let map = value.as_object().unwrap_or(&empty);
            put_bytes(out, number, &object(facts().named(name), map));
        }
        Shape::Wrapped(inner) => {
            let mut items = Vec::new();
            if let (Shape::List(inner), Value::Array(list)) = (&**inner, value) {
                for item in list {
                    put(&mut items, 1, inner, item);
                }
            }
            put_bytes(out, number, &items);
        }
        Shape::List(_) | Shape::Map(_) => {}
        Shape::Quantity
        | Shape::IntOrString
        | Shape::Time
        | Shape::MicroTime
        | Shape::Duration
        | Shape::Raw(_)
        | Shape::SchemaOrArray
        | Shape::SchemaOrBool
        | Shape::SchemaOrStrings => put_bytes(out, number, &special(shape, value)),
    }
}

/// Types whose JSON is not what their messages look like.
fn special(shape: &Shape, value: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    let text = value.as_str().unwrap_or("");
    let schema = |out: &mut Vec<u8>, number, value: &Value| {
        if let Some(map) = value.as_object() {
            put_bytes(out, number, &object(facts().named(SCHEMA), map));
        }
    };
    if *shape == Shape::Quantity {
        put_bytes(&mut out, 1, text.as_bytes());
    } else if *shape == Shape::IntOrString {
        put_varint(&mut out, 1, i64::from(value.is_string()));
        put_varint(&mut out, 2, value.as_i64().unwrap_or(0));
        put_bytes(&mut out, 3, text.as_bytes());
    } else if matches!(shape, Shape::Time | Shape::MicroTime) {
        if let Ok(at) = text.parse::<Timestamp>() {
            put_varint(&mut out, 1, at.as_second());
            put_varint(&mut out, 2, i64::from(at.subsec_nanosecond()));
        }
    } else if *shape == Shape::Duration {
        put_varint(&mut out, 1, nanoseconds(text));
    } else if matches!(shape, Shape::Raw(_)) {
        put_bytes(&mut out, 1, value.to_string().as_bytes());
    } else if *shape == Shape::SchemaOrArray {
        schema(&mut out, 1, value);
        for one in value.as_array().into_iter().flatten() {
            schema(&mut out, 2, one);
        }
    } else if *shape == Shape::SchemaOrBool {
        put_varint(&mut out, 1, i64::from(value.as_bool() != Some(false)));
        schema(&mut out, 2, value);
    } else if *shape == Shape::SchemaOrStrings {
        schema(&mut out, 1, value);
        for one in value.as_array().into_iter().flatten() {
            put_bytes(&mut out, 2, one.as_str().unwrap_or("").as_bytes());
        }
    }
    out
}

/// The nanoseconds of what Go prints for a duration: `1h0m0s`, `1.5s`, `200ms`, `1.5µs`.
pub(super) fn nanoseconds(text: &str) -> i64 {
    const UNITS: [(&str, f64); 7] = [
        ("ns", 1.0),
        ("us", 1e3),
        ("µs", 1e3),
        ("ms", 1e6),
        ("h", 3.6e12),
        ("m", 6e10),
        ("s", 1e9),
    ];
    let (sign, mut rest) = match text.strip_prefix('-') {
        Some(rest) => (-1.0, rest),
        None => (1.0, text),
    };
    let mut sum = 0.0;
    while !rest.is_empty() {
        let digits = rest
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .unwrap_or(rest.len());
        let (number, after) = rest.split_at(digits);
        let unit = UNITS
            .iter()
            .find_map(|(unit, worth)| Some((after.strip_prefix(unit)?, worth)));
        let Some((after, worth)) = unit else { break };
        sum += number.parse::<f64>().unwrap_or(0.0) * worth;
        rest = after;
    }
    #[expect(clippy::cast_possible_truncation, reason = "saturates, as wanted")]
    let nanoseconds = (sign * sum) as i64;
    nanoseconds
}

/// A text, bytes or a message.
pub(crate) fn put_bytes(out: &mut Vec<u8>, number: u32, bytes: &[u8]) {
    varint(out, u64::from(number) << 3 | 2);
    varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// A number or a boolean.
pub(crate) fn put_varint(out: &mut Vec<u8>, number: u32, value: i64) {
    varint(out, u64::from(number) << 3);
    varint(out, value.cast_unsigned());
}

/// A number with a fraction.
pub(crate) fn put_double(out: &mut Vec<u8>, number: u32, value: f64) {
    varint(out, u64::from(number) << 3 | 1);
    out.extend_from_slice(&value.to_le_bytes());
}

fn varint(out: &mut Vec<u8>, mut value: u64) {
    while value > 0x7f {
        #[expect(clippy::cast_possible_truncation, reason = "seven bits at a time")]
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    #[expect(clippy::cast_possible_truncation, reason = "the last seven bits")]
    out.push(value as u8);
}
