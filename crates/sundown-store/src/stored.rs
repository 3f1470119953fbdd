//! One committed state of one object, as the exact bytes that clients get.
//!
//! The layout is fixed by [`Body`](crate::Body), so that the other forms of an object are splices:
//! nothing here parses JSON.

use std::fmt;
use std::ops::Range;

use sundown_model::Uid;

use crate::Revision;

/// A committed state of an object. Immutable, shared by the index, the log and answers.
#[derive(Clone, PartialEq, Eq)]
pub struct Stored {
    pub(crate) revision: Revision,
    pub(crate) uid: Uid,
    pub(crate) json: Box<[u8]>,
    /// Where the value of `metadata` stands in `json`.
    pub(crate) metadata: Range<usize>,
    /// Where the digits of the resourceVersion stand in `json`.
    pub(crate) digits: Range<usize>,
    pub(crate) labels: Box<[(Box<str>, Box<str>)]>,
}

impl Stored {
    /// The revision that wrote this state.
    pub fn revision(&self) -> Revision {
        self.revision
    }

    /// Which incarnation this is.
    pub fn uid(&self) -> &Uid {
        &self.uid
    }

    /// The whole object.
    pub fn json(&self) -> &[u8] {
        &self.json
    }

    /// The apiVersion under which it is stored.
    pub fn api_version(&self) -> &str {
        let value = self.json.get(API_VERSION_MEMBER.len()..).unwrap_or(&[]);
        let text = value.split(|byte| *byte == b'"').nth(1);
        std::str::from_utf8(text.unwrap_or(&[])).unwrap_or_default()
    }

    /// The value of `metadata`, braces included.
    pub fn metadata_json(&self) -> &[u8] {
        &self.json[self.metadata.clone()]
    }

    /// The object without its apiVersion, kind and opening brace: from `"metadata":` to the end.
    pub fn content_json(&self) -> &[u8] {
        &self.json[self.metadata.start - METADATA_MEMBER.len()..]
    }

    /// The value of a label.
    pub fn label(&self, key: &str) -> Option<&str> {
        let found = self
            .labels
            .binary_search_by(|(own, _)| (**own).cmp(key))
            .ok()?;
        Some(&self.labels[found].1)
    }

    /// The same state under another revision: what a DELETED event carries.
    #[must_use]
    pub fn restamped(&self, revision: Revision) -> Self {
        let digits = revision.to_string();
        let (head, tail) = (
            &self.json[..self.digits.start],
            &self.json[self.digits.end..],
        );
        let json = [head, digits.as_bytes(), tail].concat().into_boxed_slice();
        let end = self.metadata.end - self.digits.len() + digits.len();
        Self {
            revision,
            uid: self.uid.clone(),
            json,
            metadata: self.metadata.start..end,
            digits: self.digits.start..self.digits.start + digits.len(),
            labels: self.labels.clone(),
        }
    }
}

impl fmt::Debug for Stored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:?} {}",
            self.revision,
            String::from_utf8_lossy(&self.json)
        )
    }
}

/// What stands before the value of `metadata`.
/// What every object begins with.
pub(crate) const API_VERSION_MEMBER: &[u8] = b"{\"apiVersion\":";

pub(crate) const METADATA_MEMBER: &[u8] = b"\"metadata\":";
