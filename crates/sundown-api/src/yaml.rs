//! YAML: request bodies as the JSON that they stand for, and answers.

use serde_json::Value;
use sundown_schema::FINDINGS_MAX;
use sundown_yaml::Duplicate;

use crate::failure::Failure;
use crate::registry::Type;
use crate::render::JSON;
use crate::{Method, Request, negotiate};

/// The media type of YAML, of requests and of answers.
pub(crate) const MEDIA: &str = "application/yaml";

/// The request with a body in JSON; None if it is no YAML. Patches have types of their own.
///
/// Errors: the body is no YAML either, or says something twice where that is refused.
pub(crate) fn as_json(ty: &Type, request: &Request) -> Result<Option<Request>, Failure> {
    let is_patch = request.method == Method::Patch;
    if is_patch || request.body.is_empty() || negotiate::media_type(request) != MEDIA {
        return Ok(None);
    }
    let unreadable =
        |why: String| Failure::bad_request(format!("error converting YAML to JSON: yaml: {why}"));
    let text = std::str::from_utf8(&request.body).map_err(|error| unreadable(error.to_string()))?;
    let read = sundown_yaml::read(text).map_err(|error| unreadable(error.to_string()))?;
    if request.param("fieldValidation") == Some("Strict") && !read.duplicates.is_empty() {
        return Err(twice(ty, &read.duplicates));
    }
    Ok(Some(Request {
        content_type: Some(JSON.to_owned()),
        body: read.value.to_string().into_bytes(),
        ..request.clone()
    }))
}

/// Keys that are given twice, in the words of upstream.
fn twice(ty: &Type, duplicates: &[Duplicate]) -> Failure {
    let lines = duplicates.iter().take(FINDINGS_MAX);
    let lines: Vec<String> = lines
        .map(|it| format!("  line {}: key {:?} already set in map", it.line, it.key))
        .collect();
    Failure::bad_request(format!(
        "{0} in version \"{1}\" cannot be handled as a {0}: strict decoding error: yaml: unmarshal errors:\n{2}",
        ty.kind,
        ty.version,
        lines.join("\n")
    ))
}

/// A value as YAML.
pub(crate) fn text(value: &Value) -> Option<String> {
    serde_saphyr::to_string(value).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Clients read answers by the rules of YAML 1.1.
    #[test]
    fn texts_that_look_like_something_else_are_quoted() {
        let texts = [
            "yes",
            "y",
            "N",
            "on",
            "Off",
            "0777",
            "0o17",
            "08",
            "1_000",
            "0b1",
            "0x1F",
            "~",
            "null",
            "",
            ".5",
            ".inf",
            "1e3",
            "2001-01-01",
            "<<",
            "a: b",
            "- a",
            "#",
            "1:30",
            "=",
            "x\ny",
        ];
        let value = json!({ "data": texts });
        let text = text(&value).unwrap();
        assert_eq!(sundown_yaml::read(&text).unwrap().value, value, "{text}");
    }
}
