//! An object before its commit: complete but for the resourceVersion, which only the commit knows.
//!
//! Head and tail are stamped by concatenation, so a commit serialises nothing.

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;
use serde_json::{Map, Value};
use sundown_model::Uid;

use crate::stored::{API_VERSION_MEMBER, METADATA_MEMBER};
use crate::{Revision, Stored};

/// An object that waits for its revision.
#[derive(Clone, PartialEq, Eq)]
pub struct Body {
    /// Ends where the digits of the resourceVersion begin.
    head: Box<[u8]>,
    tail: Box<[u8]>,
    /// Where the value of `metadata` begins in `head`.
    metadata_start: usize,
    /// Where it ends in `tail`.
    metadata_end: usize,
    uid: Uid,
    labels: Box<[(Box<str>, Box<str>)]>,
}

/// The parts of an object that [`Body::encode`] puts together.
#[derive(Debug, Clone, Copy)]
pub struct Parts<'a, M> {
    pub api_version: &'a str,
    pub kind: &'a str,
    pub uid: &'a Uid,
    pub labels: &'a BTreeMap<String, String>,
    /// Serialises to a JSON object without `resourceVersion`.
    pub metadata: &'a M,
    /// All other members of the top level.
    pub rest: &'a Map<String, Value>,
}

impl Body {
    /// Serialises an object, leaving a slot for its resourceVersion.
    ///
    /// Errors: `metadata` does not serialise.
    pub fn encode<M: Serialize>(parts: &Parts<'_, M>) -> serde_json::Result<Self> {
        let mut head = Vec::with_capacity(96);
        head.extend_from_slice(API_VERSION_MEMBER);
        serde_json::to_writer(&mut head, parts.api_version)?;
        head.extend_from_slice(b",\"kind\":");
        serde_json::to_writer(&mut head, parts.kind)?;
        head.push(b',');
        head.extend_from_slice(METADATA_MEMBER);
        let metadata_start = head.len();
        head.extend_from_slice(b"{\"resourceVersion\":\"");

        let metadata = serde_json::to_vec(parts.metadata)?;
        assert!(
            metadata.starts_with(b"{"),
            "metadata serialises to an object"
        );
        let mut tail = b"\"".to_vec();
        if metadata != b"{}" {
            tail.push(b',');
        }
        tail.extend_from_slice(&metadata[1..]);
        let metadata_end = tail.len();
        for (member, value) in parts.rest {
            tail.push(b',');
            serde_json::to_writer(&mut tail, member)?;
            tail.push(b':');
            serde_json::to_writer(&mut tail, value)?;
        }
        tail.push(b'}');

        // BTreeMap is sorted, which `Stored::label` relies on.
        let labels = parts.labels.iter();
        Ok(Self {
            head: head.into_boxed_slice(),
            tail: tail.into_boxed_slice(),
            metadata_start,
            metadata_end,
            uid: parts.uid.clone(),
            labels: labels
                .map(|(key, value)| (key.as_str().into(), value.as_str().into()))
                .collect(),
        })
    }

    /// The same with texts in the places that hold a mark, one after the other. Metadata stays.
    ///
    /// Assumes: there is a mark for each text, and JSON comes out.
    #[must_use]
    pub fn filled(self, mark: &str, texts: &[&str]) -> Self {
        let length: usize = texts.iter().map(|text| text.len()).sum();
        let mut tail = Vec::with_capacity(self.tail.len() + length);
        let (metadata, mut rest) = self.tail.split_at(self.metadata_end);
        tail.extend_from_slice(metadata);
        for text in texts {
            let at = rest
                .windows(mark.len())
                .position(|it| it == mark.as_bytes());
            let at = at.expect("there is a mark for each text");
            tail.extend_from_slice(&rest[..at]);
            tail.extend_from_slice(text.as_bytes());
            rest = &rest[at + mark.len()..];
        }
        tail.extend_from_slice(rest);
        let tail = tail.into_boxed_slice();
        Self { tail, ..self }
    }

    /// The committed form under a revision.
    pub fn stamp(&self, revision: Revision) -> Stored {
        let digits = revision.to_string();
        let json = [&self.head, digits.as_bytes(), &self.tail]
            .concat()
            .into_boxed_slice();
        let digits = self.head.len()..self.head.len() + digits.len();
        Stored {
            revision,
            uid: self.uid.clone(),
            json,
            metadata: self.metadata_start..digits.end + self.metadata_end,
            digits,
            labels: self.labels.clone(),
        }
    }
}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (head, tail) = (
            String::from_utf8_lossy(&self.head),
            String::from_utf8_lossy(&self.tail),
        );
        write!(f, "{head}_{tail}")
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn body(rest: &Value) -> Body {
        let metadata = json!({"name": "a", "note": "{}"});
        let parts = Parts {
            api_version: "v1",
            kind: "Thing",
            uid: &Uid::from("u"),
            labels: &BTreeMap::new(),
            metadata: &metadata,
            rest: rest.as_object().unwrap(),
        };
        Body::encode(&parts).unwrap()
    }

    #[test]
    fn texts_take_the_places_of_marks_as_if_they_had_been_there() {
        let filled =
            body(&json!({"a": {}, "b": [{}, 1], "c": {}})).filled("{}", &["{\"x\":2}", "3"]);
        let whole = body(&json!({"a": {"x": 2}, "b": [3, 1], "c": {}}));
        assert_eq!(filled, whole);
        assert_eq!(
            filled.stamp(Revision::new(7)),
            whole.stamp(Revision::new(7))
        );
    }
}
