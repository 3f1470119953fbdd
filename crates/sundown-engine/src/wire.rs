//! Effects as HTTP requests, and answers as inputs. One place for every shell, so that the
//! simulator speaks the same protocol as production.

mod answer;
mod discovery;
mod kept;
mod values;

use std::fmt::Write as _;

use serde_json::{Value, json};
use sundown_model::path::part;
use sundown_model::{
    Form, Namespace, ObjectKey, Part, Patch, Propagation, ResourceType, Seen, Write,
};

use crate::effect::Effect;

pub use answer::{Reply, answered, line, position_rv};
pub use discovery::{discovered, discovery_calls};

/// How many objects one page of a list holds.
const PAGE: &str = "500";

/// A request to an API server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    pub method: Method,
    /// Percent-encoded: names of roles may hold nearly everything.
    pub path: String,
    pub query: Vec<(&'static str, String)>,
    pub accept: &'static str,
    pub content_type: Option<&'static str>,
    pub body: Vec<u8>,
}

/// The methods that the engine uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    Get,
    Post,
    Patch,
    Delete,
}

const JSON: &str = "application/json";
const MERGE_PATCH: &str = "application/merge-patch+json";
const PARTIAL: &str =
    "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json";
const PARTIAL_LIST: &str =
    "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json";

/// The request of an effect. None for effects that are not one request: discovery and barriers,
/// and the closing of a watch.
pub fn call(effect: &Effect) -> Option<Call> {
    match effect {
        Effect::Discover { .. }
        | Effect::Unwatch { .. }
        | Effect::Barrier { .. }
        | Effect::Ask { .. }
        | Effect::Do { .. } => None,
        Effect::List { ty, form, next, .. } => Some(list(ty, form, next.as_deref())),
        Effect::Watch { ty, form, from, .. } => {
            let mut call = read(collection(ty, None), form, PARTIAL);
            call.query = vec![
                ("watch", "true".to_owned()),
                ("resourceVersion", from.to_string()),
                ("allowWatchBookmarks", "true".to_owned()),
            ];
            Some(call)
        }
        Effect::Get { ty, form, key, .. } => Some(read(object(ty, key), form, PARTIAL)),
        Effect::Write { ty, write, .. } => Some(change(ty, write)),
    }
}

/// The request that finds how far a resource has come, for a server whose commits we cannot see.
pub fn position_call(ty: &ResourceType) -> Call {
    let mut call = read(collection(ty, None), &Form::metadata(), PARTIAL_LIST);
    call.query = vec![("limit", "1".to_owned())];
    call
}

fn list(ty: &ResourceType, form: &Form, next: Option<&str>) -> Call {
    let mut call = read(collection(ty, None), form, PARTIAL_LIST);
    call.query = vec![("limit", PAGE.to_owned())];
    call.query
        .extend(next.map(|next| ("continue", next.to_owned())));
    call
}

fn change(ty: &ResourceType, write: &Write) -> Call {
    match write {
        Write::Create(draft) => Call {
            method: Method::Post,
            path: collection(ty, draft.key.namespace.as_ref()),
            query: Vec::new(),
            accept: JSON,
            content_type: Some(JSON),
            body: draft.body.to_string().into_bytes(),
        },
        Write::Patch {
            at,
            part: Part::Binding,
            patch,
        } => Call {
            method: Method::Post,
            path: object(ty, at.key()) + "/binding",
            query: Vec::new(),
            accept: JSON,
            content_type: Some(JSON),
            body: binding(at, patch).to_string().into_bytes(),
        },
        Write::Patch { at, part, patch } => {
            let mut path = object(ty, at.key());
            path.push_str(match part {
                Part::Main => "",
                Part::Status => "/status",
                Part::Finalize => "/finalize",
                Part::Binding => "/binding",
            });
            Call {
                method: Method::Patch,
                path,
                query: Vec::new(),
                accept: JSON,
                content_type: Some(MERGE_PATCH),
                body: guarded(at, patch).to_string().into_bytes(),
            }
        }
        Write::Delete { at, how } => Call {
            method: Method::Delete,
            path: object(ty, at.key()),
            query: Vec::new(),
            accept: JSON,
            content_type: Some(JSON),
            body: delete_options(at, *how).to_string().into_bytes(),
        },
        Write::Finish { at } => {
            let mut options = delete_options(at, Propagation::Background);
            options["gracePeriodSeconds"] = json!(0);
            Call {
                method: Method::Delete,
                path: object(ty, at.key()),
                query: Vec::new(),
                accept: JSON,
                content_type: Some(JSON),
                body: options.to_string().into_bytes(),
            }
        }
    }
}

/// Puts the uid and the revision that a patch was decided on into it.
fn guarded(at: &Seen, patch: &Patch) -> Value {
    let Patch::Merge(patch) = patch;
    let mut body = patch.clone();
    body["metadata"]["uid"] = json!(at.uid().as_str());
    body["metadata"]["resourceVersion"] = json!(at.rv().to_string());
    body
}

/// A binding is an object of its own that names the pod in its metadata.
fn binding(at: &Seen, patch: &Patch) -> Value {
    let mut body = guarded(at, patch);
    body["apiVersion"] = json!("v1");
    body["kind"] = json!("Binding");
    body["metadata"]["name"] = json!(&*at.key().name);
    body
}

fn delete_options(at: &Seen, how: Propagation) -> Value {
    json!({
        "kind": "DeleteOptions",
        "apiVersion": "v1",
        "preconditions": { "uid": at.uid().as_str(), "resourceVersion": at.rv().to_string() },
        "propagationPolicy": match how {
            Propagation::Background => "Background",
            Propagation::Foreground => "Foreground",
            Propagation::Orphan => "Orphan",
        },
    })
}

fn read(path: String, form: &Form, partial: &'static str) -> Call {
    Call {
        method: Method::Get,
        path,
        query: Vec::new(),
        accept: if form.is_metadata() { partial } else { JSON },
        content_type: None,
        body: Vec::new(),
    }
}

fn collection(ty: &ResourceType, namespace: Option<&Namespace>) -> String {
    let mut path = match ty.resource.group() {
        "" => format!("/api/{}", ty.version),
        group => format!("/apis/{group}/{}", ty.version),
    };
    if let Some(namespace) = namespace {
        let _ = write!(path, "/namespaces/{}", part(namespace.as_str()));
    }
    let _ = write!(path, "/{}", ty.resource.plural());
    path
}

fn object(ty: &ResourceType, key: &ObjectKey) -> String {
    let mut path = collection(ty, key.namespace.as_ref());
    let _ = write!(path, "/{}", part(&key.name));
    path
}
