//! Values of expressions. JSON is looked at in place, with the schema that says what it means.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::rc::Rc;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Map, Value};

use super::library::Library;
use super::text;
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
    Bytes(Rc<[u8]>),
    List(Rc<Vec<Val<'a>>>),
    Map(Rc<Vec<(Val<'a>, Val<'a>)>>),
    JsonList(&'a [Value], Option<&'a Node>),
    JsonMap(&'a Map<String, Value>, Option<&'a Node>),
    Duration(SignedDuration),
    Time(Timestamp),
    Optional(Option<Rc<Val<'a>>>),
    /// The name of a type.
    Type(&'static str),
    Library(Rc<Library>),
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
            Value::String(text) => Self::formatted(text, schema),
            Value::Array(list) => Self::JsonList(list, schema.and_then(|it| it.items.as_deref())),
            Value::Object(map) => Self::JsonMap(map, schema),
        }
    }

    fn formatted(text: &'a str, schema: Option<&'a Node>) -> Self {
        let checks = schema.and_then(|it| it.checks.as_deref());
        match checks.and_then(|it| it.format.as_deref()) {
            Some("date-time") => text.parse().map_or(Self::text(text), Self::Time),
            Some("date") => text::date(text).map_or(Self::text(text), Self::Time),
            Some("duration") => text::duration(text).map_or(Self::text(text), Self::Duration),
            Some("byte") => {
                text::base64(text).map_or(Self::text(text), |it| Self::Bytes(it.into()))
            }
            Some(_) | None => Self::text(text),
        }
    }

    pub(crate) fn text(text: &'a str) -> Self {
        Self::Text(Cow::Borrowed(text))
    }

    pub(crate) fn owned(text: String) -> Self {
        Self::Text(Cow::Owned(text))
    }

    pub(crate) fn list(items: Vec<Self>) -> Self {
        Self::List(Rc::new(items))
    }

    pub(crate) fn library(value: Library) -> Self {
        Self::Library(Rc::new(value))
    }

    pub(crate) fn some(value: Self) -> Self {
        Self::Optional(Some(Rc::new(value)))
    }

    /// How many items or members there are; None if it is no list or map.
    pub(crate) fn count(&self) -> Option<usize> {
        match self {
            Self::List(list) => Some(list.len()),
            Self::JsonList(list, _) => Some(list.len()),
            Self::Map(entries) => Some(entries.len()),
            Self::JsonMap(map, _) => Some(map.len()),
            _ => None,
        }
    }

    /// One item of a list.
    pub(crate) fn item(&self, index: usize) -> Option<Self> {
        match self {
            Self::List(list) => list.get(index).cloned(),
            Self::JsonList(list, schema) => list.get(index).map(|it| Self::of(it, *schema)),
            _ => None,
        }
    }

    /// The items of a list, the keys of a map.
    pub(crate) fn items(&self) -> Option<Vec<Self>> {
        match self {
            Self::List(list) => Some(list.to_vec()),
            Self::JsonList(list, schema) => {
                Some(list.iter().map(|item| Self::of(item, *schema)).collect())
            }
            _ => Some(self.entries()?.into_iter().map(|(key, _)| key).collect()),
        }
    }

    /// The members of a map, the items of a list with their indices.
    pub(crate) fn entries(&self) -> Option<Vec<(Self, Self)>> {
        match self {
            Self::Map(entries) => Some(entries.to_vec()),
            Self::JsonMap(map, schema) => {
                let member = |(name, value): (&'a String, &'a Value)| {
                    let schema = schema.and_then(|it| it.member(name)).map(|it| &**it);
                    (Self::text(name), Self::of(value, schema))
                };
                Some(map.iter().map(member).collect())
            }
            Self::List(_) | Self::JsonList(..) => {
                let items = self.items()?.into_iter().enumerate();
                let index = |at: usize| Self::Int(i64::try_from(at).unwrap_or(i64::MAX));
                Some(items.map(|(at, item)| (index(at), item)).collect())
            }
            _ => None,
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
                let is_it = |key: &Val<'_>| matches!(key, Val::Text(own) if own == name);
                let found = entries.iter().find(|(key, _)| is_it(key));
                found.map(|(_, value)| value.clone())
            }
            _ => None,
        }
    }

    pub(crate) fn is_map(&self) -> bool {
        matches!(self, Self::Map(_) | Self::JsonMap(..))
    }

    /// The order of two values; None if they have none.
    pub(crate) fn compare(&self, other: &Val<'_>) -> Option<Ordering> {
        match (self, other) {
            (Val::Text(one), Val::Text(two)) => Some(one.as_ref().cmp(two.as_ref())),
            (Val::Bytes(one), Val::Bytes(two)) => Some(one.cmp(two)),
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

    /// The name of the type of a value.
    pub(crate) fn type_name(&self) -> &'static str {
        match self {
            Self::Null => "null_type",
            Self::Bool(_) => "bool",
            Self::Int(_) => "int",
            Self::Uint(_) => "uint",
            Self::Double(_) => "double",
            Self::Text(_) => "string",
            Self::Bytes(_) => "bytes",
            Self::List(_) | Self::JsonList(..) => "list",
            Self::Map(_) | Self::JsonMap(..) => "map",
            Self::Duration(_) => "google.protobuf.Duration",
            Self::Time(_) => "google.protobuf.Timestamp",
            Self::Optional(_) => "optional_type",
            Self::Type(_) => "type",
            Self::Library(it) => it.type_name(),
        }
    }
}
