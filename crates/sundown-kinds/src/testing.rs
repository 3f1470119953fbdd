//! Objects for tests, in the fewest words.

use serde_json::{Value, json};

use crate::{RayCluster, RayJob};

/// Puts values at paths of a document, making what is missing on the way.
pub(crate) fn with(mut document: Value, changes: &[(&str, Value)]) -> Value {
    for (path, value) in changes {
        let mut at = &mut document;
        for part in path.split('/').skip(1) {
            at = match part.parse::<usize>() {
                Ok(index) => &mut at[index],
                Err(_) => &mut at[part],
            };
        }
        *at = value.clone();
    }
    document
}

/// A container with an image.
pub(crate) fn container(name: &str) -> Value {
    json!({"name": name, "image": "rayproject/ray:2.55.0"})
}

/// A cluster with one group of two workers.
pub(crate) fn cluster_json() -> Value {
    json!({
        "apiVersion": "ray.io/v1",
        "kind": "RayCluster",
        "metadata": {"name": "demo", "namespace": "ns", "uid": "uid-1", "generation": 3},
        "spec": cluster_spec(),
    })
}

/// Its spec.
pub(crate) fn cluster_spec() -> Value {
    json!({
        "rayVersion": "2.55.0",
        "headGroupSpec": {
            "rayStartParams": {},
            "template": {"spec": {"containers": [container("ray-head")]}},
        },
        "workerGroupSpecs": [{
            "groupName": "small",
            "replicas": 2,
            "minReplicas": 1,
            "maxReplicas": 5,
            "numOfHosts": 1,
            "template": {"spec": {"containers": [container("ray-worker")]}},
        }],
    })
}

/// A cluster, changed.
pub(crate) fn a_cluster(changes: &[(&str, Value)]) -> RayCluster {
    RayCluster::read(&with(cluster_json(), changes)).unwrap()
}

/// A job that describes its cluster.
pub(crate) fn job_json() -> Value {
    json!({
        "apiVersion": "ray.io/v1",
        "kind": "RayJob",
        "metadata": {
            "name": "counter", "namespace": "ns", "uid": "uid-2",
            "labels": {"team": "a"}, "annotations": {"note": "b"},
        },
        "spec": {"entrypoint": " python count.py\n", "rayClusterSpec": cluster_spec()},
        "status": {
            "jobId": "counter-bc9bc",
            "dashboardURL": "demo-head-svc.ns.svc.cluster.local:8265",
        },
    })
}

/// A job, changed.
pub(crate) fn a_job(changes: &[(&str, Value)]) -> RayJob {
    RayJob::read(&with(job_json(), changes)).unwrap()
}
