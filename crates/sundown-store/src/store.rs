//! The state of all objects and the one way to change it.
//!
//! A transaction names what it was decided on; it is applied whole or not at all. Durability and
//! queueing belong to whoever calls [`Store::commit`].

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use jiff::Timestamp;
use rpds::RedBlackTreeMapSync;
use sundown_model::{Namespace, ObjectKey, Resource};

use crate::log::Log;
use crate::{Body, Compacted, Event, History, Revision, Stored};

/// All live objects, the watch log and the revision of the newest write. A clone is a snapshot.
#[derive(Debug, Clone, Default)]
pub struct Store {
    revision: Revision,
    live: RedBlackTreeMapSync<ObjectKey, Arc<Stored>>,
    log: Log,
    history: History,
}

/// Where a store that was kept somewhere goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Restored {
    /// The newest write.
    pub revision: Revision,
    /// Events up to here are not known any more.
    pub floor: Revision,
}

/// What a decision wants to change, and what it was made on.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Transaction {
    /// The states that must still be current; None: the key must still be free.
    pub reads: Vec<(ObjectKey, Option<Revision>)>,
    /// Applied in order, one revision each.
    pub writes: Vec<Write>,
}

/// One change of one object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Write {
    Put { key: ObjectKey, body: Body },
    Delete { key: ObjectKey },
}

/// What was committed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Committed {
    /// Per write: its revision and the new state, None for a delete.
    pub writes: Vec<(Revision, Option<Arc<Stored>>)>,
}

/// Something that the transaction was decided on has changed since. Nothing was written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{key}: changed since it was read")]
pub struct Stale {
    pub key: ObjectKey,
}

impl Store {
    /// An empty store that keeps this much history.
    pub fn new(history: History) -> Self {
        Self {
            history,
            ..Self::default()
        }
    }

    /// A store as a durable one was left.
    ///
    /// Assumes: `events` are consecutive and end at `state.revision`; `objects` is what stands after
    /// them. Whoever kept them has checked it.
    pub fn restore(
        history: History,
        state: Restored,
        objects: impl IntoIterator<Item = (ObjectKey, Arc<Stored>)>,
        events: impl IntoIterator<Item = Event>,
    ) -> Self {
        let mut store = Self {
            revision: state.revision,
            log: Log::starting_after(state.floor),
            ..Self::new(history)
        };
        for (key, stored) in objects {
            store.log.note(&key.resource, stored.revision);
            store.live.insert_mut(key, stored);
        }
        for event in events {
            store.log.push(event);
        }
        store
    }

    /// Lets history begin here: a watch from before is told that it is too old.
    pub fn begin_history(&mut self) {
        self.log.begin_after(self.revision);
    }

    /// The revision of the newest write.
    pub fn revision(&self) -> Revision {
        self.revision
    }

    /// The newest revision at which objects of a resource changed; zero if never.
    pub fn newest(&self, resource: &Resource) -> Revision {
        self.log.newest(resource)
    }

    /// The live state of a key.
    pub fn get(&self, key: &ObjectKey) -> Option<&Arc<Stored>> {
        self.live.get(key)
    }

    /// All live objects, in key order.
    pub fn iter(&self) -> impl Iterator<Item = (&ObjectKey, &Arc<Stored>)> {
        self.live.iter()
    }

    /// The live objects of a resource, in key order.
    pub fn of<'a>(
        &'a self,
        resource: &Resource,
    ) -> impl Iterator<Item = (&'a ObjectKey, &'a Arc<Stored>)> + use<'a> {
        self.from(ObjectKey::cluster(resource, "")).take_while({
            let resource = resource.clone();
            move |(key, _)| key.resource == resource
        })
    }

    /// The live objects of a resource in one namespace, in key order.
    pub fn within<'a>(
        &'a self,
        resource: &Resource,
        namespace: &Namespace,
    ) -> impl Iterator<Item = (&'a ObjectKey, &'a Arc<Stored>)> + use<'a> {
        self.from(ObjectKey::namespaced(resource, namespace.as_str(), ""))
            .take_while({
                let (resource, namespace) = (resource.clone(), namespace.clone());
                move |(key, _)| {
                    key.resource == resource && key.namespace.as_ref() == Some(&namespace)
                }
            })
    }

    /// The objects of a resource as they were at an older revision, in key order.
    ///
    /// Errors: the history back to that revision is gone.
    pub fn at(
        &self,
        resource: &Resource,
        revision: Revision,
    ) -> Result<BTreeMap<ObjectKey, Arc<Stored>>, Compacted> {
        let mut objects: BTreeMap<_, _> = self
            .of(resource)
            .map(|(key, stored)| (key.clone(), Arc::clone(stored)))
            .collect();
        // Undone newest first, so that what remains is what stood before the oldest change.
        let mut events: Vec<_> = self.events_after(resource, revision)?.collect();
        events.reverse();
        for event in events {
            match &event.prev {
                Some(prev) => objects.insert(event.key.clone(), Arc::clone(prev)),
                None => objects.remove(&event.key),
            };
        }
        Ok(objects)
    }

    /// All events of a resource after a revision, in order.
    ///
    /// Errors: some of them are no longer known. There is never a gap.
    pub fn events_after<'a>(
        &'a self,
        resource: &Resource,
        revision: Revision,
    ) -> Result<impl Iterator<Item = &'a Arc<Event>> + use<'a>, Compacted> {
        self.log.after(resource, revision)
    }

    /// The events of all resources after a revision, in order: what a durable server writes down.
    ///
    /// Guarantees: those of the newest commit are always among them.
    pub fn events_since(&self, revision: Revision) -> impl Iterator<Item = &Arc<Event>> {
        self.log.since(revision)
    }

    /// The oldest event that is still known; None when there is none.
    pub fn oldest_event(&self) -> Option<Revision> {
        self.log.oldest()
    }

    /// Checks what the transaction was decided on, then applies it whole.
    ///
    /// Guarantees: one write is one revision, the revisions are consecutive, and on an error or
    /// without writes nothing changes at all.
    ///
    /// Errors: a read is no longer current, or a key to delete is not there.
    pub fn commit(
        &mut self,
        transaction: &Transaction,
        now: Timestamp,
    ) -> Result<Committed, Stale> {
        for (key, seen) in &transaction.reads {
            if self.get(key).map(|stored| stored.revision) != *seen {
                return Err(Stale { key: key.clone() });
            }
        }
        let mut next = self.clone();
        let mut writes = Vec::with_capacity(transaction.writes.len());
        for write in &transaction.writes {
            writes.push(next.apply(write, now)?);
        }
        if !writes.is_empty() {
            next.log.trim(next.history, now, self.revision);
        }
        *self = next;
        Ok(Committed { writes })
    }

    fn apply(
        &mut self,
        write: &Write,
        now: Timestamp,
    ) -> Result<(Revision, Option<Arc<Stored>>), Stale> {
        let revision = self.revision.next();
        let (key, new) = match write {
            Write::Put { key, body } => (key, Some(Arc::new(body.stamp(revision)))),
            Write::Delete { key } => (key, None),
        };
        let prev = self.live.get(key).cloned();
        match &new {
            Some(stored) => self.live.insert_mut(key.clone(), Arc::clone(stored)),
            None if !self.live.remove_mut(key) => return Err(Stale { key: key.clone() }),
            None => {}
        }
        self.revision = revision;
        self.log.push(Event {
            revision,
            at: now,
            key: key.clone(),
            new: new.clone(),
            prev,
        });
        Ok((revision, new))
    }

    fn from(&self, first: ObjectKey) -> impl Iterator<Item = (&ObjectKey, &Arc<Stored>)> {
        self.live.range((Bound::Included(first), Bound::Unbounded))
    }
}

#[cfg(test)]
mod tests;
