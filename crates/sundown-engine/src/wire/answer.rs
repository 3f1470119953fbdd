//! What the bytes of an answer say. The one rule to remember: a 404 proves absence only when a
//! Status names the very object; everything else is no answer.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::Value;
use sundown_model::{
    Answer, Form, Object, Outcome, Part, Refusal, RefusalReason, Resource, ResourceType, Rv, Write,
};

use crate::effect::{Effect, EffectId, Failure, Input, Page, WatchEvent};
use crate::exit;
use crate::wire::kept::Keep;
use crate::wire::values::without_values;

/// What came back for a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    Answered {
        code: u16,
        body: Vec<u8>,
    },
    /// It certainly never reached the server.
    NotSent(String),
    /// It was sent; what became of it is not known.
    Lost(String),
}

/// The parts of a `Status` that matter here.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Status {
    reason: String,
    message: String,
    details: Option<Details>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Details {
    name: String,
    retry_after_seconds: Option<u32>,
}

/// Turns the reply to an effect's request into the input that the engine expects.
///
/// Assumes: the effect is a list, a read or a write; others are not one request.
pub fn answered(effect: &Effect, reply: Reply) -> Option<Input> {
    match effect {
        Effect::List { id, ty, form, .. } => Some(Input::Listed {
            id: *id,
            result: page(&ty.resource, form, reply),
        }),
        Effect::Get { id, ty, form, key } => Some(Input::Got {
            id: *id,
            result: found(ty, form, &key.name, reply),
        }),
        Effect::Write {
            id,
            ty,
            form,
            write,
            ..
        } => Some(Input::Wrote {
            id: *id,
            outcome: outcome(ty, form, write, reply),
        }),
        // A watch that did not open is a watch that closed.
        Effect::Watch { id, .. } => {
            let expired = matches!(reply, Reply::Answered { code: 410, .. });
            Some(Input::Watched {
                id: *id,
                event: WatchEvent::Closed { expired },
            })
        }
        Effect::Discover { .. }
        | Effect::Unwatch { .. }
        | Effect::Barrier { .. }
        | Effect::Ask { .. }
        | Effect::Do { .. } => None,
    }
}

/// Turns one line of a watch into the input that the engine expects.
pub fn line(id: EffectId, ty: &ResourceType, form: &Form, line: &[u8]) -> Input {
    let closed = |expired| WatchEvent::Closed { expired };
    let read = Keep::line(form).read(line).unwrap_or_default();
    let object = read.get("object");
    let event = match (read.get("type").and_then(Value::as_str), object) {
        (Some("ADDED" | "MODIFIED"), Some(object)) => Object::read(&ty.resource, object, form)
            .map_or(closed(true), |object| WatchEvent::Put(Arc::new(object))),
        (Some("DELETED"), Some(object)) => Object::read(&ty.resource, object, form)
            .map_or(closed(true), |object| WatchEvent::Deleted(Arc::new(object))),
        (Some("BOOKMARK"), Some(object)) => {
            rv_of(object).map_or(closed(true), WatchEvent::Bookmark)
        }
        // ERROR: 410 wants a new list; anything else is an end, and the watch begins again.
        (Some(_), Some(object)) => closed(object.get("code").and_then(Value::as_u64) == Some(410)),
        (None, _) | (_, None) => closed(false),
    };
    Input::Watched { id, event }
}

/// The revision of a list answer.
pub(super) fn rv_of(json: &Value) -> Option<Rv> {
    json.pointer("/metadata/resourceVersion")
        .and_then(Value::as_str)
        .and_then(Rv::parse)
}

/// The revision that a list limited to one item was answered at.
pub fn position_rv(reply: Reply) -> Result<Rv, Failure> {
    let json = success(reply, &Keep::position())?;
    rv_of(&json).ok_or_else(|| failure("a list without resourceVersion"))
}

fn page(resource: &Resource, form: &Form, reply: Reply) -> Result<Page, Failure> {
    let json = success(reply, &Keep::list(form))?;
    let rv = rv_of(&json).ok_or_else(|| failure("a list without resourceVersion"))?;
    let items = json.get("items").and_then(Value::as_array);
    let objects = items
        .into_iter()
        .flatten()
        .map(|item| Object::read(resource, item, form));
    let objects: Result<Vec<_>, _> = objects.map(|object| object.map(Arc::new)).collect();
    let objects = objects.map_err(|error| failure(&error.to_string()))?;
    let next = json.pointer("/metadata/continue").and_then(Value::as_str);
    let next = next.filter(|next| !next.is_empty()).map(ToOwned::to_owned);
    Ok(Page { objects, rv, next })
}

fn found(
    ty: &ResourceType,
    form: &Form,
    name: &str,
    reply: Reply,
) -> Result<Option<Arc<Object>>, Failure> {
    if let Reply::Answered { code: 404, body } = &reply
        && names(&status(body), name)
    {
        return Ok(None);
    }
    let json = success(reply, &Keep::object(form))?;
    let object = Object::read(&ty.resource, &json, form);
    object
        .map(|object| Some(Arc::new(object)))
        .map_err(|error| failure(&error.to_string()))
}

fn outcome(ty: &ResourceType, form: &Form, write: &Write, reply: Reply) -> Outcome {
    let (code, body) = match reply {
        Reply::Answered { code, body } => (code, body),
        Reply::NotSent(message) => return refused(RefusalReason::Busy, &message, None),
        Reply::Lost(_) => return Outcome::Unknown,
    };
    if (200..300).contains(&code) {
        return done(ty, form, write, &body);
    }
    let status = status(&body);
    let retry_after = status
        .details
        .as_ref()
        .and_then(|details| details.retry_after_seconds);
    let reason = match code {
        404 if names(&status, &exit::target(write).0.name) => RefusalReason::NotFound,
        409 if status.reason == "AlreadyExists" => RefusalReason::AlreadyExists,
        409 => RefusalReason::Conflict,
        401 | 403 => RefusalReason::Forbidden,
        404 | 429 | 503 => RefusalReason::Busy,
        400..500 => RefusalReason::Invalid,
        // 500 and 504 may come after the write was applied.
        _ => return Outcome::Unknown,
    };
    refused(reason, &status.message, retry_after)
}

fn done(ty: &ResourceType, form: &Form, write: &Write, body: &[u8]) -> Outcome {
    let Ok(json) = Keep::object(form).read(body) else {
        return Outcome::Unknown;
    };
    if let Write::Patch {
        part: Part::Binding,
        ..
    } = write
    {
        return Outcome::Done(Answer::Accepted);
    }
    if json.get("kind").and_then(Value::as_str) == Some("Status") {
        return Outcome::Done(Answer::Gone);
    }
    let Ok(object) = Object::read(&ty.resource, &json, form) else {
        return Outcome::Unknown;
    };
    let answer = if is_removed(ty, write, &object) {
        Answer::Gone
    } else {
        Answer::Object(Arc::new(object))
    };
    Outcome::Done(answer)
}

/// A write may answer with an object that it has just removed: some kinds do so on DELETE, all do
/// when the last finalizer is taken from a terminating object.
fn is_removed(ty: &ResourceType, write: &Write, object: &Object) -> bool {
    // A namespace has finalizers of its own in spec, so its metadata tells nothing.
    if ty.resource == Resource::new("", "namespaces") {
        return false;
    }
    match object.deletion() {
        Some(deletion) => object.finalizers().is_empty() && deletion.grace_seconds == 0,
        None => matches!(write, Write::Delete { .. } | Write::Finish { .. }),
    }
}

fn success(reply: Reply, keep: &Keep<'_>) -> Result<Value, Failure> {
    match reply {
        Reply::Answered { code: 200, body } => {
            let read = keep.read(&body);
            read.map_err(|error| failure(&error.to_string()))
        }
        Reply::Answered { code, body } => {
            let message = format!("{code}: {}", status(&body).message);
            Err(Failure {
                message,
                expired: code == 410,
            })
        }
        Reply::NotSent(message) | Reply::Lost(message) => Err(failure(&message)),
    }
}

fn status(body: &[u8]) -> Status {
    serde_json::from_slice(body).unwrap_or_default()
}

fn names(status: &Status, name: &str) -> bool {
    status.reason == "NotFound"
        && status
            .details
            .as_ref()
            .is_some_and(|details| details.name == name)
}

fn refused(reason: RefusalReason, message: &str, retry_after_seconds: Option<u32>) -> Outcome {
    Outcome::Refused(Refusal {
        reason,
        message: without_values(message),
        retry_after_seconds,
    })
}

fn failure(message: &str) -> Failure {
    Failure {
        message: message.to_owned(),
        expired: false,
    }
}
