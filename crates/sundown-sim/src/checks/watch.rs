//! S5 to S7: a watch shows exactly what was committed to its resource after its beginning.

use serde_json::Value;
use sundown_model::Resource;

use super::Violation;
use crate::ledger::Ledger;

/// Follows one watch.
#[derive(Debug, Clone)]
pub(crate) struct WatchCheck {
    resource: Resource,
    /// All events up to here were shown.
    after: u64,
}

impl WatchCheck {
    pub(crate) fn new(resource: Resource, after: u64) -> Self {
        Self { resource, after }
    }

    /// Judges one line against what really happened.
    pub(crate) fn line(&mut self, line: &[u8], ledger: &Ledger) -> Option<Violation> {
        let Ok(line) = serde_json::from_slice::<Value>(line) else {
            return Some(self.broken("S5", "a line is not JSON"));
        };
        let rv = line
            .pointer("/object/metadata/resourceVersion")
            .and_then(Value::as_str);
        let rv = rv.and_then(|rv| rv.parse::<u64>().ok());
        let expected = ledger
            .events
            .iter()
            .find(|event| event.key.resource == self.resource && event.revision > self.after);
        let (kind, rv) = match (line["type"].as_str(), rv) {
            (Some("ERROR"), _) => return self.error(&line),
            (Some(kind), Some(rv)) => (kind.to_owned(), rv),
            (_, _) => return Some(self.broken("S5", "a line without type or revision")),
        };
        if kind == "BOOKMARK" {
            if rv < self.after || expected.is_some_and(|event| event.revision <= rv) {
                return Some(self.broken("S6", &format!("bookmark {rv} skips events")));
            }
            self.after = rv;
            return None;
        }
        let Some(event) = expected else {
            return Some(self.broken("S5", &format!("{kind} at {rv} never happened")));
        };
        let right = match (&event.prev, &event.new) {
            (None, Some(_)) => "ADDED",
            (_, None) => "DELETED",
            (Some(_), Some(_)) => "MODIFIED",
        };
        let name = line
            .pointer("/object/metadata/name")
            .and_then(Value::as_str);
        if kind != right || rv != event.revision || name != Some(&event.key.name) {
            let text = format!("{kind} {name:?} at {rv}, expected {right} {}", event.key);
            return Some(self.broken("S5", &format!("{text} at {}", event.revision)));
        }
        self.after = rv;
        None
    }

    fn error(&self, line: &Value) -> Option<Violation> {
        let code = line.pointer("/object/code").and_then(Value::as_i64);
        (code != Some(410)).then(|| self.broken("S7", &format!("an error of code {code:?}")))
    }

    fn broken(&self, invariant: &'static str, text: &str) -> Violation {
        Violation::new(
            invariant,
            format!("watch of {} after {}: {text}", self.resource, self.after),
        )
    }
}
