//! Protobuf bodies of built-in kinds as JSON, driven by the facts; `write` is the way back.
//!
//! The result holds every field that was on the wire, zero values included: which of them JSON has
//! is the business of `fields`.

mod write;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::facts::{Fact, Shape, facts};

pub(crate) use write::{envelope, frame, put_bytes, put_double, put_varint};

/// The media type of protobuf, of requests and of answers.
pub(crate) const MEDIA: &str = "application/vnd.kubernetes.protobuf";

const MAGIC: &[u8] = b"k8s\0";
const DEPTH_MAX: usize = 100;
const LIST_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta";
const SCHEMA: &str = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps";

/// Why a body could not be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Unreadable {
    #[error(
        "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]"
    )]
    NoEnvelope,
    #[error("unexpected EOF")]
    CutOff,
    #[error("proto: illegal tag 0")]
    Tag,
    #[error("proto: illegal wireType")]
    WireType,
    #[error("proto: nested too deep")]
    TooDeep,
    #[error("proto: invalid UTF-8 or embedded JSON")]
    Content,
}

/// A body without its envelope.
#[derive(Debug, PartialEq)]
pub(crate) struct Envelope<'a> {
    pub(crate) api_version: String,
    pub(crate) kind: String,
    pub(crate) raw: &'a [u8],
}

/// Takes the envelope off.
pub(crate) fn open(body: &[u8]) -> Result<Envelope<'_>, Unreadable> {
    let rest = body.strip_prefix(MAGIC).ok_or(Unreadable::NoEnvelope)?;
    let mut envelope = Envelope {
        api_version: String::new(),
        kind: String::new(),
        raw: &[],
    };
    for part in parts(rest) {
        match part? {
            (1, Wire::Bytes(type_meta)) => {
                for part in parts(type_meta) {
                    match part? {
                        (1, Wire::Bytes(text)) => envelope.api_version = string(text)?,
                        (2, Wire::Bytes(text)) => envelope.kind = string(text)?,
                        _ => {}
                    }
                }
            }
            (2, Wire::Bytes(raw)) => envelope.raw = raw,
            _ => {}
        }
    }
    Ok(envelope)
}

/// Reads a message of this type.
pub(crate) fn message(fact: &Fact, raw: &[u8]) -> Result<Map<String, Value>, Unreadable> {
    object(fact, raw, 0)
}

fn object(fact: &Fact, raw: &[u8], depth: usize) -> Result<Map<String, Value>, Unreadable> {
    if depth > DEPTH_MAX {
        return Err(Unreadable::TooDeep);
    }
    let mut map = Map::new();
    for part in parts(raw) {
        let (number, wire) = part?;
        let Some(field) = fact.fields.iter().find(|field| field.number == number) else {
            continue;
        };
        match (&field.shape, wire) {
            (Shape::Object(name), Wire::Bytes(inner)) if field.is_inline => {
                map.extend(object(facts().named(name), inner, depth + 1)?);
            }
            (Shape::List(element), wire) => {
                let elements = elements(element, wire, depth)?;
                let list = map.entry(field.json).or_insert_with(|| json!([]));
                list.as_array_mut()
                    .ok_or(Unreadable::Content)?
                    .extend(elements);
            }
            (Shape::Map(value), Wire::Bytes(entry)) => {
                let (key, value) = map_entry(value, entry, depth)?;
                let own = map.entry(field.json).or_insert_with(|| json!({}));
                own.as_object_mut()
                    .ok_or(Unreadable::Content)?
                    .insert(key, value);
            }
            (shape, wire) => {
                map.insert(field.json.to_owned(), single(shape, wire, depth)?);
            }
        }
    }
    Ok(map)
}

/// The elements of one occurrence of a repeated field: several when numbers are packed.
fn elements(shape: &Shape, wire: Wire<'_>, depth: usize) -> Result<Vec<Value>, Unreadable> {
    let is_number = matches!(shape, Shape::Int32 | Shape::Int64 | Shape::Bool);
    let Wire::Bytes(mut packed) = wire else {
        return Ok(vec![single(shape, wire, depth)?]);
    };
    if !is_number {
        return Ok(vec![single(shape, Wire::Bytes(packed), depth)?]);
    }
    let mut values = Vec::new();
    while !packed.is_empty() {
        values.push(single(shape, Wire::Varint(varint(&mut packed)?), depth)?);
    }
    Ok(values)
}

fn map_entry(shape: &Shape, entry: &[u8], depth: usize) -> Result<(String, Value), Unreadable> {
    let (mut key, mut value) = (String::new(), None);
    for part in parts(entry) {
        match part? {
            (1, Wire::Bytes(text)) => key = string(text)?,
            (2, wire) => value = Some(single(shape, wire, depth)?),
            _ => {}
        }
    }
    let value = match value {
        Some(value) => value,
        None => single(shape, Wire::Bytes(&[]), depth)?,
    };
    Ok((key, value))
}

fn single(shape: &Shape, wire: Wire<'_>, depth: usize) -> Result<Value, Unreadable> {
    match (shape, wire) {
        (Shape::Bool, Wire::Varint(number)) => Ok((number != 0).into()),
        (Shape::Int32 | Shape::Int64, Wire::Varint(number)) => Ok(number.cast_signed().into()),
        (Shape::Double, Wire::Fixed64(bits)) => Ok(f64::from_bits(bits).into()),
        (Shape::String, Wire::Bytes(text)) => Ok(string(text)?.into()),
        (Shape::Bytes, Wire::Bytes(bytes)) => Ok(STANDARD.encode(bytes).into()),
        (Shape::Object(name), Wire::Bytes(raw)) => {
            Ok(Value::Object(object(facts().named(name), raw, depth + 1)?))
        }
        (Shape::Wrapped(inner), Wire::Bytes(raw)) => wrapped(inner, raw, depth),
        (shape, Wire::Bytes(raw)) => special(shape, raw, depth),
        _ => Err(Unreadable::WireType),
    }
}

fn wrapped(inner: &Shape, raw: &[u8], depth: usize) -> Result<Value, Unreadable> {
    let Shape::List(element) = inner else {
        return Err(Unreadable::WireType);
    };
    let mut list = Vec::new();
    for part in parts(raw) {
        let (number, wire) = part?;
        if number == 1 {
            list.extend(elements(element, wire, depth)?);
        }
    }
    Ok(list.into())
}

/// Types whose JSON is not what their messages look like.
fn special(shape: &Shape, raw: &[u8], depth: usize) -> Result<Value, Unreadable> {
    let (mut numbers, mut texts, mut messages) = ([0_i64; 4], [const { None }; 4], Vec::new());
    for part in parts(raw) {
        match part? {
            (number @ 1..=3, Wire::Varint(value)) => {
                numbers[number as usize] = value.cast_signed();
            }
            (number @ 1..=3, Wire::Bytes(bytes)) => {
                texts[number as usize] = Some(bytes);
                messages.push((number, bytes));
            }
            _ => {}
        }
    }
    let text = |at: usize| string(texts[at].unwrap_or(b""));
    match shape {
        Shape::Quantity => Ok(text(1)?.into()),
        Shape::IntOrString if numbers[1] == 1 => Ok(text(3)?.into()),
        Shape::IntOrString => Ok(numbers[2].into()),
        Shape::Time | Shape::MicroTime => Ok(time(shape, raw, numbers[1], numbers[2])),
        Shape::Duration => Ok(duration(numbers[1]).into()),
        Shape::Raw(_) => match texts[1] {
            None | Some([]) => Ok(Value::Null),
            Some(bytes) => serde_json::from_slice(bytes).map_err(|_| Unreadable::Content),
        },
        Shape::SchemaOrArray => {
            let list = schemas(&messages, 2, depth)?;
            let one = schemas(&messages, 1, depth)?.into_iter().next();
            Ok(one.unwrap_or_else(|| list.into()))
        }
        Shape::SchemaOrBool => {
            let one = schemas(&messages, 2, depth)?.into_iter().next();
            Ok(one.unwrap_or_else(|| (numbers[1] != 0).into()))
        }
        Shape::SchemaOrStrings => {
            let one = schemas(&messages, 1, depth)?.into_iter().next();
            let texts = messages.iter().filter(|(number, _)| *number == 2);
            let names = texts.map(|(_, text)| string(text).map(Value::from));
            Ok(one.unwrap_or(names.collect::<Result<Vec<_>, _>>()?.into()))
        }
        Shape::String
        | Shape::Bool
        | Shape::Int32
        | Shape::Int64
        | Shape::Double
        | Shape::Bytes
        | Shape::List(_)
        | Shape::Map(_)
        | Shape::Wrapped(_)
        | Shape::Object(_) => Err(Unreadable::WireType),
    }
}

fn schemas(messages: &[(u32, &[u8])], number: u32, depth: usize) -> Result<Vec<Value>, Unreadable> {
    let fact = facts().named(SCHEMA);
    let own = messages.iter().filter(|(own, _)| *own == number);
    own.map(|(_, raw)| Ok(Value::Object(object(fact, raw, depth + 1)?)))
        .collect()
}

/// The zero time is an empty message, and null in JSON.
fn time(shape: &Shape, raw: &[u8], seconds: i64, nanos: i64) -> Value {
    const YEAR_1: i64 = -62_135_596_800;
    if raw.is_empty() || seconds == YEAR_1 {
        return Value::Null;
    }
    let nanos = i32::try_from(nanos).unwrap_or(0);
    let Ok(at) = Timestamp::new(seconds, nanos) else {
        return Value::Null;
    };
    if *shape == Shape::MicroTime {
        format!("{at:.6}").into()
    } else {
        format!("{at:.0}").into()
    }
}

/// As Go prints whole milliseconds of a duration: `1h0m0s`, `1.5s`.
fn duration(nanos: i64) -> String {
    const SECOND: u64 = 1_000_000_000;
    let (sign, nanos) = (if nanos < 0 { "-" } else { "" }, nanos.unsigned_abs());
    // What is shorter than a second is told in the largest unit that it reaches.
    let (worth, digits, unit) = match nanos {
        1..1_000 => (1, 0, "ns"),
        1_000..1_000_000 => (1_000, 3, "µs"),
        1_000_000..SECOND => (1_000_000, 6, "ms"),
        _ => (SECOND, 9, "s"),
    };
    let (whole, rest) = (nanos / worth, nanos % worth);
    let fraction = format!(".{rest:0digits$}");
    let fraction = fraction.trim_end_matches('0').trim_end_matches('.');
    let (hours, minutes, seconds) = (whole / 3600, whole / 60 % 60, whole % 60);
    match (hours, minutes) {
        _ if nanos < SECOND => format!("{sign}{whole}{fraction}{unit}"),
        (0, 0) => format!("{sign}{seconds}{fraction}s"),
        (0, _) => format!("{sign}{minutes}m{seconds}{fraction}s"),
        _ => format!("{sign}{hours}h{minutes}m{seconds}{fraction}s"),
    }
}

/// One value on the wire.
#[derive(Debug, Clone, Copy)]
enum Wire<'a> {
    Varint(u64),
    Fixed64(u64),
    Bytes(&'a [u8]),
    Fixed32,
}

/// The fields of a message, in order.
fn parts(mut raw: &[u8]) -> impl Iterator<Item = Result<(u32, Wire<'_>), Unreadable>> {
    std::iter::from_fn(move || {
        if raw.is_empty() {
            return None;
        }
        let part = part(&mut raw);
        if part.is_err() {
            raw = &[];
        }
        Some(part)
    })
}

fn part<'a>(raw: &mut &'a [u8]) -> Result<(u32, Wire<'a>), Unreadable> {
    let tag = varint(raw)?;
    let number = u32::try_from(tag >> 3).map_err(|_| Unreadable::WireType)?;
    if number == 0 {
        return Err(Unreadable::Tag);
    }
    let wire = match tag & 7 {
        0 => Wire::Varint(varint(raw)?),
        1 => {
            let bytes = take(raw, 8)?;
            Wire::Fixed64(u64::from_le_bytes(bytes.try_into().expect("took eight")))
        }
        2 => {
            let length = usize::try_from(varint(raw)?).map_err(|_| Unreadable::CutOff)?;
            Wire::Bytes(take(raw, length)?)
        }
        5 => {
            take(raw, 4)?;
            Wire::Fixed32
        }
        _ => return Err(Unreadable::WireType),
    };
    Ok((number, wire))
}

fn take<'a>(raw: &mut &'a [u8], length: usize) -> Result<&'a [u8], Unreadable> {
    let (taken, rest) = raw.split_at_checked(length).ok_or(Unreadable::CutOff)?;
    *raw = rest;
    Ok(taken)
}

fn varint(raw: &mut &[u8]) -> Result<u64, Unreadable> {
    let mut value = 0_u64;
    for shift in (0..64).step_by(7) {
        let (first, rest) = raw.split_first().ok_or(Unreadable::CutOff)?;
        *raw = rest;
        value |= u64::from(first & 0x7f) << shift;
        if first & 0x80 == 0 {
            return Ok(value);
        }
    }
    Err(Unreadable::WireType)
}

fn string(bytes: &[u8]) -> Result<String, Unreadable> {
    String::from_utf8(bytes.to_vec()).map_err(|_| Unreadable::Content)
}

#[cfg(test)]
mod tests;
