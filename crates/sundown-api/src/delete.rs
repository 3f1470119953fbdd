//! DELETE of one object. What it does to metadata is decided in `deletion`.
//!
//! Reading, marking and removing are one transaction on the state that was looked at, so a
//! finalizer that was acknowledged is never lost to a DELETE.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::json;
use sundown_model::ObjectKey;
use sundown_store::{Stored, Transaction, Write};

use crate::commit::{Answer, Commit, Shown};
use crate::deletion::{self, Grace};
use crate::document::{Document, whole_seconds};
use crate::failure::Failure;
use crate::options::DeleteOptions;
use crate::registry::{DefaultPolicy, Rules, Type};
use crate::route::Target;
use crate::{Cx, Request, Server, Verdict};
use crate::{negotiate, render, strategy};

const JOB_WARNING: &str = "child pods are preserved by default when jobs are deleted; set \
                           propagationPolicy=Background to remove them or set \
                           propagationPolicy=Orphan to suppress this warning";

/// Namespaces that upstream's `NamespaceLifecycle` admission keeps.
const IMMORTAL_NAMESPACES: [&str; 3] = ["default", "kube-system", "kube-public"];

/// What one DELETE does to one object.
pub(crate) struct Removal {
    pub(crate) writes: Vec<Write>,
    /// The object after the request, or as it was last.
    object: Document,
    is_gone: bool,
}

impl Removal {
    /// The object stays, for now; `is_written` if it is not as it was.
    fn stays(ty: &Type, key: &ObjectKey, object: Document, is_written: bool) -> Self {
        let write = || Write::Put {
            key: key.clone(),
            body: object.encode(ty),
        };
        Self {
            writes: is_written.then(write).into_iter().collect(),
            object,
            is_gone: false,
        }
    }
}

/// Decides on a DELETE of one object.
pub(crate) fn delete(
    server: &Server,
    target: &Target,
    request: &Request,
    cx: &Cx<'_>,
) -> Result<Verdict, Failure> {
    let ty = &target.ty;
    let name = target.name.as_deref().unwrap_or("");
    let form = negotiate::form(request)?;
    let options = DeleteOptions::read(request)?;
    let key = target.key(name);
    let stored = server
        .store()
        .get(&key)
        .ok_or_else(|| Failure::not_found(ty, name))?;
    let removal = remove(server, ty, &key, stored, &options, cx.now)?;
    let shown = Shown {
        ty: Arc::clone(ty),
        form,
        warnings: warnings(ty, &options),
    };
    let code = if !removal.is_gone && options.orphan_dependents == Some(false) {
        202
    } else {
        200
    };
    if options.dry_run || removal.writes.is_empty() {
        let body = if removal.is_gone && !ty.returns_object {
            gone_status(ty, name, stored)
        } else {
            render::document(&removal.object, ty, form)
        };
        return Ok(Verdict::Answer(shown.body(code, body)));
    }
    let answer = answer(&removal, stored, shown, code, name);
    let reads = vec![(key, Some(stored.revision()))];
    let transaction = Transaction {
        reads,
        writes: removal.writes,
    };
    Ok(Verdict::Commit(Box::new(Commit::new(transaction, answer))))
}

fn answer(removal: &Removal, stored: &Arc<Stored>, shown: Shown, code: u16, name: &str) -> Answer {
    let last_write = removal.writes.len() - 1;
    if !removal.is_gone {
        return Answer::Written {
            write: last_write,
            code,
            shown,
        };
    }
    if !shown.ty.returns_object {
        let body = gone_status(&shown.ty, name, stored);
        return Answer::Fixed(shown.body(code, body));
    }
    if last_write > 0 {
        // Marked and removed at once: the marked state was the last one.
        return Answer::Marked { write: 0, shown };
    }
    Answer::Removed {
        write: 0,
        last: Arc::clone(stored),
        shown,
    }
}

/// Decides what a DELETE does to one object.
///
/// Errors: a precondition does not hold, or the object may not be deleted.
pub(crate) fn remove(
    server: &Server,
    ty: &Type,
    key: &ObjectKey,
    stored: &Stored,
    options: &DeleteOptions,
    now: Timestamp,
) -> Result<Removal, Failure> {
    check_preconditions(ty, &key.name, stored, options)?;
    let old = Document::of(stored);
    let mut object = old.clone();
    if ty.rules == Rules::Namespace && strategy::has_spec_finalizers(&object) {
        return namespace(server, ty, key, object, options, now);
    }
    if ty.rules == Rules::Definition && !object.is_deleting() {
        strategy::terminate_definition(&mut object, now);
        return Ok(Removal::stays(ty, key, object, true));
    }
    let grace = deletion::grace(ty, &object, options, now);
    if grace == Grace::Pending {
        return Ok(Removal::stays(ty, key, object, false));
    }
    if server.config().garbage_collector
        && let Some(new) =
            deletion::gc_finalizers(ty.default_policy, &object.metadata.finalizers, options)
    {
        object.metadata.finalizers = new;
    }
    let is_held = !object.metadata.finalizers.is_empty();
    let put = |object: &Document| Write::Put {
        key: key.clone(),
        body: object.encode(ty),
    };
    let gone = Write::Delete { key: key.clone() };
    if let Grace::Marked { at, seconds } = grace {
        deletion::mark_graceful(&mut object, at, seconds);
        let stays = is_held || seconds > 0;
        let writes = if stays {
            vec![put(&object)]
        } else {
            vec![put(&object), gone]
        };
        return Ok(Removal {
            writes,
            object,
            is_gone: !stays,
        });
    }
    if !is_held {
        return Ok(Removal {
            writes: vec![gone],
            object: old,
            is_gone: true,
        });
    }
    deletion::mark(&mut object, now);
    let is_same = object.metadata.finalizers == old.metadata.finalizers
        && object.metadata.deletion_timestamp == old.metadata.deletion_timestamp
        && object.metadata.deletion_grace_period_seconds
            == old.metadata.deletion_grace_period_seconds;
    Ok(Removal::stays(ty, key, object, !is_same))
}

/// The first DELETE of a namespace marks it; later ones wait until its content is gone.
fn namespace(
    server: &Server,
    ty: &Type,
    key: &ObjectKey,
    mut object: Document,
    options: &DeleteOptions,
    now: Timestamp,
) -> Result<Removal, Failure> {
    if IMMORTAL_NAMESPACES.contains(&&*key.name) {
        return Err(Failure::forbidden(
            ty,
            &key.name,
            "this namespace may not be deleted",
            None,
        ));
    }
    if object.is_deleting() {
        return Ok(Removal::stays(ty, key, object, false));
    }
    object.metadata.deletion_timestamp = Some(whole_seconds(now));
    if server.config().garbage_collector
        && let Some(new) = deletion::namespace_finalizers(&object.metadata.finalizers, options)
    {
        object.metadata.finalizers = new;
    }
    object
        .section("status")
        .insert("phase".into(), json!("Terminating"));
    Ok(Removal::stays(ty, key, object, true))
}

fn check_preconditions(
    ty: &Type,
    name: &str,
    stored: &Stored,
    options: &DeleteOptions,
) -> Result<(), Failure> {
    let (uid, revision) = (stored.uid().as_str(), stored.revision().to_string());
    if ty.rules == Rules::Namespace {
        return check_namespace_preconditions(ty, name, [uid, &revision], options);
    }
    if let Some(asked) = options.uid.as_deref().filter(|asked| *asked != uid) {
        let why = format!(
            "the UID in the precondition ({asked}) does not match the UID in record ({uid}). The \
             object might have been deleted and then recreated"
        );
        return Err(Failure::precondition(ty, name, &why));
    }
    if let Some(asked) = options
        .resource_version
        .as_deref()
        .filter(|asked| *asked != revision)
    {
        let why = format!(
            "the ResourceVersion in the precondition ({asked}) does not match the ResourceVersion \
             in record ({revision}). The object might have been modified"
        );
        return Err(Failure::precondition(ty, name, &why));
    }
    Ok(())
}

/// Namespaces have a storage of their own upstream, and so other words.
fn check_namespace_preconditions(
    ty: &Type,
    name: &str,
    [uid, revision]: [&str; 2],
    options: &DeleteOptions,
) -> Result<(), Failure> {
    for (what, asked, own) in [
        ("UID", &options.uid, uid),
        ("ResourceVersion", &options.resource_version, revision),
    ] {
        if let Some(asked) = asked.as_deref().filter(|asked| *asked != own) {
            let why = format!(
                "Precondition failed: {what} in precondition: {asked}, {what} in object meta: {own}"
            );
            return Err(Failure::conflict(ty, name, &why));
        }
    }
    Ok(())
}

/// The warnings that a DELETE with these options gets.
pub(crate) fn warnings(ty: &Type, options: &DeleteOptions) -> Vec<String> {
    let is_silent = options.policy.is_some() || options.orphan_dependents.is_some();
    let is_surprising = ty.default_policy == DefaultPolicy::Orphan && !is_silent;
    is_surprising
        .then(|| JOB_WARNING.to_owned())
        .into_iter()
        .collect()
}

fn gone_status(ty: &Type, name: &str, stored: &Stored) -> Vec<u8> {
    let mut details = json!({
        "name": name, "kind": ty.resource.plural(), "uid": stored.uid().as_str(),
    });
    if !ty.resource.group().is_empty() {
        details["group"] = ty.resource.group().into();
    }
    json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success",
        "details": details,
    })
    .to_string()
    .into_bytes()
}
