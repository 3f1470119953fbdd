//! Makes of a `RayCluster` what it says: services, a head, workers, and a status that is true.
//!
//! What belongs to a cluster is told by the uid of its controller, never by labels; every delete is of one
//! pod that was seen. Terminating pods do not count, so that a worker on a lost node is replaced. What
//! nothing makes yet (autoscaling, tokens, fault tolerance, TLS, ingress) is refused by name. The end
//! of a cluster is the collector's business.
//!
//! A create is told as an event once the object is there; one that is refused is told with its cause, in
//! an event and in the status (`ReplicaFailure`), and tried again.

mod decide;
mod head;
mod plan;
#[cfg(test)]
mod properties;
mod reason;
mod services;
#[cfg(test)]
mod tests;
mod view;
mod workers;

use std::collections::BTreeSet;

use sundown_kinds::Settings;
use sundown_model::{
    Cache, Change, Controller, Decision, Grant, Interest, KnownKind, Object, ObjectKey, Part,
    Permit, Scope, Sight,
};

use crate::kinds::{POD, RAY_CLUSTER, SERVICE};
use crate::ray::controller_key;
use crate::ray::view::{POD_FIELDS, RAY_FIELDS, SERVICE_FIELDS};

pub use reason::Reason;

/// The controller; it needs no memory, only to be told what is the same for all clusters.
#[derive(Debug, Clone, Default)]
pub struct RayClusters {
    settings: Settings,
}

impl RayClusters {
    /// A controller with these settings.
    pub fn new(settings: Settings) -> Self {
        Self { settings }
    }
}

impl Controller for RayClusters {
    type Key = ObjectKey;
    type Reason = Reason;

    const NAME: &'static str = "ray_cluster";
    const TOLD_BY: &'static str = "raycluster-controller";
    const INTERESTS: &'static [Interest] = &[
        Interest {
            scope: Scope::One(RAY_CLUSTER),
            fields: RAY_FIELDS,
        },
        Interest {
            scope: Scope::One(POD),
            fields: POD_FIELDS,
        },
        Interest {
            scope: Scope::One(SERVICE),
            fields: SERVICE_FIELDS,
        },
    ];
    const GRANTS: &'static [Grant] = &[
        Grant {
            group: Some(RAY_CLUSTER.group),
            plural: Some(RAY_CLUSTER.plural),
            permits: &[Permit::Patch(Part::Status)],
        },
        Grant {
            group: Some(POD.group),
            plural: Some(POD.plural),
            // The patch rewrites two annotations of heads that another operator made.
            permits: &[Permit::Create, Permit::Delete, Permit::Patch(Part::Main)],
        },
        Grant {
            group: Some(SERVICE.group),
            plural: Some(SERVICE.plural),
            permits: &[Permit::Create],
        },
    ];
    const OWNERS: &'static [KnownKind] = &[RAY_CLUSTER];

    fn observe(&mut self, change: &Change, cache: &Cache, touched: &mut BTreeSet<ObjectKey>) {
        match change {
            Change::Added(object) => touch(object, cache, touched),
            Change::Deleted(object) => {
                touch(object, cache, touched);
                if object.key().resource.is(&POD) {
                    touched.extend(view::clusters_with_head(object.key(), cache));
                }
            }
            // Whose it was has to know that it is theirs no more.
            Change::Updated { old, new } => {
                touch(old, cache, touched);
                touch(new, cache, touched);
            }
            Change::Forgotten(_)
            | Change::Read(_)
            | Change::Refused(_)
            | Change::Freshness(_)
            | Change::Catalog
            | Change::Report(_)
            | Change::Answered(_) => {}
        }
    }

    fn decide(&self, key: &ObjectKey, sight: Sight<'_>) -> Decision<Reason> {
        match sight.cache.get(key) {
            Some(object) => decide::decide(object, &self.settings, sight),
            None => Decision::idle(Reason::Gone),
        }
    }

    fn keys_about(&self, object: &Object) -> Vec<ObjectKey> {
        own_key(object).into_iter().collect()
    }
}

/// The cluster that an object is or belongs to.
fn own_key(object: &Object) -> Option<ObjectKey> {
    let resource = &object.key().resource;
    if resource.is(&RAY_CLUSTER) {
        return Some(object.key().clone());
    }
    let is_part = resource.is(&POD) || resource.is(&SERVICE);
    is_part
        .then(|| controller_key(object, &RAY_CLUSTER))
        .flatten()
}

fn touch(object: &Object, cache: &Cache, touched: &mut BTreeSet<ObjectKey>) {
    touched.extend(own_key(object));
    if object.key().resource.is(&SERVICE) {
        // The service of somebody else, another cluster too, may bear the name that a cluster waits for.
        touched.extend(view::clusters_with_service(object.key(), cache));
    }
}
