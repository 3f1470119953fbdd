//! An object as the controllers see it: identity, the metadata that deletion is about, and the
//! fields that some controller asked for. Everything else never enters the engine.

use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Form, ObjectKey, Position, Resource, Rv, Seen, Uid};

/// An object that an API server showed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Object {
    pub(crate) key: ObjectKey,
    pub(crate) uid: Uid,
    pub(crate) rv: Rv,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    deletion: Option<Deletion>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    finalizers: Vec<Arc<str>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    owners: Vec<OwnerRef>,
    #[serde(default, skip_serializing_if = "Value::is_null")]
    fields: Value,
}

/// That an object is terminating, and since when.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Deletion {
    /// metadata.deletionTimestamp; with a grace period, the end of it.
    pub at: Timestamp,
    /// metadata.deletionGracePeriodSeconds.
    pub grace_seconds: i64,
}

/// One entry of metadata.ownerReferences.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OwnerRef {
    pub api_version: Arc<str>,
    pub kind: Arc<str>,
    pub name: Arc<str>,
    pub uid: Uid,
    /// Absent and false stay apart: a patch must give back what it found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub controller: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub block_owner_deletion: Option<bool>,
}

impl OwnerRef {
    /// Whether a foreground deletion of the owner waits for the bearer of this reference.
    pub fn is_blocking(&self) -> bool {
        self.block_owner_deletion == Some(true)
    }
}

/// Why a JSON document is not an object.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{resource}: metadata.{field} is missing or malformed")]
pub struct Malformed {
    pub resource: Resource,
    pub field: &'static str,
}

impl Object {
    /// Reads an object from the JSON of the API, keeping only what `form` asks for.
    ///
    /// Errors: metadata that a server always sets is missing or has another type.
    pub fn read(resource: &Resource, json: &Value, form: &Form) -> Result<Self, Malformed> {
        let malformed = |field| Malformed {
            resource: resource.clone(),
            field,
        };
        let metadata = json.get("metadata").ok_or(malformed("name"))?;
        let text = |field: &'static str| metadata.get(field).and_then(Value::as_str);
        let list = |field: &'static str| metadata.get(field).cloned().unwrap_or(Value::Null);
        let name = text("name").ok_or(malformed("name"))?;
        let rv = text("resourceVersion")
            .and_then(Rv::parse)
            .ok_or(malformed("resourceVersion"))?;
        let deletion = match text("deletionTimestamp") {
            None => None,
            Some(at) => Some(Deletion {
                at: at.parse().map_err(|_| malformed("deletionTimestamp"))?,
                grace_seconds: metadata
                    .get("deletionGracePeriodSeconds")
                    .and_then(Value::as_i64)
                    .unwrap_or(0),
            }),
        };
        let finalizers: Option<Vec<Arc<str>>> =
            serde_json::from_value(list("finalizers")).map_err(|_| malformed("finalizers"))?;
        let owners: Option<Vec<OwnerRef>> = serde_json::from_value(list("ownerReferences"))
            .map_err(|_| malformed("ownerReferences"))?;
        Ok(Self {
            key: ObjectKey {
                resource: resource.clone(),
                namespace: text("namespace")
                    .filter(|text| !text.is_empty())
                    .map(Into::into),
                name: name.into(),
            },
            uid: text("uid").ok_or(malformed("uid"))?.into(),
            rv,
            deletion,
            finalizers: finalizers.unwrap_or_default(),
            owners: owners.unwrap_or_default(),
            fields: form.project(json),
        })
    }

    /// Where it lives.
    pub fn key(&self) -> &ObjectKey {
        &self.key
    }

    /// Which incarnation it is.
    pub fn uid(&self) -> &Uid {
        &self.uid
    }

    /// The revision of this observation.
    pub fn rv(&self) -> Rv {
        self.rv
    }

    /// The revision, with the resource that it belongs to.
    pub fn position(&self) -> Position {
        Position::new(self.key.resource.clone(), self.rv)
    }

    /// The proof of observation that a guarded write needs.
    pub fn seen(&self) -> Seen {
        Seen::of(self)
    }

    /// Set once the object is terminating.
    pub fn deletion(&self) -> Option<Deletion> {
        self.deletion
    }

    /// Whether the object is terminating.
    pub fn is_deleting(&self) -> bool {
        self.deletion.is_some()
    }

    /// metadata.finalizers.
    pub fn finalizers(&self) -> &[Arc<str>] {
        &self.finalizers
    }

    /// Whether a finalizer is set.
    pub fn has_finalizer(&self, name: &str) -> bool {
        self.finalizers.iter().any(|finalizer| &**finalizer == name)
    }

    /// metadata.ownerReferences.
    pub fn owners(&self) -> &[OwnerRef] {
        &self.owners
    }

    /// A field that the watch was asked to keep, by JSON pointer; None when absent or not kept.
    pub fn field(&self, pointer: &str) -> Option<&Value> {
        at(&self.fields, pointer)
    }

    /// The same object with its kept fields passed through `redact`.
    #[must_use]
    pub fn map_fields(mut self, redact: impl FnOnce(&mut Value)) -> Self {
        redact(&mut self.fields);
        self
    }
}
/// As `Value::pointer`, but nothing is allocated on the way: fields are read at every decision.
fn at<'a>(json: &'a Value, pointer: &str) -> Option<&'a Value> {
    if pointer.contains('~') {
        return json.pointer(pointer);
    }
    if pointer.is_empty() {
        return Some(json);
    }
    let mut tokens = pointer.strip_prefix('/')?.split('/');
    tokens.try_fold(json, |json, token| match json {
        Value::Object(map) => map.get(token),
        Value::Array(list) => list.get(token.parse::<usize>().ok()?),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    })
}
