//! Custom resources by their schemas: what is pruned, filled in, reported and refused.
//!
//! What a schema means is the business of `sundown-schema`; which names a definition gets is decided
//! in `names`.

mod embedded;
mod lazy;
pub(crate) mod names;
pub(crate) mod published;
mod replicas;
mod short;

use serde_json::{Value, json};
use sundown_schema::{FINDINGS_MAX, Problem, Problems, duplicate_fields};
use sundown_store::Stored;

use crate::Request;
use crate::document::Document;
use crate::failure::Failure;
use crate::field::{Errors, FieldError};
use crate::registry::Type;
use crate::route::Part;

pub(crate) use lazy::LazySchema;
pub(crate) use short::Short;

/// What `ObjectMeta` has; anything else in metadata is unknown.
const METADATA: &[&str] = &[
    "annotations",
    "creationTimestamp",
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "finalizers",
    "generateName",
    "generation",
    "labels",
    "managedFields",
    "name",
    "namespace",
    "ownerReferences",
    "resourceVersion",
    "selfLink",
    "uid",
];

/// Reads a custom resource from a request body; warnings beside it.
pub(crate) fn body(ty: &Type, request: &Request) -> Result<(Document, Vec<String>), Failure> {
    let Ok(value) = serde_json::from_slice(&request.body) else {
        // What does not parse is told in the words of the plain reader.
        return Document::parse(ty, &request.body).map(|object| (object, Vec::new()));
    };
    let twice = duplicate_fields(&request.body);
    let twice = twice.iter().map(|path| format!("duplicate field {path:?}"));
    read(ty, value, twice.collect(), request)
}

/// Reads what a patch made of a custom resource.
pub(crate) fn patched(
    ty: &Type,
    value: Value,
    request: &Request,
) -> Result<(Document, Vec<String>), Failure> {
    read(ty, value, Vec::new(), request)
}

fn read(
    ty: &Type,
    mut value: Value,
    mut found: Vec<String>,
    request: &Request,
) -> Result<(Document, Vec<String>), Failure> {
    let Some(schema) = ty.schema.as_ref().and_then(LazySchema::get) else {
        return Document::decode(ty, value).map(|object| (object, found));
    };
    if let Value::Object(map) = &value {
        if let Some(failure) = other_kind(ty, &value) {
            return Err(failure);
        }
        Document::check_type(ty, map)?;
    }
    let metadata = value.get("metadata").and_then(Value::as_object);
    let unknown = metadata.into_iter().flat_map(|map| map.keys());
    let unknown = unknown.filter(|name| !METADATA.contains(&name.as_str()));
    let mut unknown: Vec<String> = unknown.map(|name| format!("metadata.{name}")).collect();
    unknown.extend(schema.prune(&mut value));
    let coerced = embedded::coerce(schema, &mut value).map_err(|error| {
        let kind = &ty.kind;
        Failure::bad_request(format!(
            "{kind} in version \"{}\" cannot be handled as a {kind}: {error}",
            ty.version
        ))
    });
    unknown.extend(coerced?);
    unknown.sort();
    found.extend(unknown.iter().map(|path| format!("unknown field {path:?}")));
    found.truncate(FINDINGS_MAX);
    schema.default(&mut value);
    let object = Document::decode(ty, value)?;
    match request.param("fieldValidation") {
        Some("Ignore") => Ok((object, Vec::new())),
        Some("Strict") if !found.is_empty() => Err(Failure::bad_request(format!(
            "{0} in version \"{1}\" cannot be handled as a {0}: strict decoding error: {2}",
            ty.kind,
            ty.version,
            found.join(", ")
        ))),
        _ => Ok((object, found)),
    }
}

/// Upstream reads an object of another kind as it is, and finds out when it validates it.
fn other_kind(ty: &Type, value: &Value) -> Option<Failure> {
    let kind = value["kind"].as_str().filter(|kind| !kind.is_empty())?;
    if kind == &*ty.kind || value["apiVersion"] != ty.api_version() {
        return None;
    }
    let schema = ty.schema.as_ref().and_then(LazySchema::get)?;
    let mut errors = Errors::from([FieldError::invalid(
        "kind",
        kind,
        &format!("must be {}", ty.kind),
    )]);
    let content = schema.content(value, None, &Problems::default());
    errors.append(content.map(told));
    let name = value["metadata"]["name"].as_str().unwrap_or("");
    let group = ty.resource.group();
    Some(Failure::invalid_as(kind, group, name, &errors))
}

/// A stored object as it is read: with the defaults and without the fields that its schema, which
/// may be younger, has or lacks.
pub(crate) fn stored(ty: &Type, stored: &Stored) -> Document {
    let Some(schema) = ty.schema.as_ref().filter(|it| it.changes(stored)) else {
        return Document::of(stored);
    };
    let mut value = serde_json::from_slice(stored.json()).expect("stored bytes are our own JSON");
    schema.read(&mut value);
    Document::of_value(value)
}

/// The same as bytes; None if they are the stored ones.
pub(crate) fn shown(ty: &Type, stored: &Stored) -> Option<Vec<u8>> {
    ty.schema.as_ref().filter(|it| it.changes(stored))?;
    Some(
        self::stored(ty, stored)
            .to_value(ty)
            .to_string()
            .into_bytes(),
    )
}

/// What is kept of an object that was written in this version: what the storage version knows.
pub(crate) fn keep(ty: &Type, object: &mut Document) {
    let (Some(schema), Some(version)) = (&ty.schema, &ty.storage_version) else {
        return;
    };
    let Some(storage) = schema.of(version) else {
        return;
    };
    let mut value = json!(std::mem::take(&mut object.rest));
    storage.prune(&mut value);
    storage.default(&mut value);
    if let Value::Object(rest) = value {
        object.rest = rest;
    }
}

/// What the schema of a custom resource refuses.
pub(crate) fn validate(ty: &Type, part: Part, new: &Document, old: Option<&Document>) -> Errors {
    let Some(schema) = ty.schema.as_ref().and_then(LazySchema::get) else {
        return Errors::default();
    };
    let new = new.to_value(ty);
    let old = old.map(|old| old.to_value(ty));
    let mut problems = if part == Part::Status {
        schema.structure_of_status(&new, old.as_ref())
    } else {
        schema.structure(&new, old.as_ref())
    };
    if let Some(paths) = &ty.scale {
        problems.extend(replicas::problems(paths, &new, part));
    }
    let content = schema.content(&new, old.as_ref(), &problems);
    problems.append(content);
    let mut errors = problems.map(told);
    errors.append(embedded::errors(schema, ty, new));
    errors
}

/// A problem of a schema as the server tells it.
pub(crate) fn told(problem: Problem) -> FieldError {
    FieldError::raw(problem.reason, problem.field, problem.text)
}
