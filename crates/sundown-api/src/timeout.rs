//! The time that a client gives a request: read as Go reads durations, so that a wrong one is refused.
//!
//! Every answer here is decided in one step, long before any timeout; there is nothing to cut short.

use crate::Request;
use crate::authorize::Attributes;
use crate::failure::Failure;

const UNITS: [&str; 8] = ["ns", "us", "µs", "μs", "ms", "s", "m", "h"];

/// The verbs and the parts of objects that no deadline is for (upstream: `BasicLongRunningRequestCheck`).
const LONG_VERBS: [&str; 2] = ["watch", "proxy"];
const LONG_PARTS: [&str; 5] = ["attach", "exec", "proxy", "log", "portforward"];

/// Refuses a `timeout` that is no duration, as upstream's filter `WithRequestDeadline`.
///
/// Watches and logs last as long as they do, and are not asked; neither is what upstream would run long.
pub(crate) fn check(request: &Request) -> Result<(), Failure> {
    let asked = Attributes::of(request);
    let is_long = LONG_VERBS.contains(&asked.verb) || LONG_PARTS.contains(&asked.subresource);
    let text = request.param("timeout").filter(|text| !text.is_empty());
    let Some(text) = text.filter(|_| !is_long) else {
        return Ok(());
    };
    fault(text).map_or(Ok(()), |fault| {
        let why = format!("time: {fault} {text:?}");
        Err(Failure::bad_request(format!(
            "invalid timeout specified in the request URL - {why}"
        )))
    })
}

/// What Go's `time.ParseDuration` finds wrong.
fn fault(text: &str) -> Option<String> {
    let invalid = || Some("invalid duration".to_owned());
    let mut rest = text.strip_prefix(['-', '+']).unwrap_or(text);
    if rest == "0" {
        return None;
    }
    if rest.is_empty() {
        return invalid();
    }
    let is_part = |c: char| c.is_ascii_digit() || c == '.';
    while !rest.is_empty() {
        let digits = rest.trim_start_matches(|c: char| c.is_ascii_digit());
        let fraction = digits.strip_prefix('.');
        let after = fraction.map_or(digits, |it| {
            it.trim_start_matches(|c: char| c.is_ascii_digit())
        });
        let number = &rest[..rest.len() - after.len()];
        if !number.contains(|c: char| c.is_ascii_digit()) {
            return invalid();
        }
        let (unit, next) = after.split_at(after.find(is_part).unwrap_or(after.len()));
        if unit.is_empty() {
            return Some("missing unit in duration".to_owned());
        }
        if !UNITS.contains(&unit) {
            return Some(format!("unknown unit {unit:?} in duration"));
        }
        rest = next;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Method, User};

    #[test]
    fn only_what_may_run_long_is_not_asked() {
        let pods = "/api/v1/namespaces/a/pods";
        for (path, watch, is_asked) in [
            (pods, None, true),
            (pods, Some("true"), false),
            (pods, Some("false"), true),
            ("/api/v1/namespaces/a/pods/p", Some("true"), true),
            ("/api/v1/namespaces/a/pods/p/log", None, false),
            ("/api/v1/namespaces/a/pods/log", None, true),
            ("/api/v1/namespaces/a/configmaps/log", None, true),
            ("/api/v1/namespaces/a/pods/p/exec", None, false),
            ("/version", None, true),
        ] {
            let mut query = vec![("timeout".to_owned(), "later".to_owned())];
            query.extend(watch.map(|watch| ("watch".to_owned(), watch.to_owned())));
            let request = Request {
                method: Method::Get,
                path: path.to_owned(),
                query,
                content_type: None,
                accept: None,
                user_agent: None,
                if_none_match: None,
                user: User::admin(),
                body: Vec::new(),
            };
            assert_eq!(check(&request).is_err(), is_asked, "{path} {watch:?}");
        }
    }

    #[test]
    fn durations_are_read_as_go_reads_them() {
        for good in ["0", "-0", "5s", "-5s", "1h2m3.5s", ".5ms", "1.h", "7µs"] {
            assert_eq!(fault(good), None, "{good}");
        }
        for (text, why) in [
            ("invalid", "invalid duration"),
            ("-", "invalid duration"),
            (".s", "invalid duration"),
            ("5", "missing unit in duration"),
            ("1.2.3s", "missing unit in duration"),
            ("5d", "unknown unit \"d\" in duration"),
            ("5 s", "unknown unit \" s\" in duration"),
        ] {
            assert_eq!(fault(text).as_deref(), Some(why), "{text}");
        }
    }
}
