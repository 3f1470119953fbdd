//! Reading JSON that others wrote: whatever stands there, there is an answer.

use jiff::Timestamp;
use serde_json::{Map, Value};

/// A text member; empty when it is missing or something else.
pub(crate) fn text<'a>(json: &'a Value, name: &str) -> &'a str {
    json.get(name).and_then(Value::as_str).unwrap_or_default()
}

/// A list member; empty when it is missing or something else.
pub(crate) fn list<'a>(json: &'a Value, name: &str) -> &'a [Value] {
    items(json.get(name))
}

/// The items of a list that may be missing.
pub(crate) fn items(json: Option<&Value>) -> &[Value] {
    json.and_then(Value::as_array)
        .map(Vec::as_slice)
        .unwrap_or_default()
}

/// A whole number.
pub(crate) fn number(json: &Value, name: &str) -> Option<i64> {
    json.get(name).and_then(Value::as_i64)
}

/// A count: what is missing, negative or too large to be one is `otherwise`.
pub(crate) fn count(json: &Value, name: &str, otherwise: u32) -> u32 {
    number(json, name)
        .and_then(|number| u32::try_from(number).ok())
        .unwrap_or(otherwise)
}

/// A flag; false when it is missing.
pub(crate) fn is_set(json: &Value, name: &str) -> bool {
    json.get(name).and_then(Value::as_bool).unwrap_or(false)
}

/// An instant.
pub(crate) fn instant(json: &Value, name: &str) -> Option<Timestamp> {
    text(json, name).parse().ok()
}

/// The texts of a list.
pub(crate) fn texts(json: &Value, name: &str) -> Vec<String> {
    let all = list(json, name).iter().filter_map(Value::as_str);
    all.map(ToOwned::to_owned).collect()
}

/// An instant as the API writes it: whole seconds.
pub(crate) fn written(at: Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// An instant as it will be read again: whole seconds.
pub(crate) fn whole(at: Timestamp) -> Timestamp {
    Timestamp::from_second(at.as_second()).unwrap_or(at)
}

/// So many seconds later; centuries mean "never", not an overflow.
pub(crate) fn after(at: Timestamp, seconds: i64) -> Timestamp {
    at.saturating_add(jiff::SignedDuration::from_secs(seconds))
        .unwrap_or(Timestamp::MAX)
}

/// Whether two documents say the same. A server writes some empty members out and leaves others
/// away, so what is missing, null or empty counts as one.
pub(crate) fn same<'a>(one: &'a Value, other: &'a Value) -> bool {
    match (one, other) {
        (Value::Object(left), Value::Object(right)) => {
            let mut names = left.keys().chain(right.keys());
            let of =
                |map: &'a Map<String, Value>, name: &str| map.get(name).unwrap_or(&Value::Null);
            names.all(|name| same(of(left, name), of(right, name)))
        }
        (Value::Array(left), Value::Array(right)) if left.len() == right.len() => {
            left.iter().zip(right).all(|(one, other)| same(one, other))
        }
        (one, other) => one == other || (is_empty(one) && is_empty(other)),
    }
}

fn is_empty(json: &Value) -> bool {
    match json {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(list) => list.is_empty(),
        Value::Object(map) => map.values().all(is_empty),
        Value::Bool(_) | Value::Number(_) => false,
    }
}
