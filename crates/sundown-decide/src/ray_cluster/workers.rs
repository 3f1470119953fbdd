//! The workers of a cluster, group by group: spent ones go, then as many come or go as are missing or
//! too many.

use std::collections::{BTreeMap, BTreeSet};

use sundown_kinds::names::{self, NodeType};
use sundown_kinds::pod::{self, WorkerPlace};
use sundown_kinds::ray_cluster::WorkerGroup;

use super::head::{attempts, first_free, pod_suffix, spent_at};
use super::plan::{Plan, obituary};
use super::view::View;
use crate::ray::view::Pod;
use crate::ray::{place, suffix};

/// Plans the workers of all groups, and the end of those whose group is gone.
pub(super) fn plan(view: &View<'_>, plan: &mut Plan) {
    let groups = &view.cluster.spec.worker_groups;
    for pod in view.of_type(NodeType::Worker).filter(|pod| pod.is_live()) {
        let has_group = groups.iter().any(|group| group.name == pod.view.group);
        if !has_group {
            bury(view, plan, pod, "its worker group was removed");
        }
    }
    // Two groups of one name would fight for the same pods.
    let mut names = BTreeSet::new();
    for group in groups.iter().filter(|group| names.insert(&group.name)) {
        plan_group(view, plan, group);
    }
}

fn plan_group(view: &View<'_>, plan: &mut Plan, group: &WorkerGroup) {
    let live = view.of_type(NodeType::Worker).filter(|pod| pod.is_live());
    let live: Vec<&Pod<'_>> = live.filter(|pod| pod.view.group == group.name).collect();
    if group.suspend {
        for pod in &live {
            plan.delete_pod(pod);
        }
        if !live.is_empty() {
            let cluster = place(view.object.key());
            let of = format!("worker group {} in RayCluster {cluster}", group.name);
            let message = format!("Deleted all pods for suspended {of}");
            plan.tell(view, "DeletedWorkerPod", message);
        }
        return;
    }
    let host_count = hosts_of_replica(view, group);
    let mut replicas = replicas(&live, host_count);
    replicas.retain(|_, replica| !is_given_up(view, plan, group, replica, host_count));
    let wanted = usize::try_from(group.desired_pods()).unwrap_or(0) / host_count;
    if replicas.len() > wanted {
        shrink(view, plan, &replicas, wanted);
    } else {
        grow(view, plan, group, &replicas, wanted);
    }
}

/// Pods that come and go together: the hosts of a replica, or one pod where replicas are not told apart.
fn hosts_of_replica(view: &View<'_>, group: &WorkerGroup) -> usize {
    if view.settings.gates.ray_multi_host_indexing {
        usize::try_from(group.host_count.max(1)).unwrap_or(1)
    } else {
        1
    }
}

type Replicas<'p, 'a> = BTreeMap<String, Vec<&'p Pod<'a>>>;

/// The pods by replica; where a replica has one host, each is one by itself.
fn replicas<'p, 'a>(live: &[&'p Pod<'a>], host_count: usize) -> Replicas<'p, 'a> {
    let mut replicas = Replicas::new();
    for &pod in live {
        let name = if host_count > 1 && !pod.replica_name.is_empty() {
            &pod.replica_name
        } else {
            &pod.view.name
        };
        replicas.entry(name.clone()).or_default().push(pod);
    }
    replicas
}

/// Deletes a replica that is of no use, or that shall go by name. One host that is lost takes the others
/// with it: what runs on several hosts does not survive the loss of one.
fn is_given_up(
    view: &View<'_>,
    plan: &mut Plan,
    group: &WorkerGroup,
    replica: &[&Pod<'_>],
    host_count: usize,
) -> bool {
    let mut spent = replica.iter().filter_map(|pod| spent_at(pod));
    let spent = spent.next();
    if let Some(at) = spent.filter(|at| view.sight.now < *at) {
        plan.wake(at);
        return false;
    }
    let is_named = |pod: &&Pod<'_>| group.workers_to_delete.contains(&pod.view.name);
    let is_whole = replica.len() >= host_count;
    let why = if spent.is_some() {
        "unhealthy"
    } else if replica.iter().any(is_named) {
        "autoscaler scale-down request"
    } else if is_whole {
        return false;
    } else {
        "cleanup of incomplete multi-host group"
    };
    for pod in replica {
        bury(view, plan, pod, why);
    }
    true
}

/// Those that are not ready first, then the newest: what has worked longest is worth most.
fn shrink(view: &View<'_>, plan: &mut Plan, replicas: &Replicas<'_, '_>, wanted: usize) {
    let mut order: Vec<_> = replicas.values().collect();
    order.sort_by_key(|replica| {
        let is_ready = replica.iter().all(|pod| pod.view.is_running_and_ready());
        let born_at = replica.iter().filter_map(|pod| pod.created_at).max();
        (is_ready, std::cmp::Reverse(born_at))
    });
    for pod in order
        .iter()
        .take(replicas.len() - wanted)
        .copied()
        .flatten()
    {
        bury(view, plan, pod, "scaling down");
    }
}

fn grow(
    view: &View<'_>,
    plan: &mut Plan,
    group: &WorkerGroup,
    replicas: &Replicas<'_, '_>,
    wanted: usize,
) {
    let pods = replicas.values().flatten();
    let mut taken: BTreeSet<u32> = pods.filter_map(|pod| pod.replica_index).collect();
    let mut own_names = BTreeSet::new();
    let host_count = u32::try_from(hosts_of_replica(view, group)).unwrap_or(1);
    for _ in replicas.len()..wanted {
        // A replica is made in one go: half of one would be cleaned up by the next decision.
        if plan.room() < usize::try_from(host_count).unwrap_or(usize::MAX) {
            return;
        }
        let index = (0..u32::MAX)
            .find(|index| !taken.contains(index))
            .unwrap_or(0);
        taken.insert(index);
        let replica = replica_name(view, group, index);
        for host in 0..host_count {
            let place = WorkerPlace {
                replica_index: index,
                replica_name: &replica,
                host_index: host,
            };
            let bodies = attempts().map(|attempt| {
                let suffix = pod_suffix(view, &group.name, &[index, host, attempt]);
                pod::worker_pod(&view.cluster, group, place, Some(&suffix), view.settings)
            });
            let mut bodies = bodies.filter(|body| !own_names.contains(crate::ray::name_of(body)));
            if let Some(body) = first_free(view, &mut bodies) {
                drop(bodies);
                own_names.insert(crate::ray::name_of(&body).to_owned());
                plan.create_pod(view, NodeType::Worker, body);
            }
        }
    }
}

fn replica_name(view: &View<'_>, group: &WorkerGroup, index: u32) -> String {
    let metadata = &view.cluster.metadata;
    let (generation, index) = (metadata.generation.to_string(), index.to_string());
    let suffix = suffix(&[&metadata.uid, &generation, &group.name, &index, "replica"]);
    names::with_suffix(&group.name, &suffix)
}

fn bury(view: &View<'_>, plan: &mut Plan, pod: &Pod<'_>, why: &str) {
    plan.delete_pod(pod);
    let group = &pod.view.group;
    let message = format!(
        "Deleted worker Pod {} for group {group}: {why}",
        obituary(pod)
    );
    plan.tell(view, "DeletedWorkerPod", message);
}
