//! YAML: request bodies as the JSON that they stand for, and answers.

use serde_json::Value;

use crate::failure::Failure;
use crate::render::JSON;
use crate::{Method, Request, negotiate};

/// The media type of YAML, of requests and of answers.
pub(crate) const MEDIA: &str = "application/yaml";

/// The request with a body in JSON; None if it is no YAML. Patches have types of their own.
///
/// Errors: the body is no YAML either.
pub(crate) fn as_json(request: &Request) -> Result<Option<Request>, Failure> {
    let is_patch = request.method == Method::Patch;
    if is_patch || request.body.is_empty() || negotiate::media_type(request) != MEDIA {
        return Ok(None);
    }
    let unreadable =
        |why: String| Failure::bad_request(format!("error converting YAML to JSON: yaml: {why}"));
    let text = std::str::from_utf8(&request.body).map_err(|error| unreadable(error.to_string()))?;
    let value: Value =
        serde_saphyr::from_str(text).map_err(|error| unreadable(error.to_string()))?;
    Ok(Some(Request {
        content_type: Some(JSON.to_owned()),
        body: value.to_string().into_bytes(),
        ..request.clone()
    }))
}

/// A value as YAML.
pub(crate) fn text(value: &Value) -> Option<String> {
    serde_saphyr::to_string(value).ok()
}
