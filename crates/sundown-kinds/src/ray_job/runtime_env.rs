//! The runtime environment of a job: YAML of a user, JSON for Ray.

use serde_json::{Map, Number, Value};

/// A text that is no mapping in YAML. The text is left out, unlike upstream: it holds values of
/// variables, and the message goes into the status and an event.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("failed to unmarshal RuntimeEnvYAML: {why}")]
pub struct RuntimeEnvError {
    pub why: String,
}

/// Reads the environment; None if there is nothing to read.
pub fn runtime_env(yaml: &str) -> Result<Option<Map<String, Value>>, RuntimeEnvError> {
    let failed = |why: String| RuntimeEnvError { why };
    if yaml.trim().is_empty() {
        return Ok(None);
    }
    let read =
        sundown_yaml::read(yaml).map_err(|error| failed(error.without_text().to_string()))?;
    let found = match read.value {
        Value::Null => return Ok(None),
        Value::Object(members) => {
            let members = members.into_iter();
            return Ok(Some(
                members.map(|(name, value)| (name, plain(value))).collect(),
            ));
        }
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
    };
    // The words of upstream's library, with the name of its type.
    Err(failed(format!(
        "error unmarshaling JSON: while decoding JSON: json: cannot unmarshal {found} into Go value of \
         type types.RuntimeEnvType"
    )))
}

/// Numbers as Go writes them: a float without a fraction is written without one.
fn plain(value: Value) -> Value {
    match value {
        Value::Number(number) => Value::Number(whole(&number).unwrap_or(number)),
        Value::Array(items) => Value::Array(items.into_iter().map(plain).collect()),
        Value::Object(members) => Value::Object(
            members
                .into_iter()
                .map(|(name, value)| (name, plain(value)))
                .collect(),
        ),
        Value::Null | Value::Bool(_) | Value::String(_) => value,
    }
}

pub(super) fn whole(number: &Number) -> Option<Number> {
    let float = number.as_f64().filter(|_| number.is_f64())?;
    let is_whole = float.fract() == 0.0 && float.abs() < 1e15;
    is_whole.then(|| format!("{float:.0}").parse::<i64>().ok().map(Number::from))?
}
