//! What the server counts about itself, as `OpenMetrics` text. Names follow upstream's where the meaning is the
//! same. Others in this process register what they count beside it.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use prometheus_client::encoding::{EncodeLabelSet, text};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use sundown_api::Request;

/// How many different series are kept; what would be one more counts as `other`. Paths come from
/// clients, so the number of labels has to be bounded.
const SERIES_MAX: usize = 2000;

/// The counters of one server.
#[derive(Debug)]
pub(crate) struct Metrics {
    registry: Mutex<Registry>,
    requests: Family<Label, Counter>,
    known: Mutex<BTreeSet<Label>>,
    watches: Gauge,
    revision: Gauge,
    /// Requests of clients that came by a connection and showed who they are.
    outside: AtomicU64,
    /// Of those, how many are answered piece by piece right now.
    streams: Gauge,
}

/// What a request is counted under.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, EncodeLabelSet)]
pub(crate) struct Label {
    code: u16,
    group: String,
    resource: String,
    subresource: String,
    verb: &'static str,
}

/// What stays open is counted under.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Verb {
    verb: &'static str,
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
pub(crate) struct Open(Gauge);

impl Drop for Open {
    fn drop(&mut self) {
        self.0.dec();
    }
}

impl Default for Metrics {
    fn default() -> Self {
        let mut registry = Registry::default();
        let requests = Family::<Label, Counter>::default();
        let open = Family::<Verb, Gauge>::default();
        let revision = Gauge::default();
        registry.register(
            "apiserver_request",
            "Requests by verb, group, resource and HTTP response code",
            requests.clone(),
        );
        registry.register(
            "apiserver_longrunning_requests",
            "Open watches",
            open.clone(),
        );
        registry.register(
            "sundown_store_revision",
            "The revision of the newest visible write",
            revision.clone(),
        );
        Self {
            registry: Mutex::new(registry),
            requests,
            known: Mutex::default(),
            watches: open.get_or_create_owned(&Verb { verb: "WATCH" }),
            revision,
            outside: AtomicU64::default(),
            streams: Gauge::default(),
        }
    }
}

impl Metrics {
    /// Counts an answer.
    pub(crate) fn count(&self, label: Label, code: u16) {
        let mut label = Label { code, ..label };
        let mut known = locked(&self.known);
        if known.len() >= SERIES_MAX && !known.contains(&label) {
            label.group.clear();
            label.subresource.clear();
            "other".clone_into(&mut label.resource);
        }
        self.requests.get_or_create(&label).inc();
        if !known.contains(&label) {
            known.insert(label);
        }
    }

    /// Counts a watch as open.
    pub(crate) fn open_watch(&self) -> Open {
        self.watches.inc();
        Open(self.watches.clone())
    }

    /// Counts a request of a client from outside.
    pub(crate) fn enter(&self) {
        self.outside.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts an answer to such a client as open.
    pub(crate) fn open_stream(&self) -> Open {
        self.streams.inc();
        Open(self.streams.clone())
    }

    /// How much clients from outside asked so far.
    pub(crate) fn usage(&self) -> Usage {
        Usage {
            requests: self.outside.load(Ordering::Relaxed),
            is_followed: self.streams.get() > 0,
        }
    }

    /// Lets others show what they count.
    pub(crate) fn register(&self, register: impl FnOnce(&mut Registry)) {
        register(&mut locked(&self.registry));
    }

    /// Everything, as `/metrics` shows it.
    pub(crate) fn text(&self, revision: u64) -> String {
        self.revision
            .set(i64::try_from(revision).unwrap_or(i64::MAX));
        let mut shown = String::new();
        text::encode(&mut shown, &locked(&self.registry)).expect("a String takes everything");
        shown
    }
}

/// Counting does not panic, so a poisoned lock still holds whole numbers.
fn locked<T>(what: &Mutex<T>) -> MutexGuard<'_, T> {
    what.lock().unwrap_or_else(PoisonError::into_inner)
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
            code: 0,
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Paths are the clients': whatever they ask for, the answer stays short.
    #[test]
    fn series_are_bounded_and_each_request_is_counted() {
        let metrics = Metrics::default();
        let label = |number: usize| Label {
            verb: "GET",
            resource: format!("things-{number}"),
            ..Label::default()
        };
        for number in 0..SERIES_MAX + 10 {
            metrics.count(label(number), 404);
        }
        metrics.count(label(0), 404);
        let text = metrics.text(7);
        let lines: Vec<&str> = text.lines().collect();
        let of = |resource: &str| {
            format!(
                "apiserver_request_total{{code=\"404\",group=\"\",resource=\"{resource}\",subresource=\"\",verb=\"GET\"}}"
            )
        };
        assert!(lines.contains(&&*format!("{} 2", of("things-0"))), "{text}");
        assert!(lines.contains(&&*format!("{} 10", of("other"))));
        assert!(lines.contains(&"sundown_store_revision 7"));
        assert_eq!(lines.last(), Some(&"# EOF"));
        let series = lines
            .iter()
            .filter(|it| it.starts_with("apiserver_request_total"));
        assert_eq!(series.count(), SERIES_MAX + 1);
    }

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
