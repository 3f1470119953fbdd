//! PATCH: a merge patch or a JSON patch on the stored state.
//!
//! Patches are data: when the commit is stale, the same request is handled again on the newer
//! snapshot, so that a patch without resourceVersion never conflicts. Apply patches are refused by
//! name, and strategic ones on custom resources.

mod json;
mod strategic;

use serde_json::Value;

use crate::document::Document;
use crate::failure::Failure;
use crate::negotiate;
use crate::route::Target;
use crate::update::Update;
use crate::{Cx, Request, Server, Verdict};

const MERGE: &str = "application/merge-patch+json";
const JSON_PATCH: &str = "application/json-patch+json";
const STRATEGIC: &str = "application/strategic-merge-patch+json";

/// Decides on a PATCH of an object or a part of one.
pub(crate) fn patch(
    server: &Server,
    target: &Target,
    request: &Request,
    cx: &Cx<'_>,
) -> Result<Verdict, Failure> {
    let ty = &target.ty;
    let media = request
        .content_type
        .as_ref()
        .map_or("", |_| negotiate::media_type(request));
    let apply = match media {
        MERGE => merge as fn(&mut Value, &[u8]) -> Result<(), Failure>,
        JSON_PATCH => json::apply,
        STRATEGIC if !ty.is_custom() => strategic::apply,
        _ if ty.is_custom() => return Err(Failure::unsupported_media(&[JSON_PATCH, MERGE])),
        _ => return Err(Failure::unsupported_media(&[JSON_PATCH, MERGE, STRATEGIC])),
    };
    let update = Update::begin(server, target, request, "PatchOptions")?;
    let mut value = update.old.to_value(ty);
    apply(&mut value, &request.body)?;
    let new = Document::decode(ty, value)?;
    let (sent, old) = (&new.metadata.resource_version, &update.old.metadata);
    // Taken away or emptied by the patch, it asks for nothing.
    if !sent.is_empty() && *sent != old.resource_version {
        return Err(Failure::modified(ty, &old.name));
    }
    update.finish(new, cx)
}

fn merge(value: &mut Value, body: &[u8]) -> Result<(), Failure> {
    let patch: Value = serde_json::from_slice(body)
        .map_err(|error| Failure::bad_request(format!("error decoding patch: {error}")))?;
    if !patch.is_object() {
        return Err(Failure::bad_request("Invalid JSON Patch"));
    }
    json_patch::merge(value, &patch);
    Ok(())
}
