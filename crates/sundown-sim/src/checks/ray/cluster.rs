//! R8: a cluster never has more pods than it wants; J7: a head goes only when it is spent or all of
//! the cluster rests.

use std::sync::Arc;

use serde_json::Value;
use sundown_api::Method;
use sundown_model::Resource;

use super::{Violation, is_controlled, rays, text};
use crate::ledger::{Event, Ledger, Version};

const NODE_TYPE: &str = "/metadata/labels/ray.io~1node-type";
const GROUP: &str = "/metadata/labels/ray.io~1group";

pub(super) fn judge(event: &Event, before: &Ledger, found: &mut Vec<Violation>) {
    if !event.is_by("ray_cluster") {
        return;
    }
    let Some(pod) = event.new.as_ref().or(event.prev.as_ref()) else {
        return;
    };
    let cluster = rays(before, "rayclusters").find(|it| is_controlled(pod, &it.uid));
    let mut broken = |invariant, text: String| {
        found.push(Violation::new(invariant, format!("{}: {text}", event.key)));
    };
    if event.prev.is_none() {
        let Some(cluster) = cluster else { return };
        let (is, wanted) = (live_like(pod, cluster, before), wanted(pod, cluster));
        if is >= wanted {
            broken("R8", format!("one more where {is} of {wanted} are"));
        }
        return;
    }
    let is_head = text(pod, NODE_TYPE) == "head";
    if event.method == Method::Delete && event.first && is_head {
        let rests = cluster.is_some_and(|it| it.json["spec"]["suspend"] == true);
        let suspends = cluster.is_some_and(|it| {
            let conditions = it
                .json
                .pointer("/status/conditions")
                .and_then(Value::as_array);
            let mut all = conditions.into_iter().flatten();
            all.any(|it| it["type"] == "RayClusterSuspending" && it["status"] == "True")
        });
        if !rests && !suspends && !is_spent(pod) {
            broken("J7", "a head that was of use was deleted".to_owned());
        }
    }
}

/// How many pods of this sort stay.
fn live_like(pod: &Version, cluster: &Version, before: &Ledger) -> usize {
    let pods = Resource::new("", "pods");
    let is_like = |other: &Arc<Version>| {
        let same = |pointer: &str| text(other, pointer) == text(pod, pointer);
        same(NODE_TYPE)
            && same(GROUP)
            && is_controlled(other, &cluster.uid)
            && other.deleted_at().is_none()
            && !is_spent(other)
    };
    let live = before.live.iter();
    live.filter(|(key, it)| key.resource == pods && is_like(it))
        .count()
}

fn wanted(pod: &Version, cluster: &Version) -> usize {
    if text(pod, NODE_TYPE) == "head" {
        return 1;
    }
    let groups = cluster.json.pointer("/spec/workerGroupSpecs");
    let mut groups = groups.and_then(Value::as_array).into_iter().flatten();
    let group = groups.find(|group| group["groupName"] == text(pod, GROUP));
    let replicas = group.and_then(|group| group["replicas"].as_u64());
    usize::try_from(replicas.unwrap_or(0)).unwrap_or(usize::MAX)
}

fn is_spent(pod: &Version) -> bool {
    matches!(text(pod, "/status/phase"), "Failed" | "Succeeded")
}
