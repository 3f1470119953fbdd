//! The few failures that the shell finds before or around the core. Everything about objects is
//! answered by `sundown-api`.

use serde::Serialize;
use sundown_api::Response;

use crate::service::BODY_BYTES_MAX;

/// A failure of the transport, in upstream's words (apimachinery, api/errors/errors.go).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Failure {
    /// The path or the body could not be read.
    BadRequest(&'static str),
    Unauthorized,
    MethodNotAllowed,
    BodyTooLarge,
    /// More writers at once than are let in.
    TooManyRequests,
    /// The disk is full; reads go on. Upstream has no reason for it (etcd's answer is a plain 500),
    /// so the reason is the name of the status code.
    InsufficientStorage,
    /// A bug on our side; the text says where.
    Internal(&'static str),
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Content<'a> {
    kind: &'a str,
    api_version: &'a str,
    metadata: Empty,
    status: &'a str,
    message: &'a str,
    reason: &'a str,
    code: u16,
}

#[derive(Serialize)]
struct Empty {}

impl Failure {
    /// The Status that the client gets.
    pub(crate) fn response(self) -> Response {
        let too_large = format!("Request entity too large: limit is {BODY_BYTES_MAX}");
        let (code, reason, message) = match self {
            Self::BadRequest(why) => (400, "BadRequest", why),
            Self::Unauthorized => (401, "Unauthorized", "Unauthorized"),
            Self::MethodNotAllowed => (
                405,
                "MethodNotAllowed",
                "the server does not allow this method on the requested resource",
            ),
            Self::BodyTooLarge => (413, "RequestEntityTooLarge", too_large.as_str()),
            Self::TooManyRequests => (
                429,
                "TooManyRequests",
                "too many writes are waiting, please try again later",
            ),
            Self::InsufficientStorage => (
                507,
                "InsufficientStorage",
                "the disk of the data directory is full: nothing can be written until there is room",
            ),
            Self::Internal(what) => (500, "InternalError", what),
        };
        let content = Content {
            kind: "Status",
            api_version: "v1",
            metadata: Empty {},
            status: "Failure",
            message,
            reason,
            code,
        };
        // Clients come again by themselves when they are told when (client-go, rest/request.go).
        let headers = match self {
            Self::TooManyRequests => vec![("retry-after", "1".to_owned())],
            Self::BadRequest(_)
            | Self::Unauthorized
            | Self::MethodNotAllowed
            | Self::BodyTooLarge
            | Self::InsufficientStorage
            | Self::Internal(_) => Vec::new(),
        };
        Response {
            code,
            content_type: "application/json",
            warnings: Vec::new(),
            headers,
            body: serde_json::to_vec(&content).expect("strings and a number are JSON"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Failure;

    #[test]
    fn looks_like_the_status_of_upstream() {
        let response = Failure::Unauthorized.response();
        let expect = r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"Unauthorized","reason":"Unauthorized","code":401}"#;
        assert_eq!(String::from_utf8(response.body).unwrap(), expect);
    }
}
