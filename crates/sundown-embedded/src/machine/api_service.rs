//! The `kubernetes` Service, by which pods find the API server: made as upstream's server makes it, once,
//! at the start. Its address is the bridge's, since nothing here forwards what is sent to others.

use std::net::SocketAddrV4;

use kube::Client;
use serde_json::{Value, json};

use super::registration::{request, says};

const NAME: &str = "kubernetes";
const SERVICES: &str = "/api/v1/namespaces/default/services";
const ENDPOINTS: &str = "/api/v1/namespaces/default/endpoints";
const SLICES: &str = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices";

/// Makes Service, Endpoints and `EndpointSlice`, or brings them up to date.
///
/// Errors: the API server did not take one of them.
pub(super) async fn publish(client: &Client, at: SocketAddrV4) -> Result<(), kube::Error> {
    // At once: what is written together is synced together.
    let [service, endpoints, slice] = objects(at);
    let (service, endpoints, slice) = tokio::join!(
        publish_one(client, service),
        publish_one(client, endpoints),
        publish_one(client, slice)
    );
    service.and(endpoints).and(slice)
}

async fn publish_one(
    client: &Client,
    (collection, wanted): (&str, Value),
) -> Result<(), kube::Error> {
    let path = format!("{collection}/{NAME}");
    let found = match client
        .request::<Value>(request("GET", &path, &Value::Null))
        .await
    {
        Ok(found) => Some(found),
        Err(kube::Error::Api(status)) if status.code == 404 => None,
        Err(error) => return Err(error),
    };
    let change = match found {
        None => request("POST", collection, &wanted),
        Some(found) if says(&found, &wanted) => return Ok(()),
        Some(_) => request("PATCH", &path, &wanted),
    };
    client.request::<Value>(change).await?;
    Ok(())
}

/// The objects by their collections, with what of them is upstream's to say.
fn objects(at: SocketAddrV4) -> [(&'static str, Value); 3] {
    let (ip, port) = (at.ip().to_string(), at.port());
    let ports = json!([{ "name": "https", "port": port, "protocol": "TCP" }]);
    let service = json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": {
            "name": NAME, "labels": { "component": "apiserver", "provider": "kubernetes" },
        },
        "spec": {
            "clusterIP": ip, "type": "ClusterIP", "sessionAffinity": "None",
            "ports": [{ "name": "https", "protocol": "TCP", "port": port, "targetPort": port }],
        },
    });
    let endpoints = json!({
        "apiVersion": "v1", "kind": "Endpoints",
        "metadata": {
            "name": NAME, "labels": { "endpointslice.kubernetes.io/skip-mirror": "true" },
        },
        "subsets": [{ "addresses": [{ "ip": ip }], "ports": ports }],
    });
    let slice = json!({
        "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
        "metadata": { "name": NAME, "labels": { "kubernetes.io/service-name": NAME } },
        "addressType": "IPv4",
        "endpoints": [{ "addresses": [ip], "conditions": { "ready": true } }],
        "ports": ports,
    });
    [(SERVICES, service), (ENDPOINTS, endpoints), (SLICES, slice)]
}
