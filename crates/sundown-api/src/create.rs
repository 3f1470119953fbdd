//! POST: one new object, in a namespace that is there and not going away.

use std::sync::Arc;

use serde_json::Value;
use sundown_model::{ObjectKey, Resource};
use sundown_store::{Revision, Transaction, Write};

use crate::commit::{Answer, Commit, Shown};
use crate::document::{Document, whole_seconds};
use crate::failure::{Cause, Failure};
use crate::registry::Type;
use crate::route::{Part, Target};
use crate::{Cx, Request, Server, Verdict};
use crate::{authorize, builtin, custom, decode, negotiate, options, render, strategy, validate};

/// What generated names end in: no vowels, so that no words come out.
const SUFFIX_LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
const SUFFIX_LENGTH: usize = 5;
const GENERATED_BASE_MAX: usize = 58;
/// As often as upstream tries another name before it gives the problem to the client.
const NAME_TRIES_MAX: usize = 8;

/// Decides on a POST to a collection.
pub(crate) fn create(
    server: &Server,
    target: &Target,
    request: &Request,
    cx: &mut Cx<'_>,
) -> Result<Verdict, Failure> {
    let ty = &target.ty;
    if ty.namespaced && target.namespace.is_none() {
        return Err(Failure::no_such_method());
    }
    let form = negotiate::form(request)?;
    let dry_run = options::dry_run(request, "CreateOptions")?;
    let sent = decode::body(ty, request)?;
    let mut object = sent.document;
    if !object.metadata.resource_version.is_empty() {
        let message = "resourceVersion should not be set on objects to be created";
        return Err(Failure::unnamed(message));
    }
    place(target, &mut object)?;
    name(server, target, &mut object, cx)?;
    let mut reads = surroundings(server, target, &object)?;
    let mut warnings = sent.warnings;
    warnings.extend(validate::dedup_owner_references(
        &mut object.metadata,
        false,
    ));
    warnings.extend(builtin::create_warning(server, ty));
    complete(&mut object, cx);
    builtin::default(ty, &mut object);
    builtin::admit(server, ty, &mut object)?;
    authorize::check_write(server, &request.user, target, None, &object)?;
    strategy::prepare_create(ty, &mut object);
    builtin::prepare(server, ty, None, &mut object, cx.now);
    let mut errors = validate::metadata(ty, &object.metadata);
    errors.append(strategy::validate(ty, &object));
    errors.append(custom::validate(ty, Part::Main, &object, None));
    let name = object.metadata.name.clone();
    if !errors.is_empty() {
        return Err(Failure::invalid(ty, &name, &errors));
    }
    let key = target.key(&name);
    if let Some(stored) = server.store().get(&key) {
        return Err(Failure::already_exists(
            ty,
            &name,
            Document::is_going(stored),
        ));
    }
    warnings.extend(builtin::name_warning(ty, &object));
    warnings.extend(validate::finalizer_warnings(ty, &object.metadata));
    let shown = Shown {
        ty: Arc::clone(ty),
        form,
        warnings,
    };
    if dry_run {
        return Ok(Verdict::Answer(
            shown.body(201, render::document(&object, ty, form)),
        ));
    }
    reads.push((key.clone(), None));
    custom::keep(ty, &mut object);
    let writes = vec![Write::Put {
        key,
        body: object.encode(ty),
    }];
    let answer = Answer::Written {
        write: 0,
        code: 201,
        shown,
    };
    Ok(Verdict::Commit(Box::new(Commit::new(
        Transaction { reads, writes },
        answer,
    ))))
}

/// An object that comes with the server: as a POST would leave it, without the checks of one.
pub(crate) fn given(server: &Server, ty: &Type, value: Value, cx: &mut Cx<'_>) -> Document {
    let mut object = Document::of_value(value);
    complete(&mut object, cx);
    builtin::default(ty, &mut object);
    strategy::prepare_create(ty, &mut object);
    builtin::prepare(server, ty, None, &mut object, cx.now);
    object
}

fn place(target: &Target, object: &mut Document) -> Result<(), Failure> {
    let Some(namespace) = target.namespace.as_deref() else {
        // Objects of the cluster have none, whatever was sent.
        object.metadata.namespace.clear();
        return Ok(());
    };
    if object.metadata.namespace.is_empty() {
        namespace.clone_into(&mut object.metadata.namespace);
    }
    if object.metadata.namespace == namespace {
        return Ok(());
    }
    let message = "the namespace of the provided object does not match the namespace sent on the \
                   request";
    Err(Failure::bad_request(message))
}

/// What must still hold when the object is written: its namespace and its definition.
fn surroundings(
    server: &Server,
    target: &Target,
    object: &Document,
) -> Result<Vec<(ObjectKey, Option<Revision>)>, Failure> {
    let (ty, name) = (&target.ty, object.metadata.name.as_str());
    let mut reads = Vec::new();
    if let Some(namespace) = target.namespace.as_deref() {
        let key = ObjectKey::cluster(&Resource::new("", "namespaces"), namespace);
        let Some(stored) = server.store().get(&key) else {
            return Err(Failure::namespace_not_found(namespace));
        };
        if Document::is_going(stored) {
            let why = format!(
                "unable to create new content in namespace {namespace} because it is being terminated"
            );
            let cause = Cause {
                reason: "NamespaceTerminating",
                message: format!("namespace {namespace} is being terminated"),
                field: "metadata.namespace".into(),
            };
            return Err(Failure::forbidden(ty, name, &why, Some(cause)));
        }
        reads.push((key, Some(stored.revision())));
    }
    if let Some(key) = &ty.definition
        && let Some(stored) = server.store().get(key)
    {
        if Document::is_going(stored) {
            let why = "create not allowed while custom resource definition is terminating";
            return Err(Failure::forbidden(ty, name, why, None));
        }
        reads.push((key.clone(), Some(stored.revision())));
    }
    Ok(reads)
}

fn name(
    server: &Server,
    target: &Target,
    object: &mut Document,
    cx: &mut Cx<'_>,
) -> Result<(), Failure> {
    if !object.metadata.name.is_empty() || object.metadata.generate_name.is_empty() {
        return Ok(());
    }
    let base: String = object
        .metadata
        .generate_name
        .chars()
        .take(GENERATED_BASE_MAX)
        .collect();
    let mut name = String::new();
    for _ in 0..NAME_TRIES_MAX {
        name = format!("{base}{}", suffix((cx.entropy)()));
        if server.store().get(&target.key(&name)).is_none() {
            object.metadata.name = name;
            return Ok(());
        }
    }
    Err(Failure::names_exhausted(&target.ty, &name))
}

fn suffix(mut entropy: u128) -> String {
    let letters = SUFFIX_LETTERS.len() as u128;
    let mut letter = || {
        let index = usize::try_from(entropy % letters).expect("smaller than the alphabet");
        entropy /= letters;
        char::from(SUFFIX_LETTERS[index])
    };
    (0..SUFFIX_LENGTH).map(|_| letter()).collect()
}

/// Sets what only the server sets; what the client sent for it is wiped.
pub(crate) fn complete(object: &mut Document, cx: &mut Cx<'_>) {
    let metadata = &mut object.metadata;
    metadata.uid = uid((cx.entropy)());
    metadata.creation_timestamp = Some(whole_seconds(cx.now));
    metadata.deletion_timestamp = None;
    metadata.deletion_grace_period_seconds = None;
}

/// A random (version 4) UUID.
fn uid(entropy: u128) -> String {
    let bits = (entropy & !(0xf << 76) & !(0x3 << 62)) | (0x4 << 76) | (0x2 << 62);
    let hex = format!("{bits:032x}");
    [
        &hex[..8],
        &hex[8..12],
        &hex[12..16],
        &hex[16..20],
        &hex[20..],
    ]
    .join("-")
}
