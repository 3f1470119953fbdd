//! Removes the instances of terminating `CustomResourceDefinition`s, and says what keeps them.
//!
//! Upstream deletes by collection and polls for a minute; here every instance is deleted by itself,
//! guarded by its uid and revision, and the definition is released when a barrier proves that none
//! is left and the collector has dealt with what depended on them. That no new one comes is the server's business: it refuses creates while the definition
//! is terminating.

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
    Cache, Catalog, Change, Controller, Decision, Facts, Grant, Interest, Object, ObjectKey, Part,
    Permit, Resolved, Resource, Scope,
};

use crate::kinds::CRD;

pub use reason::Reason;

/// What a definition may have brought: everything that can be observed and deleted.
const INSTANCES: Scope = Scope::Collectable { except: &[] };

/// The controller; it needs no memory.
#[derive(Debug, Clone, Default)]
pub struct Definitions;

impl Controller for Definitions {
    type Key = ObjectKey;
    type Reason = Reason;

    const NAME: &'static str = "crd";
    const INTERESTS: &'static [Interest] = &[
        Interest {
            scope: Scope::One(CRD),
            fields: view::FIELDS,
        },
        Interest {
            scope: INSTANCES,
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
            group: Some(CRD.group),
            plural: Some(CRD.plural),
            permits: &[Permit::Patch(Part::Main), Permit::Patch(Part::Status)],
        },
    ];

    fn observe(&mut self, change: &Change, cache: &Cache, touched: &mut BTreeSet<ObjectKey>) {
        match change {
            Change::Added(object)
            | Change::Updated { new: object, .. }
            | Change::Deleted(object)
            | Change::Forgotten(object) => touch(object, cache, touched),
            // What was not served may be served now, so that it can be looked at.
            Change::Catalog => touched.extend(terminating(cache)),
            Change::Read(_) | Change::Freshness(_) | Change::Report(_) | Change::Answered(_) => {}
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
            Some(definition) => decide::decide(definition, &decide::Sight { cache, facts, now }),
            None => Decision::idle(Reason::Gone),
        }
    }

    fn keys_about(&self, object: &Object) -> Vec<ObjectKey> {
        let is_own = object.key().resource.is(&CRD);
        is_own.then(|| object.key().clone()).into_iter().collect()
    }
}

/// A definition is touched by itself and, once it is terminating, by each of its instances and by
/// what depends on them.
fn touch(object: &Arc<Object>, cache: &Cache, touched: &mut BTreeSet<ObjectKey>) {
    let resource = &object.key().resource;
    if resource.is(&CRD) {
        touched.insert(object.key().clone());
    }
    let owners = owned_kinds(object, cache.catalog());
    let definitions = owners.chain([resource.clone()]).map(|resource| {
        let name = format!("{}.{}", resource.plural(), resource.group());
        ObjectKey::cluster(&Resource::new(CRD.group, CRD.plural), name.as_str())
    });
    touched.extend(definitions.filter(|key| cache.get(key).is_some_and(|it| it.is_deleting())));
}

/// The kinds of an object's owners, as far as they are served.
fn owned_kinds<'a>(
    object: &'a Object,
    catalog: &'a Catalog,
) -> impl Iterator<Item = Resource> + 'a {
    let resolved = object.owners().iter().map(|owner| {
        match catalog.resolve(&owner.api_version, &owner.kind) {
            Resolved::Known(ty) => Some(ty.resource.clone()),
            Resolved::Unknown => None,
        }
    });
    resolved.flatten()
}

fn terminating(cache: &Cache) -> impl Iterator<Item = ObjectKey> {
    let definitions = Resource::new(CRD.group, CRD.plural);
    let all: Vec<_> = cache.of(&definitions).map(Arc::clone).collect();
    let all = all.into_iter().filter(|it| it.is_deleting());
    all.map(|definition| definition.key().clone())
}
