//! Who depends on whom, by the uid of the owner. Whether a reference is right is judged when it
//! matters; the graph only makes dependents quick to find.

use std::collections::{BTreeMap, BTreeSet};

use sundown_model::{Cache, Object, ObjectKey, Uid};

/// Dependents by the uid that they name as owner.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Graph {
    dependents: BTreeMap<Uid, BTreeSet<ObjectKey>>,
}

impl Graph {
    /// The graph of everything in a cache, from scratch.
    pub fn of(cache: &Cache) -> Self {
        let mut graph = Self::default();
        for object in cache.iter().filter(|object| super::in_scope(object, cache)) {
            graph.add(object);
        }
        graph
    }

    /// The objects that name this uid as an owner.
    pub fn dependents(&self, owner: &Uid) -> impl Iterator<Item = &ObjectKey> {
        self.dependents.get(owner).into_iter().flatten()
    }

    /// Whether anything names this uid as an owner.
    pub fn has_dependents(&self, owner: &Uid) -> bool {
        self.dependents.contains_key(owner)
    }

    pub(super) fn add(&mut self, object: &Object) {
        for owner in object.owners() {
            self.dependents
                .entry(owner.uid.clone())
                .or_default()
                .insert(object.key().clone());
        }
    }

    pub(super) fn remove(&mut self, object: &Object) {
        for owner in object.owners() {
            if let Some(keys) = self.dependents.get_mut(&owner.uid) {
                keys.remove(object.key());
                if keys.is_empty() {
                    self.dependents.remove(&owner.uid);
                }
            }
        }
    }
}
