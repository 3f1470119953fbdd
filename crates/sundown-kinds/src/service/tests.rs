//! The services of heads and of groups with several hosts.

use serde_json::{Value, json};

use super::*;
use crate::testing::{a_cluster, a_job};

fn service(changes: &[(&str, Value)]) -> Value {
    head_service(&a_cluster(changes), &Settings::default())
}

fn port_names(service: &Value) -> Vec<&str> {
    list(service["spec"].get("ports"))
        .iter()
        .filter_map(|port| port["name"].as_str())
        .collect()
}

const PORTS: &str = "/spec/headGroupSpec/template/spec/containers/0/ports";
const LABELS: &str = "/spec/headGroupSpec/template/metadata/labels";
const CUSTOM: &str = "/spec/headGroupSpec/headService";

#[test]
fn the_service_of_a_head_is_headless_and_has_the_usual_ports() {
    let labels = json!({
        "ray.io/cluster": "demo", "ray.io/node-type": "head", "ray.io/identifier": "demo-head",
        "app.kubernetes.io/name": "kuberay", "app.kubernetes.io/created-by": "kuberay-operator",
    });
    let port = |name: &str, port: i32| json!({"name": name, "port": port, "appProtocol": "tcp"});
    let made = service(&[("/spec/headServiceAnnotations", json!({"a": "b"}))]);
    assert_eq!(made["metadata"]["name"], "demo-head-svc");
    assert_eq!(made["metadata"]["annotations"], json!({"a": "b"}));
    assert_eq!(made["metadata"]["labels"], labels);
    assert_eq!(
        made["spec"],
        json!({
            "clusterIP": "None",
            "publishNotReadyAddresses": true,
            "selector": labels,
            "ports": [
                port("client", 10001), port("dashboard", 8265), port("gcs-server", 6379),
                port("metrics", 8080), port("serve", 8000),
            ],
        })
    );
}

#[test]
fn declared_ports_replace_the_usual_ones() {
    let made = service(&[(
        PORTS,
        json!([{"name": "gcs", "containerPort": 1}, {"containerPort": 2}]),
    )]);
    assert_eq!(port_names(&made), ["2-port", "gcs", "metrics"]);
}

#[test]
fn other_types_and_the_setting_get_an_address() {
    let made = service(&[("/spec/headGroupSpec/serviceType", json!("NodePort"))]);
    assert_eq!(
        (&made["spec"]["type"], &made["spec"]["clusterIP"]),
        (&json!("NodePort"), &json!(null))
    );
    let settings = Settings {
        head_cluster_ip: true,
        ..Settings::default()
    };
    assert_eq!(
        head_service(&a_cluster(&[]), &settings)["spec"]["clusterIP"],
        json!(null)
    );
}

#[test]
fn the_selector_follows_what_the_head_is_labelled_with() {
    let made = service(&[
        (
            LABELS,
            json!({"app.kubernetes.io/name": "mine", "ray.io/identifier": "own"}),
        ),
        (
            "/spec/headGroupSpec/labels",
            json!({"app.kubernetes.io/created-by": "me"}),
        ),
    ]);
    let selector = &made["spec"]["selector"];
    assert_eq!(selector["app.kubernetes.io/name"], "mine");
    assert_eq!(selector["app.kubernetes.io/created-by"], "me");
    assert_eq!(selector["ray.io/identifier"], "own");
    // The service itself is found by the identifier that follows from the name.
    assert_eq!(made["metadata"]["labels"]["ray.io/identifier"], "demo-head");
}

#[test]
fn a_service_of_the_user_is_completed() {
    let own = json!({
        "metadata": {"name": "mine", "namespace": "x", "labels": {"l": "1", "ray.io/cluster": "x"},
                     "annotations": {"a": "theirs", "b": "theirs"}},
        "spec": {"selector": {"x": "y"}, "clusterIP": "10.0.0.9",
                 "ports": [{"name": "dashboard", "port": 1, "nodePort": 30000}]},
    });
    let made = service(&[
        (CUSTOM, own),
        ("/spec/headGroupSpec/serviceType", json!("LoadBalancer")),
        ("/spec/headServiceAnnotations", json!({"a": "ours"})),
    ]);
    let metadata = &made["metadata"];
    assert_eq!(
        (&metadata["name"], &metadata["namespace"]),
        (&json!("mine"), &json!("ns"))
    );
    assert_eq!(
        (
            &metadata["labels"]["l"],
            &metadata["labels"]["ray.io/cluster"]
        ),
        (&json!("1"), &json!("demo"))
    );
    assert_eq!(metadata["annotations"], json!({"a": "ours", "b": "theirs"}));
    assert_eq!(made["spec"]["selector"]["ray.io/cluster"], "demo");
    assert_eq!(made["spec"]["selector"]["x"], json!(null));
    assert_eq!(made["spec"]["type"], "LoadBalancer");
    assert_eq!(made["spec"]["clusterIP"], "10.0.0.9");
    // Two ports of one name would make it invalid.
    assert_eq!(
        port_names(&made),
        ["dashboard", "client", "gcs-server", "metrics", "serve"]
    );
}

#[test]
fn the_service_of_a_job_points_at_the_head_of_its_cluster() {
    let made = ray_job_head_service(&a_job(&[]), &a_cluster(&[]), &Settings::default());
    assert_eq!(made["metadata"]["name"], "counter-head-svc");
    assert_eq!(
        made["metadata"]["labels"],
        json!({
            "ray.io/originated-from-cr-name": "counter", "ray.io/originated-from-crd": "RayJob",
            "ray.io/node-type": "head", "ray.io/identifier": "counter-head",
        })
    );
    assert_eq!(made["metadata"]["ownerReferences"][0]["kind"], "RayJob");
    assert_eq!(made["spec"]["selector"]["ray.io/cluster"], "demo");
}

/// Upstream copies a user's service with its addresses, which another has already: it is refused, and
/// the job never goes on. And its selector forgets the user's labels, so that it selects nothing.
#[test]
fn the_service_of_a_job_takes_no_address_of_another_and_selects_the_head() {
    let own = json!({"metadata": {"annotations": {"a": "b"}}, "spec": {
        "clusterIP": "10.0.0.9", "clusterIPs": ["10.0.0.9"], "loadBalancerIP": "1.2.3.4",
        "ports": [{"name": "dashboard", "port": 1, "nodePort": 30000}],
    }});
    let cluster = a_cluster(&[
        (CUSTOM, own),
        (LABELS, json!({"app.kubernetes.io/name": "mine"})),
    ]);
    let made = ray_job_head_service(&a_job(&[]), &cluster, &Settings::default());
    assert_eq!(made["metadata"]["annotations"], json!({"a": "b"}));
    for member in ["clusterIP", "clusterIPs", "loadBalancerIP"] {
        assert_eq!(made["spec"][member], json!(null), "{member}");
    }
    assert_eq!(
        made["spec"]["ports"][0],
        json!({"name": "dashboard", "port": 1})
    );
    assert_eq!(made["spec"]["selector"]["app.kubernetes.io/name"], "mine");
}

#[test]
fn hosts_find_each_other_where_there_are_several() {
    assert_eq!(headless_service(&a_cluster(&[])), None);
    let several = a_cluster(&[("/spec/workerGroupSpecs/0/numOfHosts", json!(2))]);
    let made = headless_service(&several).unwrap();
    assert_eq!(made["metadata"]["name"], "demo-headless");
    assert_eq!(
        made["metadata"]["labels"],
        json!({"ray.io/headless-worker-svc": "demo"})
    );
    assert_eq!(
        made["spec"],
        json!({
            "clusterIP": "None", "type": "ClusterIP", "publishNotReadyAddresses": true,
            "selector": {"ray.io/cluster": "demo", "ray.io/node-type": "worker"},
        })
    );
}
