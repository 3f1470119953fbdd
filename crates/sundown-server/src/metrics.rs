//! What the server counts about itself, in the text format of Prometheus. Names follow upstream's
//! where the meaning is the same.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::atomic::{AtomicI64, Ordering};
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
}

/// What a request is counted under.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Label {
    verb: &'static str,
    group: String,
    resource: String,
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
            label.resource = format!("other\u{0}{code}");
        }
        *requests.entry(label).or_default() += 1;
    }

    /// Counts a watch as open.
    pub(crate) fn open_watch(&self) -> Open {
        self.watches.fetch_add(1, Ordering::Relaxed);
        Open(Arc::clone(&self.watches))
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
            let resource = escaped(resource);
            let written = writeln!(
                text,
                "apiserver_request_total{{code=\"{code}\",group=\"{group}\",resource=\"{resource}\",\
                 verb=\"{verb}\"}} {count}"
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
        let (resource, is_named) = match rest {
            ["namespaces", _, resource, rest @ ..] | [resource, rest @ ..] => {
                (*resource, !rest.is_empty())
            }
            [] => ("", true),
        };
        Self {
            verb: verb(request, is_named),
            group: group.to_owned(),
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
