//! Requests of browsers, programs and hostile pages, as a table.

use http::Request;

use super::*;

const HERE: (&str, &str) = ("host", "127.0.0.1:4000");
const COOKIE: (&str, &str) = ("cookie", "sundown-4000=right");
const BEARER: (&str, &str) = ("authorization", "Bearer right");

fn expectations() -> Expectations {
    Expectations {
        port: 4000,
        token: Token::fixed("right"),
    }
}

fn head(line: &str, headers: &[(&str, &str)]) -> Parts {
    let (method, target) = line.split_once(' ').unwrap();
    let mut request = Request::builder().method(method).uri(target);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.body(()).unwrap().into_parts().0
}

fn check(line: &str, headers: &[(&str, &str)], expect: &Verdict) {
    let found = admit(&head(line, headers), &expectations());
    assert_eq!(found, *expect, "{line} {headers:?}");
}

fn refused(line: &str, headers: &[(&str, &str)], why: Refused) {
    check(line, headers, &Verdict::Refuse(why));
}

#[test]
fn who_knows_the_token_passes() {
    for headers in [
        &[HERE, COOKIE][..],
        &[HERE, BEARER],
        &[HERE, ("authorization", "bearer right")],
        &[HERE, ("cookie", "a=b; sundown-4000=right;c=d")],
        &[HERE, ("cookie", "sundown-4000=old"), COOKIE],
        &[HERE, COOKIE, ("authorization", "Bearer of-ray-itself")],
        &[HERE, COOKIE, ("origin", "http://127.0.0.1:4000")],
        &[HERE, COOKIE, ("sec-fetch-site", "same-origin")],
        &[HERE, COOKIE, ("sec-fetch-site", "none")],
    ] {
        for line in ["GET /", "POST /api/jobs/?a=b", "DELETE /api/jobs/x"] {
            check(line, headers, &Verdict::Pass);
        }
    }
    check(
        "GET http://127.0.0.1:4000/x",
        &[HERE, COOKIE],
        &Verdict::Pass,
    );
    // A parameter of that name may be the pod's.
    check("GET /?token=other", &[HERE, COOKIE], &Verdict::Pass);
}

#[test]
fn who_does_not_know_it_is_refused() {
    for headers in [
        &[HERE][..],
        &[HERE, ("cookie", "sundown-4000=wrong")],
        &[HERE, ("cookie", "sundown-4001=right")],
        &[HERE, ("cookie", "xsundown-4000=right")],
        &[HERE, ("authorization", "Bearer wrong")],
        &[HERE, ("authorization", "Bearer  right")],
        &[HERE, ("authorization", "Basic right")],
        &[HERE, ("authorization", "right")],
        &[HERE, BEARER, ("authorization", "Bearer wrong")],
    ] {
        refused("GET /", headers, Refused::Token);
    }
    refused("GET /?token=wrong", &[HERE], Refused::Token);
    refused("GET /?token=", &[HERE], Refused::Token);
    // An address is for browsers, which ask before they send.
    refused("POST /api/jobs/?token=right", &[HERE], Refused::Token);
}

#[test]
fn the_printed_address_is_kept_as_a_cookie_and_loses_its_token() {
    for (line, location) in [
        ("GET /?token=right", "http://127.0.0.1:4000/"),
        ("HEAD /x?token=right", "http://127.0.0.1:4000/x"),
        (
            "GET /x?a=1&token=right&b=2",
            "http://127.0.0.1:4000/x?a=1&b=2",
        ),
        ("GET /?token=right&token=right", "http://127.0.0.1:4000/"),
        // No way to another host.
        (
            "GET //evil.example/?token=right",
            "http://127.0.0.1:4000//evil.example/",
        ),
    ] {
        let location = location.to_owned();
        check(line, &[HERE], &Verdict::Keep { location });
    }
    assert_eq!(
        kept_cookie(&expectations()),
        "sundown-4000=right; HttpOnly; SameSite=Strict; Path=/"
    );
}

#[test]
fn a_name_that_is_not_ours_is_refused_whatever_else_is_shown() {
    for host in [
        "evil.example",
        "evil.example:4000",
        "127.0.0.1",
        "127.0.0.1:4001",
        "127.0.0.1:4000.evil.example",
        "127.0.0.1:04000",
        "[::1]:4000",
        "localhost.evil.example:4000",
        "localhost:4000",
        "[::1]:4000",
        "user@127.0.0.1:4000",
        "",
    ] {
        for line in ["GET /", "GET /?token=right"] {
            refused(line, &[("host", host), COOKIE, BEARER], Refused::Host);
        }
    }
    refused("GET /", &[COOKIE], Refused::Host);
    refused("GET /", &[HERE, HERE, COOKIE], Refused::Host);
    refused("GET http://evil.example/", &[HERE, COOKIE], Refused::Host);
    refused("CONNECT 127.0.0.1:4000", &[HERE, COOKIE], Refused::Method);
}

#[test]
fn pages_of_others_are_refused_whatever_they_know() {
    for origin in [
        "https://evil.example",
        "null",
        "http://127.0.0.1:4001",
        "https://127.0.0.1:4000",
        "http://localhost:4000",
        "http://127.0.0.1:4000.evil.example",
        "",
    ] {
        let from = ("origin", origin);
        for line in ["GET /", "POST /api/jobs/", "GET /?token=right"] {
            refused(line, &[HERE, COOKIE, from], Refused::Origin);
        }
        // So does a WebSocket, which no other rule of browsers guards.
        let upgrade = ("upgrade", "websocket");
        refused("GET /tail", &[HERE, COOKIE, from, upgrade], Refused::Origin);
    }
    let own = ("origin", "http://127.0.0.1:4000");
    refused("GET /", &[HERE, COOKIE, own, own], Refused::Origin);
    for site in ["cross-site", "same-site", "", "anything"] {
        let site = ("sec-fetch-site", site);
        refused("GET /", &[HERE, COOKIE, site], Refused::Site);
        refused("GET /?token=right", &[HERE, site], Refused::Site);
    }
}

#[test]
fn no_script_is_given_out_as_a_service_worker() {
    let own = ("sec-fetch-site", "same-origin");
    for marks in [
        &[("service-worker", "script")][..],
        &[("service-worker", "")],
        &[("sec-fetch-dest", "serviceworker")],
        &[
            ("sec-fetch-dest", "script"),
            ("sec-fetch-dest", "serviceworker"),
        ],
    ] {
        for proof in [COOKIE, BEARER] {
            let headers = [&[HERE, proof, own][..], marks].concat();
            refused("GET /sw.js", &headers, Refused::ServiceWorker);
        }
        let headers = [&[HERE][..], marks].concat();
        refused("GET /?token=right", &headers, Refused::ServiceWorker);
    }
    for destination in ["script", "worker", "sharedworker", "document", "empty"] {
        let destination = ("sec-fetch-dest", destination);
        check("GET /x", &[HERE, COOKIE, destination], &Verdict::Pass);
    }
}

#[test]
fn each_refusal_says_what_to_do() {
    use Refused::{Host, Method, Origin, ServiceWorker, Site, Token};
    for why in [Host, Origin, Site, Method, ServiceWorker, Token] {
        assert!(why.in_words().len() > 20, "{why:?}");
    }
}

#[test]
fn the_pod_does_not_learn_the_token() {
    for (headers, cookie, authorization) in [
        (&[COOKIE, BEARER][..], None, None),
        (
            &[("cookie", "a=b; sundown-4000=right; sundown-9=other; c=d")],
            Some("a=b; c=d"),
            None,
        ),
        (
            &[("cookie", "a=b"), ("cookie", "c=d")],
            Some("a=b; c=d"),
            None,
        ),
        (
            &[COOKIE, ("authorization", "Bearer of-ray-itself")],
            None,
            Some("Bearer of-ray-itself"),
        ),
    ] {
        let mut headers = head("GET /", headers).headers;
        take_out_proofs(&mut headers, &expectations().token);
        let value = |name| headers.get(name).map(|it| it.to_str().unwrap());
        assert_eq!(value("cookie"), cookie);
        assert_eq!(value("authorization"), authorization);
    }
}
