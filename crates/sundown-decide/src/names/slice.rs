//! The `EndpointSlice` of a service, as upstream's controller writes it; one for each service.

use serde_json::{Value, json};
use sundown_model::{Draft, ObjectKey};

use super::view::{PodView, SERVICE_NAME, ServiceView};
use crate::json::{list, number, text};
use crate::kinds::ENDPOINT_SLICE;

const MANAGER: &str = "endpointslice-controller.k8s.io";
/// What one slice may hold.
const ENDPOINTS_MAX: usize = 1_000;

/// Where the slice of a service is. The name is made of the service's uid, so that it is one.
pub(super) fn key(service: &ServiceView<'_>) -> ObjectKey {
    let key = service.object.key();
    let mark = service.object.uid().as_str().bytes();
    let mark = mark.fold(0x811c_9dc5_u32, |hash, byte| {
        (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)
    });
    let name: String = key.name.chars().take(54).collect();
    let name = format!("{name}-{mark:08x}");
    ObjectKey::namespaced(&ENDPOINT_SLICE.resource(), key.namespace_str(), &name)
}

/// The members of the slice that follow the pods.
pub(super) fn content(service: &ServiceView<'_>, pods: &[PodView<'_>]) -> Value {
    let all = pods.iter().take(ENDPOINTS_MAX);
    let endpoints: Vec<_> = all.map(|pod| endpoint(service, pod)).collect();
    json!({ "endpoints": endpoints, "ports": ports(service, pods) })
}

/// A new slice.
pub(super) fn draft(service: &ServiceView<'_>, content: Value) -> Draft {
    let key = key(service);
    let own = service.object.key();
    let mut labels = json!({
        SERVICE_NAME: &*own.name,
        "endpointslice.kubernetes.io/managed-by": MANAGER,
    });
    if service.is_headless {
        labels["service.kubernetes.io/headless"] = json!("");
    }
    let mut body = content;
    body["apiVersion"] = json!("discovery.k8s.io/v1");
    body["kind"] = json!("EndpointSlice");
    body["addressType"] = json!("IPv4");
    body["metadata"] = json!({
        "name": &*key.name,
        "namespace": key.namespace_str(),
        "labels": labels,
        "ownerReferences": [{
            "apiVersion": "v1", "kind": "Service", "name": &*own.name,
            "uid": service.object.uid().as_str(),
            "controller": true, "blockOwnerDeletion": true,
        }],
    });
    Draft::new(key, body)
}

fn endpoint(service: &ServiceView<'_>, pod: &PodView<'_>) -> Value {
    let key = pod.object.key();
    let mut json = json!({
        "addresses": [pod.address.to_string()],
        "conditions": {
            "ready": service.shows(pod),
            "serving": service.shows_unready || pod.is_ready,
            "terminating": pod.is_deleting,
        },
        "targetRef": {
            "kind": "Pod", "namespace": key.namespace_str(), "name": &*key.name,
            "uid": pod.uid.as_str(),
        },
    });
    if !pod.node.is_empty() {
        json["nodeName"] = json!(pod.node);
    }
    if !pod.hostname.is_empty() && pod.subdomain == &*service.object.key().name {
        json["hostname"] = json!(pod.hostname);
    }
    json
}

/// Ports by number, or by the name that the first pod gives them.
fn ports(service: &ServiceView<'_>, pods: &[PodView<'_>]) -> Vec<Value> {
    let resolve = |port: &Value| {
        let target = port.get("targetPort").unwrap_or(&Value::Null);
        let number = target.as_i64().filter(|number| *number > 0).or_else(|| {
            let name = target.as_str()?;
            pods.iter().find_map(|pod| named(pod, name))
        });
        // Without a target it is the port itself; a name that no pod has is no port.
        let own = target
            .as_str()
            .is_none()
            .then(|| crate::json::number(port, "port"));
        let number = number.or(own.flatten())?;
        let mut json = json!({ "name": text(port, "name"), "port": number });
        json["protocol"] = json!(match text(port, "protocol") {
            "" => "TCP",
            protocol => protocol,
        });
        if let Some(protocol) = port.get("appProtocol") {
            json["appProtocol"] = protocol.clone();
        }
        Some(json)
    };
    service.ports.iter().filter_map(resolve).collect()
}

fn named(pod: &PodView<'_>, name: &str) -> Option<i64> {
    let containers = crate::json::items(pod.object.field("/spec/containers"));
    let mut ports = containers.iter().flat_map(|it| list(it, "ports"));
    let port = ports.find(|port| text(port, "name") == name)?;
    number(port, "containerPort")
}
