//! HTTP between a client of the host and a server of the pods. Every request of a connection is judged; hyper
//! reads and writes each message anew, so that both sides agree where it ends.
//!
//! There is no bound on how long an admitted request may take or be silent: logs are followed for hours.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::header::{
    CACHE_CONTROL, CONNECTION, CONTENT_TYPE, EXPECT, HeaderMap, HeaderName, HeaderValue, LOCATION,
    REFERRER_POLICY, SET_COOKIE, TE, TRAILER, TRANSFER_ENCODING, UPGRADE,
};
use http::{Request, Response, StatusCode, Version};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use super::Door;
use super::admit::{Verdict, admit, kept_cookie, take_out_proofs};
use super::answer::take_out_orders;

/// A server that is up accepts at once; a longer wait would hold the caller's connection for nothing.
const DIAL_TIMEOUT: Duration = Duration::from_secs(5);

/// Of the head of a request; browsers and servers stop earlier.
const HEAD_BYTES_MAX: usize = 64 << 10;

/// How long a connection may wait for its first or next request.
const HEAD_TIME_MAX: Duration = Duration::from_secs(30);

type Body = UnsyncBoxBody<Bytes, hyper::Error>;

/// What a connection of a client has started.
#[derive(Debug, Default)]
struct Started {
    /// The connections to the pod, which end with the client's.
    inside: JoinSet<()>,
    /// What became of connections that speak another protocol now.
    tunnels: JoinSet<()>,
}

/// Serves a connection to its end.
pub(super) async fn serve(door: Arc<Door>, outside: TcpStream) {
    let started = Arc::new(Mutex::new(Started::default()));
    let service = service_fn(|request| {
        let (door, started) = (Arc::clone(&door), Arc::clone(&started));
        async move { Ok::<_, std::convert::Infallible>(answer(&door, &started, request).await) }
    });
    let mut http = hyper::server::conn::http1::Builder::new();
    http.timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIME_MAX)
        .max_header_size(HEAD_BYTES_MAX);
    // What a client does wrong is answered, and the connection closed, by hyper.
    let served = http.serve_connection(TokioIo::new(outside), service);
    let _ = served.with_upgrades().await;
    let mut tunnels = {
        let mut started = started.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut started.tunnels)
    };
    while tunnels.join_next().await.is_some() {}
}

async fn answer(
    door: &Door,
    started: &Mutex<Started>,
    request: Request<Incoming>,
) -> Response<Body> {
    let (head, body) = request.into_parts();
    match admit(&head, &door.expectations) {
        Verdict::Pass => {
            let request = Request::from_parts(head, body);
            let passed = pass(door, started, request).await;
            passed.unwrap_or_else(|why| say(StatusCode::BAD_GATEWAY, &why))
        }
        Verdict::Keep { location } => keep(&location, &kept_cookie(&door.expectations)),
        Verdict::Refuse(why) => {
            let mut refused = say(StatusCode::FORBIDDEN, why.in_words());
            // What else it sends is not even read.
            let close = HeaderValue::from_static("close");
            refused.headers_mut().insert(CONNECTION, close);
            refused
        }
    }
}

/// Passes a request on, over a connection of its own: one that is kept may end just then, and a request
/// that was sent into its end cannot be repeated.
async fn pass(
    door: &Door,
    started: &Mutex<Started>,
    mut request: Request<Incoming>,
) -> Result<Response<Body>, String> {
    let unreachable = |error: &dyn std::fmt::Display| format!("the pod does not answer: {error}");
    let inside = door.node.dial(door.to, DIAL_TIMEOUT).await;
    let inside = inside.map_err(|error| unreachable(&error))?;
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(inside))
        .await
        .map_err(|error| unreachable(&error))?;
    {
        let mut started = started.lock().unwrap_or_else(PoisonError::into_inner);
        while started.inside.try_join_next().is_some() {}
        started.inside.spawn(async move {
            // How it ended is known by the answer.
            let _ = connection.with_upgrades().await;
        });
    }
    let upgrade = upgrade_of(request.headers());
    let ours = upgrade.is_some().then(|| hyper::upgrade::on(&mut request));
    take_out_proofs(request.headers_mut(), &door.expectations.token);
    request.headers_mut().remove(EXPECT);
    pass_on(request.headers_mut(), upgrade);
    // As a client of that server writes it; the host is in its header.
    *request.uri_mut() = origin_form(request.uri());
    *request.version_mut() = Version::HTTP_11;
    let sent = sender.send_request(request).await;
    let mut response = sent.map_err(|error| unreachable(&error))?;
    let is_switched = response.status() == StatusCode::SWITCHING_PROTOCOLS;
    let upgrade = upgrade_of(response.headers()).filter(|_| is_switched);
    if is_switched {
        let Some(ours) = ours else {
            return Err("the pod speaks another protocol than it was asked for".to_owned());
        };
        let theirs = hyper::upgrade::on(&mut response);
        let mut started = started.lock().unwrap_or_else(PoisonError::into_inner);
        started.tunnels.spawn(async move {
            if let (Ok(ours), Ok(theirs)) = (ours.await, theirs.await) {
                let (mut ours, mut theirs) = (TokioIo::new(ours), TokioIo::new(theirs));
                let _ = tokio::io::copy_bidirectional(&mut ours, &mut theirs).await;
            }
        });
    }
    pass_on(response.headers_mut(), upgrade);
    take_out_orders(response.headers_mut());
    *response.version_mut() = Version::HTTP_11;
    Ok(response.map(http_body_util::BodyExt::boxed_unsync))
}

/// What a message asks to speak from now on.
fn upgrade_of(headers: &HeaderMap) -> Option<HeaderValue> {
    let asks = named_in_connection(headers).any(|it| it.eq_ignore_ascii_case(b"upgrade"));
    headers.get(UPGRADE).filter(|_| asks).cloned()
}

fn named_in_connection(headers: &HeaderMap) -> impl Iterator<Item = &[u8]> {
    let all = headers.get_all(CONNECTION).iter();
    all.flat_map(|it| it.as_bytes().split(|byte| *byte == b','))
        .map(<[u8]>::trim_ascii)
}

/// Takes out the headers that are about one connection only (RFC 9110, 7.6.1).
fn pass_on(headers: &mut HeaderMap, upgrade: Option<HeaderValue>) {
    let named = named_in_connection(headers).filter_map(|it| HeaderName::from_bytes(it).ok());
    for name in named.collect::<Vec<_>>() {
        headers.remove(name);
    }
    for name in [CONNECTION, TE, TRAILER, TRANSFER_ENCODING, UPGRADE] {
        headers.remove(name);
    }
    for name in [
        "keep-alive",
        "proxy-connection",
        "proxy-authenticate",
        "proxy-authorization",
    ] {
        headers.remove(name);
    }
    if let Some(upgrade) = upgrade {
        headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
        headers.insert(UPGRADE, upgrade);
    }
}

fn origin_form(uri: &http::Uri) -> http::Uri {
    let path = uri.path_and_query().cloned();
    path.map_or_else(http::Uri::default, http::Uri::from)
}

fn keep(location: &str, cookie: &str) -> Response<Body> {
    let mut response = say(StatusCode::SEE_OTHER, "go on without the token");
    let headers = response.headers_mut();
    for (name, value) in [(LOCATION, location), (SET_COOKIE, cookie)] {
        // Both are made of what was a head already.
        if let Ok(value) = HeaderValue::from_str(value) {
            headers.insert(name, value);
        }
    }
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    response
}

/// An answer of our own: one sentence.
fn say(status: StatusCode, sentence: &str) -> Response<Body> {
    let body = Full::new(Bytes::from(format!("{sentence}\n")));
    let body = body.map_err(|never| match never {}).boxed_unsync();
    let mut response = Response::new(body);
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(
        CONTENT_TYPE,
        HeaderValue::from_static("text/plain; charset=utf-8"),
    );
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(all: &[(&'static str, &'static str)]) -> HeaderMap {
        let all = all.iter();
        all.map(|(name, value)| {
            (
                HeaderName::from_static(name),
                HeaderValue::from_static(value),
            )
        })
        .collect()
    }

    #[test]
    fn headers_of_one_connection_are_not_passed_on() {
        let mut found = headers(&[
            ("connection", "close, X-Own"),
            ("x-own", "1"),
            ("keep-alive", "timeout=5"),
            ("te", "trailers"),
            ("transfer-encoding", "chunked"),
            ("upgrade", "h2c"),
            ("proxy-authorization", "x"),
            ("accept", "*/*"),
        ]);
        let upgrade = upgrade_of(&found);
        assert_eq!(upgrade, None, "it does not ask for one");
        pass_on(&mut found, upgrade);
        assert_eq!(found, headers(&[("accept", "*/*")]));
    }

    #[test]
    fn an_upgrade_is_asked_for_anew() {
        let mut found = headers(&[
            ("connection", "keep-alive, Upgrade"),
            ("upgrade", "websocket"),
        ]);
        let upgrade = upgrade_of(&found);
        pass_on(&mut found, upgrade);
        let expect = headers(&[("connection", "upgrade"), ("upgrade", "websocket")]);
        assert_eq!(found, expect);
    }
}
