//! The stories. A controller brings at least one of its own.

mod collecting;
mod crd;
mod events;
mod namespace;
pub(crate) mod node;
mod ray;
mod ray_promises;
mod role_aggregation;
mod storage;
mod ttl;
mod volcano;

use crate::scenario::Scenario;

/// All stories, in a fixed order.
pub fn all() -> Vec<Scenario> {
    let mut all = collecting::scenarios();
    all.extend(ttl::scenarios());
    all.extend(volcano::scenarios());
    all.extend(namespace::scenarios());
    all.extend(crd::scenarios());
    all.extend(events::scenarios());
    all.extend(role_aggregation::scenarios());
    all.extend(storage::scenarios());
    all.extend(node::scenarios());
    all.extend(ray::scenarios());
    all
}
