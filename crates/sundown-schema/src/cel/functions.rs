//! Operators and functions of expressions. A name that is not here is refused at registration.

use std::borrow::Cow;
use std::cmp::Ordering;

use super::eval::{Result, Scope, told};
use super::value::Val;
use crate::pattern;

/// Functions without a receiver.
pub(crate) const GLOBAL: &[&str] = &[
    "size",
    "string",
    "int",
    "uint",
    "double",
    "bool",
    "duration",
    "timestamp",
    "dyn",
    "matches",
];

/// Functions with a receiver.
pub(crate) const METHODS: &[&str] = &[
    "size",
    "contains",
    "startsWith",
    "endsWith",
    "matches",
    "lowerAscii",
    "upperAscii",
    "trim",
    "split",
    "join",
    "replace",
    "substring",
    "indexOf",
    "lastIndexOf",
    "charAt",
    "find",
    "findAll",
    "isSorted",
    "sum",
    "min",
    "max",
    "orValue",
    "hasValue",
    "value",
    "or",
    "getSeconds",
];

/// Whether a name is a space of functions.
pub(crate) fn is_space(name: &str) -> bool {
    ["sets", "optional"].contains(&name)
}

const NO_OVERLOAD: &str = "no such overload";

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
        "==" => Ok(Val::Bool(left.equals(right))),
        "!=" => Ok(Val::Bool(!left.equals(right))),
        "<" => order(Ordering::is_lt),
        "<=" => order(Ordering::is_le),
        ">" => order(Ordering::is_gt),
        ">=" => order(Ordering::is_ge),
        "in" => {
            let items = right.items().unwrap_or_default();
            scope.spend(items.len())?;
            Ok(Val::Bool(items.iter().any(|item| item.equals(left))))
        }
        _ => arithmetic(scope, sign, left, right),
    }
}

fn arithmetic<'a>(
    scope: &Scope<'a, '_>,
    sign: &str,
    left: &Val<'a>,
    right: &Val<'a>,
) -> Result<'a> {
    match (left, right) {
        (Val::Int(one), Val::Int(two)) => {
            if *two == 0 && sign == "/" {
                return told("division by zero");
            }
            if *two == 0 && sign == "%" {
                return told("modulus by zero");
            }
            let result = match sign {
                "+" => one.checked_add(*two),
                "-" => one.checked_sub(*two),
                "*" => one.checked_mul(*two),
                "/" => one.checked_div(*two),
                _ => one.checked_rem(*two),
            };
            result.map_or_else(|| told("integer overflow"), |it| Ok(Val::Int(it)))
        }
        (Val::Text(one), Val::Text(two)) if sign == "+" => {
            scope.spend((one.len() + two.len()) / 10)?;
            Ok(Val::Text(Cow::Owned(format!("{one}{two}"))))
        }
        (Val::Time(one), Val::Duration(two)) if sign == "+" => one
            .checked_add(*two)
            .map_or_else(|_| told("timestamp overflow"), |it| Ok(Val::Time(it))),
        (Val::Time(one), Val::Time(two)) if sign == "-" => {
            Ok(Val::Duration(one.duration_since(*two)))
        }
        (Val::Duration(one), Val::Duration(two)) if sign == "+" => {
            Ok(Val::Duration(one.saturating_add(*two)))
        }
        _ => {
            if let (Some(mut one), Some(two), "+") = (left.items(), right.items(), sign) {
                scope.spend(one.len() + two.len())?;
                one.extend(two);
                return Ok(Val::list(one));
            }
            let (Some(one), Some(two)) = (left.float(), right.float()) else {
                return told(NO_OVERLOAD);
            };
            Ok(Val::Double(match sign {
                "+" => one + two,
                "-" => one - two,
                "*" => one * two,
                "/" => one / two,
                _ => return told(NO_OVERLOAD),
            }))
        }
    }
}

pub(crate) fn global<'a>(scope: &Scope<'a, '_>, name: &str, args: &[Val<'a>]) -> Result<'a> {
    match (name, args) {
        ("size", [on]) => size(on),
        ("dyn", [on]) => Ok(on.clone()),
        ("matches", [on, _]) => method(scope, on, name, &args[1..]),
        ("string", [on]) => string(on),
        ("int" | "uint", [Val::Text(text)]) => text
            .parse()
            .map_or_else(|_| told("type conversion error"), |it| Ok(Val::Int(it))),
        ("int", [Val::Time(at)]) => Ok(Val::Int(at.as_second())),
        ("int" | "uint", [on]) => match on {
            Val::Int(_) => Ok(on.clone()),
            Val::Uint(value) => i64::try_from(*value)
                .map_or_else(|_| told("integer overflow"), |it| Ok(Val::Int(it))),
            Val::Double(value) => format!("{:.0}", value.trunc())
                .parse()
                .map_or_else(|_| told("integer overflow"), |it| Ok(Val::Int(it))),
            _ => told(NO_OVERLOAD),
        },
        ("double", [Val::Text(text)]) => text
            .parse()
            .map_or_else(|_| told("type conversion error"), |it| Ok(Val::Double(it))),
        ("double", [on]) => on
            .float()
            .map_or_else(|| told(NO_OVERLOAD), |it| Ok(Val::Double(it))),
        ("bool", [Val::Bool(_)]) => Ok(args[0].clone()),
        ("bool", [Val::Text(text)]) => Ok(Val::Bool(&**text == "true")),
        ("duration", [Val::Text(text)]) => text.parse().map_or_else(
            |_| told("type conversion error"),
            |it| Ok(Val::Duration(it)),
        ),
        ("timestamp", [Val::Text(text)]) => text
            .parse()
            .map_or_else(|_| told("type conversion error"), |it| Ok(Val::Time(it))),
        _ => told(NO_OVERLOAD),
    }
}

fn size<'a>(on: &Val<'a>) -> Result<'a> {
    let count = match on {
        Val::Text(text) => text.chars().count(),
        other => match other.items() {
            Some(items) => items.len(),
            None => return told(NO_OVERLOAD),
        },
    };
    Ok(Val::Int(i64::try_from(count).unwrap_or(i64::MAX)))
}

fn string<'a>(on: &Val<'a>) -> Result<'a> {
    let text = match on {
        Val::Text(_) => return Ok(on.clone()),
        Val::Bool(value) => value.to_string(),
        Val::Int(value) => value.to_string(),
        Val::Uint(value) => value.to_string(),
        Val::Double(value) => value.to_string(),
        Val::Time(at) => at.to_string(),
        Val::Duration(value) => format!("{}s", value.as_secs_f64()),
        _ => return told(NO_OVERLOAD),
    };
    Ok(Val::Text(Cow::Owned(text)))
}

pub(crate) fn method<'a>(
    scope: &Scope<'a, '_>,
    on: &Val<'a>,
    name: &str,
    args: &[Val<'a>],
) -> Result<'a> {
    match on {
        Val::Text(text) => of_text(scope, text, name, args),
        Val::Optional(inner) => match (name, args, inner) {
            ("hasValue", [], inner) => Ok(Val::Bool(inner.is_some())),
            ("value" | "orValue" | "or", _, Some(inner)) if name != "or" => Ok((**inner).clone()),
            ("or", [_], Some(_)) => Ok(on.clone()),
            ("orValue" | "or", [other], None) => Ok(other.clone()),
            ("value", [], None) => told("optional.none() dereference"),
            _ => told(NO_OVERLOAD),
        },
        Val::Duration(value) if name == "getSeconds" => Ok(Val::Int(value.as_secs())),
        _ => of_list(scope, on, name, args),
    }
}

fn of_text<'a>(scope: &Scope<'a, '_>, text: &str, name: &str, args: &[Val<'a>]) -> Result<'a> {
    scope.spend(text.len() / 10 + 1)?;
    let index = |found: Option<usize>| {
        let chars = found.map(|at| text[..at].chars().count());
        Val::Int(chars.map_or(-1, |it| i64::try_from(it).unwrap_or(-1)))
    };
    let owned = |text: String| Ok(Val::Text(Cow::Owned(text)));
    let slice = |from: i64, to: i64| -> Option<String> {
        let (from, to) = (usize::try_from(from).ok()?, usize::try_from(to).ok()?);
        let count = text.chars().count();
        (from <= to && to <= count).then(|| text.chars().skip(from).take(to - from).collect())
    };
    let length = || i64::try_from(text.chars().count()).unwrap_or(i64::MAX);
    match (name, args) {
        ("size", []) => Ok(Val::Int(length())),
        ("contains", [Val::Text(it)]) => Ok(Val::Bool(text.contains(&**it))),
        ("startsWith", [Val::Text(it)]) => Ok(Val::Bool(text.starts_with(&**it))),
        ("endsWith", [Val::Text(it)]) => Ok(Val::Bool(text.ends_with(&**it))),
        ("lowerAscii", []) => owned(text.to_ascii_lowercase()),
        ("upperAscii", []) => owned(text.to_ascii_uppercase()),
        ("trim", []) => owned(text.trim().to_owned()),
        ("indexOf", [Val::Text(it)]) => Ok(index(text.find(&**it))),
        ("lastIndexOf", [Val::Text(it)]) => Ok(index(text.rfind(&**it))),
        ("replace", [Val::Text(old), Val::Text(new)]) => {
            scope.spend(text.len().saturating_mul(new.len() + 1) / 10)?;
            owned(text.replace(&**old, new))
        }
        ("split", [Val::Text(at)]) => {
            let parts: Vec<String> = if at.is_empty() {
                text.chars().map(String::from).collect()
            } else {
                text.split(&**at).map(str::to_owned).collect()
            };
            let parts = parts.into_iter().map(|it| Val::Text(Cow::Owned(it)));
            Ok(Val::list(parts.collect()))
        }
        ("charAt", [Val::Int(at)]) => slice(*at, at.saturating_add(1))
            .map_or_else(|| told(format!("index out of range: {at}")), owned),
        ("substring", [Val::Int(from)]) => slice(*from, length())
            .map_or_else(|| told(format!("index out of range: {from}")), owned),
        ("substring", [Val::Int(from), Val::Int(to)]) => {
            slice(*from, *to).map_or_else(|| told(format!("index out of range: {to}")), owned)
        }
        ("matches" | "find" | "findAll", [Val::Text(it)]) => {
            scope.spend(text.len().saturating_mul(it.len()) / 10 + 100)?;
            let Ok(regex) = pattern::compile(it) else {
                return told(format!("invalid regular expression: {it}"));
            };
            match name {
                "matches" => Ok(Val::Bool(regex.is_match(text))),
                "find" => owned(regex.find(text).map_or("", |it| it.as_str()).to_owned()),
                _ => {
                    let found = regex.find_iter(text);
                    let found = found.map(|it| Val::Text(Cow::Owned(it.as_str().to_owned())));
                    Ok(Val::list(found.collect()))
                }
            }
        }
        _ => told(NO_OVERLOAD),
    }
}

fn of_list<'a>(scope: &Scope<'a, '_>, on: &Val<'a>, name: &str, args: &[Val<'a>]) -> Result<'a> {
    let Some(items) = on.items() else {
        return told(NO_OVERLOAD);
    };
    scope.spend(items.len())?;
    let position = |at: Option<usize>| {
        Ok(Val::Int(
            at.map_or(-1, |it| i64::try_from(it).unwrap_or(-1)),
        ))
    };
    match (name, args) {
        ("size", []) => size(on),
        ("join", separator) => {
            let separator = match separator {
                [Val::Text(text)] => text.as_ref(),
                _ => "",
            };
            let texts: Option<Vec<&str>> = items
                .iter()
                .map(|item| match item {
                    Val::Text(text) => Some(text.as_ref()),
                    _ => None,
                })
                .collect();
            texts.map_or_else(
                || told(NO_OVERLOAD),
                |texts| Ok(Val::Text(Cow::Owned(texts.join(separator)))),
            )
        }
        ("isSorted", []) => {
            Ok(Val::Bool(items.windows(2).all(|pair| {
                pair[0].compare(&pair[1]).is_some_and(Ordering::is_le)
            })))
        }
        ("sum", []) => items
            .iter()
            .try_fold(Val::Int(0), |sum, item| arithmetic(scope, "+", &sum, item)),
        ("min" | "max", []) => {
            let wanted = if name == "min" {
                Ordering::Less
            } else {
                Ordering::Greater
            };
            let best = items.iter().reduce(|best, item| {
                if item.compare(best) == Some(wanted) {
                    item
                } else {
                    best
                }
            });
            best.map_or_else(
                || told(format!("{name} called on empty list")),
                |it| Ok(it.clone()),
            )
        }
        ("indexOf", [it]) => position(items.iter().position(|item| item.equals(it))),
        ("lastIndexOf", [it]) => position(items.iter().rposition(|item| item.equals(it))),
        _ => told(NO_OVERLOAD),
    }
}

pub(crate) fn in_space<'a>(
    scope: &Scope<'a, '_>,
    space: &str,
    name: &str,
    args: &[Val<'a>],
) -> Result<'a> {
    match (space, name, args) {
        ("optional", "none", []) => Ok(Val::Optional(None)),
        ("optional", "of", [it]) => Ok(Val::Optional(Some(it.clone().into()))),
        ("sets", _, [one, two]) => {
            let (Some(one), Some(two)) = (one.items(), two.items()) else {
                return told(NO_OVERLOAD);
            };
            scope.spend(one.len().saturating_mul(two.len()))?;
            let within = |all: &[Val<'a>], item: &Val<'a>| all.iter().any(|it| it.equals(item));
            let contains = two.iter().all(|item| within(&one, item));
            match name {
                "contains" => Ok(Val::Bool(contains)),
                "equivalent" => {
                    let back = one.iter().all(|item| within(&two, item));
                    Ok(Val::Bool(contains && back))
                }
                "intersects" => Ok(Val::Bool(two.iter().any(|item| within(&one, item)))),
                _ => told(NO_OVERLOAD),
            }
        }
        _ => told(NO_OVERLOAD),
    }
}
