//! What the server counts about itself, in the text format of Prometheus. Names follow upstream's
//! where the meaning is the same.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use sundown_api::Request;

/// How many different series are kept; what would be one more counts as `other`. Paths come from
/// clients, so the number of labels has to be bounded.
const SERIES_MAX: usize = 2000;

/// The counters of one server.
#[derive(Debug, Default)]
pub(crate) struct Metrics {
    requests: Mutex<BTreeMap<Label, u64>>,
    watches: Arc<AtomicI64>,
    /// Requests of clients that came by a connection and showed who they are.
    outside: AtomicU64,
    /// Of those, how many are answered piece by piece right now.
    streams: Arc<AtomicI64>,
}

/// What a request is counted under.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Label {
    verb: &'static str,
    group: String,
    subresource: String,
    resource: String,
}

/// How clients from outside use a server.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// How many requests were answered so far.
    pub requests: u64,
    /// Whether one of them follows a watch or a log right now.
    pub is_followed: bool,
}

/// An open watch, counted until it is dropped.
#[derive(Debug)]
pub(crate) struct Open(Arc<AtomicI64>);

impl Drop for Open {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Metrics {
    /// Counts an answer.
    pub(crate) fn count(&self, mut label: Label, code: u16) {
        let mut requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
        let code = code.to_string();
        label.resource.push('\u{0}');
        label.resource.push_str(&code);
        if requests.len() >= SERIES_MAX && !requests.contains_key(&label) {
            label.group.clear();
            label.subresource.clear();
            label.resource = format!("other\u{0}{code}");
        }
        *requests.entry(label).or_default() += 1;
    }

    /// Counts a watch as open.
    pub(crate) fn open_watch(&self) -> Open {
        self.watches.fetch_add(1, Ordering::Relaxed);
        Open(Arc::clone(&self.watches))
    }

    /// Counts a request of a client from outside.
    pub(crate) fn enter(&self) {
        self.outside.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts an answer to such a client as open.
    pub(crate) fn open_stream(&self) -> Open {
        self.streams.fetch_add(1, Ordering::Relaxed);
        Open(Arc::clone(&self.streams))
    }

    /// How much clients from outside asked so far.
    pub(crate) fn usage(&self) -> Usage {
        Usage {
            requests: self.outside.load(Ordering::Relaxed),
            is_followed: self.streams.load(Ordering::Relaxed) > 0,
        }
    }

    /// Everything, as `/metrics` shows it.
    pub(crate) fn text(&self, revision: &str) -> String {
        let mut text = String::from(
            "# HELP apiserver_request_total Counter of apiserver requests broken out for each verb, \
             group, resource and HTTP response code.\n# TYPE apiserver_request_total counter\n",
        );
        let requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
        for (label, count) in &*requests {
            let (resource, code) = label.resource.split_once('\u{0}').unwrap_or_default();
            let (group, verb) = (escaped(&label.group), label.verb);
            let (resource, subresource) = (escaped(resource), escaped(&label.subresource));
            let written = writeln!(
                text,
                "apiserver_request_total{{code=\"{code}\",group=\"{group}\",resource=\"{resource}\",\
                 subresource=\"{subresource}\",verb=\"{verb}\"}} {count}"
            );
            written.expect("a String takes everything");
        }
        let watches = self.watches.load(Ordering::Relaxed);
        let written = write!(
            text,
            "# HELP apiserver_longrunning_requests Open watches.\n\
             # TYPE apiserver_longrunning_requests gauge\n\
             apiserver_longrunning_requests{{verb=\"WATCH\"}} {watches}\n\
             # HELP sundown_store_revision The revision of the newest visible write.\n\
             # TYPE sundown_store_revision gauge\n\
             sundown_store_revision {revision}\n"
        );
        written.expect("a String takes everything");
        text
    }
}

impl Label {
    /// What a request is counted under.
    pub(crate) fn of(request: &Request) -> Self {
        let segments: Vec<&str> = request.path.trim_matches('/').split('/').collect();
        let (group, rest) = match segments.as_slice() {
            ["api", _, rest @ ..] => ("", rest),
            ["apis", group, _, rest @ ..] => (*group, rest),
            _ => ("", &[][..]),
        };
        let (resource, name, subresource) = match rest {
            // Of the namespace itself, and of nothing in it.
            ["namespaces", name, part @ ("status" | "finalize")] => {
                ("namespaces", Some(name), Some(part))
            }
            ["namespaces", _, resource, rest @ ..] | [resource, rest @ ..] => {
                (*resource, rest.first(), rest.get(1))
            }
            [] => ("", Some(&""), None),
        };
        Self {
            verb: verb(request, name.is_some()),
            group: group.to_owned(),
            subresource: subresource.map_or(String::new(), |it| (*it).to_owned()),
            resource: resource.to_owned(),
        }
    }
}

fn verb(request: &Request, is_named: bool) -> &'static str {
    use sundown_api::Method;
    let watches = matches!(request.param("watch"), Some("1" | "true"));
    match request.method {
        Method::Get if watches => "WATCH",
        Method::Get if is_named => "GET",
        Method::Get => "LIST",
        Method::Post => "POST",
        Method::Put => "PUT",
        Method::Patch => "PATCH",
        Method::Delete if is_named => "DELETE",
        Method::Delete => "DELETECOLLECTION",
    }
}

fn escaped(value: &str) -> String {
    value
        .replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `namespaces/NAME/status` counted as a resource `status`.
    #[test]
    fn a_request_counts_under_its_resource_and_its_subresource() {
        for (path, resource, subresource, verb) in [
            ("/api/v1/namespaces/n/status", "namespaces", "status", "GET"),
            (
                "/api/v1/namespaces/n/finalize",
                "namespaces",
                "finalize",
                "GET",
            ),
            ("/api/v1/namespaces/n", "namespaces", "", "GET"),
            ("/api/v1/namespaces", "namespaces", "", "LIST"),
            ("/api/v1/namespaces/n/pods", "pods", "", "LIST"),
            ("/api/v1/namespaces/n/pods/p/log", "pods", "log", "GET"),
            (
                "/apis/ray.io/v1/namespaces/n/rayjobs/j/status",
                "rayjobs",
                "status",
                "GET",
            ),
            ("/api/v1/nodes/n/status", "nodes", "status", "GET"),
            ("/version", "", "", "GET"),
        ] {
            let label = Label::of(&Request {
                method: sundown_api::Method::Get,
                path: path.to_owned(),
                query: Vec::new(),
                content_type: None,
                accept: None,
                user_agent: None,
                if_none_match: None,
                user: sundown_api::User::admin(),
                body: Vec::new(),
            });
            let found = (&*label.resource, &*label.subresource, label.verb);
            assert_eq!(found, (resource, subresource, verb), "{path}");
        }
    }
}
