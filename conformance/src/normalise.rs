//! What two servers cannot have in common becomes a symbol: uids, resourceVersions, instants.
//!
//! A symbol is named after the line in which its value came first, so that equality stays visible
//! across lines and one differing line does not rename everything after it.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::{Map, Value};

/// Instants further away than this are content that the script sent.
const NEAR_SECONDS_MAX: i64 = 3600;
/// Answers may be this late without looking like another instant.
const TOLERANCE_SECONDS: i64 = 9;

/// The symbols of one run of one file.
#[derive(Debug, Default)]
pub(crate) struct Symbols {
    uids: BTreeMap<String, String>,
    revisions: BTreeMap<u64, String>,
    /// Revisions of lists and bookmarks: on a live server other writers move them.
    positions: BTreeMap<u64, String>,
    instants: BTreeMap<(String, String), Vec<(Timestamp, String)>>,
    newest: u64,
    line: String,
    counts: BTreeMap<&'static str, usize>,
}

/// Where in an answer a value stands.
#[derive(Debug, Clone)]
struct At {
    path: String,
    uid: String,
    is_position: bool,
}

impl Symbols {
    /// Symbols that come from now on are named after this line.
    pub(crate) fn begin(&mut self, line: &str) {
        line.clone_into(&mut self.line);
        self.counts.clear();
    }

    /// Replaces everything in an answer or an event that is the server's own.
    pub(crate) fn apply(&mut self, value: &mut Value) {
        let at = At {
            path: String::new(),
            uid: String::new(),
            is_position: false,
        };
        self.walk(value, &at);
    }

    fn walk(&mut self, value: &mut Value, at: &At) {
        match value {
            Value::Object(map) => self.walk_map(map, at),
            Value::Array(list) => {
                for (index, item) in list.iter_mut().enumerate() {
                    self.walk(item, &at.down(&index.to_string()));
                }
            }
            Value::String(text) => *text = self.text(text, at),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    fn walk_map(&mut self, map: &mut Map<String, Value>, at: &At) {
        let mut at = at.clone();
        if let Some(uid) = map
            .get("metadata")
            .and_then(|metadata| metadata.get("uid"))
            .and_then(Value::as_str)
        {
            uid.clone_into(&mut at.uid);
            at.path = String::new();
        }
        if let Some(Value::Object(metadata)) = map.get_mut("metadata") {
            metadata.remove("managedFields");
        }
        let kind = map.get("kind").and_then(Value::as_str).unwrap_or("");
        let is_list = kind.ends_with("List") || kind == "Table";
        let is_bookmark = map.get("type").and_then(Value::as_str) == Some("BOOKMARK");
        for (name, value) in map {
            let mut below = at.down(name);
            below.is_position = match name.as_str() {
                "metadata" => is_list || at.is_position,
                "object" => is_bookmark,
                "resourceVersion" => at.is_position,
                _ => false,
            };
            self.walk(value, &below);
        }
    }

    fn text(&mut self, text: &str, at: &At) -> String {
        let member = at.path.rsplit('/').next().unwrap_or("");
        if member == "resourceVersion" {
            return match text.parse() {
                Ok(number) if at.is_position => self.position(number),
                Ok(number) => self.revision(number),
                Err(_) => text.to_owned(),
            };
        }
        if member == "continue" && !text.is_empty() {
            return "<continue>".into();
        }
        if let Some(instant) = near_instant(text) {
            return self.instant(instant, at);
        }
        let text = self.uids_in(text);
        without_diff(&revisions_in(&text)).to_owned()
    }

    fn uids_in(&mut self, text: &str) -> String {
        let mut out = String::new();
        let mut rest = text;
        while let Some(start) = find_uid(rest) {
            let (before, found) = rest.split_at(start);
            let (uid, after) = found.split_at(UID_LENGTH);
            out.push_str(before);
            out.push_str(&self.uid(uid));
            rest = after;
        }
        out + rest
    }

    fn uid(&mut self, uid: &str) -> String {
        if let Some(symbol) = self.uids.get(uid) {
            return symbol.clone();
        }
        let symbol = self.next("uid");
        self.uids.insert(uid.to_owned(), symbol.clone());
        symbol
    }

    fn revision(&mut self, number: u64) -> String {
        if let Some(symbol) = self.revisions.get(&number) {
            return symbol.clone();
        }
        let order = if number < self.newest { " older" } else { "" };
        self.newest = self.newest.max(number);
        let symbol = format!("{}{order}", self.next("rv"));
        self.revisions.insert(number, symbol.clone());
        symbol
    }

    fn position(&mut self, number: u64) -> String {
        if let Some(symbol) = self.positions.get(&number) {
            return symbol.clone();
        }
        let order = if number < self.newest { " older" } else { "" };
        // Not numbered: whether two lists have one position depends on who else writes.
        let symbol = format!("<position{order}>");
        self.positions.insert(number, symbol.clone());
        symbol
    }

    /// Named by object and field: two instants in one second would look equal by chance.
    fn instant(&mut self, instant: Timestamp, at: &At) -> String {
        let field = (at.uid.clone(), at.path.clone());
        let known = self.instants.entry(field).or_default();
        if let Some((_, symbol)) = known.iter().find(|(known, _)| *known == instant) {
            return symbol.clone();
        }
        let ahead = instant.as_second() - Timestamp::now().as_second();
        let symbol = if ahead <= TOLERANCE_SECONDS {
            format!("<instant {}>", known.len())
        } else {
            let tens = (ahead + TOLERANCE_SECONDS) / 10 * 10;
            format!("<instant {} in {tens} s>", known.len())
        };
        known.push((instant, symbol.clone()));
        symbol
    }

    fn next(&mut self, what: &'static str) -> String {
        let count = self.counts.entry(what).or_default();
        *count += 1;
        format!("<{what} {}.{count}>", self.line)
    }
}

impl At {
    fn down(&self, name: &str) -> Self {
        Self {
            path: format!("{}/{name}", self.path),
            uid: self.uid.clone(),
            is_position: false,
        }
    }
}

const UID_LENGTH: usize = 36;

fn find_uid(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let is_uid = |window: &[u8]| {
        window.iter().enumerate().all(|(index, byte)| match index {
            8 | 13 | 18 | 23 => *byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        })
    };
    bytes.windows(UID_LENGTH).position(is_uid)
}

/// An instant of about now; the script's own are far away.
fn near_instant(text: &str) -> Option<Timestamp> {
    if text.len() < "2000-01-01T00:00:00Z".len() {
        return None;
    }
    let instant: Timestamp = text.parse().ok()?;
    let ahead = instant.as_second() - Timestamp::now().as_second();
    (ahead.abs() < NEAR_SECONDS_MAX).then_some(instant)
}

/// A message without the dump of Go structs that upstream puts after it.
fn without_diff(text: &str) -> &str {
    text.find("\n@@ ").map_or(text, |start| &text[..start])
}

/// Revisions inside of messages.
fn revisions_in(text: &str) -> String {
    let mut text = text.to_owned();
    for words in [
        "resource version: ",
        "current: ",
        "ResourceVersion in the precondition (",
        "ResourceVersion in record (",
        "<revision> (",
    ] {
        let Some(found) = text.find(words) else {
            continue;
        };
        let start = found + words.len();
        let length = text[start..]
            .find(|letter: char| !letter.is_ascii_digit())
            .unwrap_or(text.len() - start);
        if length > 0 {
            text.replace_range(start..start + length, "<revision>");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::Symbols;

    #[test]
    fn equality_and_order_stay_visible() {
        let mut symbols = Symbols::default();
        symbols.begin("a");
        let mut value = json!({ "metadata": {
            "uid": "0b5c1f7e-6f0a-4c9b-9f0e-111111111111", "resourceVersion": "12",
            "managedFields": [],
        } });
        symbols.apply(&mut value);
        symbols.begin("b");
        let mut later = json!([
            { "metadata": { "resourceVersion": "12" } },
            { "metadata": { "resourceVersion": "7" } },
            "gone: 0b5c1f7e-6f0a-4c9b-9f0e-111111111111",
        ]);
        symbols.apply(&mut later);
        assert_eq!(
            value,
            json!({ "metadata": { "uid": "<uid a.1>", "resourceVersion": "<rv a.1>" } })
        );
        assert_eq!(
            later,
            json!([
                { "metadata": { "resourceVersion": "<rv a.1>" } },
                { "metadata": { "resourceVersion": "<rv b.1> older" } },
                "gone: <uid a.1>",
            ])
        );
    }

    #[test]
    fn revisions_inside_of_messages_are_no_content() {
        let mut value = json!("too old resource version: 1 (226)");
        Symbols::default().apply(&mut value);
        assert_eq!(
            value,
            json!("too old resource version: <revision> (<revision>)")
        );
    }
}
