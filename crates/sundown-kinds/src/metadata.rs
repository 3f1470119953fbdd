//! The metadata of a `RayJob` or `RayCluster` that what is made of it depends on.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::reader::{Malformed, Reader};

/// Identity, labels and annotations of an object.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Metadata {
    pub namespace: String,
    pub name: String,
    pub uid: String,
    pub generation: i64,
    pub labels: BTreeMap<String, String>,
    pub annotations: BTreeMap<String, String>,
}

impl Metadata {
    pub(crate) fn read(at: &Reader<'_>) -> Result<Self, Malformed> {
        Ok(Self {
            namespace: at.text("namespace")?,
            name: at.text("name")?,
            uid: at.text("uid")?,
            generation: at.int64("generation")?.unwrap_or(0),
            labels: at.texts("labels")?,
            annotations: at.texts("annotations")?,
        })
    }

    /// The annotation; empty when missing.
    pub fn annotation(&self, name: &str) -> &str {
        self.annotations.get(name).map_or("", String::as_str)
    }

    /// Whether the annotation says `true`, in any case.
    pub fn is_annotated(&self, name: &str) -> bool {
        self.annotation(name).eq_ignore_ascii_case("true")
    }

    /// A reference to this object as the controller of what is made of it.
    pub(crate) fn controller_reference(&self, kind: &str) -> Value {
        json!([{
            "apiVersion": "ray.io/v1",
            "kind": kind,
            "name": self.name,
            "uid": self.uid,
            "controller": true,
            "blockOwnerDeletion": true,
        }])
    }
}
