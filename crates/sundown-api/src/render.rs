//! Objects and lists as answers. Stored bytes are spliced, never parsed.

use std::sync::Arc;

use serde_json::Value;
use sundown_store::{Revision, Stored};

use crate::Response;
use crate::custom;
use crate::document::Document;
use crate::registry::Type;

/// The content type of nearly all answers.
pub(crate) const JSON: &str = "application/json";

const PARTIAL: &[u8] =
    b"{\"kind\":\"PartialObjectMetadata\",\"apiVersion\":\"meta.k8s.io/v1\",\"metadata\":";

/// How objects are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    Full,
    /// `PartialObjectMetadata`.
    Metadata,
}

impl Form {
    /// The apiVersion and kind that objects of this form carry.
    pub(crate) fn type_meta(self, ty: &Type) -> (String, Arc<str>) {
        match self {
            Self::Full => (ty.api_version(), Arc::clone(&ty.kind)),
            Self::Metadata => ("meta.k8s.io/v1".into(), "PartialObjectMetadata".into()),
        }
    }
}

/// A 200 answer, or another success, with a JSON body.
pub(crate) fn response(code: u16, body: Vec<u8>) -> Response {
    Response {
        code,
        content_type: JSON,
        warnings: Vec::new(),
        headers: Vec::new(),
        body,
    }
}

/// One object as it is served by a type: of another version than the stored one, perhaps.
pub(crate) fn object(stored: &Stored, ty: &Type, form: Form) -> Vec<u8> {
    match form {
        Form::Metadata => [PARTIAL, stored.metadata_json(), b"}"].concat(),
        Form::Full if ty.view.is_some() => document(&Document::of(stored), ty, form),
        Form::Full => custom::shown(ty, stored)
            .unwrap_or_else(|| [type_prefix(ty).as_bytes(), stored.content_json()].concat()),
    }
}

/// An object that is not stored: the answer of a dry run.
pub(crate) fn document(document: &Document, ty: &Type, form: Form) -> Vec<u8> {
    let mut value = document.to_value(ty);
    if form == Form::Metadata {
        let (api_version, kind) = form.type_meta(ty);
        value = serde_json::json!({
            "kind": &*kind, "apiVersion": api_version, "metadata": value["metadata"],
        });
    }
    value.to_string().into_bytes()
}

/// The metadata of a list.
#[derive(Debug, Clone, Default)]
pub(crate) struct ListMeta {
    pub(crate) revision: Revision,
    pub(crate) continue_token: Option<String>,
    pub(crate) remaining: Option<usize>,
}

/// A list. Items of built-in kinds carry no apiVersion and kind, as upstream has it.
pub(crate) fn list(items: &[Arc<Stored>], ty: &Type, form: Form, meta: &ListMeta) -> Vec<u8> {
    let (api_version, kind) = match form {
        Form::Full => (ty.api_version(), &*ty.list_kind),
        Form::Metadata => ("meta.k8s.io/v1".to_owned(), "PartialObjectMetadataList"),
    };
    let mut metadata = serde_json::json!({ "resourceVersion": meta.revision.to_string() });
    if let Some(token) = &meta.continue_token {
        metadata["continue"] = token.as_str().into();
    } else if form == Form::Full && ty.is_custom() {
        // Upstream has no type for these lists, and so nothing that leaves out an empty text.
        metadata["continue"] = "".into();
    }
    if let Some(remaining) = meta.remaining {
        metadata["remainingItemCount"] = remaining.into();
    }
    let (kind, api_version) = (Value::from(kind), Value::from(api_version));
    let head = format!("{{\"kind\":{kind},\"apiVersion\":{api_version},\"metadata\":{metadata}");
    let mut body = head.into_bytes();
    body.extend_from_slice(b",\"items\":[");
    for (index, stored) in items.iter().enumerate() {
        if index > 0 {
            body.push(b',');
        }
        if form == Form::Full && ty.view.is_some() {
            let mut item = Document::of(stored).to_value(ty);
            if let Some(item) = item.as_object_mut() {
                item.remove("apiVersion");
                item.remove("kind");
            }
            body.extend_from_slice(item.to_string().as_bytes());
        } else if form == Form::Full && !ty.is_custom() {
            body.push(b'{');
            body.extend_from_slice(stored.content_json());
        } else {
            body.extend_from_slice(&object(stored, ty, form));
        }
    }
    body.extend_from_slice(b"]}");
    body
}

fn type_prefix(ty: &Type) -> String {
    let (api_version, kind) = (Value::from(ty.api_version()), Value::from(&*ty.kind));
    format!("{{\"apiVersion\":{api_version},\"kind\":{kind},")
}
