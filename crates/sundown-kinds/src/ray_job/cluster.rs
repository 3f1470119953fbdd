//! The cluster that a job runs on: made after its spec, or pointed at; and where its dashboard is.

use serde_json::{Value, json};

use super::{RayJob, SubmissionMode};
use crate::constants::{
    ANNOTATION_NO_HEAD_RESTART, LABEL_ORIGIN_KIND, LABEL_ORIGIN_NAME, LABEL_SUBMISSION_MODE,
};
use crate::names;
use crate::ray_cluster::summary::ServiceView;

/// The cluster of a job under this name; None if the job does not describe one.
pub fn ray_cluster(job: &RayJob, name: &str) -> Option<Value> {
    let spec = job.spec.cluster.as_ref()?;
    let mut labels = job.metadata.labels.clone();
    labels.insert(LABEL_ORIGIN_NAME.into(), job.metadata.name.clone());
    labels.insert(LABEL_ORIGIN_KIND.into(), "RayJob".into());
    labels.insert(
        LABEL_SUBMISSION_MODE.into(),
        job.spec.submission_mode.to_string(),
    );
    let mut annotations = job.metadata.annotations.clone();
    if job.spec.submission_mode == SubmissionMode::Sidecar {
        // The submitter goes with the head: a new head could not go on with the job.
        annotations.insert(ANNOTATION_NO_HEAD_RESTART.into(), "true".into());
    }
    let mut metadata = json!({
        "name": name,
        "namespace": job.metadata.namespace,
        "labels": labels,
        "ownerReferences": job.metadata.controller_reference("RayJob"),
    });
    if !annotations.is_empty() {
        metadata["annotations"] = json!(annotations);
    }
    let mut spec = Value::Object(spec.raw.clone());
    write_always(&mut spec);
    Some(json!({
        "apiVersion": "ray.io/v1",
        "kind": "RayCluster",
        "metadata": metadata,
        "spec": spec,
    }))
}

/// Go writes these fields of a spec also when they are empty: a missing map as null.
fn write_always(spec: &mut Value) {
    let set = |group: &mut Value, name: &str, value: Value| {
        if let Value::Object(members) = group {
            members.entry(name).or_insert(value);
        }
    };
    if let Some(head) = spec.get_mut("headGroupSpec") {
        set(head, "rayStartParams", Value::Null);
    }
    for group in spec
        .get_mut("workerGroupSpecs")
        .and_then(Value::as_array_mut)
        .into_iter()
        .flatten()
    {
        set(group, "rayStartParams", Value::Null);
        set(group, "scaleStrategy", json!({}));
    }
}

/// Where the dashboard behind a head service answers, without a scheme; None if the service has no
/// such port.
pub fn dashboard_url(
    service: &ServiceView,
    namespace: &str,
    cluster_domain: &str,
) -> Option<String> {
    let port = service
        .ports
        .iter()
        .find(|port| port.name == "dashboard")?
        .port;
    let domain_name = names::domain_name(&service.name, namespace, cluster_domain);
    Some(format!("{domain_name}:{port}"))
}

#[cfg(test)]
mod tests;
