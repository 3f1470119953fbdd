//! PATCH: a merge patch or a JSON patch on the stored state.
//!
//! Patches are data: when the commit is stale, the same request is handled again on the newer
//! snapshot, so that a patch without resourceVersion never conflicts. Apply patches are refused by
//! name, and strategic ones on custom resources.

mod json;
mod strategic;

use serde_json::Value;

use crate::facts::Fact;
use crate::failure::Failure;
use crate::field::{Errors, FieldError};
use crate::route::Target;
use crate::update::{Update, check_place};
use crate::{Cx, Request, Server, Verdict};
use crate::{decode, go_json, negotiate};

const MERGE: &str = "application/merge-patch+json";
const JSON_PATCH: &str = "application/json-patch+json";
const APPLY: &str = "application/apply-patch+yaml";
pub(crate) const STRATEGIC: &str = "application/strategic-merge-patch+json";

/// Decides on a PATCH of an object or a part of one.
pub(crate) fn patch(
    server: &Server,
    target: &Target,
    request: &Request,
    cx: &Cx<'_>,
) -> Result<Verdict, Failure> {
    let ty = &target.ty;
    let patch = Patch::read(decode::fact_of(ty), request)?;
    let mut update = Update::begin(server, target, request, "PatchOptions")?;
    let mut value = update.old.to_value(ty);
    patch.apply(&mut value)?;
    let patched = decode::patched(ty, value, request)?;
    update.shown.warnings.extend(patched.warnings);
    let new = patched.document;
    check_place(target, &new)?;
    let (sent, old) = (&new.metadata.resource_version, &update.old.metadata);
    // Taken away or emptied by the patch, it asks for nothing.
    if !sent.is_empty() && *sent != old.resource_version {
        return Err(Failure::modified(ty, &old.name));
    }
    update.finish(new, cx)
}

/// A patch that was read but not applied yet.
#[derive(Debug)]
pub(crate) struct Patch<'a> {
    media: &'a str,
    /// What a strategic patch needs to know of the type.
    fact: Option<&'static Fact>,
    body: &'a [u8],
}

impl<'a> Patch<'a> {
    /// Reads a patch as far as it can be without its object.
    ///
    /// Errors: a media type that we do not take for this type, or no JSON.
    pub(crate) fn read(fact: Option<&'static Fact>, request: &'a Request) -> Result<Self, Failure> {
        let media = request
            .content_type
            .as_ref()
            .map_or("", |_| negotiate::media_type(request));
        let accepted: &[&str] = match fact {
            Some(_) => &[JSON_PATCH, MERGE, STRATEGIC],
            None => &[JSON_PATCH, MERGE],
        };
        if !accepted.contains(&media) {
            return Err(match media {
                // Known, but not for this kind.
                STRATEGIC if fact.is_none() => {
                    Failure::unsupported_media(&[JSON_PATCH, MERGE, APPLY])
                }
                STRATEGIC | APPLY => Failure::unsupported_media(accepted),
                _ => Failure::unknown_media(),
            });
        }
        // Looked at before the object is: a body that is no JSON is refused whatever it is about.
        if serde_json::from_slice::<serde::de::IgnoredAny>(&request.body).is_err() {
            return Err(Failure::bad_request("invalid JSON patch"));
        }
        if request.param("force").is_some() {
            let why = "may not be specified for non-apply patch";
            let error = FieldError::forbidden("force", why);
            return Err(Failure::invalid_options(
                "PatchOptions",
                &Errors::from([error]),
            ));
        }
        let body = &request.body;
        Ok(Self { media, fact, body })
    }

    /// Changes an object as the patch says.
    pub(crate) fn apply(&self, value: &mut Value) -> Result<(), Failure> {
        match (self.media, self.fact) {
            (STRATEGIC, Some(fact)) => strategic::apply(fact, value, self.body),
            (JSON_PATCH, _) => json::apply(value, self.body),
            _ => merge(value, self.body),
        }
    }
}

fn merge(value: &mut Value, body: &[u8]) -> Result<(), Failure> {
    let patch = read_object(body)
        .map_err(|why| Failure::bad_request(format!("error decoding patch: {why}")))?;
    json_patch::merge(value, &patch);
    Ok(())
}

/// Reads a patch that has to be an object, with Go's words for what is none.
fn read_object(body: &[u8]) -> Result<Value, String> {
    let patch: Value = serde_json::from_slice(body).map_err(|_| go_json::syntax_error(body))?;
    if patch.is_object() {
        return Ok(patch);
    }
    let found = go_json::name_of(&patch);
    Err(format!(
        "json: cannot unmarshal {found} into Go value of type map[string]interface {{}}"
    ))
}
