//! Removes the instances of terminating `CustomResourceDefinition`s, and says what keeps them.
//!
//! Upstream deletes by collection and polls for a minute; here every instance is deleted by itself,
//! guarded by its uid and revision, and is a key of its own, so that one whose deletion is refused
//! waits alone. The definition is released when a barrier proves that none is left and the collector
//! has dealt with what depended on them. That no new one comes is the server's business: it refuses
//! creates while the definition is terminating.

mod conditions;
mod decide;
mod reason;
#[cfg(test)]
mod tests;
mod view;

use std::collections::BTreeSet;
use std::sync::Arc;

use sundown_model::{
    Cache, Catalog, Change, Controller, Decision, Grant, Interest, Object, ObjectKey, Part, Permit,
    Resolved, Resource, Scope, Sight,
};

use crate::kinds::{CRD, EVENT_K8S_IO};

pub use reason::Reason;

/// What a definition may have brought, and what may depend on it: everything that can be observed and
/// deleted. Events are served under two names, and followed under one.
const INSTANCES: Scope = Scope::Collectable {
    except: &[EVENT_K8S_IO],
};

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
            Change::Added(object) => {
                touch(object, cache, touched);
                touch_instances(object, cache, touched);
            }
            // A definition that waits for many instances counts them all: it is not asked at each finalizer.
            Change::Updated { old, new } if old.is_deleting() && !new.key().resource.is(&CRD) => {
                touch_by_owner(old, cache, touched);
                touch_by_owner(new, cache, touched);
            }
            Change::Updated { old, new } => {
                // The collector may have taken the reference that named an instance.
                touch_by_owner(old, cache, touched);
                touch(new, cache, touched);
                touch_instances(new, cache, touched);
            }
            // Nor at the end of each instance that was known to be on its way, but of the last one.
            Change::Deleted(object) if object.is_deleting() && has_siblings(object, cache) => {
                touch_by_owner(object, cache, touched);
            }
            Change::Deleted(object) | Change::Forgotten(object) => touch(object, cache, touched),
            Change::Refused(key) => {
                let definition = definition_of(&key.resource);
                touched.extend(Some(definition).filter(|it| is_terminating(it, cache)));
            }
            // What was not served may be served now, so that it can be looked at.
            Change::Catalog => touched.extend(terminating(cache)),
            Change::Read(_) | Change::Freshness(_) | Change::Report(_) | Change::Answered(_) => {}
        }
    }

    fn decide(&self, key: &ObjectKey, sight: Sight<'_>) -> Decision<Reason> {
        let Some(object) = sight.cache.get(key) else {
            return Decision::idle(Reason::Gone);
        };
        if key.resource.is(&CRD) {
            return decide::decide(object, &sight);
        }
        match sight.cache.get(&definition_of(&key.resource)) {
            Some(definition) => decide::instance(object, definition),
            None => Decision::idle(Reason::Gone),
        }
    }

    fn keys_about(&self, object: &Object) -> Vec<ObjectKey> {
        let is_own = object.key().resource.is(&CRD);
        is_own.then(|| object.key().clone()).into_iter().collect()
    }
}

/// The definition that a resource would come from.
fn definition_of(resource: &Resource) -> ObjectKey {
    let name = format!("{}.{}", resource.plural(), resource.group());
    ObjectKey::cluster(&CRD.resource(), name.as_str())
}

fn is_terminating(key: &ObjectKey, cache: &Cache) -> bool {
    cache.get(key).is_some_and(|it| it.is_deleting())
}

/// What is to be deleted: an instance of a terminating definition, all of them when it becomes so.
fn touch_instances(object: &Arc<Object>, cache: &Cache, touched: &mut BTreeSet<ObjectKey>) {
    let resource = &object.key().resource;
    if is_terminating(&definition_of(resource), cache) {
        touched.insert(object.key().clone());
    }
    if resource.is(&CRD) && object.is_deleting() {
        let instances = cache.of(&view::DefinitionView::of(object).resource);
        let open = instances.filter(|it| !it.is_deleting());
        touched.extend(open.map(|it| it.key().clone()));
    }
}

/// Whether another object of the same kind is left. A definition is always looked at itself.
fn has_siblings(object: &Object, cache: &Cache) -> bool {
    let resource = &object.key().resource;
    !resource.is(&CRD) && cache.of(resource).any(|it| it.key() != object.key())
}

/// A definition is touched by itself and, once it is terminating, by each of its instances and by
/// what depends on them.
fn touch(object: &Arc<Object>, cache: &Cache, touched: &mut BTreeSet<ObjectKey>) {
    let resource = &object.key().resource;
    if resource.is(&CRD) {
        touched.insert(object.key().clone());
    }
    let definition = Some(definition_of(resource));
    touched.extend(definition.filter(|key| is_terminating(key, cache)));
    touch_by_owner(object, cache, touched);
}

fn touch_by_owner(object: &Arc<Object>, cache: &Cache, touched: &mut BTreeSet<ObjectKey>) {
    let owners = owned_kinds(object, cache.catalog());
    let definitions = owners.map(|resource| definition_of(&resource));
    touched.extend(definitions.filter(|key| is_terminating(key, cache)));
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
