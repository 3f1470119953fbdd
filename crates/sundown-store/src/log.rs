//! The watch log: what changed, per resource, for as long as the history window lasts.
//!
//! Trimming is store-wide and oldest first, but each resource has its own floor: a watch on a quiet
//! resource loses nothing when a busy one is trimmed.

use std::ops::Bound;
use std::sync::Arc;

use jiff::Timestamp;
use rpds::{QueueSync, RedBlackTreeMapSync};
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
}

impl Default for History {
    fn default() -> Self {
        Self {
            events_min: 1_000,
            age_max_seconds: 300,
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
    order: QueueSync<Arc<Event>>,
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
        self.order.enqueue_mut(event);
    }

    pub(crate) fn trim(&mut self, history: History, now: Timestamp) {
        while let Some(oldest) = self.order.peek().cloned() {
            let count = self.order.len();
            let age = now.as_second().saturating_sub(oldest.at.as_second());
            let is_old = count > history.events_min && age > history.age_max_seconds;
            if !is_old && count <= EVENTS_MAX {
                return;
            }
            self.order.dequeue_mut();
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
        if let Some(table) = table
            && revision < table.floor
        {
            return Err(Compacted { floor: table.floor });
        }
        let bounds = (Bound::Excluded(revision), Bound::Unbounded);
        Ok(table
            .into_iter()
            .flat_map(move |table| table.events.range(bounds).map(|(_, e)| e)))
    }

    fn forget(&mut self, event: &Event) {
        let table = self.tables.get(&event.key.resource);
        let mut table = table.cloned().expect("an event in the queue has a table");
        table.events.remove_mut(&event.revision);
        table.floor = event.revision;
        self.tables.insert_mut(event.key.resource.clone(), table);
    }
}
