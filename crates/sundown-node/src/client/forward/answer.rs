//! What an answer of a pod may not do to the browser that shows it: take away or replace the cookie that lets
//! the user in, or stay there for the next pod behind the same address. Pure; the proxy carries it out. Cookies of the pod's own pass: Ray signs users in with one.

use http::HeaderMap;
use http::header::{CACHE_CONTROL, EXPIRES, HeaderName, HeaderValue, SET_COOKIE};

use super::admit::COOKIE_BEGINNING;

/// Empties the browser's jar, which all ports of a host share: it would close the other forwards, too.
const CLEAR_SITE_DATA: HeaderName = HeaderName::from_static("clear-site-data");

/// Takes out of an answer what would change the cookies of forwards, and keeps it out of the browser's
/// cache: a script of this pod would run at the same address as the page of the next one.
pub(super) fn take_out_orders(headers: &mut HeaderMap) {
    headers.remove(CLEAR_SITE_DATA);
    headers.remove(EXPIRES);
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    if !headers.contains_key(SET_COOKIE) {
        return;
    }
    let all = headers.get_all(SET_COOKIE).iter();
    let left: Vec<HeaderValue> = all
        .filter(|it| !names_a_forward(it.as_bytes()))
        .cloned()
        .collect();
    headers.remove(SET_COOKIE);
    for cookie in left {
        headers.append(SET_COOKIE, cookie);
    }
}

/// Whether a browser would send the cookie back as one of a forward. One without a name is sent as its value
/// alone, so that `=sundown-4000=x` comes back like one with that name.
fn names_a_forward(cookie: &[u8]) -> bool {
    let is_name = |byte: &u8| !byte.is_ascii_whitespace() && *byte != b'=';
    let begins_at = cookie.iter().position(is_name).unwrap_or(cookie.len());
    let name = cookie[begins_at..].get(..COOKIE_BEGINNING.len());
    name.is_some_and(|it| it.eq_ignore_ascii_case(COOKIE_BEGINNING.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cookies_of_forwards_are_not_set_by_a_pod() {
        for cookie in [
            "sundown-4000=x",
            "sundown-4000=x; Path=/api",
            "sundown-4000=; Max-Age=0",
            // Of another forward: the jar is one for all ports.
            "sundown-4001=x",
            " \t sundown-4000 = x",
            "SUNDOWN-4000=x",
            "=sundown-4000=x",
            " = sundown-4000=x",
            "sundown-4000",
        ] {
            assert!(names_a_forward(cookie.as_bytes()), "{cookie}");
        }
    }

    #[test]
    fn other_cookies_are_the_pods_own() {
        for cookie in [
            "session=1; Path=/; HttpOnly",
            "ray-authentication-token=sundown-4000",
            "xsundown-4000=x",
            "sundown=1",
            "a=b; sundown-4000=x",
            "=",
            "",
        ] {
            assert!(!names_a_forward(cookie.as_bytes()), "{cookie}");
        }
    }

    #[test]
    fn of_an_answer_all_else_passes_in_its_order() {
        let mut headers = HeaderMap::new();
        for cookie in ["a=1", "sundown-4000=x", "b=2"] {
            headers.append(SET_COOKIE, HeaderValue::from_static(cookie));
        }
        headers.insert(CLEAR_SITE_DATA, HeaderValue::from_static("\"cookies\""));
        headers.insert("x-own", HeaderValue::from_static("1"));
        for (name, value) in [(CACHE_CONTROL, "max-age=31536000"), (EXPIRES, "x")] {
            headers.append(name, HeaderValue::from_static(value));
        }
        take_out_orders(&mut headers);
        let left: Vec<&HeaderValue> = headers.get_all(SET_COOKIE).iter().collect();
        assert_eq!(left, ["a=1", "b=2"]);
        assert!(!headers.contains_key(CLEAR_SITE_DATA) && headers.contains_key("x-own"));
        let kept: Vec<&HeaderValue> = headers.get_all(CACHE_CONTROL).iter().collect();
        assert_eq!(kept, ["no-store"]);
        assert!(!headers.contains_key(EXPIRES));
    }
}
