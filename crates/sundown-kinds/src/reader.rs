//! Reads members of JSON objects, and names the field that is not what it should be.
//!
//! Written by hand because `serde_json` reports a wrong type without its path, and an operator needs
//! the path. Missing members and nulls are told apart from wrong ones, not from each other.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::{Map, Value};
use sundown_model::Quantity;

/// A field that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field}: expected {expected}")]
pub struct Malformed {
    /// The path of the field, `spec.headGroupSpec.template`.
    pub field: String,
    /// What should be there.
    pub expected: &'static str,
}

/// An object and where it is.
#[derive(Debug, Clone)]
pub(crate) struct Reader<'a> {
    members: Option<&'a Map<String, Value>>,
    path: String,
}

type Read<T> = Result<T, Malformed>;

impl<'a> Reader<'a> {
    /// The root of a document.
    pub(crate) fn root(value: &'a Value) -> Read<Self> {
        Self::of(Some(value), String::new())
    }

    fn of(value: Option<&'a Value>, path: String) -> Read<Self> {
        let members = match value.filter(|value| !value.is_null()) {
            None => None,
            Some(value) => Some(value.as_object().ok_or_else(|| Malformed {
                field: path.clone(),
                expected: "an object",
            })?),
        };
        Ok(Self { members, path })
    }

    fn get(&self, name: &str) -> Option<&'a Value> {
        self.members?.get(name).filter(|value| !value.is_null())
    }

    fn path(&self, name: &str) -> String {
        if self.path.is_empty() {
            name.to_owned()
        } else {
            format!("{}.{name}", self.path)
        }
    }

    fn read<T>(
        &self,
        name: &str,
        expected: &'static str,
        read: impl FnOnce(&'a Value) -> Option<T>,
    ) -> Read<Option<T>> {
        let Some(value) = self.get(name) else {
            return Ok(None);
        };
        read(value).map(Some).ok_or_else(|| Malformed {
            field: self.path(name),
            expected,
        })
    }

    /// A member that is an object; reads as empty when it is missing.
    pub(crate) fn member(&self, name: &str) -> Read<Self> {
        Self::of(self.get(name), self.path(name))
    }

    /// A member that is an object, read if it is there.
    pub(crate) fn optional<T>(
        &self,
        name: &str,
        read: impl FnOnce(&Self) -> Read<T>,
    ) -> Read<Option<T>> {
        let member = self.member(name)?;
        if member.members.is_none() {
            return Ok(None);
        }
        read(&member).map(Some)
    }

    /// The objects of a list.
    pub(crate) fn list<T>(&self, name: &str, read: impl Fn(&Self) -> Read<T>) -> Read<Vec<T>> {
        let items = self.read(name, "a list", Value::as_array)?;
        let items = items.into_iter().flatten().enumerate();
        items
            .map(|(index, item)| {
                let path = format!("{}[{index}]", self.path(name));
                read(&Self::of(Some(item), path)?)
            })
            .collect()
    }

    /// A text; empty when missing.
    pub(crate) fn text(&self, name: &str) -> Read<String> {
        Ok(self.optional_text(name)?.unwrap_or_default())
    }

    /// A text.
    pub(crate) fn optional_text(&self, name: &str) -> Read<Option<String>> {
        self.read(name, "a string", |value| value.as_str().map(str::to_owned))
    }

    /// A truth value.
    pub(crate) fn flag(&self, name: &str) -> Read<Option<bool>> {
        self.read(name, "a boolean", Value::as_bool)
    }

    /// A whole number of 32 bits.
    pub(crate) fn int32(&self, name: &str) -> Read<Option<i32>> {
        self.read(name, "a 32-bit integer", |value| {
            value.as_i64().and_then(|value| value.try_into().ok())
        })
    }

    /// A whole number of 64 bits.
    pub(crate) fn int64(&self, name: &str) -> Read<Option<i64>> {
        self.read(name, "an integer", Value::as_i64)
    }

    /// A number.
    pub(crate) fn number(&self, name: &str) -> Read<Option<f64>> {
        self.read(name, "a number", Value::as_f64)
    }

    /// A quantity; zero when missing.
    pub(crate) fn quantity(&self, name: &str) -> Read<Quantity> {
        let read = self.read(name, "a quantity", |value| match value {
            Value::String(text) => Quantity::parse(text),
            Value::Number(number) => Quantity::parse(&number.to_string()),
            Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
        })?;
        Ok(read.unwrap_or(Quantity::ZERO))
    }

    /// An instant.
    pub(crate) fn instant(&self, name: &str) -> Read<Option<Timestamp>> {
        self.read(name, "a time", |value| value.as_str()?.parse().ok())
    }

    /// A map of texts; empty when missing.
    pub(crate) fn texts(&self, name: &str) -> Read<BTreeMap<String, String>> {
        Ok(self.optional_texts(name)?.unwrap_or_default())
    }

    /// A map of texts.
    pub(crate) fn optional_texts(&self, name: &str) -> Read<Option<BTreeMap<String, String>>> {
        self.read(name, "a map of strings", |value| {
            let text =
                |(key, value): (&String, &Value)| Some((key.clone(), value.as_str()?.to_owned()));
            value.as_object()?.iter().map(text).collect()
        })
    }

    /// A map of instants; empty when missing.
    pub(crate) fn instants(&self, name: &str) -> Read<BTreeMap<String, Timestamp>> {
        let read = self.read(name, "a map of times", |value| {
            let instant = |(key, value): (&String, &Value)| {
                Some((key.clone(), value.as_str()?.parse().ok()?))
            };
            value.as_object()?.iter().map(instant).collect()
        })?;
        Ok(read.unwrap_or_default())
    }

    /// A list of texts; empty when missing.
    pub(crate) fn text_list(&self, name: &str) -> Read<Vec<String>> {
        let read = self.read(name, "a list of strings", |value| {
            let text = |value: &Value| value.as_str().map(str::to_owned);
            value.as_array()?.iter().map(text).collect()
        })?;
        Ok(read.unwrap_or_default())
    }

    /// A list of objects that is passed on as it is.
    pub(crate) fn raw_list(&self, name: &str) -> Read<Vec<Value>> {
        let read = self.read(name, "a list", |value| value.as_array().cloned())?;
        Ok(read.unwrap_or_default())
    }

    /// An object that is passed on as it is.
    pub(crate) fn raw(&self, name: &str) -> Read<Option<Map<String, Value>>> {
        self.read(name, "an object", |value| value.as_object().cloned())
    }

    /// This object as it is.
    pub(crate) fn whole(&self) -> Map<String, Value> {
        self.members.cloned().unwrap_or_default()
    }

    /// What to say about a member that is not what it must be.
    pub(crate) fn missing(&self, name: &str, expected: &'static str) -> Malformed {
        Malformed {
            field: self.path(name),
            expected,
        }
    }

    /// Whether the member is there.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.get(name).is_some()
    }
}
