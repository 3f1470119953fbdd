//! The document as a message of gnostic's `openapiv2`, which Go clients read.
//!
//! Written by hand like the other protobuf of this crate: a library would bring code generation for
//! the twenty messages of which we fill in a part. Numbers are those of `OpenAPIv2.proto`; what a
//! schema may hold beyond them was left out by `lowered`.

use serde_json::Value;

use crate::protobuf::{put_bytes, put_double, put_varint};
use crate::registry::Registry;

use super::parts::{definitions, paths};

/// How a member is written.
#[derive(Debug, Clone, Copy)]
enum Shape {
    Text,
    /// A list of texts.
    Texts,
    Bool,
    Int,
    Double,
    /// A list of anything.
    Anys,
    /// The type of a schema: a list with one text.
    Type,
    Schema,
    /// The items of a list: a message around one schema.
    Items,
    /// A schema, or whether there may be any.
    SchemaOrBool,
    /// Schemas by name.
    Schemas,
    Operation,
    Parameters,
    Responses,
}

/// The name of a member, its number and how it is written.
type Member = (&'static str, u32, Shape);

const INFO: &[Member] = &[("title", 1, Shape::Text), ("version", 2, Shape::Text)];

const SCHEMA: &[Member] = &[
    ("$ref", 1, Shape::Text),
    ("format", 2, Shape::Text),
    ("title", 3, Shape::Text),
    ("description", 4, Shape::Text),
    ("multipleOf", 6, Shape::Double),
    ("maximum", 7, Shape::Double),
    ("exclusiveMaximum", 8, Shape::Bool),
    ("minimum", 9, Shape::Double),
    ("exclusiveMinimum", 10, Shape::Bool),
    ("maxLength", 11, Shape::Int),
    ("minLength", 12, Shape::Int),
    ("pattern", 13, Shape::Text),
    ("maxItems", 14, Shape::Int),
    ("minItems", 15, Shape::Int),
    ("uniqueItems", 16, Shape::Bool),
    ("maxProperties", 17, Shape::Int),
    ("minProperties", 18, Shape::Int),
    ("required", 19, Shape::Texts),
    ("enum", 20, Shape::Anys),
    ("additionalProperties", 21, Shape::SchemaOrBool),
    ("type", 22, Shape::Type),
    ("items", 23, Shape::Items),
    ("properties", 25, Shape::Schemas),
    ("readOnly", 27, Shape::Bool),
];
const SCHEMA_EXTENSION: u32 = 31;

const PATH_ITEM: &[Member] = &[
    ("get", 2, Shape::Operation),
    ("put", 3, Shape::Operation),
    ("post", 4, Shape::Operation),
    ("delete", 5, Shape::Operation),
    ("patch", 8, Shape::Operation),
    ("parameters", 9, Shape::Parameters),
];

const OPERATION: &[Member] = &[
    ("operationId", 5, Shape::Text),
    ("produces", 6, Shape::Texts),
    ("consumes", 7, Shape::Texts),
    ("parameters", 8, Shape::Parameters),
    ("responses", 9, Shape::Responses),
    ("schemes", 10, Shape::Texts),
];
const OPERATION_EXTENSION: u32 = 13;

const BODY_PARAMETER: &[Member] = &[
    ("name", 2, Shape::Text),
    ("in", 3, Shape::Text),
    ("required", 4, Shape::Bool),
    ("schema", 5, Shape::Schema),
];
const QUERY_PARAMETER: &[Member] = &[
    ("required", 1, Shape::Bool),
    ("in", 2, Shape::Text),
    ("name", 4, Shape::Text),
    ("type", 6, Shape::Text),
];
const PATH_PARAMETER: &[Member] = &[
    ("required", 1, Shape::Bool),
    ("in", 2, Shape::Text),
    ("name", 4, Shape::Text),
    ("type", 5, Shape::Text),
];

/// The whole document.
pub(super) fn document(registry: &Registry) -> Vec<u8> {
    let mut out = Vec::new();
    put_bytes(&mut out, 1, b"2.0");
    put_bytes(&mut out, 2, &message(INFO, &super::info()));
    let mut part = Vec::new();
    paths(registry, &mut |path, item| {
        put_named(&mut part, 2, path, &message(PATH_ITEM, item));
    });
    put_bytes(&mut out, 8, &part);
    part.clear();
    definitions(registry, &mut |name, own| {
        put_named(&mut part, 1, name, &schema(own));
    });
    put_bytes(&mut out, 9, &part);
    out
}

fn message(members: &[Member], value: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    for (name, number, shape) in members {
        if let Some(member) = value.get(name) {
            put(&mut out, *number, *shape, member);
        }
    }
    out
}

fn put(out: &mut Vec<u8>, number: u32, shape: Shape, value: &Value) {
    match shape {
        Shape::Text => put_bytes(out, number, value.as_str().unwrap_or("").as_bytes()),
        Shape::Texts => {
            for text in value.as_array().into_iter().flatten() {
                put(out, number, Shape::Text, text);
            }
        }
        Shape::Bool => put_varint(out, number, i64::from(value.as_bool() == Some(true))),
        Shape::Int => put_varint(out, number, whole(value)),
        Shape::Double => put_double(out, number, value.as_f64().unwrap_or(0.0)),
        Shape::Anys => {
            for one in value.as_array().into_iter().flatten() {
                put_bytes(out, number, &any(one));
            }
        }
        Shape::Type => put_bytes(out, number, &wrapped(1, Shape::Text, value)),
        Shape::Schema => put_bytes(out, number, &schema(value)),
        Shape::Items => put_bytes(out, number, &wrapped(1, Shape::Schema, value)),
        Shape::SchemaOrBool => {
            let inner = if value.is_boolean() {
                wrapped(2, Shape::Bool, value)
            } else {
                wrapped(1, Shape::Schema, value)
            };
            put_bytes(out, number, &inner);
        }
        Shape::Schemas => {
            let mut schemas = Vec::new();
            for (name, own) in value.as_object().into_iter().flatten() {
                put_named(&mut schemas, 1, name, &schema(own));
            }
            put_bytes(out, number, &schemas);
        }
        Shape::Operation => {
            let operation = extended(OPERATION, OPERATION_EXTENSION, value);
            put_bytes(out, number, &operation);
        }
        Shape::Parameters => {
            for own in value.as_array().into_iter().flatten() {
                put_bytes(out, number, &parameter(own));
            }
        }
        Shape::Responses => put_bytes(out, number, &responses(value)),
    }
}

fn schema(value: &Value) -> Vec<u8> {
    extended(SCHEMA, SCHEMA_EXTENSION, value)
}

/// A message with what is named `x-…` in one more member.
fn extended(members: &[Member], number: u32, value: &Value) -> Vec<u8> {
    let mut out = message(members, value);
    for (name, own) in value.as_object().into_iter().flatten() {
        if name.starts_with("x-") {
            put_named(&mut out, number, name, &any(own));
        }
    }
    out
}

/// `ParametersItem`, `Parameter` and, for all but bodies, `NonBodyParameter` around it.
fn parameter(value: &Value) -> Vec<u8> {
    let around = |number: u32, inner: &[u8]| {
        let mut out = Vec::new();
        put_bytes(&mut out, number, inner);
        out
    };
    let parameter = match value["in"].as_str() {
        Some("body") => around(1, &message(BODY_PARAMETER, value)),
        Some("path") => around(2, &around(4, &message(PATH_PARAMETER, value))),
        _ => around(2, &around(3, &message(QUERY_PARAMETER, value))),
    };
    around(1, &parameter)
}

fn responses(value: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    for (code, own) in value.as_object().into_iter().flatten() {
        let mut response = wrapped(1, Shape::Text, &own["description"]);
        put_bytes(&mut response, 2, &wrapped(1, Shape::Schema, &own["schema"]));
        let mut either = Vec::new();
        put_bytes(&mut either, 1, &response);
        put_named(&mut out, 1, code, &either);
    }
    out
}

/// A message with one member.
fn wrapped(number: u32, shape: Shape, value: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    put(&mut out, number, shape, value);
    out
}

/// Anything as YAML, which JSON is.
fn any(value: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    put_bytes(&mut out, 2, value.to_string().as_bytes());
    out
}

fn put_named(out: &mut Vec<u8>, number: u32, name: &str, value: &[u8]) {
    let mut named = Vec::with_capacity(name.len() + value.len() + 8);
    put_bytes(&mut named, 1, name.as_bytes());
    put_bytes(&mut named, 2, value);
    put_bytes(out, number, &named);
}

/// Lengths and counts; JSON may write them as `1.0` too.
fn whole(value: &Value) -> i64 {
    #[expect(clippy::cast_possible_truncation, reason = "saturates, as wanted")]
    let other = || value.as_f64().unwrap_or(0.0) as i64;
    value.as_i64().unwrap_or_else(other)
}
