//! From records to a store: reads everything, believes nothing, and says exactly what is wrong.
//!
//! What is done about damage is decided in `disk/start.rs`.

use std::collections::BTreeMap;
use std::sync::Arc;

use fjall::Keyspace;
use sundown_model::ObjectKey;
use sundown_store::{Event, History, Restored, Revision, Store, Stored};

use crate::record::{Base, Change, Entry, Sum, object, object_key, read_object, read_object_key};

/// What a sound data directory holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Summary {
    pub revision: Revision,
    /// Watches can resume after this revision.
    pub floor: Revision,
    pub objects: usize,
    pub events: usize,
}

/// All records, decoded.
#[derive(Debug, Default)]
pub(crate) struct Records {
    pub(crate) objects: BTreeMap<ObjectKey, Arc<Stored>>,
    pub(crate) sum: Sum,
    pub(crate) base: Base,
    pub(crate) entries: Vec<Entry>,
    /// The first record that cannot be read.
    pub(crate) unreadable: Option<String>,
}

/// What is wrong with the records, and up to where they are right.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Flaw {
    pub(crate) what: String,
    pub(crate) last_good: Option<Revision>,
}

impl Records {
    /// Reads both keyspaces.
    ///
    /// Errors: fjall cannot read its own files.
    pub(crate) fn read(objects: &Keyspace, log: &Keyspace) -> fjall::Result<Self> {
        let mut records = Self::default();
        let mut last = None;
        for guard in objects.iter() {
            let (key, value) = guard.into_inner()?;
            let read = read_object_key(&key, last.as_ref()).zip(read_object(&key, &value));
            let Some((key, (stored, sum))) = read else {
                let key = String::from_utf8_lossy(&key).replace('\0', "/");
                records.complain(format!("the object {key} has a wrong checksum"));
                continue;
            };
            last = Some(key.resource.clone());
            records.sum.add(sum);
            records.objects.insert(key, Arc::new(stored));
        }
        let mut has_base = false;
        for guard in log.iter() {
            let (key, value) = guard.into_inner()?;
            if *key == 0_u64.to_be_bytes() {
                let base = Base::decode(&value);
                has_base = base.is_some();
                records.base = base.unwrap_or_default();
            } else if let Some(entry) = Entry::decode(&value, last.as_ref())
                && *key == entry.revision.number().to_be_bytes()
            {
                last = Some(entry.key.resource.clone());
                records.entries.push(entry);
            } else {
                let number = <[u8; 8]>::try_from(&*key).map_or(0, u64::from_be_bytes);
                records.complain(format!("the log record {number} has a wrong checksum"));
            }
        }
        if !has_base {
            records.complain("the base of the log is missing".to_owned());
        }
        Ok(records)
    }

    /// The newest revision in the log.
    pub(crate) fn head(&self) -> Revision {
        let newest = self.entries.last().map(|entry| entry.revision);
        newest.unwrap_or(self.base.revision)
    }

    /// Checks everything.
    ///
    /// Guarantees: without a flaw, the objects are exactly those after the newest entry, the entries
    /// are contiguous, and nothing up to `acknowledged` is missing.
    pub(crate) fn flaw(&self, acknowledged: Revision) -> Option<Flaw> {
        let end = self.contiguous_end();
        let proven = || self.rolled_back(end).map(|_| end);
        if let Some(what) = &self.unreadable {
            let (what, last_good) = (what.clone(), proven());
            return Some(Flaw { what, last_good });
        }
        if end < self.head() {
            let what = format!("the log has a gap after revision {end}");
            let last_good = proven();
            return Some(Flaw { what, last_good });
        }
        if self.sum != self.sum_at(end) || self.events().is_none() {
            let what = format!("the objects are not those of revision {end}");
            let last_good = None;
            return Some(Flaw { what, last_good });
        }
        (end < acknowledged).then(|| Flaw {
            what: format!(
                "revisions {} to {acknowledged} were acknowledged and are missing",
                end.next()
            ),
            last_good: Some(end),
        })
    }

    /// The objects as they were at a revision of the log; None unless that is proven.
    pub(crate) fn rolled_back(&self, to: Revision) -> Option<BTreeMap<ObjectKey, Arc<Stored>>> {
        let mut objects = self.objects.clone();
        let later = self.entries.iter().rev();
        for entry in later.take_while(|entry| entry.revision > to) {
            match &entry.prev {
                Some(prev) => objects.insert(entry.key.clone(), Arc::clone(prev)),
                None => objects.remove(&entry.key),
            };
        }
        let mut sum = Sum::default();
        for (key, stored) in &objects {
            sum.add(object(&object_key(key), stored).1);
        }
        (sum == self.sum_at(to)).then_some(objects)
    }

    /// The store that the records make.
    ///
    /// Assumes: there is no flaw.
    pub(crate) fn store(self, history: History) -> (Store, Summary) {
        let first = self.entries.first().map(|entry| entry.revision);
        let floor = first.map_or(self.base.revision, |first| {
            Revision::new(first.number().saturating_sub(1))
        });
        let events = self.events().expect("checked before");
        let summary = Summary {
            revision: self.head(),
            floor,
            objects: self.objects.len(),
            events: events.len(),
        };
        let state = Restored {
            revision: summary.revision,
            floor,
        };
        let store = Store::restore(history, state, self.objects, events);
        (store, summary)
    }

    /// The log as watchers see it; None if an entry does not fit what came after it.
    fn events(&self) -> Option<Vec<Event>> {
        let mut states: BTreeMap<&ObjectKey, Option<Arc<Stored>>> = BTreeMap::new();
        let mut events = Vec::with_capacity(self.entries.len());
        for entry in self.entries.iter().rev() {
            let prev = entry.prev.clone();
            if entry.change == Change::Skip {
                continue;
            }
            let later = states.insert(&entry.key, prev.clone());
            let new = later.unwrap_or_else(|| self.objects.get(&entry.key).cloned());
            let written = new.as_ref().map(|new| new.revision());
            if written != (entry.change == Change::Put).then_some(entry.revision) {
                return None;
            }
            events.push(Event {
                revision: entry.revision,
                at: entry.at,
                key: entry.key.clone(),
                new,
                prev,
            });
        }
        events.reverse();
        Some(events)
    }

    fn contiguous_end(&self) -> Revision {
        let Some(first) = self.entries.first() else {
            return self.base.revision;
        };
        let mut end = first.revision;
        for entry in &self.entries[1..] {
            let follows = match entry.change {
                Change::Put | Change::Delete => entry.revision == end.next(),
                Change::Skip => entry.revision > end,
            };
            if !follows {
                break;
            }
            end = entry.revision;
        }
        end
    }

    fn sum_at(&self, revision: Revision) -> Sum {
        let entry = self.entries.iter().find(|it| it.revision == revision);
        entry.map_or(self.base.sum, |entry| entry.sum)
    }

    fn complain(&mut self, what: String) {
        self.unreadable.get_or_insert(what);
    }
}
