//! The controllers, as pure decisions. One module per controller; `view` reads, `decide` chooses.
#![deny(clippy::wildcard_enum_match_arm)]

pub mod accounts;
mod actions;
pub mod batch_job;
mod clock_skew;
pub mod crd;
pub mod emptying;
pub mod event_ttl;
mod json;
pub mod kinds;
pub mod names;
pub mod namespace;
mod observation;
pub mod owner_gc;
pub mod pod;
pub mod quantity;
mod ray;
pub mod ray_cluster;
pub mod ray_job;
pub mod rights;
pub mod role_aggregation;
pub mod schedule;
mod selector;
mod shipped;
pub mod storage_protection;
#[cfg(test)]
mod testing;
pub mod ttl;

pub use accounts::Accounts;
pub use batch_job::Jobs;
pub use crd::Definitions;
pub use event_ttl::EventTtl;
pub use names::ServiceNames;
pub use namespace::Namespaces;
pub use owner_gc::OwnerGc;
pub use pod::Pods;
pub use ray::config::{BadVariable, RayConfig};
pub use ray_cluster::RayClusters;
pub use ray_job::RayJobs;
pub use role_aggregation::RoleAggregation;
pub use schedule::Scheduler;
pub use shipped::{Crew, of_ray, shipped, with_node, with_server};
pub use storage_protection::StorageProtection;
pub use ttl::Ttl;

/// Whether mutated rules are compiled in; what is shipped asserts that they are not.
pub const HAS_MUTANTS: bool = cfg!(feature = "mutants");
