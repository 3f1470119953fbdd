//! Whether a request may pass a forward: decided from its head alone, for every request of a connection.
//! Pure; the proxy carries it out.
//!
//! A web page can make the user's browser ask anything of the loopback. It cannot choose `Host`, which names
//! the page's own server even if its name leads here, nor `Origin` and `Sec-Fetch-Site`, nor does it know the
//! token. Programs name no origin, and show the token instead of a cookie.

use http::header::{AUTHORIZATION, COOKIE, HOST, ORIGIN};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method};

use super::token::Token;

/// Browsers keep one jar for all ports of a host, so a cookie's name holds its port.
pub(super) const COOKIE_BEGINNING: &str = "sundown-";

/// What is asked of a request.
#[derive(Debug, Clone)]
pub(super) struct Expectations {
    pub(super) port: u16,
    pub(super) token: Token,
}

/// What becomes of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Verdict {
    /// To the pod.
    Pass,
    /// It brings the token of the printed address: the browser keeps it, and asks again without it.
    Keep {
        /// The same address without the token.
        location: String,
    },
    Refuse(Refused),
}

/// Why a request does not pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refused {
    /// The name by which it was reached is not ours.
    Host,
    /// A page of another origin made it.
    Origin,
    /// A page of another site made it, or followed a link there.
    Site,
    /// It asks for a tunnel.
    Method,
    /// A page wants the browser to run a script of it at this address from now on.
    ServiceWorker,
    /// It does not know the token.
    Token,
}

impl Refused {
    /// For the person or the program that asked.
    pub(super) fn in_words(self) -> &'static str {
        match self {
            Self::Host => {
                "this address is open as 127.0.0.1 only, not as localhost: check the Host header"
            }
            Self::Origin => "pages of other origins may not use this address",
            Self::Site => {
                "links and pages of other sites may not use this address: \
                 paste the address that `sundown run` printed into the browser's address bar"
            }
            Self::Method => "this address is no proxy: ask it for a path",
            Self::ServiceWorker => {
                "service workers are not allowed at this address: \
                 one would outlive the pod that it came from"
            }
            Self::Token => {
                "open the whole address that `sundown run` printed, with its token; \
                 programs send the token as `Authorization: Bearer TOKEN`"
            }
        }
    }
}

/// Decides about one request.
pub(super) fn admit(head: &Parts, expect: &Expectations) -> Verdict {
    if head.method == Method::CONNECT {
        return Verdict::Refuse(Refused::Method);
    }
    let Some(host) = own_host(head, expect.port) else {
        return Verdict::Refuse(Refused::Host);
    };
    if !is_own_origin(&head.headers, &host) {
        return Verdict::Refuse(Refused::Origin);
    }
    if !is_own_site(&head.headers) {
        return Verdict::Refuse(Refused::Site);
    }
    if is_for_a_service_worker(&head.headers) {
        return Verdict::Refuse(Refused::ServiceWorker);
    }
    let asks = head.method == Method::GET || head.method == Method::HEAD;
    if let Some(path) = without_token(head, &expect.token).filter(|_| asks) {
        // In full: a path that begins with two slashes alone would name another host.
        let location = format!("http://{host}{path}");
        return Verdict::Keep { location };
    }
    if has_cookie(&head.headers, expect) || has_bearer(&head.headers, &expect.token) {
        return Verdict::Pass;
    }
    Verdict::Refuse(Refused::Token)
}

/// The cookie that keeps the token. Scripts do not see it, and no other site makes the browser send it.
pub(super) fn kept_cookie(expect: &Expectations) -> String {
    let (port, token) = (expect.port, expect.token.reveal());
    format!("{COOKIE_BEGINNING}{port}={token}; HttpOnly; SameSite=Strict; Path=/")
}

/// Takes out what proves the request, and the proofs of other forwards: the pod shall not learn them.
pub(super) fn take_out_proofs(headers: &mut HeaderMap, token: &Token) {
    if has_bearer(headers, token) {
        headers.remove(AUTHORIZATION);
    }
    let is_foreign = |it: &&[u8]| !it.starts_with(COOKIE_BEGINNING.as_bytes());
    let left: Vec<&[u8]> = cookies(headers).filter(is_foreign).collect();
    let left = HeaderValue::from_bytes(&left.join(&b"; "[..]));
    headers.remove(COOKIE);
    if let Some(left) = left.ok().filter(|it| !it.is_empty()) {
        headers.insert(COOKIE, left);
    }
}

/// The host that was asked for, if it is ours. A request names it once, and the same in both places.
fn own_host(head: &Parts, port: u16) -> Option<String> {
    let Told::Once(host) = told(&head.headers, HOST.as_str()) else {
        return None;
    };
    let host = str::from_utf8(host).ok()?.to_ascii_lowercase();
    let named = head.uri.authority();
    if named.is_some_and(|it| !it.as_str().eq_ignore_ascii_case(&host)) {
        return None;
    }
    // Not `localhost`: on `::1` another user may listen at the same port, and its page would be of our origin.
    let is_ours = host == format!("127.0.0.1:{port}") || (port == 80 && host == "127.0.0.1");
    is_ours.then_some(host)
}

/// Programs name none.
fn is_own_origin(headers: &HeaderMap, host: &str) -> bool {
    match told(headers, ORIGIN.as_str()) {
        Told::Once(origin) => origin == format!("http://{host}").as_bytes(),
        Told::Never => true,
        Told::Again => false,
    }
}

/// `none` is the address bar. `same-site` is another port of this host, which may be another user's.
fn is_own_site(headers: &HeaderMap) -> bool {
    match told(headers, "sec-fetch-site") {
        Told::Once(site) => site == b"same-origin" || site == b"none",
        Told::Never => true,
        Told::Again => false,
    }
}

/// A service worker stays in the browser and answers in the place of whatever listens at this port later. Browsers
/// name each request for its script, in one of these ways; a page cannot leave them out.
fn is_for_a_service_worker(headers: &HeaderMap) -> bool {
    let destinations = headers.get_all("sec-fetch-dest").iter();
    headers.contains_key("service-worker")
        || destinations.into_iter().any(|it| it == "serviceworker")
}

/// How often a header is there: one that is told twice may be read in two ways.
enum Told<'a> {
    Never,
    Once(&'a [u8]),
    Again,
}

fn told<'a>(headers: &'a HeaderMap, name: &str) -> Told<'a> {
    let mut all = headers.get_all(name).iter();
    match (all.next(), all.next()) {
        (None, _) => Told::Never,
        (Some(value), None) => Told::Once(value.as_bytes()),
        (Some(_), Some(_)) => Told::Again,
    }
}

/// The path and the query without the token, if it was there and right.
fn without_token(head: &Parts, token: &Token) -> Option<String> {
    let is_ours = |part: &&str| {
        let told = part.strip_prefix("token=");
        told.is_some_and(|told| token.is(told.as_bytes()))
    };
    let parts = || head.uri.query().unwrap_or_default().split('&');
    if !parts().any(|part| is_ours(&part)) {
        return None;
    }
    let left: Vec<&str> = parts().filter(|part| !is_ours(part)).collect();
    let path = head.uri.path();
    Some(match left.as_slice() {
        [] => path.to_owned(),
        left => format!("{path}?{}", left.join("&")),
    })
}

fn has_cookie(headers: &HeaderMap, expect: &Expectations) -> bool {
    let name = format!("{COOKIE_BEGINNING}{}=", expect.port);
    let values = cookies(headers).filter_map(|it| it.strip_prefix(name.as_bytes()));
    // Every one is compared: which of several was right is not told by the time either.
    values.fold(false, |found, value| found | expect.token.is(value))
}

fn cookies(headers: &HeaderMap) -> impl Iterator<Item = &[u8]> {
    let all = headers.get_all(COOKIE).iter();
    all.flat_map(|it| it.as_bytes().split(|byte| *byte == b';'))
        .map(<[u8]>::trim_ascii)
}

fn has_bearer(headers: &HeaderMap, token: &Token) -> bool {
    let Told::Once(value) = told(headers, AUTHORIZATION.as_str()) else {
        return false;
    };
    let (scheme, value) = value.split_at(value.len().min(7));
    scheme.eq_ignore_ascii_case(b"bearer ") && token.is(value)
}

#[cfg(test)]
mod tests;
