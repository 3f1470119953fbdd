//! Objects of built-in kinds in the form in which Go would write them, driven by the facts.
//!
//! Upstream decodes a body into a struct and writes the struct: unknown members go, zero values
//! come and go by their tags. What is missing beyond that is filled in by `builtin`.

mod text;

use serde_json::{Map, Value, json};
use sundown_schema::{Step, below};

use crate::facts::{Any, Fact, Field, Shape, facts};
use crate::go_json;

const SCHEMA: &str = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps";

/// An object in its canonical form, and the paths that its type does not know.
#[derive(Debug, Default)]
pub(crate) struct Canonical {
    pub(crate) object: Map<String, Value>,
    pub(crate) unknown: Vec<String>,
}

/// Why a value is not of its type, in the words of Go's JSON decoder and of its converter: a
/// strategic merge patch is converted, everything else is decoded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Misfit {
    pub(crate) decoded: String,
    pub(crate) converted: String,
}

impl From<String> for Misfit {
    fn from(text: String) -> Self {
        Self {
            decoded: text.clone(),
            converted: text,
        }
    }
}

/// Reads an object as its type.
///
/// Errors: a member of another JSON type, in the words of Go's decoder.
pub(crate) fn canonical(fact: &Fact, map: Map<String, Value>) -> Result<Canonical, Misfit> {
    let mut unknown = Vec::new();
    let object = object(fact, map, "", &mut unknown)?;
    Ok(Canonical { object, unknown })
}

/// The zero value of a member that is an object, as a new object has it; None if it is left out.
pub(crate) fn zero_member(fact: &Fact, json: &str) -> Option<Value> {
    fact.member(json).and_then(zero)
}

fn object(
    fact: &Fact,
    map: Map<String, Value>,
    at: &str,
    unknown: &mut Vec<String>,
) -> Result<Map<String, Value>, Misfit> {
    let mut read = Map::new();
    for (json, value) in map {
        let path = below(at, Step::Member(&json));
        let Some(member) = fact.member(&json) else {
            unknown.push(path);
            continue;
        };
        // Go decodes null as nothing.
        if !value.is_null() {
            let place = Place {
                holder: fact,
                path: &path,
            };
            read.insert(json, convert(&member.shape, value, &place, unknown)?);
        }
    }
    for member in &fact.members {
        match read.get(member.json) {
            Some(value) if is_left_out(member, value) => {
                read.remove(member.json);
            }
            Some(_) => {}
            None => {
                if let Some(value) = zero(member) {
                    read.insert(member.json.to_owned(), value);
                }
            }
        }
    }
    Ok(read)
}

/// Where a value is, for messages.
struct Place<'a> {
    holder: &'a Fact,
    path: &'a str,
}

fn convert(
    shape: &Shape,
    value: Value,
    place: &Place<'_>,
    unknown: &mut Vec<String>,
) -> Result<Value, Misfit> {
    match (shape, value) {
        (Shape::Object(name), Value::Object(map)) => {
            Ok(object(facts().named(name), map, place.path, unknown)?.into())
        }
        (Shape::Map(inner), Value::Object(map)) => {
            let mut read = Map::new();
            for (key, value) in map {
                // In brackets, as elements of lists are: Go's decoder names neither.
                let is_plain = !matches!(**inner, Shape::Object(_));
                let step = if is_plain {
                    Step::Key(&key)
                } else {
                    Step::Member(&key)
                };
                let path = below(place.path, step);
                let value = element(
                    inner,
                    value,
                    &Place {
                        path: &path,
                        ..*place
                    },
                    unknown,
                )?;
                read.insert(key, value);
            }
            Ok(read.into())
        }
        (Shape::Wrapped(inner), value @ Value::Array(_)) => convert(inner, value, place, unknown),
        (Shape::List(inner), Value::Array(list)) => {
            let mut read = Vec::with_capacity(list.len());
            for (index, value) in list.into_iter().enumerate() {
                let path = below(place.path, Step::Index(index));
                read.push(element(
                    inner,
                    value,
                    &Place {
                        path: &path,
                        ..*place
                    },
                    unknown,
                )?);
            }
            Ok(read.into())
        }
        (Shape::SchemaOrArray | Shape::SchemaOrBool | Shape::SchemaOrStrings, value) => {
            schema_or(value, place, unknown)
        }
        (Shape::Quantity, Value::Number(number)) => Ok(text::quantity(&number.to_string())?),
        (Shape::Quantity, Value::String(sent)) => Ok(text::quantity(&sent)?),
        (Shape::Bytes, Value::String(sent)) => Ok(text::bytes(sent)?),
        (Shape::Time, Value::String(sent)) => Ok(text::time(&sent)?),
        (Shape::MicroTime, Value::String(sent)) => Ok(text::micro_time(&sent)?),
        (shape, value) if fits(shape, &value) => Ok(value),
        (shape, value) => Err(mismatch(shape, &value, place)),
    }
}

fn element(
    shape: &Shape,
    value: Value,
    place: &Place<'_>,
    unknown: &mut Vec<String>,
) -> Result<Value, Misfit> {
    if !value.is_null() {
        return convert(shape, value, place, unknown);
    }
    if let Shape::Object(name) = shape {
        return Ok(object(facts().named(name), Map::new(), place.path, unknown)?.into());
    }
    Ok(zero_of(shape))
}

fn schema_or(value: Value, place: &Place<'_>, unknown: &mut Vec<String>) -> Result<Value, Misfit> {
    let schema = Shape::Object(SCHEMA);
    if value.is_object() {
        return convert(&schema, value, place, unknown);
    }
    let schemas = value.as_array();
    if schemas.is_some_and(|list| list.iter().all(Value::is_object)) {
        return convert(&Shape::List(Box::new(schema)), value, place, unknown);
    }
    Ok(value)
}

fn fits(shape: &Shape, value: &Value) -> bool {
    match shape {
        Shape::String
        | Shape::Quantity
        | Shape::Bytes
        | Shape::Time
        | Shape::MicroTime
        | Shape::Duration => value.is_string(),
        Shape::Bool => value.is_boolean(),
        Shape::Int32 => value
            .as_i64()
            .is_some_and(|number| i32::try_from(number).is_ok()),
        Shape::Int64 => value.is_i64(),
        Shape::Double => value.is_number(),
        Shape::IntOrString => {
            value.is_string()
                || value
                    .as_i64()
                    .is_some_and(|number| i32::try_from(number).is_ok())
        }
        Shape::Raw(_) | Shape::SchemaOrArray | Shape::SchemaOrBool | Shape::SchemaOrStrings => true,
        Shape::List(_) | Shape::Map(_) | Shape::Wrapped(_) | Shape::Object(_) => false,
    }
}

fn mismatch(shape: &Shape, value: &Value, place: &Place<'_>) -> Misfit {
    let found = match value {
        Value::Null => "null".to_owned(),
        Value::Bool(_) => "bool".to_owned(),
        Value::String(_) => "string".to_owned(),
        Value::Array(_) => "array".to_owned(),
        Value::Object(_) => "object".to_owned(),
        Value::Number(number) if number.is_f64() || shape_is_number(shape) => {
            format!("number {number}")
        }
        Value::Number(_) => "number".to_owned(),
    };
    let (holder, wanted) = (place.holder.go_name(), go_type(shape));
    let path: String = without_indices(place.path);
    Misfit {
        decoded: format!(
            "json: cannot unmarshal {found} into Go struct field {holder}.{path} of type {wanted}"
        ),
        converted: unconverted(shape, value, &wanted),
    }
}

fn unconverted(shape: &Shape, value: &Value, wanted: &str) -> String {
    let found = match value {
        Value::Array(_) => "slice",
        Value::Object(_) => "map",
        Value::Number(number) if number.is_f64() => "float64",
        Value::Number(_) => "int64",
        Value::Null | Value::Bool(_) | Value::String(_) => go_json::name_of(value),
    };
    let is_plain = !(value.is_array() || value.is_object());
    if matches!(shape, Shape::Map(_)) {
        format!("cannot restore map from {found}")
    } else if matches!(shape, Shape::List(_)) {
        format!("cannot restore slice from {found}")
    } else if is_plain && *shape == Shape::String {
        format!("cannot convert {found} to string")
    } else {
        format!("unrecognized type: {wanted}")
    }
}

fn shape_is_number(shape: &Shape) -> bool {
    matches!(shape, Shape::Int32 | Shape::Int64 | Shape::Double)
}

/// Go's decoder names fields, not elements.
fn without_indices(path: &str) -> String {
    let mut depth = 0_u32;
    path.chars()
        .filter(|c| {
            match c {
                '[' => depth += 1,
                ']' => {
                    depth = depth.saturating_sub(1);
                    return false;
                }
                _ => {}
            }
            depth == 0
        })
        .collect()
}

fn go_type(shape: &Shape) -> String {
    match shape {
        Shape::String => "string".into(),
        Shape::Bool => "bool".into(),
        Shape::Int32 => "int32".into(),
        Shape::Int64 => "int64".into(),
        Shape::Double => "float64".into(),
        Shape::Bytes => "[]uint8".into(),
        Shape::Quantity => "resource.Quantity".into(),
        Shape::IntOrString => "intstr.IntOrString".into(),
        Shape::Time => "v1.Time".into(),
        Shape::MicroTime => "v1.MicroTime".into(),
        Shape::Duration => "v1.Duration".into(),
        Shape::Raw(Any::Extension) => "runtime.RawExtension".into(),
        Shape::Raw(Any::Fields) => "v1.FieldsV1".into(),
        Shape::Raw(Any::Json) => "v1.JSON".into(),
        Shape::SchemaOrArray => "v1.JSONSchemaPropsOrArray".into(),
        Shape::SchemaOrBool => "v1.JSONSchemaPropsOrBool".into(),
        Shape::SchemaOrStrings => "v1.JSONSchemaPropsOrStringArray".into(),
        Shape::List(inner) => format!("[]{}", go_type(inner)),
        Shape::Map(inner) => format!("map[string]{}", go_type(inner)),
        Shape::Wrapped(inner) => go_type(inner),
        Shape::Object(name) => {
            let mut parts = name.rsplit('.');
            let (kind, package) = (parts.next().unwrap_or(""), parts.next().unwrap_or(""));
            format!("{package}.{kind}")
        }
    }
}

fn is_left_out(member: &Field, value: &Value) -> bool {
    if member.is_pointer || !(member.omits_empty || member.omits_zero) {
        return false;
    }
    let is_empty = match value {
        Value::Null => member.omits_zero,
        Value::Bool(value) => !value,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(list) => list.is_empty(),
        Value::Object(map) => map.is_empty(),
    };
    let is_struct = match &member.shape {
        Shape::Object(_)
        | Shape::Quantity
        | Shape::IntOrString
        | Shape::Time
        | Shape::MicroTime
        | Shape::Duration
        | Shape::Raw(_)
        | Shape::SchemaOrArray
        | Shape::SchemaOrBool
        | Shape::SchemaOrStrings => true,
        Shape::String
        | Shape::Bool
        | Shape::Int32
        | Shape::Int64
        | Shape::Double
        | Shape::Bytes
        | Shape::List(_)
        | Shape::Map(_)
        | Shape::Wrapped(_) => false,
    };
    is_empty && (member.omits_zero || !is_struct)
}

/// What Go writes for a field that was never set.
fn zero(member: &Field) -> Option<Value> {
    if member.is_pointer {
        return (!member.omits_empty).then_some(Value::Null);
    }
    match &member.shape {
        _ if member.omits_zero => None,
        Shape::Object(name) => {
            let zero = object(facts().named(name), Map::new(), "", &mut Vec::new());
            zero.ok().map(Value::Object)
        }
        Shape::Quantity
        | Shape::IntOrString
        | Shape::Time
        | Shape::MicroTime
        | Shape::Duration
        | Shape::Raw(_) => Some(zero_of(&member.shape)),
        Shape::SchemaOrArray | Shape::SchemaOrBool | Shape::SchemaOrStrings => None,
        Shape::String
        | Shape::Bool
        | Shape::Int32
        | Shape::Int64
        | Shape::Double
        | Shape::Bytes
        | Shape::List(_)
        | Shape::Map(_)
        | Shape::Wrapped(_) => (!member.omits_empty).then(|| zero_of(&member.shape)),
    }
}

fn zero_of(shape: &Shape) -> Value {
    match shape {
        Shape::String => json!(""),
        Shape::Bool => json!(false),
        Shape::Int32 | Shape::Int64 | Shape::Double | Shape::IntOrString => json!(0),
        Shape::Quantity => json!("0"),
        Shape::Duration => json!("0s"),
        Shape::Bytes
        | Shape::Time
        | Shape::MicroTime
        | Shape::Raw(_)
        | Shape::SchemaOrArray
        | Shape::SchemaOrBool
        | Shape::SchemaOrStrings
        | Shape::List(_)
        | Shape::Map(_)
        | Shape::Wrapped(_)
        | Shape::Object(_) => Value::Null,
    }
}
