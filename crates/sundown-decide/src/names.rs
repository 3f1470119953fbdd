//! Names of services and pods: `EndpointSlice`s for those who read the API, and the table of the DNS
//! server for those who look a name up.
//!
//! The whole table is sent whenever it is not the one that was sent last; what a name looked up by a
//! pod means beyond it (search paths, the world outside) is the node's business.

mod decide;
mod reason;
mod slice;
mod table;
#[cfg(test)]
mod tests;
mod view;

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use sundown_model::{
    Cache, Change, Controller, Decision, Grant, Interest, KnownKind, Object, ObjectKey, Part,
    Permit, Port, Report, Scope, Sight, node,
};

use crate::kinds::{ENDPOINT_SLICE, POD, SERVICE};
use view::{PodView, ServiceView};

pub use reason::Reason;

/// What is decided on.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Key {
    Service(ObjectKey),
    /// The table of all names.
    Names,
}

/// The controller; it needs no memory.
#[derive(Debug, Clone, Default)]
pub struct ServiceNames;

impl Controller for ServiceNames {
    type Key = Key;
    type Reason = Reason;

    const NAME: &'static str = "names";
    const INTERESTS: &'static [Interest] = &[
        Interest {
            scope: Scope::One(SERVICE),
            fields: view::SERVICE_FIELDS,
        },
        Interest {
            scope: Scope::One(POD),
            fields: view::POD_FIELDS,
        },
        Interest {
            scope: Scope::One(ENDPOINT_SLICE),
            fields: view::SLICE_FIELDS,
        },
    ];
    const GRANTS: &'static [Grant] = &[Grant {
        group: Some(ENDPOINT_SLICE.group),
        plural: Some(ENDPOINT_SLICE.plural),
        permits: &[Permit::Create, Permit::Patch(Part::Main)],
    }];
    const OWNERS: &'static [KnownKind] = &[SERVICE];
    const PORTS: &'static [Port] = &[Port::Node];

    fn observe(&mut self, change: &Change, cache: &Cache, touched: &mut BTreeSet<Key>) {
        if let Change::Report(Report::Node(node::Report::All(_))) = change {
            touched.insert(Key::Names);
        }
        let is_same = match change.transition() {
            (Some(old), Some(new)) => new.key().resource.is(&POD) && PodView::is_same(old, new),
            _ => false,
        };
        for object in change.objects().filter(|_| !is_same) {
            touch(object, cache, touched);
        }
    }

    fn decide(&self, key: &Key, sight: Sight<'_>) -> Decision<Reason> {
        match key {
            Key::Service(key) => match sight.cache.get(key) {
                Some(object) => decide::service(object, sight.cache),
                None => Decision::idle(Reason::Gone),
            },
            Key::Names => decide::names(sight.cache, sight.facts),
        }
    }

    fn keys_about(&self, object: &Object) -> Vec<Key> {
        let is_service = object.key().resource.is(&SERVICE);
        let own = is_service.then(|| Key::Service(object.key().clone()));
        own.into_iter().collect()
    }
}

fn touch(object: &Object, cache: &Cache, touched: &mut BTreeSet<Key>) {
    let resource = &object.key().resource;
    if resource.is(&SERVICE) {
        touched.insert(Key::Service(object.key().clone()));
    } else if resource.is(&POD) {
        let services = SERVICE.resource();
        let near = cache.of(&services);
        let mut near = near
            .filter(|service| ServiceView::of(service).selects(object))
            .peekable();
        if near.peek().is_none() {
            return;
        }
        touched.extend(near.map(|service| Key::Service(service.key().clone())));
    } else if resource.is(&ENDPOINT_SLICE) {
        let owners = object.owners().iter();
        let service = |name: &str| {
            let namespace = object.key().namespace_str();
            Key::Service(ObjectKey::namespaced(&SERVICE.resource(), namespace, name))
        };
        touched.extend(owners.map(|owner| service(&owner.name)));
    } else {
        return;
    }
    touched.insert(Key::Names);
}
