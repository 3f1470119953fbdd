//! What really happened: every commit, kept apart from the server's own log, so that the server and
//! its clients can be judged by it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::Value;
use sundown_api::Method;
use sundown_model::{Catalog, ObjectKey, OwnerRef, Resolved, Uid};

/// Who made a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Actor {
    User,
    /// A controller, by name.
    Controller(String),
}

/// One state of an object.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Version {
    pub(crate) uid: Uid,
    pub(crate) revision: u64,
    pub(crate) json: Value,
}

/// One write, with who asked for it.
#[derive(Debug, Clone)]
pub(crate) struct Event {
    pub(crate) revision: u64,
    pub(crate) at: Timestamp,
    pub(crate) key: ObjectKey,
    pub(crate) prev: Option<Arc<Version>>,
    pub(crate) new: Option<Arc<Version>>,
    pub(crate) by: Actor,
    /// Which operator there was then, by number.
    pub(crate) life: usize,
    pub(crate) method: Method,
    pub(crate) path: String,
    /// Uid and revision that the request insisted on.
    pub(crate) guard: (Option<String>, Option<String>),
    /// The first write of its transaction to this key.
    pub(crate) first: bool,
}

/// Dependents to which a deletion of their owner promised something.
#[derive(Debug, Clone)]
pub(crate) struct Promise {
    pub(crate) kept_alive: bool,
    pub(crate) owner: Uid,
    pub(crate) dependents: BTreeSet<Uid>,
}

/// The whole truth.
#[derive(Debug, Clone, Default)]
pub(crate) struct Ledger {
    pub(crate) events: Vec<Arc<Event>>,
    pub(crate) live: BTreeMap<ObjectKey, Arc<Version>>,
    pub(crate) uids: BTreeSet<Uid>,
    pub(crate) promises: Vec<Promise>,
    pub(crate) catalog: Arc<Catalog>,
}

impl Version {
    pub(crate) fn new(revision: u64, json: Value) -> Self {
        let uid = json
            .pointer("/metadata/uid")
            .and_then(Value::as_str)
            .unwrap_or_default();
        Self {
            uid: uid.into(),
            revision,
            json,
        }
    }

    pub(crate) fn finalizers(&self) -> impl Iterator<Item = &str> {
        let list = self
            .json
            .pointer("/metadata/finalizers")
            .and_then(Value::as_array);
        list.into_iter().flatten().filter_map(Value::as_str)
    }

    pub(crate) fn has_finalizer(&self, name: &str) -> bool {
        self.finalizers().any(|finalizer| finalizer == name)
    }

    pub(crate) fn deleted_at(&self) -> Option<&str> {
        self.json
            .pointer("/metadata/deletionTimestamp")
            .and_then(Value::as_str)
    }

    /// Whether a deletion of it waits for this finalizer.
    pub(crate) fn awaits(&self, finalizer: &str) -> bool {
        self.deleted_at().is_some() && self.has_finalizer(finalizer)
    }

    pub(crate) fn owners(&self) -> Vec<OwnerRef> {
        let list = self.json.pointer("/metadata/ownerReferences").cloned();
        list.and_then(|list| serde_json::from_value(list).ok())
            .unwrap_or_default()
    }
}

impl Event {
    pub(crate) fn is_by(&self, controller: &str) -> bool {
        matches!(&self.by, Actor::Controller(name) if name == controller)
    }
}

impl Ledger {
    /// Takes in an event that has been judged.
    pub(crate) fn add(&mut self, event: Arc<Event>) {
        self.promise(&event);
        match &event.new {
            Some(new) => {
                self.uids.insert(new.uid.clone());
                self.live.insert(event.key.clone(), new.clone());
            }
            None => {
                self.live.remove(&event.key);
            }
        }
        self.events.push(event);
    }

    /// The key that a reference of an object at `of` names; None when it names nothing served.
    pub(crate) fn key_of(&self, owner: &OwnerRef, of: &ObjectKey) -> Option<ObjectKey> {
        let Resolved::Known(ty) = self.catalog.resolve(&owner.api_version, &owner.kind) else {
            return None;
        };
        let namespace = if ty.namespaced {
            Some(of.namespace.clone()?)
        } else {
            None
        };
        Some(ObjectKey {
            resource: ty.resource.clone(),
            namespace,
            name: owner.name.clone(),
        })
    }

    /// The owner that a reference names, if this very incarnation is there.
    pub(crate) fn owner(&self, owner: &OwnerRef, of: &ObjectKey) -> Option<&Arc<Version>> {
        let key = self.key_of(owner, of)?;
        self.live
            .get(&key)
            .filter(|version| version.uid == owner.uid)
    }

    /// Whether an incarnation was there and went.
    pub(crate) fn has_gone(&self, uid: &Uid) -> bool {
        let mut ends = self.events.iter().filter(|event| event.new.is_none());
        ends.any(|event| event.prev.as_ref().is_some_and(|prev| prev.uid == *uid))
    }

    /// Whether an incarnation waited in foreground at or after a revision.
    pub(crate) fn waited_since(&self, key: &ObjectKey, uid: &Uid, revision: u64) -> bool {
        let mut states = self
            .events
            .iter()
            .filter(|event| event.key == *key)
            .peekable();
        while let Some(event) = states.next() {
            let until = states.peek().map_or(u64::MAX, |next| next.revision);
            let waits = event.new.as_ref().is_some_and(|new| {
                new.uid == *uid && new.awaits(sundown_decide::kinds::FOREGROUND)
            });
            if waits && until > revision {
                return true;
            }
        }
        false
    }

    /// A deletion that begins promises something to those who depend on the object then.
    fn promise(&mut self, event: &Event) {
        use sundown_decide::kinds::{FOREGROUND, ORPHAN};
        let owner = event
            .prev
            .as_ref()
            .or(event.new.as_ref())
            .map(|version| version.uid.clone());
        let Some(owner) = owner else { return };
        for (finalizer, kept_alive) in [(ORPHAN, true), (FOREGROUND, false)] {
            let awaits = |version: &Option<Arc<Version>>| {
                version
                    .as_ref()
                    .is_some_and(|version| version.awaits(finalizer))
            };
            let of_this =
                |promise: &Promise| promise.owner == owner && promise.kept_alive == kept_alive;
            if awaits(&event.prev) && !awaits(&event.new) && event.by == Actor::User {
                // Somebody changed their mind.
                self.promises.retain(|promise| !of_this(promise));
            }
            if awaits(&event.new) && !awaits(&event.prev) {
                let dependents = self.dependents(&event.key, &owner, !kept_alive);
                self.promises.push(Promise {
                    kept_alive,
                    owner: owner.clone(),
                    dependents,
                });
            }
        }
    }

    fn dependents(&self, owner: &ObjectKey, uid: &Uid, blocking: bool) -> BTreeSet<Uid> {
        let means = |key: &ObjectKey, version: &Version| {
            version.owners().iter().any(|reference| {
                reference.uid == *uid
                    && (!blocking || reference.is_blocking())
                    && self.key_of(reference, key).as_ref() == Some(owner)
            })
        };
        let live = self
            .live
            .iter()
            .filter(|(key, version)| means(key, version));
        live.map(|(_, version)| version.uid.clone()).collect()
    }
}
