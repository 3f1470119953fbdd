//! What a text that is not shown becomes. Which texts are shown is for `shown` to say.

use std::fmt;
use std::sync::Arc;

use serde::Serialize;
use serde_json::Value;
use sundown_model::{is_redacted, redacted, redacted_label};

use super::fields;
use super::hiding::{self, Rule};

/// What stands in the place of every hidden text when two flights are compared: what was made of hidden
/// texts is not the same a second time, so only the place counts.
const ANY: &str = "[redacted]";
/// A runtime environment stays a mapping: what replays it must not stumble over the form.
const YAML_BEGIN: &str = "redacted: \"";
const YAML_END: &str = "\"";

/// Hides texts: the same text becomes the same again, so that a replay can compare what it cannot read.
#[derive(Clone)]
pub struct Veil {
    how: How,
    /// Further names of fields whose texts are shown.
    pub(super) also: &'static [&'static str],
}

#[derive(Clone)]
enum How {
    Marked(Arc<dyn Fn(&str) -> u64 + Send + Sync>),
    /// All hidden texts alike.
    Alike,
}

impl fmt::Debug for Veil {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Veil").finish_non_exhaustive()
    }
}

impl Veil {
    /// A veil whose marks come from this function.
    ///
    /// Assumes: the function is keyed with a secret of its own that stands in no record. Without a key a
    /// short password could be guessed from its mark.
    pub fn new(mark: impl Fn(&str) -> u64 + Send + Sync + 'static) -> Self {
        Self {
            how: How::Marked(Arc::new(mark)),
            also: &[],
        }
    }

    /// The same veil, with further names of fields that hold no secret: those of kinds that only a
    /// controller of the caller's knows.
    #[must_use]
    pub fn showing(self, also: &'static [&'static str]) -> Self {
        Self { also, ..self }
    }

    /// The veil behind which two flights are compared.
    pub(super) fn alike() -> Self {
        Self {
            how: How::Alike,
            also: &[],
        }
    }

    /// Anything that can be recorded, as JSON without hidden texts.
    pub fn over<T: Serialize + ?Sized>(&self, it: &T) -> Value {
        hiding::value(self, Rule::Hide, it).expect("what is recorded is plain data with text keys")
    }

    /// The JSON of a Kubernetes object, or of a part of one, without hidden texts.
    pub fn over_fields(&self, json: &mut Value) {
        fields::hide(self, json);
    }

    /// What stands in the place of a text. An empty one hides nothing.
    pub(super) fn hide(&self, text: &str) -> String {
        self.hide_as(text, redacted)
    }

    /// What stands in the place of the value of a label.
    pub(super) fn hide_label(&self, text: &str) -> String {
        self.hide_as(text, redacted_label)
    }

    fn hide_as(&self, text: &str, form: fn(usize, u32) -> String) -> String {
        match &self.how {
            _ if text.is_empty() => String::new(),
            How::Alike => ANY.to_owned(),
            How::Marked(_) if is_redacted(text) => text.to_owned(),
            How::Marked(mark) => {
                let [_, _, _, _, low @ ..] = mark(text).to_be_bytes();
                // What must be a whole path stays one.
                let slash = if text.starts_with('/') { "/" } else { "" };
                slash.to_owned() + &form(text.len(), u32::from_be_bytes(low))
            }
        }
    }

    /// What stands in the place of YAML: a mapping stays one, and what is none stays none.
    pub(super) fn hide_yaml(&self, text: &str) -> String {
        let own = text
            .strip_prefix(YAML_BEGIN)
            .and_then(|it| it.strip_suffix(YAML_END))
            .filter(|it| is_redacted(it));
        if own.is_none() && !is_mapping(text) {
            return self.hide(text);
        }
        format!("{YAML_BEGIN}{}{YAML_END}", self.hide(own.unwrap_or(text)))
    }

    /// What stands in the place of a value whose form would tell as much as its texts.
    pub(super) fn hide_whole(&self, value: &Value) -> Value {
        match value {
            Value::Null => Value::Null,
            Value::String(text) => self.hide(text).into(),
            Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
                self.hide(&value.to_string()).into()
            }
        }
    }
}

/// Whether YAML looks like a mapping, by its first line that says something. What a whole reader would
/// refuse for another reason is none that a replay has to get right.
fn is_mapping(yaml: &str) -> bool {
    let mut lines = yaml.lines().map(str::trim);
    let says = |line: &&str| !line.is_empty() && !line.starts_with('#') && *line != "---";
    lines.find(says).is_some_and(|line| {
        let is_list = line.starts_with("- ") || line.starts_with('[');
        line.starts_with('{') || (!is_list && (line.contains(": ") || line.ends_with(':')))
    })
}
