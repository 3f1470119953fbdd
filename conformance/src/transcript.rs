//! Answers as they are kept: one JSON line each, small enough to review.

use std::path::Path;

use anyhow::{Context, Result};
use http::response::Parts;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::script::{Line, read_lines};

/// Our own warning about kinds that nobody acts on yet; no other server has it.
const OUR_OWN: &str = "is stored, but no controller of this server acts on it yet";

/// What a server answered to one line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Answer {
    pub(crate) id: String,
    pub(crate) code: u16,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) content_type: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) warnings: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) body: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) events: Option<Vec<Value>>,
}

impl Answer {
    /// An answer without a body yet. Of the headers, those that clients act on are kept.
    pub(crate) fn new(id: &str, head: &Parts) -> Self {
        let text =
            |value: &http::HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
        let content_type = head.headers.get("content-type").map(text);
        let warnings = head.headers.get_all("warning").iter().map(text);
        let warnings = warnings.filter(|warning| !warning.contains(OUR_OWN));
        Self {
            id: id.to_owned(),
            code: head.status.as_u16(),
            content_type: content_type.unwrap_or_default(),
            warnings: warnings.collect(),
            body: None,
            events: None,
        }
    }

    /// The body as JSON where it is, else as text.
    pub(crate) fn set_body(&mut self, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        let text = || Value::from(String::from_utf8_lossy(bytes));
        self.body = Some(serde_json::from_slice(bytes).unwrap_or_else(|_| text()));
    }

    /// Hides what the line says is random or not of interest.
    pub(crate) fn conceal(&mut self, line: &Line) {
        for value in self.values() {
            for pointer in &line.mask {
                if let Some(found) = value.pointer_mut(pointer) {
                    *found = Value::from("<random>");
                }
            }
            for pointer in &line.omit {
                let (parent, member) = pointer.rsplit_once('/').unwrap_or(("", pointer));
                if let Some(Value::Object(map)) = value.pointer_mut(parent) {
                    map.remove(member);
                }
            }
        }
    }

    /// The body or the events.
    pub(crate) fn values(&mut self) -> impl Iterator<Item = &mut Value> {
        self.body.iter_mut().chain(self.events.iter_mut().flatten())
    }
}

/// Reads the transcript of a file of the script.
pub(crate) fn read(directory: &Path, name: &str) -> Result<Vec<Answer>> {
    read_lines(&directory.join(format!("{name}.jsonl")))
}

/// Writes the transcript of a file of the script.
pub(crate) fn write(directory: &Path, name: &str, answers: &[Answer]) -> Result<()> {
    let mut text = String::new();
    for answer in answers {
        text.push_str(&serde_json::to_string(answer)?);
        text.push('\n');
    }
    let path = directory.join(format!("{name}.jsonl"));
    std::fs::write(&path, text).with_context(|| format!("write {}", path.display()))
}
