//! Functions that make a value of another type.

use std::rc::Rc;

use jiff::Timestamp;

use super::super::eval::{Error, NO_OVERLOAD, Scope, told};
use super::super::text;
use super::super::value::Val;

type Found<'a> = std::result::Result<Option<Val<'a>>, Error>;

/// Converts a value; None if the function is none of these.
pub(super) fn call<'a>(scope: &Scope<'a, '_>, name: &str, args: &[Val<'a>]) -> Found<'a> {
    let names = [
        "string",
        "int",
        "uint",
        "double",
        "bool",
        "bytes",
        "duration",
        "timestamp",
        "strings.quote",
    ];
    let [on] = args else { return Ok(None) };
    if !names.contains(&name) {
        return Ok(None);
    }
    if let Val::Text(text) = on {
        scope.spend(text.len() / 10 + 1)?;
    }
    let converted = match name {
        "string" => string(on),
        "int" => int(on),
        "uint" => uint(on),
        "double" => double(on),
        "bool" => boolean(on),
        "bytes" => bytes(on),
        "duration" => duration(on),
        "timestamp" => timestamp(on),
        _ => quoted(on),
    };
    match converted {
        Some(Some(value)) => Ok(Some(value)),
        Some(None) => told(format!(
            "type conversion error from '{}' to '{name}'",
            on.type_name()
        )),
        None => told(NO_OVERLOAD),
    }
}

/// None: not from this type; Some(None): not from this value.
type Converted<'a> = Option<Option<Val<'a>>>;

fn string<'a>(on: &Val<'a>) -> Converted<'a> {
    let text = match on {
        Val::Text(_) => return Some(Some(on.clone())),
        Val::Bool(value) => value.to_string(),
        Val::Int(value) => value.to_string(),
        Val::Uint(value) => value.to_string(),
        Val::Double(value) => text::float_text(*value),
        Val::Time(at) => at.to_string(),
        Val::Duration(value) => text::duration_text(*value),
        Val::Bytes(bytes) => match std::str::from_utf8(bytes) {
            Ok(text) => text.to_owned(),
            Err(_) => return Some(None),
        },
        Val::Library(it) => it.text()?,
        _ => return None,
    };
    Some(Some(Val::owned(text)))
}

fn int<'a>(on: &Val<'a>) -> Converted<'a> {
    let value = match on {
        Val::Int(value) => Some(*value),
        Val::Uint(value) => i64::try_from(*value).ok(),
        Val::Double(value) => whole(*value),
        Val::Text(text) => text.parse().ok(),
        Val::Time(at) => Some(at.as_second()),
        Val::Duration(value) => i64::try_from(value.as_nanos()).ok(),
        _ => return None,
    };
    Some(value.map(Val::Int))
}

fn uint<'a>(on: &Val<'a>) -> Converted<'a> {
    let value = match on {
        Val::Uint(value) => Some(*value),
        Val::Int(value) => u64::try_from(*value).ok(),
        Val::Double(value) => whole(*value).and_then(|it| u64::try_from(it).ok()),
        Val::Text(text) => text.parse().ok(),
        _ => return None,
    };
    Some(value.map(Val::Uint))
}

/// The integral part, if it is small enough.
fn whole(value: f64) -> Option<i64> {
    format!("{:.0}", value.trunc()).parse().ok()
}

fn double<'a>(on: &Val<'a>) -> Converted<'a> {
    match on {
        Val::Text(text) => Some(text.parse().ok().map(Val::Double)),
        _ => Some(Some(Val::Double(on.float()?))),
    }
}

fn boolean<'a>(on: &Val<'a>) -> Converted<'a> {
    let value = match on {
        Val::Bool(value) => Some(*value),
        Val::Text(text) => match &**text {
            "true" | "True" | "TRUE" | "t" | "1" => Some(true),
            "false" | "False" | "FALSE" | "f" | "0" => Some(false),
            _ => None,
        },
        _ => return None,
    };
    Some(value.map(Val::Bool))
}

fn bytes<'a>(on: &Val<'a>) -> Converted<'a> {
    match on {
        Val::Bytes(_) => Some(Some(on.clone())),
        Val::Text(text) => Some(Some(Val::Bytes(Rc::from(text.as_bytes())))),
        _ => None,
    }
}

fn duration<'a>(on: &Val<'a>) -> Converted<'a> {
    match on {
        Val::Duration(_) => Some(Some(on.clone())),
        Val::Text(text) => Some(text::duration(text).map(Val::Duration)),
        _ => None,
    }
}

fn timestamp<'a>(on: &Val<'a>) -> Converted<'a> {
    match on {
        Val::Time(_) => Some(Some(on.clone())),
        Val::Text(text) => Some(text.parse().ok().map(Val::Time)),
        Val::Int(seconds) => Some(Timestamp::from_second(*seconds).ok().map(Val::Time)),
        _ => None,
    }
}

fn quoted<'a>(on: &Val<'a>) -> Converted<'a> {
    match on {
        Val::Text(text) => Some(Some(Val::owned(format!("{text:?}")))),
        _ => None,
    }
}
