//! The request script as data: JSON lines, one request each, in files that run on their own.
//!
//! It knows how requests are written down, not how they are sent.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde::Deserialize;
use serde_json::Value;

use crate::questions::Questions;

/// One file of the script. Its namespaces and variables are its own.
#[derive(Debug, Clone)]
pub(crate) struct Script {
    /// The file's name without ending; the first part of each id.
    pub(crate) name: String,
    pub(crate) lines: Vec<Line>,
}

/// One request. Texts may name variables as `${name}`.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Line {
    /// Unique in its file.
    pub(crate) id: String,
    #[serde(default = "get")]
    pub(crate) method: String,
    pub(crate) path: String,
    /// In this order; a name may come twice.
    #[serde(default)]
    pub(crate) query: Vec<(String, String)>,
    #[serde(default)]
    pub(crate) headers: BTreeMap<String, String>,
    /// Sent as JSON, with a fitting Content-Type unless the headers name one.
    pub(crate) body: Option<Value>,
    /// Sent as it is, instead of `body`.
    pub(crate) text: Option<String>,
    /// Who asks, by impersonation: a user, then groups. Without it the administrator asks.
    #[serde(default, rename = "as")]
    pub(crate) impersonated: Vec<String>,
    /// A bearer token that is shown instead of the administrator's.
    pub(crate) token: Option<String>,
    /// Random questions that the body is sent with, one after the other. The answer is which of them
    /// are allowed.
    pub(crate) questions: Option<Questions>,
    /// Variables for later lines, by JSON pointer into the answer.
    #[serde(default)]
    pub(crate) save: BTreeMap<String, String>,
    /// The answer is a stream of events.
    pub(crate) watch: Option<Take>,
    /// JSON pointers whose values are random, such as generated names.
    #[serde(default)]
    pub(crate) mask: Vec<String>,
    /// JSON pointers whose values are left out, such as lists that name every served kind.
    #[serde(default)]
    pub(crate) omit: Vec<String>,
}

/// How much of a watch is taken: so many events, or what comes in time.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Take {
    pub(crate) events: usize,
    pub(crate) milliseconds: u64,
}

/// Reads all files of a directory, in the order of their names.
pub(crate) fn read_all(directory: &Path) -> Result<Vec<Script>> {
    let mut paths = Vec::new();
    for entry in
        std::fs::read_dir(directory).with_context(|| format!("list {}", directory.display()))?
    {
        paths.push(entry?.path());
    }
    paths.retain(|path| path.extension().is_some_and(|ending| ending == "jsonl"));
    paths.sort();
    paths.iter().map(|path| read(path)).collect()
}

fn read(path: &Path) -> Result<Script> {
    let name = path.file_stem().context("a file without a name")?;
    let name = name.to_string_lossy().into_owned();
    let lines: Vec<Line> = read_lines(path)?;
    let mut seen = std::collections::BTreeSet::new();
    for line in &lines {
        ensure!(
            seen.insert(&line.id),
            "{name}: id {} is there twice",
            line.id
        );
    }
    Ok(Script { name, lines })
}

/// Reads a file of JSON lines; a missing file has none.
pub(crate) fn read_lines<T: serde::de::DeserializeOwned>(path: &Path) -> Result<Vec<T>> {
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(error).with_context(|| format!("read {}", path.display())),
    };
    let lines = text.lines().enumerate();
    lines
        .filter(|(_, line)| !line.trim().is_empty())
        .map(|(number, line)| {
            serde_json::from_str(line).with_context(|| format!("{}:{}", path.display(), number + 1))
        })
        .collect()
}

fn get() -> String {
    "GET".into()
}
