//! The flight record: every turn of an engine as one line, without secrets, so that a life in
//! production can be lived again on a laptop. Files and rings are the shell's business.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::effect::{Effect, Input};
use crate::engine::Engine;

/// The form of the lines. A reader refuses what it does not know.
pub const FORMAT: u32 = 1;

/// What stands in the place of a secret.
const REDACTED: &str = "[redacted]";
const HIDDEN_YAML: &str = "redacted: \"[redacted]\"";
/// Where kubectl keeps the whole manifest, values of variables included.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// One line of a flight record.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", tag = "line")]
pub enum Record {
    /// The first line of a file: from here the flight can be flown again.
    Begin {
        format: u32,
        at: Timestamp,
        controllers: Vec<String>,
        checkpoint: Value,
    },
    /// What went in and what came out, at one instant.
    Turn {
        at: Timestamp,
        inputs: Vec<Input>,
        effects: Vec<Effect>,
    },
}

impl Record {
    /// The first line of a record of this engine.
    pub fn begin(engine: &Engine, at: Timestamp) -> Self {
        let controllers = engine.controllers().map(ToOwned::to_owned).collect();
        Self::Begin {
            format: FORMAT,
            at,
            controllers,
            checkpoint: engine.checkpoint(),
        }
    }

    /// The line as it is written: one line of JSON, every secret replaced.
    pub fn line(&self) -> String {
        let mut json = serde_json::to_value(self).expect("records are plain data with text keys");
        redact(&mut json);
        json.to_string()
    }
}

/// How a second flight compares with the recorded one.
#[derive(Debug, Clone, PartialEq)]
pub enum Replayed {
    /// The engine did the same; what it did.
    Same { at: Timestamp, effects: Vec<Effect> },
    /// The engine did something else: another version, or a defect in its determinism.
    Differs {
        at: Timestamp,
        recorded: Vec<Effect>,
        now: Vec<Effect>,
    },
}

/// Lives one recorded turn again.
///
/// Errors: the line is a beginning that does not fit this engine.
pub fn replay(engine: &mut Engine, record: Record) -> Result<Option<Replayed>, String> {
    match record {
        Record::Begin { format, .. } if format != FORMAT => Err(format!(
            "the record has format {format}, this version reads format {FORMAT}"
        )),
        Record::Begin { checkpoint, .. } => {
            engine
                .restore(&checkpoint)
                .map_err(|error| format!("checkpoint: {error}"))?;
            Ok(None)
        }
        Record::Turn {
            at,
            inputs,
            effects: recorded,
        } => {
            for input in inputs {
                engine.take(input, at);
            }
            let effects: Vec<_> = std::iter::from_fn(|| engine.next(at)).collect();
            if shown(&effects) == shown(&recorded) {
                return Ok(Some(Replayed::Same { at, effects }));
            }
            Ok(Some(Replayed::Differs {
                at,
                recorded,
                now: effects,
            }))
        }
    }
}

/// Effects as they would stand in a record: secrets do not count as a difference.
fn shown(effects: &[Effect]) -> Value {
    let mut json = serde_json::to_value(effects).expect("effects are plain data with text keys");
    redact(&mut json);
    json
}

/// Replaces what may be secret: values of environment variables, contents of `data` and
/// `stringData`, runtime environments in every form that they take, what was last applied as a whole,
/// and every text whose name sounds like a credential.
pub fn redact(json: &mut Value) {
    match json {
        Value::Object(map) => {
            for (name, value) in map.iter_mut() {
                match name.as_str() {
                    "data" | "stringData" | "binaryData" | "env_vars" | LAST_APPLIED => {
                        hide_texts(value);
                    }
                    "env" => hide_env(value),
                    // Still a mapping: what replays it must not stumble over the form.
                    "runtimeEnvYAML" => hide_as(value, HIDDEN_YAML),
                    "runtime_env" => hide_whole(value),
                    "args" | "command" => hide_runtime_env(value),
                    name if sounds_secret(name) => hide_own_texts(value),
                    _ => redact(value),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(redact),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Puts one text in the place of another.
fn hide_as(value: &mut Value, shown: &str) {
    if value.as_str().is_some_and(|text| !text.is_empty()) {
        *value = shown.into();
    }
}

/// What it consisted of would differ in a replay, where its source is hidden.
fn hide_whole(value: &mut Value) {
    if !value.is_null() {
        *value = REDACTED.into();
    }
}

/// The words of a command that submits a job, with the environment in one of them.
fn hide_runtime_env(words: &mut Value) {
    for word in words.as_array_mut().into_iter().flatten() {
        if word
            .as_str()
            .is_some_and(|it| it.contains("--runtime-env-json"))
        {
            hide_texts(word);
        }
    }
}

/// Containers list their variables, custom resources often map names to values.
fn hide_env(env: &mut Value) {
    let Value::Array(variables) = env else {
        return hide_texts(env);
    };
    for variable in variables {
        if let Some(value) = variable.get_mut("value") {
            hide_texts(value);
        }
    }
}

/// A text or a list of texts; what lies deeper has names of its own.
fn hide_own_texts(value: &mut Value) {
    match value {
        Value::String(_) => hide_texts(value),
        Value::Array(items) => items.iter_mut().for_each(hide_own_texts),
        Value::Object(_) => redact(value),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn hide_texts(value: &mut Value) {
    match value {
        Value::String(text) => REDACTED.clone_into(text),
        Value::Array(items) => items.iter_mut().for_each(hide_texts),
        Value::Object(map) => map.values_mut().for_each(hide_texts),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn sounds_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    ["password", "token", "secret", "credential"]
        .iter()
        .any(|word| name.contains(word))
}
