//! A watch as plain data: a cursor and a filter. Who polls it, and when, is the shell's business.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use sundown_model::{Namespace, ObjectKey, Resource};
use sundown_store::{Event, Revision, Stored};

use crate::failure::Failure;
use crate::field::{Errors, FieldError};
use crate::list::read_revision;
use crate::registry::Type;
use crate::render::{self, Form};
use crate::route::Target;
use crate::selector::Selector;
use crate::table::Table;
use crate::{Cx, Encoding, Request, Server};
use crate::{negotiate, options, protobuf};

/// As upstream: clients may rely on a bookmark a minute.
const BOOKMARK_SECONDS: i64 = 60;
/// The last bookmark comes this long before the timeout.
const LAST_BOOKMARK_SECONDS: i64 = 2;
/// Watches without a timeout end after 30 to 60 minutes, so that clients spread.
const TIMEOUT_SECONDS_MIN: i64 = 1800;

/// So many lines of events at once: what a slow client has not taken waits in the log, not in memory
/// of its own.
const LINES_MAX: usize = 256;

/// An open watch. Clone it to fork it.
#[derive(Debug, Clone)]
pub struct Watch {
    ty: Arc<Type>,
    namespace: Option<Namespace>,
    selector: Selector,
    form: Form,
    encoding: Encoding,
    /// Lines are shown as Tables.
    table: Option<Table>,
    phase: Phase,
    has_bookmarks: bool,
    bookmark_at: Timestamp,
    ends_at: Timestamp,
}

/// How far a watch has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// The present state is still to be sent, once this revision is reached.
    Initial {
        not_before: Revision,
    },
    /// Everything up to this revision was sent.
    Live {
        cursor: Revision,
    },
    Ended,
}

/// What a watch has to say.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Polled {
    /// Complete JSON lines, each with its line feed, in revision order.
    pub lines: Vec<Arc<[u8]>>,
    /// The stream is to be closed after the lines.
    pub ended: bool,
}

impl Watch {
    /// Opens a watch on a collection, or on one object of it.
    pub(crate) fn open(
        server: &Server,
        target: &Target,
        request: &Request,
        cx: &mut Cx<'_>,
    ) -> Result<Self, Failure> {
        let form = negotiate::form(request)?;
        let encoding = Encoding::of(request);
        if encoding == Encoding::Yaml {
            let forms = "application/json;stream=watch, \
                         application/vnd.kubernetes.protobuf;stream=watch";
            return Err(Failure::not_acceptable_here(forms));
        }
        let mut selector = Selector::read(request, &target.ty)?;
        if let Some(name) = &target.name {
            selector.require_name(name);
        }
        let sends_initial = sends_initial_events(request)?;
        let revision = read_revision(request).map_err(Failure::unnamed)?;
        let phase = match (sends_initial, revision) {
            (Some(true) | None, None) => Phase::Initial {
                not_before: Revision::ZERO,
            },
            (Some(true), Some(revision)) => Phase::Initial {
                not_before: revision,
            },
            (_, Some(cursor)) => Phase::Live { cursor },
            (Some(false), None) => Phase::Live {
                cursor: server.revision(),
            },
        };
        let asked = options::number(request, "timeoutSeconds")?.filter(|seconds| *seconds > 0);
        let spread = i64::try_from((cx.entropy)() % 1800).expect("smaller than 1800");
        let ends_at = after(cx.now, asked.unwrap_or(TIMEOUT_SECONDS_MIN + spread));
        let mut watch = Self {
            ty: Arc::clone(&target.ty),
            namespace: target.namespace.as_deref().map(Namespace::from),
            selector,
            form,
            encoding,
            table: None,
            phase,
            has_bookmarks: options::flag(request, "allowWatchBookmarks")? == Some(true),
            bookmark_at: cx.now,
            ends_at,
        };
        watch.bookmark_at = watch.next_bookmark_after(cx.now);
        Ok(watch)
    }

    /// What the client is to be told beside the stream.
    pub fn warning(&self) -> Option<&str> {
        self.ty.deprecation.as_deref()
    }

    /// Everything that happened since the last poll.
    ///
    /// After a long time it may take several polls: whoever got lines polls again.
    ///
    /// Guarantees: in revision order, without a gap; where history is missing the stream ends with
    /// an ERROR of code 410.
    pub fn poll(&mut self, at: &Server, now: Timestamp) -> Polled {
        let mut polled = self.poll_objects(at, now);
        if let Some(table) = &mut self.table {
            for line in &mut polled.lines {
                *line = table.line(line, now);
            }
        }
        if self.encoding == Encoding::Protobuf {
            for line in &mut polled.lines {
                let event = serde_json::from_slice(line).unwrap_or_default();
                if let Some(frame) = protobuf::frame(&event) {
                    *line = frame.into();
                }
            }
        }
        polled
    }

    /// Shows every line as a Table from now on.
    pub(crate) fn show_as(&mut self, table: Table) {
        self.table = Some(table);
    }

    fn poll_objects(&mut self, at: &Server, now: Timestamp) -> Polled {
        let mut lines = Vec::new();
        if self.phase == Phase::Ended || !at.registry().serves(&self.ty) {
            self.phase = Phase::Ended;
            return Polled { lines, ended: true };
        }
        if let Phase::Initial { not_before } = self.phase
            && at.revision() >= not_before
        {
            self.send_present(at, &mut lines);
        }
        if let Phase::Live { cursor } = self.phase {
            if let Err(failure) = self.send_events(at, cursor, &mut lines) {
                lines.push(line("ERROR", failure.status().to_string().as_bytes()));
                self.phase = Phase::Ended;
                return Polled { lines, ended: true };
            }
            let is_current =
                matches!(self.phase, Phase::Live { cursor } if cursor == at.revision());
            if self.has_bookmarks && now >= self.bookmark_at && is_current {
                lines.push(self.bookmark(at.revision(), false));
                self.bookmark_at = self.next_bookmark_after(now);
            }
        }
        let ended = now >= self.ends_at;
        if ended {
            self.phase = Phase::Ended;
        }
        Polled { lines, ended }
    }

    /// The next instant at which `poll` has something to say without a commit.
    pub fn wake_at(&self) -> Option<Timestamp> {
        match self.phase {
            Phase::Ended => None,
            Phase::Live { .. } if self.has_bookmarks => Some(self.bookmark_at.min(self.ends_at)),
            Phase::Live { .. } | Phase::Initial { .. } => Some(self.ends_at),
        }
    }

    /// The media type of the stream.
    pub fn media_type(&self) -> &'static str {
        match self.encoding {
            Encoding::Protobuf => "application/vnd.kubernetes.protobuf;stream=watch",
            Encoding::Json | Encoding::Yaml => render::JSON,
        }
    }

    /// What is watched.
    pub fn resource(&self) -> &Resource {
        self.ty.storage()
    }

    fn send_present(&mut self, at: &Server, lines: &mut Vec<Arc<[u8]>>) {
        for (key, stored) in at.store().of(self.ty.storage()) {
            if self.sees(key, stored) {
                lines.push(self.show("ADDED", stored));
            }
        }
        if self.has_bookmarks {
            lines.push(self.bookmark(at.revision(), true));
        }
        self.phase = Phase::Live {
            cursor: at.revision(),
        };
    }

    fn send_events(
        &mut self,
        at: &Server,
        cursor: Revision,
        lines: &mut Vec<Arc<[u8]>>,
    ) -> Result<(), Failure> {
        let events = at.store().events_after(self.ty.storage(), cursor);
        let events = events.map_err(|gone| Failure::too_old(cursor, gone.floor))?;
        for event in events {
            lines.extend(self.line_of(event));
            if lines.len() >= LINES_MAX {
                let cursor = event.revision;
                self.phase = Phase::Live { cursor };
                return Ok(());
            }
        }
        self.phase = Phase::Live {
            cursor: cursor.max(at.revision()),
        };
        Ok(())
    }

    /// What an event means to this watcher: objects enter, change and leave its selection.
    fn line_of(&self, event: &Event) -> Option<Arc<[u8]>> {
        let seen = |stored: &&Arc<Stored>| self.sees(&event.key, stored);
        match (
            event.new.as_ref().filter(seen),
            event.prev.as_ref().filter(seen),
        ) {
            (Some(new), Some(_)) => Some(self.show("MODIFIED", new)),
            (Some(new), None) => Some(self.show("ADDED", new)),
            (None, Some(prev)) => Some(self.show("DELETED", &prev.restamped(event.revision))),
            (None, None) => None,
        }
    }

    fn sees(&self, key: &ObjectKey, stored: &Stored) -> bool {
        let is_inside = self.namespace.is_none() || self.namespace == key.namespace;
        is_inside && self.selector.matches(key, stored)
    }

    fn show(&self, what: &str, stored: &Stored) -> Arc<[u8]> {
        line(what, &render::object(stored, &self.ty, self.form))
    }

    fn bookmark(&self, revision: Revision, is_initial_end: bool) -> Arc<[u8]> {
        let (api_version, kind) = self.form.type_meta(&self.ty);
        let mut metadata = json!({ "resourceVersion": revision.to_string() });
        if is_initial_end {
            metadata["annotations"] = json!({ "k8s.io/initial-events-end": "true" });
        }
        let object = json!({ "kind": &*kind, "apiVersion": api_version, "metadata": metadata });
        line("BOOKMARK", object.to_string().as_bytes())
    }

    fn next_bookmark_after(&self, now: Timestamp) -> Timestamp {
        let regular = after(now, BOOKMARK_SECONDS);
        let last = after(self.ends_at, -LAST_BOOKMARK_SECONDS);
        // Once the last one was sent, only the end itself is to come.
        if now < last {
            regular.min(last)
        } else {
            Timestamp::MAX
        }
    }
}

fn sends_initial_events(request: &Request) -> Result<Option<bool>, Failure> {
    let asked = options::flag(request, "sendInitialEvents")?;
    let matching = request.param("resourceVersionMatch").unwrap_or("");
    let field = "resourceVersionMatch";
    let mut errors = Errors::default();
    if asked.is_some() && matching != "NotOlderThan" {
        let why = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan";
        errors.push(FieldError::forbidden(field, why));
    }
    if request
        .param("continue")
        .is_some_and(|token| !token.is_empty())
    {
        let why = "resourceVersionMatch is forbidden when continue is provided";
        errors.push(FieldError::forbidden(field, why));
    }
    if asked.is_none() && !matching.is_empty() {
        let why =
            "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided";
        errors.push(FieldError::forbidden(field, why));
    }
    if !matching.is_empty() && matching != "NotOlderThan" {
        errors.push(FieldError::unsupported(field, matching, &["NotOlderThan"]));
    }
    if errors.is_empty() {
        Ok(asked)
    } else {
        Err(Failure::invalid_options("ListOptions", &errors))
    }
}

fn line(what: &str, object: &[u8]) -> Arc<[u8]> {
    let what = Value::from(what).to_string();
    [
        b"{\"type\":",
        what.as_bytes(),
        b",\"object\":",
        object,
        b"}\n",
    ]
    .concat()
    .into()
}

fn after(at: Timestamp, seconds: i64) -> Timestamp {
    at.saturating_add(SignedDuration::from_secs(seconds))
        .unwrap_or(Timestamp::MAX)
}
