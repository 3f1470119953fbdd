//! The hash by which a head tells that it was made from another spec.
//!
//! Ours alone: no two implementations write the same JSON. Heads of other operators carry another
//! operator version, for which the annotations are rewritten and no pod is made anew.

use serde_json::{Map, Value};
use xxhash_rust::xxh3::xxh3_128;

use crate::ray_cluster::ClusterSpec;

/// The hash of all that makes pods different: without bounds and counts, which scale, and without
/// tolerations and gates, which schedulers set.
pub fn recreate_hash(spec: &ClusterSpec) -> String {
    let mut spec = spec.raw.clone();
    spec.remove("upgradeStrategy");
    if let Some(Value::Object(head)) = spec.get_mut("headGroupSpec") {
        without_scheduling(head);
    }
    let groups = spec
        .get_mut("workerGroupSpecs")
        .and_then(Value::as_array_mut);
    for group in groups
        .into_iter()
        .flatten()
        .filter_map(Value::as_object_mut)
    {
        for member in ["replicas", "minReplicas", "maxReplicas", "scaleStrategy"] {
            group.remove(member);
        }
        without_scheduling(group);
    }
    format!(
        "{:032x}",
        xxh3_128(Value::Object(spec).to_string().as_bytes())
    )
}

fn without_scheduling(group: &mut Map<String, Value>) {
    let spec = group
        .get_mut("template")
        .and_then(|template| template.get_mut("spec"));
    if let Some(Value::Object(spec)) = spec {
        spec.remove("tolerations");
        spec.remove("schedulingGates");
    }
}
