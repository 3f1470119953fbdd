//! DELETE of a collection: what `delete` does to one object, for all that are listed.

use std::sync::Arc;

use sundown_store::{Stored, Transaction};

use crate::commit::{Answer, Commit, Shown};
use crate::delete::{remove, warnings};
use crate::failure::Failure;
use crate::list::ListOptions;
use crate::options::DeleteOptions;
use crate::render::ListMeta;
use crate::route::Target;
use crate::{Cx, Request, Server, Verdict};
use crate::{negotiate, render};

/// Decides on a DELETE of a collection: all of it in one transaction, which upstream cannot.
pub(crate) fn delete_collection(
    server: &Server,
    target: &Target,
    request: &Request,
    cx: &Cx<'_>,
) -> Result<Verdict, Failure> {
    let ty = &target.ty;
    if !ty.has_delete_collection || (ty.namespaced && target.namespace.is_none()) {
        return Err(Failure::no_such_method());
    }
    let form = negotiate::form(request)?;
    let mut options = DeleteOptions::read(request)?;
    if request.body.is_empty() {
        // In the query of a collection it is the one of the list.
        options.resource_version = None;
    }
    let page = ListOptions::read(request, ty)?.page(server, target)?;
    let mut transaction = Transaction::default();
    for (key, stored) in &page.items {
        let removal = remove(server, ty, key, stored, &options, cx.now)?;
        if !removal.writes.is_empty() {
            transaction
                .reads
                .push((key.clone(), Some(stored.revision())));
            transaction.writes.extend(removal.writes);
        }
    }
    let items: Vec<Arc<Stored>> = page
        .items
        .iter()
        .map(|(_, stored)| Arc::clone(stored))
        .collect();
    let meta = ListMeta {
        revision: server.revision(),
        ..page.meta
    };
    let shown = Shown {
        ty: Arc::clone(ty),
        form,
        warnings: warnings(ty, &options),
    };
    let response = shown.body(200, render::list(&items, ty, form, &meta));
    if options.dry_run || transaction.writes.is_empty() {
        return Ok(Verdict::Answer(response));
    }
    let answer = Answer::Fixed(response);
    Ok(Verdict::Commit(Box::new(Commit::new(transaction, answer))))
}
