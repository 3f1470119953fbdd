//! The services of a cluster and of a job.
//!
//! Which of them exist, and whether they are still right, is decided elsewhere.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::constants::{
    APPLICATION, CREATED_BY, LABEL_APPLICATION, LABEL_CLUSTER, LABEL_CREATED_BY,
    LABEL_HEADLESS_WORKERS, LABEL_IDENTIFIER, LABEL_NODE_TYPE, LABEL_ORIGIN_KIND,
    LABEL_ORIGIN_NAME, PORT_CLIENT, PORT_DASHBOARD, PORT_GCS, PORT_METRICS, PORT_SERVE,
};
use crate::names::{self, NodeType, identifier};
use crate::ray_cluster::RayCluster;
use crate::ray_job::RayJob;
use crate::settings::Settings;
use crate::template::{list, named};

type Texts = BTreeMap<String, String>;

/// The service of a cluster's head.
pub fn head_service(cluster: &RayCluster, settings: &Settings) -> Value {
    let mut service = service_of_head(cluster, settings, &cluster.spec.head_service_annotations);
    service["metadata"]["name"] = json!(cluster.head_service_name());
    service["metadata"]["ownerReferences"] = cluster.metadata.controller_reference("RayCluster");
    service
}

/// The service of a job: the same head under a name that outlives clusters.
///
/// A user's service keeps what it says about itself, but not what only one service can have.
pub fn ray_job_head_service(job: &RayJob, cluster: &RayCluster, settings: &Settings) -> Value {
    let mut service = service_of_head(cluster, settings, &Texts::new());
    let name = &job.metadata.name;
    let annotations = service["metadata"]["annotations"].take();
    service["metadata"] = json!({
        "name": names::head_service(name),
        "namespace": job.metadata.namespace,
        "labels": {
            LABEL_ORIGIN_NAME: name,
            LABEL_ORIGIN_KIND: "RayJob",
            LABEL_NODE_TYPE: NodeType::Head.as_str(),
            LABEL_IDENTIFIER: identifier(name, NodeType::Head),
        },
        "ownerReferences": job.metadata.controller_reference("RayJob"),
    });
    if !annotations.is_null() {
        service["metadata"]["annotations"] = annotations;
    }
    if let Value::Object(spec) = &mut service["spec"] {
        drop_what_is_taken(spec);
    }
    service
}

/// The service by which the hosts of a replica find each other; None if no group has several.
pub fn headless_service(cluster: &RayCluster) -> Option<Value> {
    let is_wanted = cluster
        .spec
        .worker_groups
        .iter()
        .any(|group| group.host_count > 1);
    let metadata = &cluster.metadata;
    is_wanted.then(|| {
        json!({
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {
                "name": names::headless_service(&metadata.name),
                "namespace": metadata.namespace,
                "labels": {LABEL_HEADLESS_WORKERS: metadata.name},
                "ownerReferences": metadata.controller_reference("RayCluster"),
            },
            "spec": {
                "clusterIP": "None",
                "type": "ClusterIP",
                "publishNotReadyAddresses": true,
                "selector": {
                    LABEL_CLUSTER: metadata.name,
                    LABEL_NODE_TYPE: NodeType::Worker.as_str(),
                },
            },
        })
    })
}

/// The labels by which the head service of a cluster is found.
pub fn head_service_labels(cluster: &RayCluster) -> BTreeMap<String, String> {
    let name = &cluster.metadata.name;
    [
        (LABEL_CLUSTER, name.clone()),
        (LABEL_NODE_TYPE, NodeType::Head.as_str().to_owned()),
        (LABEL_IDENTIFIER, identifier(name, NodeType::Head)),
    ]
    .into_iter()
    .map(|(name, value)| (name.to_owned(), value))
    .collect()
}

fn service_of_head(cluster: &RayCluster, settings: &Settings, annotations: &Texts) -> Value {
    let mut labels = head_service_labels(cluster);
    for (name, default) in [
        (LABEL_APPLICATION, APPLICATION),
        (LABEL_CREATED_BY, CREATED_BY),
    ] {
        labels.insert(
            name.into(),
            label_of_head(cluster, name).unwrap_or(default).into(),
        );
    }
    let selector = selector(cluster, &labels);
    match &cluster.spec.head.head_service {
        Some(own) => custom(cluster, own, labels, &selector, annotations),
        None => standard(cluster, settings, &labels, &selector, annotations),
    }
}

/// A label of the head, where the user sets it.
fn label_of_head<'a>(cluster: &'a RayCluster, name: &str) -> Option<&'a str> {
    let head = &cluster.spec.head;
    head.labels
        .get(name)
        .map(String::as_str)
        .or_else(|| head.template.label(name))
}

/// What selects the head: what the head is labelled with, whoever said so.
fn selector(cluster: &RayCluster, labels: &Texts) -> Texts {
    let mut selector = labels.clone();
    if let Some(own) = label_of_head(cluster, LABEL_IDENTIFIER) {
        selector.insert(LABEL_IDENTIFIER.into(), own.to_owned());
    }
    selector
}

fn standard(
    cluster: &RayCluster,
    settings: &Settings,
    labels: &Texts,
    selector: &Texts,
    annotations: &Texts,
) -> Value {
    let kind = &cluster.spec.head.service_type;
    let mut spec = json!({"selector": selector, "ports": ports(cluster)});
    if !kind.is_empty() {
        spec["type"] = json!(kind);
    }
    if !settings.head_cluster_ip && matches!(kind.as_str(), "" | "ClusterIP") {
        // There is one head at most: its own address will do, also before it is ready.
        spec["clusterIP"] = json!("None");
        spec["publishNotReadyAddresses"] = json!(true);
    }
    let mut metadata = json!({"namespace": cluster.metadata.namespace, "labels": labels});
    if !annotations.is_empty() {
        metadata["annotations"] = json!(annotations);
    }
    json!({"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec})
}

fn custom(
    cluster: &RayCluster,
    own: &Map<String, Value>,
    labels: Texts,
    selector: &Texts,
    annotations: &Texts,
) -> Value {
    let mut spec = own.get("spec").cloned().unwrap_or_else(|| json!({}));
    spec["selector"] = json!(selector);
    let mut all = list(spec.get("ports")).to_vec();
    for port in ports(cluster) {
        // Two ports of one name would make the whole service invalid.
        if named(&all, port["name"].as_str().unwrap_or("")).is_none() {
            all.push(port);
        }
    }
    spec["ports"] = json!(all);
    let kind = &cluster.spec.head.service_type;
    if spec["type"].as_str().is_none_or(str::is_empty) && !kind.is_empty() {
        spec["type"] = json!(kind);
    }
    let merged = |member: &str, ours: Texts| {
        let own = own
            .get("metadata")
            .and_then(|metadata| metadata.get(member)?.as_object());
        let mut merged = own.cloned().unwrap_or_default();
        merged.extend(ours.into_iter().map(|(name, value)| (name, json!(value))));
        merged
    };
    let mut metadata = json!({
        "namespace": cluster.metadata.namespace,
        "labels": merged("labels", labels),
    });
    let annotations = merged("annotations", annotations.clone());
    if !annotations.is_empty() {
        metadata["annotations"] = json!(annotations);
    }
    json!({"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec})
}

/// The ports of the head by name: those that its container declares, or the usual ones.
fn ports(cluster: &RayCluster) -> Vec<Value> {
    let container = cluster.spec.head.template.ray_container();
    let declared = list(container.and_then(|container| container.get("ports")));
    let mut ports: BTreeMap<String, i64> = declared
        .iter()
        .filter_map(|port| {
            let number = port["containerPort"].as_i64()?;
            let name = port["name"].as_str().filter(|name| !name.is_empty());
            Some((
                name.map_or_else(|| format!("{number}-port"), str::to_owned),
                number,
            ))
        })
        .collect();
    if ports.is_empty() {
        let usual = [
            ("client", PORT_CLIENT),
            ("gcs-server", PORT_GCS),
            ("dashboard", PORT_DASHBOARD),
            ("serve", PORT_SERVE),
        ];
        ports.extend(usual.map(|(name, port)| (name.to_owned(), port.into())));
    }
    ports.entry("metrics".into()).or_insert(PORT_METRICS.into());
    let port = |(name, number)| json!({"name": name, "port": number, "appProtocol": "tcp"});
    ports.into_iter().map(port).collect()
}

/// Addresses and node ports belong to one service.
fn drop_what_is_taken(spec: &mut Map<String, Value>) {
    if spec.get("clusterIP").is_some_and(|ip| ip != "None") {
        spec.remove("clusterIP");
        spec.remove("clusterIPs");
    }
    for member in ["externalIPs", "healthCheckNodePort", "loadBalancerIP"] {
        spec.remove(member);
    }
    let ports = spec.get_mut("ports").and_then(Value::as_array_mut);
    for port in ports.into_iter().flatten().filter_map(Value::as_object_mut) {
        port.remove("nodePort");
    }
}

#[cfg(test)]
mod tests;
