//! Empties terminating namespaces, and says what keeps them.
//!
//! Upstream deletes by collection and polls; here every object is deleted by itself, guarded by its
//! uid and revision, and the namespace is released when a barrier proves that nothing is left.

mod conditions;
mod decide;
mod reason;
#[cfg(test)]
mod tests;
mod view;

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::Timestamp;
use sundown_model::{
    Cache, Change, Controller, Decision, Facts, Grant, Interest, Object, ObjectKey, Part, Permit,
    Resource, Scope,
};

use crate::kinds::NAMESPACE;

pub use reason::Reason;

/// What a namespace may hold: everything that can be observed and deleted.
const CONTENT: Scope = Scope::Collectable { except: &[] };

/// The controller; it needs no memory.
#[derive(Debug, Clone, Default)]
pub struct Namespaces;

impl Controller for Namespaces {
    type Key = ObjectKey;
    type Reason = Reason;

    const NAME: &'static str = "namespace";
    const INTERESTS: &'static [Interest] = &[
        Interest {
            scope: Scope::One(NAMESPACE),
            fields: view::FIELDS,
        },
        Interest {
            scope: CONTENT,
            fields: &[],
        },
    ];
    const GRANTS: &'static [Grant] = &[
        Grant {
            group: None,
            plural: None,
            permits: &[Permit::Delete],
        },
        Grant {
            group: Some(NAMESPACE.group),
            plural: Some(NAMESPACE.plural),
            permits: &[Permit::Patch(Part::Status), Permit::Patch(Part::Finalize)],
        },
    ];

    fn observe(&mut self, change: &Change, cache: &Cache, touched: &mut BTreeSet<ObjectKey>) {
        match change {
            Change::Added(object)
            | Change::Updated { new: object, .. }
            | Change::Deleted(object)
            | Change::Forgotten(object) => touch(object, cache, touched),
            Change::Read(_)
            | Change::Freshness(_)
            | Change::Catalog
            | Change::Report(_)
            | Change::Answered(_) => {}
        }
    }

    fn decide(
        &self,
        key: &ObjectKey,
        cache: &Cache,
        facts: &Facts,
        now: Timestamp,
    ) -> Decision<Reason> {
        match cache.get(key) {
            Some(namespace) => decide::decide(namespace, &decide::Sight { cache, facts, now }),
            None => Decision::idle(Reason::Gone),
        }
    }

    fn keys_about(&self, object: &Object) -> Vec<ObjectKey> {
        object
            .key()
            .resource
            .is(&NAMESPACE)
            .then(|| object.key().clone())
            .into_iter()
            .collect()
    }
}

/// A namespace is touched by itself and, once it is terminating, by everything in it.
fn touch(object: &Arc<Object>, cache: &Cache, touched: &mut BTreeSet<ObjectKey>) {
    if object.key().resource.is(&NAMESPACE) {
        touched.insert(object.key().clone());
    }
    if let Some(namespace) = &object.key().namespace {
        let resource = Resource::new(NAMESPACE.group, NAMESPACE.plural);
        let key = ObjectKey::cluster(&resource, namespace.as_str());
        touched.extend(Some(key).filter(|key| cache.get(key).is_some_and(|it| it.is_deleting())));
    }
}
