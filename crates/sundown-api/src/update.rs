//! PUT, and what PUT and PATCH share: the step from the stored state to the next one.
//!
//! The order of the steps is upstream's `rest.BeforeUpdate`. An update that takes away the last
//! finalizer of a terminating object is a delete.

use std::sync::Arc;

use sundown_store::{Stored, Transaction, Write};

use crate::commit::{Answer, Commit, Shown};
use crate::document::Document;
use crate::failure::Failure;
use crate::field::{Errors, FieldError};
use crate::route::{Part, Target};
use crate::{Cx, Request, Server, User, Verdict};
use crate::{authorize, builtin, custom, decode, negotiate, options, render, strategy, validate};

/// An update on its way: where it goes and how it is answered.
pub(crate) struct Update<'a> {
    pub(crate) server: &'a Server,
    pub(crate) target: &'a Target,
    pub(crate) stored: &'a Arc<Stored>,
    pub(crate) old: Document,
    pub(crate) shown: Shown,
    pub(crate) dry_run: bool,
    user: &'a User,
    /// Upstream finds some things later in a patch, and says so.
    is_patch: bool,
}

impl<'a> Update<'a> {
    /// Finds the object that a PUT or PATCH is about.
    pub(crate) fn begin(
        server: &'a Server,
        target: &'a Target,
        request: &'a Request,
        options_kind: &str,
    ) -> Result<Self, Failure> {
        let name = target.name.as_deref().unwrap_or("");
        let shown = Shown {
            ty: Arc::clone(&target.ty),
            form: negotiate::form(request)?,
            warnings: Vec::new(),
        };
        let dry_run = options::dry_run(request, options_kind)?;
        let stored = server.store().get(&target.key(name));
        let stored = stored.ok_or_else(|| Failure::not_found(&target.ty, name))?;
        let old = custom::stored(&target.ty, stored);
        Ok(Self {
            server,
            target,
            stored,
            old,
            shown,
            dry_run,
            user: &request.user,
            is_patch: options_kind == "PatchOptions",
        })
    }

    /// Decides on the new state of the object.
    pub(crate) fn finish(mut self, mut new: Document, cx: &Cx<'_>) -> Result<Verdict, Failure> {
        let (ty, name) = (Arc::clone(&self.target.ty), self.old.metadata.name.clone());
        self.shown.warnings.extend(validate::dedup_owner_references(
            &mut new.metadata,
            self.is_patch,
        ));
        restore(&self.old, &mut new);
        builtin::admit_update(&ty, self.target.part, &self.old, &mut new);
        strategy::prepare_update(&ty, self.target.part, &self.old, &mut new);
        authorize::check_write(self.server, self.user, self.target, Some(&self.old), &new)?;
        if builtin::is_whole(self.target.part) {
            builtin::prepare(self.server, &ty, Some(&self.old), &mut new, cx.now);
        }
        let errors = self.errors(&new);
        if !errors.is_empty() {
            return Err(Failure::invalid(&ty, &name, &errors));
        }
        self.shown
            .warnings
            .extend(validate::finalizer_warnings(&ty, &new.metadata));
        new.metadata
            .resource_version
            .clone_from(&self.old.metadata.resource_version);
        let is_last_step = is_released(&self.old, &new) && strategy::may_go(&ty, &new);
        let key = self.target.key(&name);
        let shown = self.shown;
        if self.dry_run || (new == self.old && !is_last_step) {
            return Ok(Verdict::Answer(
                shown.body(200, render::document(&new, &ty, shown.form)),
            ));
        }
        let reads = vec![(key.clone(), Some(self.stored.revision()))];
        custom::keep(&ty, &mut new);
        let (write, answer) = if is_last_step {
            // Watchers see the stored state go, with its last finalizer; the client what it sent.
            let body = shown.body(200, render::document(&new, &ty, shown.form));
            (Write::Delete { key }, Answer::Fixed(body))
        } else {
            let answer = Answer::Written {
                write: 0,
                code: 200,
                shown,
            };
            (
                Write::Put {
                    key,
                    body: new.encode(&ty),
                },
                answer,
            )
        };
        let transaction = Transaction {
            reads,
            writes: vec![write],
        };
        Ok(Verdict::Commit(Box::new(Commit::new(transaction, answer))))
    }

    /// What the new state may not be, after the old one and at this endpoint.
    fn errors(&self, new: &Document) -> Errors {
        let (ty, part, old) = (&self.target.ty, self.target.part, &self.old);
        let mut errors = validate::update(old, new);
        errors.append(validate::metadata(ty, &new.metadata));
        if builtin::is_whole(part) {
            errors.append(strategy::validate(ty, new));
            errors.append(builtin::immutable(ty, old, new));
            errors.append(strategy::changes(ty, old, new));
        }
        if part == Part::Status {
            errors.append(builtin::validate_status(ty, old, new));
            errors.append(strategy::validate_status(ty, new));
        }
        errors.append(custom::validate(ty, part, new, Some(old)));
        errors
    }
}

/// Decides on a PUT of an object or a part of one.
pub(crate) fn update(
    server: &Server,
    target: &Target,
    request: &Request,
    cx: &Cx<'_>,
) -> Result<Verdict, Failure> {
    let ty = &target.ty;
    let sent = decode::body(ty, request)?;
    let new = sent.document;
    check_place(target, &new)?;
    let mut update = Update::begin(server, target, request, "UpdateOptions")?;
    update.shown.warnings.extend(sent.warnings);
    let (old, sent) = (&update.old.metadata, &new.metadata);
    if sent.resource_version.parse::<u64>().is_err() && !sent.resource_version.is_empty() {
        let text = &sent.resource_version;
        return Err(Failure::unnamed(format!(
            "strconv.ParseUint: parsing {text:?}: invalid syntax"
        )));
    }
    if sent.resource_version.is_empty() || sent.resource_version == "0" {
        if !ty.unconditional_update {
            let why = "must be specified for an update";
            let error = FieldError::invalid("metadata.resourceVersion", 0, why);
            let (group, plural) = (ty.resource.group(), ty.resource.plural());
            return Err(Failure::invalid_as(
                plural,
                group,
                &old.name,
                &Errors::from([error]),
            ));
        }
    } else if sent.resource_version != old.resource_version {
        return Err(Failure::modified(ty, &old.name));
    }
    check_uid(target, &new, &update.old)?;
    update.finish(new, cx)
}

/// Refuses an object that says it has another uid than the stored one.
pub(crate) fn check_uid(target: &Target, new: &Document, old: &Document) -> Result<(), Failure> {
    let (sent, old) = (&new.metadata, &old.metadata);
    if !sent.uid.is_empty() && sent.uid != old.uid {
        let why = format!(
            "StorageError: invalid object, Code: 4, Key: {}, ResourceVersion: 0, \
             AdditionalErrorMsg: Precondition failed: UID in precondition: {}, UID in object meta: {}",
            storage_key(target, &old.name),
            sent.uid,
            old.uid
        );
        return Err(Failure::conflict(&target.ty, &old.name, &why));
    }
    Ok(())
}

/// Where upstream keeps an object in etcd; it says so in one message.
fn storage_key(target: &Target, name: &str) -> String {
    let ty = &target.ty;
    let mut key = String::from("/registry");
    if ty.is_custom() {
        key = format!("{key}/{}", ty.resource.group());
    }
    key = format!("{key}/{}", ty.resource.plural());
    if let Some(namespace) = &target.namespace {
        key = format!("{key}/{namespace}");
    }
    format!("{key}/{name}")
}

/// Refuses an object that says it has another name or namespace than the path.
pub(crate) fn check_place(target: &Target, new: &Document) -> Result<(), Failure> {
    let name = target.name.as_deref().unwrap_or("");
    let sent = new.metadata.name.as_str();
    if sent.is_empty() {
        return Err(Failure::bad_request(format!(
            "the name of the object ({name} based on URL) was undeterminable: name must be provided"
        )));
    }
    if sent != name {
        return Err(Failure::bad_request(format!(
            "the name of the object ({sent}) does not match the name on the URL ({name})"
        )));
    }
    let namespace = target.namespace.as_deref().unwrap_or("");
    let sent = new.metadata.namespace.as_str();
    if !sent.is_empty() && sent != namespace {
        return Err(Failure::bad_request(
            "the namespace of the provided object does not match the namespace sent on the request",
        ));
    }
    Ok(())
}

/// Fields of metadata that updates cannot change get their stored values back.
fn restore(old: &Document, new: &mut Document) {
    let (old, new) = (&old.metadata, &mut new.metadata);
    new.generation = old.generation;
    new.creation_timestamp = old.creation_timestamp;
    if new.uid.is_empty() {
        new.uid.clone_from(&old.uid);
    }
    if new.namespace.is_empty() {
        new.namespace.clone_from(&old.namespace);
    }
    if old.deletion_timestamp.is_some() {
        new.deletion_timestamp = old.deletion_timestamp;
    }
    if new.deletion_grace_period_seconds.is_none() {
        new.deletion_grace_period_seconds = old.deletion_grace_period_seconds;
    }
}

/// Whether nothing in the metadata holds a terminating object any more.
fn is_released(old: &Document, new: &Document) -> bool {
    let grace = old.metadata.deletion_grace_period_seconds.unwrap_or(0);
    old.is_deleting() && grace == 0 && new.metadata.finalizers.is_empty()
}
