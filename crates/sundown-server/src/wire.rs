//! Translates between `http` and the plain data of `sundown-api`, both ways. No meaning is given to
//! anything here but lengths and encodings.

use std::collections::BTreeMap;
use std::pin::pin;

use bytes::{Buf, BufMut};
use http::header::{
    ACCEPT, CACHE_CONTROL, CONTENT_TYPE, HeaderName, IF_NONE_MATCH, USER_AGENT, WARNING,
};
use http::{HeaderMap, HeaderValue, StatusCode, request};
use http_body_util::BodyExt;
use percent_encoding::percent_decode_str;
use sundown_api::{Impersonation, Method, Request, Response, User};

use crate::Body;
use crate::service::BODY_BYTES_MAX;
use crate::status::Failure;

const AUDIT_ID: HeaderName = HeaderName::from_static("audit-id");

/// How much of a body over the limit is read and thrown away before answering.
///
/// A socket that is closed while the client still writes resets the connection, and the client
/// may never see the answer. Who sends even more has to live with that.
const DISCARD_BYTES_MAX: usize = 4 * BODY_BYTES_MAX;

/// How many bytes of warnings one response carries, as upstream
/// (apiserver, endpoints/filters/warning.go): clients limit the size of all headers together.
const WARNING_BYTES_MAX: usize = 4 * 1024;

/// Builds the request of the core, without its body.
pub(crate) fn read(head: &request::Parts, user: User) -> Result<Request, Failure> {
    let method = method(&head.method)?;
    let path = percent_decode_str(head.uri.path()).decode_utf8();
    let path = path
        .map_err(|_| Failure::BadRequest("the path is not UTF-8"))?
        .into_owned();
    let query = head.uri.query().unwrap_or_default();
    Ok(Request {
        method,
        path,
        query: form_urlencoded::parse(query.as_bytes())
            .into_owned()
            .collect(),
        content_type: text(&head.headers, &CONTENT_TYPE),
        accept: accept(&head.headers),
        user_agent: text(&head.headers, &USER_AGENT),
        if_none_match: text(&head.headers, &IF_NONE_MATCH),
        user,
        body: Vec::new(),
    })
}

/// Builds the response of a complete answer.
pub(crate) fn write(response: Response, audit_id: &str) -> http::Response<Body> {
    let mut wire = http::Response::new(Body::whole(response.body));
    *wire.status_mut() =
        StatusCode::from_u16(response.code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    set_headers(wire.headers_mut(), response.content_type, audit_id);
    for (name, value) in &response.headers {
        if let Ok(value) = HeaderValue::from_str(value) {
            wire.headers_mut().insert(*name, value);
        }
    }
    let mut rest = WARNING_BYTES_MAX;
    for text in &response.warnings {
        let value = warning(text);
        let Some(left) = rest.checked_sub(value.len()) else {
            break;
        };
        rest = left;
        wire.headers_mut().append(WARNING, value);
    }
    wire
}

/// Builds the response of something that comes piece by piece.
pub(crate) fn write_stream(
    body: Body,
    media: &'static str,
    audit_id: &str,
) -> http::Response<Body> {
    let mut wire = http::Response::new(body);
    set_headers(wire.headers_mut(), media, audit_id);
    wire
}

/// Builds the response of a watch, of which the media type and a warning are known.
pub(crate) fn write_watch(
    body: Body,
    (media, warning): (&'static str, Option<HeaderValue>),
    audit_id: &str,
) -> http::Response<Body> {
    let mut wire = write_stream(body, media, audit_id);
    if let Some(warning) = warning {
        wire.headers_mut().append(WARNING, warning);
    }
    wire
}

/// What the client takes.
pub(crate) fn accept(headers: &HeaderMap) -> Option<String> {
    text(headers, &ACCEPT)
}

fn method(method: &http::Method) -> Result<Method, Failure> {
    Ok(match *method {
        http::Method::GET => Method::Get,
        http::Method::POST => Method::Post,
        http::Method::PUT => Method::Put,
        http::Method::PATCH => Method::Patch,
        http::Method::DELETE => Method::Delete,
        _ => return Err(Failure::MethodNotAllowed),
    })
}

fn text(headers: &HeaderMap, name: &HeaderName) -> Option<String> {
    let mut values = headers.get_all(name).iter().peekable();
    values.peek()?;
    // Several lines of one header mean the same as one with commas (RFC 9110, 5.3).
    let values: Vec<_> = values
        .map(|value| String::from_utf8_lossy(value.as_bytes()))
        .collect();
    Some(values.join(", "))
}

/// As whom a request wants to act. A header that comes several times is a list only where upstream has one.
pub(crate) fn impersonation(headers: &HeaderMap) -> Impersonation {
    let text = |value: &HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    let first = |name: &str| headers.get(name).map(text).unwrap_or_default();
    let mut wanted = Impersonation {
        user: first("impersonate-user"),
        uid: first("impersonate-uid"),
        groups: headers
            .get_all("impersonate-group")
            .iter()
            .map(text)
            .collect(),
        extra: BTreeMap::new(),
    };
    for (name, value) in headers {
        if let Some(key) = name.as_str().strip_prefix("impersonate-extra-") {
            let key = percent_decode_str(key).decode_utf8_lossy().into_owned();
            wanted.extra.entry(key).or_default().push(text(value));
        }
    }
    wanted
}

/// Reads a body up to its limit.
pub(crate) async fn read_body<B: http_body::Body>(body: B) -> Result<Vec<u8>, Failure> {
    let mut body = pin!(body);
    let mut bytes = Vec::new();
    let mut seen: usize = 0;
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|_| Failure::BadRequest("the body broke off"))?;
        let Ok(data) = frame.into_data() else {
            continue;
        };
        seen = seen.saturating_add(data.remaining());
        if seen <= BODY_BYTES_MAX {
            bytes.put(data);
        } else if seen > DISCARD_BYTES_MAX {
            break;
        }
    }
    if seen > BODY_BYTES_MAX {
        Err(Failure::BodyTooLarge)
    } else {
        Ok(bytes)
    }
}

fn set_headers(headers: &mut HeaderMap, content_type: &'static str, audit_id: &str) {
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
    headers.insert(
        AUDIT_ID,
        HeaderValue::from_str(audit_id).expect("a UUID is ASCII"),
    );
}

/// `299 - "text"`, quoted as RFC 9110 asks; control characters cannot be quoted and become spaces.
pub(crate) fn warning(text: &str) -> HeaderValue {
    let mut value = String::with_capacity(text.len() + "299 - \"\"".len());
    value.push_str("299 - \"");
    for character in text.chars() {
        if matches!(character, '"' | '\\') {
            value.push('\\');
        }
        value.push(if character.is_control() {
            ' '
        } else {
            character
        });
    }
    value.push('"');
    HeaderValue::from_bytes(value.as_bytes()).expect("control characters were replaced")
}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, HeaderValue};
    use sundown_api::{Impersonation, Response};

    use super::{WARNING_BYTES_MAX, impersonation, warning, write};

    #[test]
    fn reads_as_whom_a_request_wants_to_act() {
        let mut headers = HeaderMap::new();
        assert_eq!(impersonation(&headers), Impersonation::default());
        for (name, value) in [
            ("impersonate-user", "jane"),
            ("impersonate-group", "a"),
            ("impersonate-group", "b"),
            ("impersonate-extra-acme.com%2fproject", "x"),
            ("impersonate-uid", "7"),
        ] {
            headers.append(name, HeaderValue::from_static(value));
        }
        let wanted = impersonation(&headers);
        assert_eq!((&*wanted.user, &*wanted.uid), ("jane", "7"));
        assert_eq!(wanted.groups, ["a", "b"]);
        assert_eq!(wanted.extra["acme.com/project"], ["x"]);
    }

    #[test]
    fn quotes_warnings() {
        let check = |text, expect: &str| assert_eq!(warning(text).as_bytes(), expect.as_bytes());
        check("use v1", r#"299 - "use v1""#);
        check(
            r#"unknown field "a\b""#,
            r#"299 - "unknown field \"a\\b\"""#,
        );
        check("two\nlines, ä", "299 - \"two lines, ä\"");
    }

    #[test]
    fn drops_warnings_beyond_the_limit() {
        let warnings = vec!["x".repeat(WARNING_BYTES_MAX / 3); 10];
        let body = Vec::new();
        let response = Response {
            code: 200,
            content_type: "application/json",
            warnings,
            headers: Vec::new(),
            body,
        };
        assert_eq!(
            write(response, "id")
                .headers()
                .get_all("warning")
                .iter()
                .count(),
            2
        );
    }
}
