//! The garbage collector: deletes what has no owner left, empties what is deleted in foreground,
//! lets go what is to be orphaned.
//!
//! Each object is decided on its own, from the cache and from facts with an age. Absence is a seen
//! deletion or a live answer, never a gap in the cache. Owners that
//! wait for each other around a circle go together.

mod circle;
mod decide;
mod graph;
mod lapse;
mod owners;
#[cfg(test)]
mod properties;
mod reason;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::sync::Arc;

use sundown_model::{
    Action, Cache, Change, Controller, Decision, Grant, Interest, Object, ObjectKey, Part, Permit,
    Scope, Sight,
};

use crate::kinds::{EVENT, EVENT_K8S_IO, FOREGROUND, ORPHAN};

pub use graph::Graph;
pub use lapse::Lapse;
pub use reason::Reason;

/// What may own and be owned: everything that can be observed and deleted, but for events.
pub(crate) const SCOPE: Scope = Scope::Collectable {
    except: &[EVENT, EVENT_K8S_IO],
};

/// The controller; its memory is who depends on whom.
#[derive(Debug, Clone, Default)]
pub struct OwnerGc {
    graph: Graph,
    lapse: Option<Lapse>,
}

impl OwnerGc {
    /// Who depends on whom, as followed change by change.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// An object may matter to its owners only while they are being deleted.
    fn touch_owners(object: &Object, cache: &Cache, touched: &mut BTreeSet<ObjectKey>) {
        for owner in object.owners() {
            let key = owners::key_of(owner, object.key(), cache.catalog());
            touched.extend(key.filter(|key| cache.get(key).is_some_and(|it| it.is_deleting())));
        }
    }

    fn touch_dependents(&self, object: &Object, touched: &mut BTreeSet<ObjectKey>) {
        touched.extend(self.graph.dependents(object.uid()).cloned());
    }

    fn touch_itself(object: &Object, touched: &mut BTreeSet<ObjectKey>) {
        if !object.owners().is_empty() || has_collector_finalizer(object) {
            touched.insert(object.key().clone());
        }
    }
}

impl Controller for OwnerGc {
    type Key = ObjectKey;
    type Reason = Reason;

    const NAME: &'static str = "owner_gc";
    const INTERESTS: &'static [Interest] = &[Interest {
        scope: SCOPE,
        fields: &[],
    }];
    const GRANTS: &'static [Grant] = &[Grant {
        group: None,
        plural: None,
        permits: &[Permit::Delete, Permit::Patch(Part::Main)],
    }];

    fn observe(&mut self, change: &Change, cache: &Cache, touched: &mut BTreeSet<ObjectKey>) {
        match change {
            Change::Added(object) if in_scope(object, cache) => {
                self.graph.add(object);
                Self::touch_itself(object, touched);
                Self::touch_owners(object, cache, touched);
                if object.is_deleting() {
                    self.touch_dependents(object, touched);
                }
            }
            Change::Updated { old, new } if in_scope(new, cache) => {
                self.graph.remove(old);
                self.graph.add(new);
                Self::touch_itself(new, touched);
                Self::touch_owners(old, cache, touched);
                Self::touch_owners(new, cache, touched);
                if new.is_deleting() {
                    self.touch_dependents(new, touched);
                }
            }
            Change::Deleted(object) => {
                self.graph.remove(object);
                Self::touch_owners(object, cache, touched);
                self.touch_dependents(object, touched);
            }
            Change::Forgotten(object) => {
                self.graph.remove(object);
                Self::touch_owners(object, cache, touched);
            }
            Change::Catalog => {
                let owned = cache.iter().filter(|object| !object.owners().is_empty());
                touched.extend(owned.map(|object| object.key().clone()));
            }
            Change::Added(_)
            | Change::Updated { .. }
            | Change::Read(_)
            | Change::Refused(_)
            | Change::Freshness(_)
            | Change::Report(_)
            | Change::Answered(_) => {}
        }
    }

    fn decide(&self, key: &ObjectKey, sight: Sight<'_>) -> Decision<Reason> {
        match sight.cache.get(key) {
            Some(object) if in_scope(object, sight.cache) => {
                let view = decide::View {
                    graph: &self.graph,
                    sight,
                    lapse: self.lapse,
                };
                decide::decide(object, &view)
            }
            Some(_) | None => Decision::idle(Reason::Gone),
        }
    }

    fn keys_about(&self, object: &Object) -> Vec<ObjectKey> {
        vec![object.key().clone()]
    }

    fn audit(&self, cache: &Cache) -> Result<(), String> {
        let anew = Graph::of(cache);
        if self.graph == anew {
            return Ok(());
        }
        Err(format!("followed {:?}, made anew {anew:?}", self.graph))
    }
}

/// Whether the collector has something to ask or to do about an object that is not being deleted.
pub(crate) fn has_work(object: &Arc<Object>, sight: Sight<'_>) -> bool {
    // Who depends on the object decides how it goes, not whether.
    let decision = OwnerGc::default().decide(object.key(), sight);
    let is_write = |action: &Action| matches!(action, Action::Api(_));
    !decision.needs.is_empty() || decision.actions.iter().any(is_write)
}

/// Another controller may have brought a resource into the cache that is not ours.
fn in_scope(object: &Arc<Object>, cache: &Cache) -> bool {
    cache
        .catalog()
        .get(&object.key().resource)
        .is_some_and(|ty| SCOPE.includes(ty))
}

fn has_collector_finalizer(object: &Object) -> bool {
    object.has_finalizer(FOREGROUND) || object.has_finalizer(ORPHAN)
}
