//! Values of expressions. JSON is looked at in place, with the schema that says what it means.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::rc::Rc;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Map, Value};

use crate::node::{Kind, Node};

/// A value.
#[derive(Debug, Clone)]
pub(crate) enum Val<'a> {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    Text(Cow<'a, str>),
    List(Rc<Vec<Val<'a>>>),
    Map(Rc<Vec<(Val<'a>, Val<'a>)>>),
    JsonList(&'a [Value], Option<&'a Node>),
    JsonMap(&'a Map<String, Value>, Option<&'a Node>),
    Duration(SignedDuration),
    Time(Timestamp),
    Optional(Option<Rc<Val<'a>>>),
}

impl<'a> Val<'a> {
    /// A JSON value as its schema reads it.
    pub(crate) fn of(value: &'a Value, schema: Option<&'a Node>) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Bool(value) => Self::Bool(*value),
            Value::Number(number) => {
                let is_double = schema.is_some_and(|it| it.kind == Some(Kind::Number));
                match number.as_i64().filter(|_| !is_double) {
                    Some(value) => Self::Int(value),
                    None => Self::Double(number.as_f64().unwrap_or(f64::NAN)),
                }
            }
            Value::String(text) => {
                let checks = schema.and_then(|it| it.checks.as_deref());
                match checks.and_then(|it| it.format.as_deref()) {
                    Some("date-time") => text.parse().map_or(Self::text(text), Self::Time),
                    Some("duration") => text.parse().map_or(Self::text(text), Self::Duration),
                    Some(_) | None => Self::text(text),
                }
            }
            Value::Array(list) => Self::JsonList(list, schema.and_then(|it| it.items.as_deref())),
            Value::Object(map) => Self::JsonMap(map, schema),
        }
    }

    pub(crate) fn text(text: &'a str) -> Self {
        Self::Text(Cow::Borrowed(text))
    }

    pub(crate) fn list(items: Vec<Self>) -> Self {
        Self::List(Rc::new(items))
    }

    /// The items of a list, the keys of a map.
    pub(crate) fn items(&self) -> Option<Vec<Self>> {
        match self {
            Self::List(list) => Some(list.to_vec()),
            Self::JsonList(list, schema) => {
                Some(list.iter().map(|item| Self::of(item, *schema)).collect())
            }
            Self::Map(entries) => Some(entries.iter().map(|(key, _)| key.clone()).collect()),
            Self::JsonMap(map, _) => Some(map.keys().map(|key| Self::text(key)).collect()),
            Self::Null
            | Self::Bool(_)
            | Self::Int(_)
            | Self::Uint(_)
            | Self::Double(_)
            | Self::Text(_)
            | Self::Duration(_)
            | Self::Time(_)
            | Self::Optional(_) => None,
        }
    }

    /// A member of a map; None if it has none of that name.
    pub(crate) fn member(&self, name: &str) -> Option<Self> {
        match self {
            Self::JsonMap(map, schema) => {
                let schema = schema.and_then(|it| it.member(name)).map(|it| &**it);
                map.get(name).map(|value| Self::of(value, schema))
            }
            Self::Map(entries) => {
                let key = Val::Text(Cow::Borrowed(name));
                let found = entries.iter().find(|(own, _)| own.equals(&key));
                found.map(|(_, value)| value.clone())
            }
            Self::Null
            | Self::Bool(_)
            | Self::Int(_)
            | Self::Uint(_)
            | Self::Double(_)
            | Self::Text(_)
            | Self::List(_)
            | Self::JsonList(..)
            | Self::Duration(_)
            | Self::Time(_)
            | Self::Optional(_) => None,
        }
    }

    pub(crate) fn is_map(&self) -> bool {
        matches!(self, Self::Map(_) | Self::JsonMap(..))
    }

    pub(crate) fn equals(&self, other: &Val<'_>) -> bool {
        if self.is_map() && other.is_map() {
            let (Some(keys), Some(others)) = (self.items(), other.items()) else {
                return false;
            };
            let same = |key: &Val<'_>| match key {
                Val::Text(name) => match (self.member(name), other.member(name)) {
                    (Some(one), Some(two)) => one.equals(&two),
                    _ => false,
                },
                _ => false,
            };
            return keys.len() == others.len() && keys.iter().all(same);
        }
        if self.is_map() || other.is_map() {
            return false;
        }
        if let (Some(one), Some(two)) = (self.items(), other.items()) {
            return one.len() == two.len()
                && one.iter().zip(&two).all(|(one, two)| one.equals(two));
        }
        match (self, other) {
            (Val::Null, Val::Null) => true,
            (Val::Optional(one), Val::Optional(two)) => match (one, two) {
                (Some(one), Some(two)) => one.equals(two),
                (one, two) => one.is_none() && two.is_none(),
            },
            _ => self.compare(other) == Some(Ordering::Equal),
        }
    }

    /// The order of two values; None if they have none.
    pub(crate) fn compare(&self, other: &Val<'_>) -> Option<Ordering> {
        match (self, other) {
            (Val::Text(one), Val::Text(two)) => Some(one.as_ref().cmp(two.as_ref())),
            (Val::Bool(one), Val::Bool(two)) => Some(one.cmp(two)),
            (Val::Duration(one), Val::Duration(two)) => Some(one.cmp(two)),
            (Val::Time(one), Val::Time(two)) => Some(one.cmp(two)),
            (Val::Int(one), Val::Int(two)) => Some(one.cmp(two)),
            (Val::Uint(one), Val::Uint(two)) => Some(one.cmp(two)),
            _ => self.float()?.partial_cmp(&other.float()?),
        }
    }

    /// A number of any type.
    #[expect(
        clippy::cast_precision_loss,
        reason = "as CEL compares numbers of two types"
    )]
    pub(crate) fn float(&self) -> Option<f64> {
        match self {
            Val::Int(value) => Some(*value as f64),
            Val::Uint(value) => Some(*value as f64),
            Val::Double(value) => Some(*value),
            _ => None,
        }
    }
}
