//! PUT, and what PUT and PATCH share: the step from the stored state to the next one.
//!
//! The order of the steps is upstream's `rest.BeforeUpdate`. An update that takes away the last
//! finalizer of a terminating object is a delete.

use std::sync::Arc;

use sundown_store::{Stored, Transaction, Write};

use crate::commit::{Answer, Commit, Shown};
use crate::document::Document;
use crate::failure::Failure;
use crate::field::FieldError;
use crate::route::{Part, Target};
use crate::{Cx, Request, Server, Verdict};
use crate::{negotiate, options, render, strategy, validate};

/// An update on its way: where it goes and how it is answered.
pub(crate) struct Update<'a> {
    pub(crate) target: &'a Target,
    pub(crate) stored: &'a Arc<Stored>,
    pub(crate) old: Document,
    pub(crate) shown: Shown,
    pub(crate) dry_run: bool,
}

impl<'a> Update<'a> {
    /// Finds the object that a PUT or PATCH is about.
    pub(crate) fn begin(
        server: &'a Server,
        target: &'a Target,
        request: &Request,
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
        let old = Document::of(stored);
        Ok(Self {
            target,
            stored,
            old,
            shown,
            dry_run,
        })
    }

    /// Decides on the new state of the object.
    pub(crate) fn finish(mut self, mut new: Document, cx: &Cx<'_>) -> Result<Verdict, Failure> {
        let (ty, name) = (Arc::clone(&self.target.ty), self.old.metadata.name.clone());
        self.shown
            .warnings
            .extend(validate::dedup_owner_references(&mut new.metadata));
        restore(&self.old, &mut new);
        strategy::prepare_update(&ty, self.target.part, &self.old, &mut new, cx.now);
        let mut errors = validate::update(&self.old, &new);
        errors.extend(validate::metadata(&ty, &new.metadata));
        if self.target.part == Part::Main {
            errors.extend(strategy::validate(&ty, &new));
        }
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
        Ok(Verdict::Commit(Box::new(Commit {
            transaction,
            answer,
        })))
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
    negotiate::require_json(request)?;
    let new = Document::parse(ty, &request.body)?;
    check_place(target, &new)?;
    let update = Update::begin(server, target, request, "UpdateOptions")?;
    let (old, sent) = (&update.old.metadata, &new.metadata);
    if sent.resource_version.is_empty() || sent.resource_version == "0" {
        if !ty.unconditional_update {
            let why = "must be specified for an update";
            let error = FieldError::invalid("metadata.resourceVersion", 0, why);
            return Err(Failure::invalid(ty, &old.name, &[error]));
        }
    } else if sent.resource_version != old.resource_version {
        return Err(Failure::modified(ty, &old.name));
    }
    if !sent.uid.is_empty() && sent.uid != old.uid {
        let why = format!(
            "Precondition failed: UID in precondition: {}, UID in object meta: {}",
            sent.uid, old.uid
        );
        return Err(Failure::conflict(ty, &old.name, &why));
    }
    update.finish(new, cx)
}

fn check_place(target: &Target, new: &Document) -> Result<(), Failure> {
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
        return Err(Failure::bad_request(format!(
            "the namespace of the object ({sent}) does not match the namespace on the request \
             ({namespace})"
        )));
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
