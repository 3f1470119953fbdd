//! The watch log: what changed, per resource, for as long as the history window lasts.
//!
//! Trimming is store-wide and oldest first, but each resource has its own floor: a watch on a quiet
//! resource loses nothing when a busy one is trimmed.

use std::ops::Bound;
use std::sync::Arc;

use jiff::Timestamp;
use rpds::RedBlackTreeMapSync;
use sundown_model::{ObjectKey, Resource};

use crate::{Revision, Stored};

/// However young, more events than this are not kept: memory stays bounded in a burst. A slow
/// watcher then gets `Compacted` early; measurements of real bursts would move this number.
const EVENTS_MAX: usize = 100_000;

/// How much history is kept for watches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct History {
    /// At least this many events are kept, however old.
    pub events_min: usize,
    /// Events younger than this are kept.
    pub age_max_seconds: i64,
    /// However young and few, events whose states come to more than this are not kept: objects may
    /// be large.
    pub bytes_max: usize,
}

impl Default for History {
    fn default() -> Self {
        Self {
            events_min: 1_000,
            age_max_seconds: 300,
            // As many events of two kilobytes as are kept at most.
            bytes_max: 256 * 1024 * 1024,
        }
    }
}

/// One write, as watchers see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    pub revision: Revision,
    pub at: Timestamp,
    pub key: ObjectKey,
    /// None: the object went.
    pub new: Option<Arc<Stored>>,
    /// None: the object came.
    pub prev: Option<Arc<Stored>>,
}

impl Event {
    fn bytes(&self) -> usize {
        self.new.as_ref().map_or(0, |new| new.json().len())
    }
}

/// The asked-for history is no longer complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("events up to {floor} are gone")]
pub struct Compacted {
    /// The oldest revision after which all events are still known.
    pub floor: Revision,
}

/// All events inside the history window.
#[derive(Debug, Clone, Default)]
pub(crate) struct Log {
    order: RedBlackTreeMapSync<Revision, Arc<Event>>,
    /// What the new states come to.
    bytes: usize,
    /// Nothing up to here is known, of any resource: where a restored log begins.
    floor: Revision,
    tables: RedBlackTreeMapSync<Resource, Table>,
}

#[derive(Debug, Clone, Default)]
struct Table {
    events: RedBlackTreeMapSync<Revision, Arc<Event>>,
    /// The newest event that was trimmed away.
    floor: Revision,
    newest: Revision,
}

impl Log {
    /// An empty log that knows nothing up to `floor`.
    pub(crate) fn starting_after(floor: Revision) -> Self {
        Self {
            floor,
            ..Self::default()
        }
    }

    /// Lets watches begin only after `floor`. The events stay for whoever writes them down.
    pub(crate) fn begin_after(&mut self, floor: Revision) {
        self.floor = floor;
    }

    /// Notes a change that is older than the log, so that `newest` knows of it.
    pub(crate) fn note(&mut self, resource: &Resource, revision: Revision) {
        let mut table = self.tables.get(resource).cloned().unwrap_or_default();
        if revision > table.newest {
            table.newest = revision;
            self.tables.insert_mut(resource.clone(), table);
        }
    }

    pub(crate) fn push(&mut self, event: Event) {
        let event = Arc::new(event);
        let mut table = self
            .tables
            .get(&event.key.resource)
            .cloned()
            .unwrap_or_default();
        table.newest = event.revision;
        table.events.insert_mut(event.revision, Arc::clone(&event));
        self.tables.insert_mut(event.key.resource.clone(), table);
        self.bytes += event.bytes();
        self.order.insert_mut(event.revision, event);
    }

    /// Forgets what is older than the window, but nothing after `kept`: a durable server has yet to
    /// write down the events of the newest commit.
    pub(crate) fn trim(&mut self, history: History, now: Timestamp, kept: Revision) {
        while let Some((_, oldest)) = self.order.first() {
            let oldest = Arc::clone(oldest);
            let count = self.order.size();
            let age = now.as_second().saturating_sub(oldest.at.as_second());
            let is_old = count > history.events_min && age > history.age_max_seconds;
            let fits = count <= EVENTS_MAX && self.bytes <= history.bytes_max;
            if oldest.revision > kept || (!is_old && fits) {
                return;
            }
            self.order.remove_mut(&oldest.revision);
            self.forget(&oldest);
        }
    }

    pub(crate) fn newest(&self, resource: &Resource) -> Revision {
        self.tables
            .get(resource)
            .map_or(Revision::ZERO, |table| table.newest)
    }

    pub(crate) fn after<'a>(
        &'a self,
        resource: &Resource,
        revision: Revision,
    ) -> Result<impl Iterator<Item = &'a Arc<Event>> + use<'a>, Compacted> {
        let table = self.tables.get(resource);
        let floor = table.map_or(self.floor, |table| table.floor.max(self.floor));
        if revision < floor {
            return Err(Compacted { floor });
        }
        let bounds = (Bound::Excluded(revision), Bound::Unbounded);
        Ok(table
            .into_iter()
            .flat_map(move |table| table.events.range(bounds).map(|(_, e)| e)))
    }

    /// The events of all resources after a revision, in order, as far back as they are known.
    pub(crate) fn since(&self, revision: Revision) -> impl Iterator<Item = &Arc<Event>> {
        let bounds = (Bound::Excluded(revision), Bound::Unbounded);
        self.order.range(bounds).map(|(_, event)| event)
    }

    /// The oldest event that is known.
    pub(crate) fn oldest(&self) -> Option<Revision> {
        self.order.first().map(|(revision, _)| *revision)
    }

    fn forget(&mut self, event: &Event) {
        let table = self.tables.get(&event.key.resource);
        let mut table = table.cloned().expect("an event in the queue has a table");
        table.events.remove_mut(&event.revision);
        table.floor = event.revision;
        self.bytes -= event.bytes();
        self.tables.insert_mut(event.key.resource.clone(), table);
    }
}
