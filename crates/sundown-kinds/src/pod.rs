//! The pods of a cluster, as they go to the API server.
//!
//! One container runs Ray: the first of the template. Everything is added to what the user wrote, and
//! nothing of it is taken away. The autoscaler's container, tokens, TLS, fault tolerance and the
//! collector of histories are added by their own modules, between the template and `finish`.

mod container;
mod labels;
mod probes;
mod recreate;
pub mod start;
mod wait;

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::names::{self, NodeType};
use crate::ray_cluster::{RayCluster, WorkerGroup};
use crate::settings::Settings;
use crate::template::list;

pub use recreate::recreate_hash;

/// Which worker of its group a pod is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorkerPlace<'a> {
    /// The index of its replica in the group.
    pub replica_index: u32,
    /// The name of its replica, of groups with several hosts.
    pub replica_name: &'a str,
    /// Which host of the replica it is.
    pub host_index: u32,
}

/// What is the same for all containers of a pod.
struct Context<'a> {
    cluster: &'a RayCluster,
    settings: &'a Settings,
    node_type: NodeType,
    /// Where the head is, for its own pods as well.
    head: String,
    port: String,
    params: BTreeMap<String, String>,
}

impl<'a> Context<'a> {
    fn new(cluster: &'a RayCluster, settings: &'a Settings, node_type: NodeType) -> Self {
        Self {
            cluster,
            settings,
            node_type,
            head: cluster.head_domain_name(&settings.cluster_domain),
            port: cluster.spec.head.port(),
            params: BTreeMap::new(),
        }
    }

    fn is_head(&self) -> bool {
        self.node_type == NodeType::Head
    }
}

/// The head of a cluster.
///
/// With a `suffix` the pod has the name that a server would make of it; without, the server makes one.
pub fn head_pod(cluster: &RayCluster, suffix: Option<&str>, settings: &Settings) -> Value {
    let mut context = Context::new(cluster, settings, NodeType::Head);
    let group = &cluster.spec.head;
    context.params = start::head_params(cluster);
    let mut pod = from_template(&group.template.0);
    let prefix = names::head_pod_prefix(&cluster.metadata.name);
    let own_name = pod["metadata"]["name"].as_str().unwrap_or("");
    if settings.deterministic_head_name {
        pod["metadata"]["name"] = json!(prefix);
    } else if own_name.is_empty() {
        set_name(&mut pod, &prefix, suffix);
    }
    pod["metadata"]["labels"] = labels::head(&context, group);
    pod["metadata"]["annotations"] = labels::head_annotations(&context, group);
    add_containers(&mut pod, &settings.head_sidecars);
    finish(&context, pod)
}

/// A worker of a group.
///
/// With a `suffix` the pod has the name that a server would make of it; without, the server makes one.
pub fn worker_pod(
    cluster: &RayCluster,
    group: &WorkerGroup,
    place: WorkerPlace<'_>,
    suffix: Option<&str>,
    settings: &Settings,
) -> Value {
    let mut context = Context::new(cluster, settings, NodeType::Worker);
    context.params = start::worker_params(group, &context.head, &context.port);
    let mut pod = from_template(&group.template.0);
    let prefix = names::worker_pod_prefix(&cluster.metadata.name, &group.name);
    // A name in the template is one name for many pods.
    set_name(&mut pod, &prefix, suffix);
    pod["metadata"]["labels"] = labels::worker(&context, group, place);
    pod["metadata"]["annotations"] = labels::worker_annotations(&context, group);
    if settings.inject_init_container {
        wait::add(&mut pod, &context);
    }
    add_containers(&mut pod, &settings.worker_sidecars);
    finish(&context, pod)
}

/// The pod that a template stands for: the metadata that is carried over, and the spec.
fn from_template(template: &Map<String, Value>) -> Value {
    let mut metadata = Map::new();
    let own = template.get("metadata").and_then(Value::as_object);
    for (name, value) in own.into_iter().flatten() {
        if matches!(
            name.as_str(),
            "name" | "finalizers" | "labels" | "annotations"
        ) {
            metadata.insert(name.clone(), value.clone());
        }
    }
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": template.get("spec").cloned().unwrap_or_else(|| json!({})),
    })
}

fn set_name(pod: &mut Value, prefix: &str, suffix: Option<&str>) {
    let prefix = format!("{prefix}-");
    if let Value::Object(metadata) = &mut pod["metadata"] {
        metadata.remove("name");
        if let Some(suffix) = suffix {
            metadata.insert("name".into(), json!(format!("{prefix}{suffix}")));
        }
        metadata.insert("generateName".into(), json!(prefix));
    }
}

fn add_containers(pod: &mut Value, sidecars: &[Value]) {
    let mut containers = list(pod["spec"].get("containers")).to_vec();
    containers.extend_from_slice(sidecars);
    pod["spec"]["containers"] = json!(containers);
}

/// What heads and workers have in common: ownership, memory, the command, environment, probes.
fn finish(context: &Context<'_>, mut pod: Value) -> Value {
    let metadata = &context.cluster.metadata;
    pod["metadata"]["namespace"] = json!(metadata.namespace);
    pod["metadata"]["ownerReferences"] = metadata.controller_reference("RayCluster");
    let spec = &context.cluster.spec;
    if spec.enable_autoscaling && spec.is_autoscaler_v2() {
        // The second autoscaler replaces nodes; a container that came back would be one it gave up.
        pod["spec"]["restartPolicy"] = json!("Never");
    }
    container::set_init_env(&mut pod, &context.head);
    let mut containers = list(pod["spec"].get("containers")).to_vec();
    if let Some(ray) = containers.first_mut() {
        container::add_metrics_port(ray);
        container::add_shared_memory(&mut pod, ray, context);
        let command = start::command(context.node_type, &context.params, ray);
        container::set_command(ray, &command, &pod["metadata"]["annotations"], context);
        container::add_env(ray, &command, context);
        if context.settings.inject_probes {
            probes::add(ray, context);
        }
    }
    pod["spec"]["containers"] = json!(containers);
    pod
}

#[cfg(test)]
mod tests;
