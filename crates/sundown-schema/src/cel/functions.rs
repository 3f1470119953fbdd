//! Operators and functions of expressions. What is not here is refused at registration, where the
//! table of overloads says what there is.

mod convert;
mod format;
mod lists;
mod texts;
mod times;

use std::cmp::Ordering;

use super::eval::{Error, NO_OVERLOAD, Result, Scope, told};
use super::library;
use super::value::Val;
use crate::pattern::Pattern;

pub(crate) use super::overloads::is_spaced;
pub(crate) use lists::sort_by;

/// Calls a function. `pattern` is the regular expression among its arguments, if it is a literal.
pub(crate) fn call<'a>(
    scope: &Scope<'a, '_>,
    name: &str,
    on: Option<&Val<'a>>,
    args: &[Val<'a>],
    pattern: Option<&Pattern>,
) -> Result<'a> {
    match (name, on, args) {
        ("size", None, [on]) | ("size", Some(on), []) => size(scope, on),
        ("dyn", None, [it]) => Ok(it.clone()),
        ("type", None, [it]) => Ok(Val::Type(it.type_name())),
        ("matches", None, [Val::Text(text), rest]) => {
            let rest = std::slice::from_ref(rest);
            texts::call(scope, text, name, rest, pattern)
        }
        (_, Some(Val::Text(text)), _) => texts::call(scope, text, name, args, pattern),
        (_, Some(Val::Optional(inner)), _) => optional(name, inner.as_deref(), on, args),
        (_, Some(Val::Time(at)), _) => times::of_time(*at, name, args),
        (_, Some(Val::Duration(value)), []) => times::of_duration(*value, name),
        (_, Some(Val::Library(it)), _) => library::method(scope, it, name, args),
        ("optional.none", None, []) => Ok(Val::Optional(None)),
        ("optional.of", None, [it]) => Ok(Val::some(it.clone())),
        ("optional.ofNonZeroValue", None, [it]) => Ok(if is_zero(it) {
            Val::Optional(None)
        } else {
            Val::some(it.clone())
        }),
        (_, Some(list), _) => lists::method(scope, list, name, args),
        (_, None, _) => match lists::function(scope, name, args)? {
            Some(found) => Ok(found),
            None => match convert::call(scope, name, args)? {
                Some(found) => Ok(found),
                None => library::function(scope, name, args),
            },
        },
    }
}

fn size<'a>(scope: &Scope<'a, '_>, on: &Val<'a>) -> Result<'a> {
    let count = match on {
        Val::Text(text) => {
            scope.spend(text.len() / 10)?;
            text.chars().count()
        }
        Val::Bytes(bytes) => bytes.len(),
        other => match other.count() {
            Some(count) => count,
            None => return told(NO_OVERLOAD),
        },
    };
    Ok(Val::Int(i64::try_from(count).unwrap_or(i64::MAX)))
}

fn optional<'a>(
    name: &str,
    inner: Option<&Val<'a>>,
    on: Option<&Val<'a>>,
    args: &[Val<'a>],
) -> Result<'a> {
    match (name, inner, args) {
        ("hasValue", inner, []) => Ok(Val::Bool(inner.is_some())),
        ("value", Some(inner), []) | ("orValue", Some(inner), [_]) => Ok(inner.clone()),
        ("or", Some(_), [_]) => on.cloned().map_or_else(|| told(NO_OVERLOAD), Ok),
        ("orValue" | "or", None, [other]) => Ok(other.clone()),
        ("value", None, []) => told("optional.none() dereference"),
        _ => told(NO_OVERLOAD),
    }
}

fn is_zero(value: &Val<'_>) -> bool {
    match value {
        Val::Null | Val::Bool(false) | Val::Int(0) | Val::Uint(0) => true,
        Val::Double(value) => *value == 0.0,
        Val::Text(text) => text.is_empty(),
        Val::Bytes(bytes) => bytes.is_empty(),
        Val::Duration(value) => value.is_zero(),
        other => other.count() == Some(0),
    }
}

/// Whether two values are equal. Pays for each part that is compared.
pub(crate) fn equals(
    scope: &Scope<'_, '_>,
    one: &Val<'_>,
    two: &Val<'_>,
) -> std::result::Result<bool, Error> {
    scope.spend(1)?;
    if one.is_map() || two.is_map() {
        if one.count() != two.count() || !(one.is_map() && two.is_map()) {
            return Ok(false);
        }
        for (key, value) in one.entries().unwrap_or_default() {
            let other = match &key {
                Val::Text(name) => two.member(name),
                _ => find(scope, two, &key)?,
            };
            match other {
                Some(other) if equals(scope, &value, &other)? => {}
                _ => return Ok(false),
            }
        }
        return Ok(true);
    }
    if let (Some(count), Some(others)) = (one.count(), two.count()) {
        if count != others {
            return Ok(false);
        }
        for index in 0..count {
            let (Some(one), Some(two)) = (one.item(index), two.item(index)) else {
                return Ok(false);
            };
            if !equals(scope, &one, &two)? {
                return Ok(false);
            }
        }
        return Ok(true);
    }
    match (one, two) {
        (Val::Null, Val::Null) => Ok(true),
        (Val::Type(one), Val::Type(two)) => Ok(one == two),
        (Val::Library(one), Val::Library(two)) => Ok(one == two),
        (Val::Text(one), Val::Text(two)) => {
            scope.spend(one.len().min(two.len()) / 10)?;
            Ok(one == two)
        }
        (Val::Optional(one), Val::Optional(two)) => match (one, two) {
            (Some(one), Some(two)) => equals(scope, one, two),
            (one, two) => Ok(one.is_none() && two.is_none()),
        },
        _ => Ok(one.compare(two) == Some(Ordering::Equal)),
    }
}

fn find<'a>(
    scope: &Scope<'_, '_>,
    map: &Val<'a>,
    wanted: &Val<'_>,
) -> std::result::Result<Option<Val<'a>>, Error> {
    for (key, value) in map.entries().unwrap_or_default() {
        if equals(scope, &key, wanted)? {
            return Ok(Some(value));
        }
    }
    Ok(None)
}

/// Applies an operator.
pub(crate) fn operator<'a>(
    scope: &Scope<'a, '_>,
    sign: &str,
    left: &Val<'a>,
    right: &Val<'a>,
) -> Result<'a> {
    let order = |test: fn(Ordering) -> bool| match left.compare(right) {
        Some(order) => Ok(Val::Bool(test(order))),
        None => told(NO_OVERLOAD),
    };
    match sign {
        "==" => Ok(Val::Bool(equals(scope, left, right)?)),
        "!=" => Ok(Val::Bool(!equals(scope, left, right)?)),
        "<" => order(Ordering::is_lt),
        "<=" => order(Ordering::is_le),
        ">" => order(Ordering::is_gt),
        ">=" => order(Ordering::is_ge),
        "in" => lists::contains(scope, right, left),
        _ => arithmetic(scope, sign, left, right),
    }
}

pub(super) fn arithmetic<'a>(
    scope: &Scope<'a, '_>,
    sign: &str,
    left: &Val<'a>,
    right: &Val<'a>,
) -> Result<'a> {
    match (left, right) {
        (Val::Int(one), Val::Int(two)) => {
            let result = match (sign, two) {
                ("/", 0) => return told("division by zero"),
                ("%", 0) => return told("modulus by zero"),
                ("+", two) => one.checked_add(*two),
                ("-", two) => one.checked_sub(*two),
                ("*", two) => one.checked_mul(*two),
                ("/", two) => one.checked_div(*two),
                (_, two) => one.checked_rem(*two),
            };
            result.map_or_else(|| told("integer overflow"), |it| Ok(Val::Int(it)))
        }
        (Val::Uint(one), Val::Uint(two)) => {
            let result = match (sign, two) {
                ("/", 0) => return told("division by zero"),
                ("%", 0) => return told("modulus by zero"),
                ("+", two) => one.checked_add(*two),
                ("-", two) => one.checked_sub(*two),
                ("*", two) => one.checked_mul(*two),
                ("/", two) => one.checked_div(*two),
                (_, two) => one.checked_rem(*two),
            };
            result.map_or_else(|| told("unsigned integer overflow"), |it| Ok(Val::Uint(it)))
        }
        (Val::Double(one), Val::Double(two)) => Ok(Val::Double(match sign {
            "+" => one + two,
            "-" => one - two,
            "*" => one * two,
            "/" => one / two,
            _ => return told(NO_OVERLOAD),
        })),
        (Val::Text(one), Val::Text(two)) if sign == "+" => {
            scope.spend((one.len() + two.len()) / 10)?;
            Ok(Val::owned(format!("{one}{two}")))
        }
        (Val::Bytes(one), Val::Bytes(two)) if sign == "+" => {
            scope.spend((one.len() + two.len()) / 10)?;
            Ok(Val::Bytes([&**one, &**two].concat().into()))
        }
        (Val::Time(_) | Val::Duration(_), Val::Time(_) | Val::Duration(_)) => {
            times::arithmetic(sign, left, right)
        }
        _ if sign == "+" => lists::concatenate(scope, left, right),
        _ => told(NO_OVERLOAD),
    }
}
