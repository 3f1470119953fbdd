//! Whether answers are the recorded ones, with what is pending taken into account.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Result, ensure};
use serde::Deserialize;
use serde_json::Value;

use crate::script::read_lines;
use crate::transcript::Answer;

/// A line that is known to be answered otherwise.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Pending {
    /// `file/line`.
    pub(crate) id: String,
    pub(crate) reason: String,
}

/// How a run compares with what was recorded.
#[derive(Debug, Default)]
pub(crate) struct Verdict {
    pub(crate) equal: usize,
    /// By `file/line`, with what differs.
    pub(crate) different: BTreeMap<String, Vec<String>>,
}

impl Verdict {
    /// Compares the answers to one file.
    pub(crate) fn compare(&mut self, file: &str, recorded: &[Answer], answers: &[Answer]) {
        let recorded: BTreeMap<&str, &Answer> = recorded
            .iter()
            .map(|answer| (answer.id.as_str(), answer))
            .collect();
        for answer in answers {
            let differences = match recorded.get(answer.id.as_str()) {
                Some(expected) => differences(expected, answer),
                None => vec!["not recorded yet: run `cargo xtask accept oracle`".into()],
            };
            if differences.is_empty() {
                self.equal += 1;
            } else {
                self.different
                    .insert(format!("{file}/{}", answer.id), differences);
            }
        }
    }

    /// Fails if a line differs that is not pending, or if a pending one does not.
    pub(crate) fn judge(&self, pending: &[Pending]) -> Result<()> {
        let mut wrong = 0;
        for (id, differences) in &self.different {
            if pending.iter().any(|pending| pending.id == *id) {
                continue;
            }
            wrong += 1;
            println!("{id}");
            for difference in differences {
                println!("    {difference}");
            }
        }
        let mut done = 0;
        for pending in pending {
            if !self.different.contains_key(&pending.id) {
                done += 1;
                println!("{} is equal now: remove it from pending.jsonl", pending.id);
            }
        }
        let total = self.equal + self.different.len();
        println!(
            "{} of {total} requests answered as recorded, {} pending",
            self.equal,
            pending.len()
        );
        ensure!(wrong == 0, "{wrong} answers are not the recorded ones");
        ensure!(done == 0, "{done} pending lines are equal now");
        Ok(())
    }
}

/// Reads the list of pending lines; each has a reason.
pub(crate) fn read_pending(path: &Path) -> Result<Vec<Pending>> {
    let pending: Vec<Pending> = read_lines(path)?;
    for line in &pending {
        ensure!(!line.reason.is_empty(), "{} has no reason", line.id);
    }
    Ok(pending)
}

fn differences(expected: &Answer, answer: &Answer) -> Vec<String> {
    let value = |answer: &Answer| {
        let mut value = serde_json::to_value(answer).unwrap_or_default();
        if let Some(body) = value.get_mut("body") {
            put_causes_in_order(body);
        }
        value
    };
    let mut found = Vec::new();
    walk("", &value(expected), &value(answer), &mut found);
    found
}

/// Upstream walks over the members of an object in random order, and so do its complaints.
fn put_causes_in_order(body: &mut Value) {
    let told = |cause: &Value| {
        let text = |member: &str| cause[member].as_str().unwrap_or("").to_owned();
        format!("{}: {}", text("field"), text("message"))
    };
    let join = |causes: &[Value]| {
        let told: Vec<String> = causes.iter().map(told).collect();
        format!("[{}]", told.join(", "))
    };
    let causes = body.pointer("/details/causes").and_then(Value::as_array);
    let Some(causes) = causes.cloned() else {
        return;
    };
    let mut sorted = causes.clone();
    sorted.sort_by_key(told);
    if let Some(message) = body.get("message").and_then(Value::as_str) {
        body["message"] = message.replace(&join(&causes), &join(&sorted)).into();
    }
    body["details"]["causes"] = sorted.into();
}

fn walk(path: &str, expected: &Value, found: &Value, differences: &mut Vec<String>) {
    match (expected, found) {
        (Value::Object(expected), Value::Object(found)) => {
            let mut names: Vec<&String> = expected.keys().chain(found.keys()).collect();
            names.sort();
            names.dedup();
            for name in names {
                let at = |map: &serde_json::Map<String, Value>| map.get(name).cloned();
                let path = format!("{path}/{name}");
                match (at(expected), at(found)) {
                    (Some(expected), Some(found)) => walk(&path, &expected, &found, differences),
                    (Some(expected), None) => differences.push(format!("{path}: lacks {expected}")),
                    (None, Some(found)) => differences.push(format!("{path}: has {found}")),
                    (None, None) => {}
                }
            }
        }
        (Value::Array(expected), Value::Array(found)) if expected.len() == found.len() => {
            for (index, (expected, found)) in expected.iter().zip(found).enumerate() {
                walk(&format!("{path}/{index}"), expected, found, differences);
            }
        }
        _ if expected == found => {}
        _ => differences.push(format!("{path}: expected {expected}, is {found}")),
    }
}
