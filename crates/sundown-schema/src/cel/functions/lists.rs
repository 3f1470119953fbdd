//! Functions of lists and sets.

use std::cmp::Ordering;

use super::super::eval::{Error, NO_OVERLOAD, Result, Scope, told};
use super::super::value::Val;
use super::{arithmetic, equals};

/// `item in list`, `key in map`.
pub(super) fn contains<'a>(scope: &Scope<'a, '_>, list: &Val<'a>, item: &Val<'a>) -> Result<'a> {
    if let (true, Val::Text(name)) = (list.is_map(), item) {
        return Ok(Val::Bool(list.member(name).is_some()));
    }
    let Some(items) = list.items() else {
        return told(NO_OVERLOAD);
    };
    Ok(Val::Bool(within(scope, &items, item)?))
}

fn within(
    scope: &Scope<'_, '_>,
    items: &[Val<'_>],
    item: &Val<'_>,
) -> std::result::Result<bool, Error> {
    for own in items {
        if equals(scope, own, item)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// `one + two`.
pub(super) fn concatenate<'a>(scope: &Scope<'a, '_>, one: &Val<'a>, two: &Val<'a>) -> Result<'a> {
    if one.is_map() || two.is_map() {
        return told(NO_OVERLOAD);
    }
    let (Some(count), Some(others)) = (one.count(), two.count()) else {
        return told(NO_OVERLOAD);
    };
    scope.spend(count + others)?;
    let mut items = one.items().unwrap_or_default();
    items.extend(two.items().unwrap_or_default());
    Ok(Val::list(items))
}

/// A function with a list as receiver.
pub(super) fn method<'a>(
    scope: &Scope<'a, '_>,
    on: &Val<'a>,
    name: &str,
    args: &[Val<'a>],
) -> Result<'a> {
    let Some(items) = on.items().filter(|_| !on.is_map()) else {
        return told(NO_OVERLOAD);
    };
    scope.spend(items.len())?;
    let position = |at: Option<usize>| {
        let at = at.and_then(|at| i64::try_from(at).ok());
        Ok(Val::Int(at.unwrap_or(-1)))
    };
    match (name, args) {
        ("join", []) => join(scope, &items, ""),
        ("join", [Val::Text(separator)]) => join(scope, &items, separator),
        ("isSorted", []) => {
            let in_order =
                |pair: &[Val<'a>]| pair[0].compare(&pair[1]).is_some_and(Ordering::is_le);
            Ok(Val::Bool(items.windows(2).all(in_order)))
        }
        ("sum", []) => sum(scope, &items),
        ("min" | "max", []) => extreme(name, &items),
        ("indexOf", [it]) => {
            for (index, item) in items.iter().enumerate() {
                if equals(scope, item, it)? {
                    return position(Some(index));
                }
            }
            position(None)
        }
        ("lastIndexOf", [it]) => {
            for (index, item) in items.iter().enumerate().rev() {
                if equals(scope, item, it)? {
                    return position(Some(index));
                }
            }
            position(None)
        }
        ("slice", [Val::Int(from), Val::Int(to)]) => slice(&items, *from, *to),
        ("reverse", []) => Ok(Val::list(items.into_iter().rev().collect())),
        ("first", []) => Ok(items
            .into_iter()
            .next()
            .map_or(Val::Optional(None), Val::some)),
        ("last", []) => Ok(items
            .into_iter()
            .next_back()
            .map_or(Val::Optional(None), Val::some)),
        ("distinct", []) => distinct(scope, items),
        ("flatten", []) => flatten(scope, items, 1),
        ("flatten", [Val::Int(depth)]) => match u32::try_from(*depth) {
            Ok(depth) => flatten(scope, items, depth),
            Err(_) => told("level must be non-negative"),
        },
        ("sort", []) => sort_by(scope, items.clone(), items),
        _ => told(NO_OVERLOAD),
    }
}

/// A function without a receiver; None if it is none of these.
pub(super) fn function<'a>(
    scope: &Scope<'a, '_>,
    name: &str,
    args: &[Val<'a>],
) -> std::result::Result<Option<Val<'a>>, Error> {
    match (name, args) {
        ("lists.range", [Val::Int(count)]) => {
            let count = usize::try_from(*count).unwrap_or(0);
            scope.spend(count)?;
            let numbers = (0..count).filter_map(|it| i64::try_from(it).ok());
            Ok(Some(Val::list(numbers.map(Val::Int).collect())))
        }
        ("sets.contains" | "sets.equivalent" | "sets.intersects", [one, two]) => {
            let (Some(one), Some(two)) = (one.items(), two.items()) else {
                return told(NO_OVERLOAD);
            };
            set(scope, name, &one, &two).map(|it| Some(Val::Bool(it)))
        }
        _ => Ok(None),
    }
}

fn set(
    scope: &Scope<'_, '_>,
    name: &str,
    one: &[Val<'_>],
    two: &[Val<'_>],
) -> std::result::Result<bool, Error> {
    let all = |of: &[Val<'_>], inside: &[Val<'_>]| -> std::result::Result<bool, Error> {
        for item in of {
            if !within(scope, inside, item)? {
                return Ok(false);
            }
        }
        Ok(true)
    };
    match name {
        "sets.contains" => all(two, one),
        "sets.equivalent" => Ok(all(two, one)? && all(one, two)?),
        _ => {
            for item in two {
                if within(scope, one, item)? {
                    return Ok(true);
                }
            }
            Ok(false)
        }
    }
}

fn join<'a>(scope: &Scope<'a, '_>, items: &[Val<'a>], separator: &str) -> Result<'a> {
    let text = |item: &Val<'a>| match item {
        Val::Text(text) => Some(text.len()),
        _ => None,
    };
    let Some(lengths) = items.iter().map(text).collect::<Option<Vec<usize>>>() else {
        return told(NO_OVERLOAD);
    };
    let length: usize = lengths.iter().sum::<usize>() + separator.len() * items.len();
    scope.spend(length / 5)?;
    let mut out = String::with_capacity(length);
    for (index, item) in items.iter().enumerate() {
        if index > 0 {
            out.push_str(separator);
        }
        if let Val::Text(text) = item {
            out.push_str(text);
        }
    }
    Ok(Val::owned(out))
}

fn sum<'a>(scope: &Scope<'a, '_>, items: &[Val<'a>]) -> Result<'a> {
    let mut items = items.iter();
    let Some(first) = items.next() else {
        return Ok(Val::Int(0));
    };
    items.try_fold(first.clone(), |sum, item| {
        arithmetic(scope, "+", &sum, item)
    })
}

fn extreme<'a>(name: &str, items: &[Val<'a>]) -> Result<'a> {
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

fn slice<'a>(items: &[Val<'a>], from: i64, to: i64) -> Result<'a> {
    let bounds = usize::try_from(from).ok().zip(usize::try_from(to).ok());
    let part = bounds.and_then(|(from, to)| items.get(from..to));
    part.map_or_else(
        || {
            told(format!(
                "cannot slice({from}, {to}), list is length {}",
                items.len()
            ))
        },
        |it| Ok(Val::list(it.to_vec())),
    )
}

fn distinct<'a>(scope: &Scope<'a, '_>, items: Vec<Val<'a>>) -> Result<'a> {
    let mut kept: Vec<Val<'a>> = Vec::new();
    for item in items {
        if !within(scope, &kept, &item)? {
            kept.push(item);
        }
    }
    Ok(Val::list(kept))
}

fn flatten<'a>(scope: &Scope<'a, '_>, items: Vec<Val<'a>>, depth: u32) -> Result<'a> {
    let mut items = items;
    for _ in 0..depth {
        let mut flat = Vec::new();
        let mut is_done = true;
        for item in items {
            match item.items().filter(|_| !item.is_map()) {
                Some(inner) => {
                    scope.spend(inner.len() + 1)?;
                    flat.extend(inner);
                    is_done = false;
                }
                None => flat.push(item),
            }
        }
        items = flat;
        if is_done {
            break;
        }
    }
    Ok(Val::list(items))
}

/// The values in the order of their keys.
pub(crate) fn sort_by<'a>(
    scope: &Scope<'a, '_>,
    keys: Vec<Val<'a>>,
    values: Vec<Val<'a>>,
) -> Result<'a> {
    let count = keys.len();
    let rounds = count.checked_ilog2().map_or(1, |it| it as usize + 1);
    scope.spend(count.saturating_mul(rounds))?;
    let mut pairs: Vec<(Val<'a>, Val<'a>)> = keys.into_iter().zip(values).collect();
    pairs.sort_by(|one, two| one.0.compare(&two.0).unwrap_or(Ordering::Equal));
    Ok(Val::list(
        pairs.into_iter().map(|(_, value)| value).collect(),
    ))
}
