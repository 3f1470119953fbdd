//! The shipped controllers, in four lists. Whatever runs an engine (embedded server, operator,
//! `explain`, replay, simulator) takes them from here.

use sundown_model::Controller;

use crate::{
    Accounts, Definitions, EventTtl, Jobs, Namespaces, OwnerGc, Pods, RayClusters, RayConfig,
    RoleAggregation, Scheduler, ServiceNames, StorageProtection, Ttl,
};

/// Somebody who takes controllers. Their types differ, so a list of values cannot hold them.
pub trait Crew {
    /// Takes one controller.
    fn take<C: Controller>(&mut self, controller: C);
}

/// Names every controller that Sundown ships for any API server, in the order in which they are
/// asked.
pub fn shipped(crew: &mut impl Crew) {
    crew.take(OwnerGc::default());
    crew.take(Ttl::default());
    crew.take(Namespaces::default());
    crew.take(Definitions);
    crew.take(RoleAggregation::default());
    crew.take(StorageProtection);
}

/// Names the controllers that stand for what other API servers do by themselves. Only for a server of
/// our own.
pub fn with_server(crew: &mut impl Crew) {
    crew.take(EventTtl);
}

/// Names the controllers of Ray. They need a way to the dashboards of the clusters they make.
pub fn of_ray(crew: &mut impl Crew, config: &RayConfig) {
    crew.take(RayClusters::new(config.settings.clone()));
    crew.take(config.jobs());
}

/// Names the controllers that stand for what a cluster has already: scheduler, kubelet, Jobs, names.
/// Only for a control plane of our own; beside those of a cluster they would do everything twice.
///
/// Guarantees: without a Node object and without a report of the node, no pod is touched.
pub fn with_node(crew: &mut impl Crew) {
    crew.take(Accounts);
    crew.take(Scheduler);
    crew.take(Pods::default());
    crew.take(Jobs::default());
    crew.take(ServiceNames);
}
