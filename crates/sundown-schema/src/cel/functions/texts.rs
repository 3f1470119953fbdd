//! Functions of texts.

use regex::Regex;

use super::super::eval::{Error, NO_OVERLOAD, Result, Scope, told};
use super::super::value::Val;
use super::format;
use crate::pattern::{self, Pattern};

/// A function with a text as receiver.
pub(super) fn call<'a>(
    scope: &Scope<'a, '_>,
    text: &str,
    name: &str,
    args: &[Val<'a>],
    pattern: Option<&Pattern>,
) -> Result<'a> {
    scope.spend(text.len() / 10 + 1)?;
    let flag = |value: bool| Ok(Val::Bool(value));
    match (name, args) {
        ("contains", [Val::Text(it)]) => {
            scope.spend((text.len() / 10).saturating_mul(it.len() / 10))?;
            flag(text.contains(&**it))
        }
        ("startsWith", [Val::Text(it)]) => flag(text.starts_with(&**it)),
        ("endsWith", [Val::Text(it)]) => flag(text.ends_with(&**it)),
        ("lowerAscii", []) => Ok(Val::owned(text.to_ascii_lowercase())),
        ("upperAscii", []) => Ok(Val::owned(text.to_ascii_uppercase())),
        ("trim", []) => Ok(Val::owned(text.trim().to_owned())),
        ("indexOf" | "lastIndexOf", [Val::Text(it), rest @ ..]) => position(name, text, it, rest),
        ("replace", [Val::Text(old), Val::Text(new), rest @ ..]) => {
            replace(scope, text, old, new, rest)
        }
        ("split", [Val::Text(at), rest @ ..]) => split(scope, text, at, rest),
        ("charAt", [Val::Int(at)]) => {
            let count = text.chars().count();
            if usize::try_from(*at) == Ok(count) {
                return Ok(Val::owned(String::new()));
            }
            part(text, *at, at.saturating_add(1), *at)
        }
        ("substring", [Val::Int(from)]) => part(text, *from, length(text), *from),
        ("substring", [Val::Int(from), Val::Int(to)]) => part(text, *from, *to, *to),
        ("matches", [Val::Text(it)]) => flag(with_pattern(scope, text, it, pattern, |regex| {
            regex.is_match(text)
        })?),
        ("find", [Val::Text(it)]) => {
            let found = |regex: &Regex| regex.find(text).map_or("", |it| it.as_str()).to_owned();
            with_pattern(scope, text, it, pattern, found).map(Val::owned)
        }
        ("findAll", [Val::Text(it), rest @ ..]) => {
            let limit = match rest {
                [Val::Int(limit)] => usize::try_from(*limit).unwrap_or(usize::MAX),
                _ => usize::MAX,
            };
            scope.spend(text.len())?;
            let found = |regex: &Regex| {
                let found = regex.find_iter(text).take(limit);
                found.map(|it| Val::owned(it.as_str().to_owned())).collect()
            };
            with_pattern(scope, text, it, pattern, found).map(Val::list)
        }
        ("format", [list]) => format::format(scope, text, list),
        _ => told(NO_OVERLOAD),
    }
}

fn length(text: &str) -> i64 {
    i64::try_from(text.chars().count()).unwrap_or(i64::MAX)
}

fn part<'a>(text: &str, from: i64, to: i64, named: i64) -> Result<'a> {
    if from > to {
        return told(format!("invalid substring range. start: {from}, end: {to}"));
    }
    let range = usize::try_from(from).ok().zip(usize::try_from(to).ok());
    match range.filter(|(from, to)| from <= to && to <= &text.chars().count()) {
        Some((from, to)) => Ok(Val::owned(
            text.chars().skip(from).take(to - from).collect(),
        )),
        None => told(format!("index out of range: {named}")),
    }
}

fn position<'a>(name: &str, text: &str, wanted: &str, rest: &[Val<'a>]) -> Result<'a> {
    let offset = match rest {
        [] => None,
        [Val::Int(offset)] => Some(*offset),
        _ => return told(NO_OVERLOAD),
    };
    let bytes = |offset: i64| {
        let offset = usize::try_from(offset).ok()?;
        let count = text.chars().count();
        let place = text.char_indices().map(|(at, _)| at).nth(offset);
        place.or((offset == count).then_some(text.len()))
    };
    let found = if name == "indexOf" {
        let Some(start) = bytes(offset.unwrap_or(0)) else {
            return told(format!("index out of range: {}", offset.unwrap_or(0)));
        };
        text[start..].find(wanted).map(|at| at + start)
    } else {
        let Some(end) = bytes(offset.unwrap_or_else(|| length(text))) else {
            return told(format!("index out of range: {}", offset.unwrap_or(0)));
        };
        let end = (end + wanted.len()).min(text.len());
        text.get(..end).and_then(|text| text.rfind(wanted))
    };
    let index = found.map(|at| text[..at].chars().count());
    let index = index.and_then(|at| i64::try_from(at).ok());
    Ok(Val::Int(index.unwrap_or(-1)))
}

fn limit(rest: &[Val<'_>]) -> std::result::Result<usize, Error> {
    match rest {
        [] => Ok(usize::MAX),
        [Val::Int(limit)] => Ok(usize::try_from(*limit).unwrap_or(usize::MAX)),
        _ => told(NO_OVERLOAD),
    }
}

fn replace<'a>(
    scope: &Scope<'a, '_>,
    text: &str,
    old: &str,
    new: &str,
    rest: &[Val<'a>],
) -> Result<'a> {
    let count = text.matches(old).count();
    scope.spend((text.len() + count.saturating_mul(new.len())) / 5)?;
    Ok(Val::owned(text.replacen(old, new, limit(rest)?)))
}

fn split<'a>(scope: &Scope<'a, '_>, text: &str, at: &str, rest: &[Val<'a>]) -> Result<'a> {
    let limit = limit(rest)?;
    let count = text.matches(at).count();
    scope.spend(text.len() / 5 + count)?;
    if limit == 0 {
        return Ok(Val::list(Vec::new()));
    }
    let parts: Vec<&str> = if at.is_empty() {
        let mut ends: Vec<usize> = text.char_indices().map(|(at, _)| at).skip(1).collect();
        ends.truncate(limit.saturating_sub(1));
        ends.push(text.len());
        let starts = [0].into_iter().chain(ends.clone());
        starts
            .zip(ends.iter())
            .map(|(from, to)| &text[from..*to])
            .collect()
    } else {
        text.splitn(limit, at).collect()
    };
    Ok(Val::list(
        parts
            .into_iter()
            .map(|it| Val::owned(it.to_owned()))
            .collect(),
    ))
}

/// Runs a regular expression, which is compiled once if it is a literal.
fn with_pattern<T>(
    scope: &Scope<'_, '_>,
    text: &str,
    own: &str,
    pattern: Option<&Pattern>,
    run: impl FnOnce(&Regex) -> T,
) -> std::result::Result<T, Error> {
    let cost = (text.len() / 10 + 1).saturating_mul(own.len() / 4 + 1);
    scope.spend(cost)?;
    if let Some(regex) = pattern.and_then(Pattern::regex) {
        return Ok(run(regex));
    }
    // Compiling costs more than matching a short text.
    scope.spend(own.len().saturating_mul(10))?;
    match pattern::compile(own) {
        Ok(regex) => Ok(run(&regex)),
        Err(_) => told(format!("Illegal regex: {own}")),
    }
}
