//! The Node object of this machine: made and kept true once, at the start. What it says does not change
//! while the machine runs, so nothing is written afterwards.

use jiff::Timestamp;
use kube::Client;
use serde_json::{Value, json};
use sundown_decide::pod::NODE_NAME;
use sundown_decide::schedule::{Asked, CORES_LABEL, Machine, Offer};

/// Makes the Node object, or brings it up to date.
///
/// Errors: the API server did not take it.
pub(super) async fn register(
    client: &Client,
    asked: Asked,
    now: Timestamp,
) -> Result<(), kube::Error> {
    let machine = machine();
    let wanted = node(machine, &Offer::of(asked, machine));
    let path = format!("/api/v1/nodes/{NODE_NAME}");
    let found = match client
        .request::<Value>(request("GET", &path, &Value::Null))
        .await
    {
        Ok(found) => found,
        Err(kube::Error::Api(status)) if status.code == 404 => {
            client
                .request(request("POST", "/api/v1/nodes", &wanted))
                .await?
        }
        Err(error) => return Err(error),
    };
    if !says(&found["status"], &wanted["status"]) || !is_ready(&found) {
        let mut change = json!({ "status": wanted["status"] });
        change["status"]["conditions"] = json!([ready(now)]);
        let status = format!("{path}/status");
        client
            .request::<Value>(request("PATCH", &status, &change))
            .await?;
    }
    if !says(&found["metadata"]["labels"], &wanted["metadata"]["labels"]) {
        let change = json!({ "metadata": { "labels": wanted["metadata"]["labels"] } });
        client
            .request::<Value>(request("PATCH", &path, &change))
            .await?;
    }
    // The server takes a new node for one that is not ready; on a cluster a controller corrects it.
    if !found["spec"]["taints"].is_null() {
        let change = json!({ "spec": { "taints": null } });
        client
            .request::<Value>(request("PATCH", &path, &change))
            .await?;
    }
    Ok(())
}

fn is_ready(node: &Value) -> bool {
    let conditions = node["status"]["conditions"].as_array();
    let is_it = |it: &Value| it["type"] == "Ready" && it["status"] == "True";
    conditions.is_some_and(|conditions| conditions.iter().any(is_it))
}

fn ready(now: Timestamp) -> Value {
    let at = now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    json!({
        "type": "Ready", "status": "True", "reason": "KubeletReady",
        "message": "pods run as processes of this machine",
        "lastHeartbeatTime": at, "lastTransitionTime": at,
    })
}

/// Whether all that is wanted stands there, whatever else does.
pub(super) fn says(found: &Value, wanted: &Value) -> bool {
    match (found, wanted) {
        (Value::Object(found), Value::Object(wanted)) => wanted
            .iter()
            .all(|(name, value)| found.get(name).is_some_and(|it| says(it, value))),
        (found, wanted) => found == wanted,
    }
}

fn node(machine: Machine, offer: &Offer) -> Value {
    let resources = offer.to_json();
    let labels = json!({
        "kubernetes.io/hostname": NODE_NAME, "kubernetes.io/os": "linux",
        "kubernetes.io/arch": architecture(), CORES_LABEL: machine.cores.to_string(),
    });
    json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": { "name": NODE_NAME, "labels": labels },
        "status": {
            "capacity": resources, "allocatable": resources,
            "addresses": [
                { "type": "InternalIP", "address": "127.0.0.1" },
                { "type": "Hostname", "address": NODE_NAME },
            ],
            "nodeInfo": {
                "architecture": architecture(), "operatingSystem": "linux",
                "containerRuntimeVersion": concat!("sundown://", env!("CARGO_PKG_VERSION")),
                "kubeletVersion": concat!("sundown-", env!("CARGO_PKG_VERSION")),
            },
        },
    })
}

fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

/// This machine, as the kernel tells it.
fn machine() -> Machine {
    let memory = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let total = memory
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:"));
    let total = total.and_then(|it| it.split_whitespace().next());
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    Machine {
        cores: u64::try_from(cores).unwrap_or(1),
        memory_kilobytes: total.and_then(|it| it.parse().ok()).unwrap_or(0),
    }
}

pub(crate) fn request(method: &str, path: &str, body: &Value) -> http::Request<Vec<u8>> {
    let (media, body) = match method {
        "GET" => ("application/json", Vec::new()),
        "PATCH" => (
            "application/merge-patch+json",
            body.to_string().into_bytes(),
        ),
        _ => ("application/json", body.to_string().into_bytes()),
    };
    let request = http::Request::builder().method(method).uri(path);
    let request = request.header("content-type", media).body(body);
    request.expect("the addresses are constants")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_server_adds_is_no_difference() {
        let machine = Machine {
            cores: 2,
            memory_kilobytes: 1,
        };
        let wanted = node(machine, &Offer::of(Asked::default(), machine));
        let mut found = wanted.clone();
        found["status"]["nodeInfo"]["bootID"] = json!("");
        assert!(says(&found["status"], &wanted["status"]));
        found["status"]["allocatable"]["cpu"] = json!("3");
        assert!(!says(&found["status"], &wanted["status"]));
    }
}
