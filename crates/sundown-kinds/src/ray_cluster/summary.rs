//! The status of a cluster, computed from what is there.
//!
//! Total: a missing service or head leaves its part empty and never hides the rest. Which pods belong to
//! the cluster is for the caller to say.

mod conditions;
mod view;

use std::collections::BTreeMap;

use jiff::Timestamp;
use sundown_model::Quantity;

use super::{ClusterSpec, ClusterStatus, HeadInfo, RayCluster};
use crate::Gates;
use crate::names::NodeType;
use crate::resources::{Amounts, add, is_gpu, of_pod};

pub use view::{ContainerView, PodView, PortView, Ready, ServiceView};

/// How the last attempt to make the cluster what it shall be has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pass<'a> {
    Succeeded,
    /// With a reason, if pods could not be made or deleted, such as `FailedCreateHeadPod`.
    Failed {
        reason: Option<&'a str>,
        message: &'a str,
    },
}

/// Everything that the status depends on.
#[derive(Debug, Clone, Copy)]
pub struct Observed<'a> {
    pub cluster: &'a RayCluster,
    /// All pods of the cluster, terminating ones too.
    pub pods: &'a [PodView],
    /// The head service, if there is exactly one.
    pub service: Option<&'a ServiceView>,
    pub pass: Pass<'a>,
}

/// The state of a cluster that was refused before it began.
pub const STATE_FAILED: &str = "failed";

/// The condition of a cluster whose present spec is refused. The state does not tell it of one that runs, and the
/// reason tells troubles, too.
pub const CONDITION_REFUSED: &str = conditions::REFUSED;

/// The status of a cluster whose spec is refused. One that never began has failed; one that runs goes on as it is.
pub fn refuse(cluster: &RayCluster, why: &str, now: Timestamp) -> ClusterStatus {
    let generation = cluster.metadata.generation;
    let mut status = ClusterStatus {
        reason: why.to_owned(),
        observed_generation: generation,
        ..cluster.status.clone()
    };
    if status.state.is_empty() {
        STATE_FAILED.clone_into(&mut status.state);
    }
    conditions::set_refused(&mut status, generation, why, now);
    status
}

/// The status that the cluster should have.
pub fn summarize(observed: &Observed<'_>, gates: &Gates, now: Timestamp) -> ClusterStatus {
    let cluster = observed.cluster;
    let mut status = cluster.status.clone();
    status.observed_generation = cluster.metadata.generation;
    set_counters(&mut status, &cluster.spec, observed.pods);
    set_resources(&mut status, &cluster.spec);
    match observed.pass {
        // What was wrong before, an unsupported field among it, is wrong no more.
        Pass::Succeeded => status.reason.clear(),
        Pass::Failed { message, .. } => message.clone_into(&mut status.reason),
    }
    // It was refused, and is no more.
    if status.state == STATE_FAILED {
        status.state.clear();
    }
    conditions::clear_refused(&mut status);
    if is_complete(observed) {
        status.state = "ready".into();
    }
    if gates.ray_cluster_status_conditions {
        conditions::set(&mut status, observed, now);
    }
    if cluster.spec.suspend == Some(true) && observed.pods.is_empty() {
        status.state = "suspended".into();
    }
    set_endpoints(&mut status, observed.service);
    status.head = head_info(observed);
    if status.state != cluster.status.state && !status.state.is_empty() {
        status
            .state_transition_times
            .insert(status.state.clone(), now);
    }
    status.last_update_time = Some(now);
    status
}

/// Whether a new status says anything new; instants alone do not.
pub fn is_worth_writing(old: &ClusterStatus, new: &ClusterStatus) -> bool {
    let told = |status: &ClusterStatus| {
        let mut told = status.clone();
        told.last_update_time = None;
        told.state_transition_times = BTreeMap::new();
        for condition in &mut told.conditions {
            condition.last_transition_time = Timestamp::UNIX_EPOCH;
        }
        told.conditions.sort_by(|one, two| one.kind.cmp(&two.kind));
        told
    };
    let (old, new) = (told(old), told(new));
    // Two equal amounts of different families are written alike: what is stored decides.
    old != new && old.to_value() != new.to_value()
}

/// Whether every pod that shall be there is there and ready, and nothing went wrong.
///
/// What a job waits for: unlike the state, it does not stay true when a pod is lost.
pub fn is_complete(observed: &Observed<'_>) -> bool {
    let live: Vec<&PodView> = observed
        .pods
        .iter()
        .filter(|pod| !pod.is_deleting)
        .collect();
    let desired = i64::from(desired_workers(&observed.cluster.spec)) + 1;
    observed.pass == Pass::Succeeded
        && i64::try_from(live.len()) == Ok(desired)
        && live.iter().any(|pod| pod.node_type == Some(NodeType::Head))
        && live.iter().all(|pod| pod.is_running_and_ready())
}

fn desired_workers(spec: &ClusterSpec) -> i32 {
    let pods = spec
        .worker_groups
        .iter()
        .map(super::WorkerGroup::desired_pods);
    pods.fold(0, i32::saturating_add)
}

fn set_counters(status: &mut ClusterStatus, spec: &ClusterSpec, pods: &[PodView]) {
    let workers = pods
        .iter()
        .filter(|pod| pod.node_type == Some(NodeType::Worker) && !pod.is_deleting);
    let (mut ready, mut available) = (0_i32, 0_i32);
    for pod in workers {
        available = available.saturating_add(i32::from(pod.phase == "Running"));
        ready = ready.saturating_add(i32::from(pod.is_running_and_ready()));
    }
    let sum = |bound: fn(&super::WorkerGroup) -> i32| {
        let groups = spec.worker_groups.iter().filter(|group| !group.suspend);
        groups
            .map(|group| bound(group).saturating_mul(group.host_count))
            .fold(0, i32::saturating_add)
    };
    status.ready_worker_replicas = ready;
    status.available_worker_replicas = available;
    status.desired_worker_replicas = desired_workers(spec);
    status.min_worker_replicas = sum(|group| group.min_replicas.unwrap_or(0));
    status.max_worker_replicas = sum(|group| group.max_replicas.unwrap_or(i32::MAX));
}

/// What the head and the workers that there shall be take, counted as they are in the counters.
fn set_resources(status: &mut ClusterStatus, spec: &ClusterSpec) {
    let mut sum = Amounts::new();
    add(&mut sum, &of_pod(&spec.head.template), 1);
    for group in &spec.worker_groups {
        add(
            &mut sum,
            &of_pod(&group.template),
            group.desired_pods().into(),
        );
    }
    let of = |name: &str| sum.get(name).copied().unwrap_or(Quantity::ZERO);
    status.desired_cpu = of("cpu");
    status.desired_memory = of("memory");
    status.desired_tpu = of("google.com/tpu");
    let gpus = sum
        .iter()
        .filter(|(name, _)| is_gpu(name))
        .map(|(_, amount)| *amount);
    status.desired_gpu = gpus.fold(Quantity::ZERO, Quantity::plus);
}

fn set_endpoints(status: &mut ClusterStatus, service: Option<&ServiceView>) {
    let ports = service.into_iter().flat_map(|service| &service.ports);
    for port in ports.filter(|port| !port.name.is_empty()) {
        let endpoint = match port.node_port {
            0 => port.target_port.clone(),
            node_port => node_port.to_string(),
        };
        if !endpoint.is_empty() {
            status.endpoints.insert(port.name.clone(), endpoint);
        }
    }
}

fn head_info(observed: &Observed<'_>) -> HeadInfo {
    let head = head(observed);
    let service = observed.service;
    let pod_ip = head.map_or("", |head| &head.ip);
    let service_ip = match service.map_or("", |service| &service.cluster_ip) {
        "None" => pod_ip,
        other => other,
    };
    HeadInfo {
        pod_ip: pod_ip.to_owned(),
        pod_name: head.map(|head| head.name.clone()).unwrap_or_default(),
        service_ip: service_ip.to_owned(),
        service_name: service
            .map(|service| service.name.clone())
            .unwrap_or_default(),
    }
}

/// The head; one that stays before one that goes.
fn head<'a>(observed: &Observed<'a>) -> Option<&'a PodView> {
    let heads = observed
        .pods
        .iter()
        .filter(|pod| pod.node_type == Some(NodeType::Head));
    heads.min_by_key(|pod| pod.is_deleting)
}

#[cfg(test)]
mod tests;
