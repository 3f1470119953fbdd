//! The cluster of a job, and its dashboard.

use serde_json::json;

use super::*;
use crate::RayCluster;
use crate::ray_cluster::summary::PortView;
use crate::testing::{a_job, cluster_spec};

#[test]
fn the_cluster_of_a_job_says_where_it_comes_from() {
    let made = ray_cluster(&a_job(&[]), "counter-xyz24").unwrap();
    assert_eq!(
        made["metadata"],
        json!({
            "name": "counter-xyz24",
            "namespace": "ns",
            "labels": {
                "team": "a",
                "ray.io/originated-from-cr-name": "counter",
                "ray.io/originated-from-crd": "RayJob",
                "ray.io/job-submission-mode": "K8sJobMode",
            },
            "annotations": {"note": "b"},
            "ownerReferences": [{
                "apiVersion": "ray.io/v1", "kind": "RayJob", "name": "counter", "uid": "uid-2",
                "controller": true, "blockOwnerDeletion": true,
            }],
        })
    );
    assert!(RayCluster::read(&made).is_ok());
}

#[test]
fn the_spec_is_copied_and_written_as_go_writes_it() {
    let made = ray_cluster(&a_job(&[]), "c").unwrap();
    let mut expected = cluster_spec();
    expected["workerGroupSpecs"][0]["rayStartParams"] = json!(null);
    expected["workerGroupSpecs"][0]["scaleStrategy"] = json!({});
    assert_eq!(made["spec"], expected);
}

#[test]
fn the_head_of_a_sidecar_is_not_made_again() {
    let sidecar = a_job(&[("/spec/submissionMode", json!("SidecarMode"))]);
    let made = ray_cluster(&sidecar, "c").unwrap();
    let annotation = &made["metadata"]["annotations"]["ray.io/disable-provisioned-head-restart"];
    assert_eq!(annotation, "true");
    let made = ray_cluster(&a_job(&[]), "c").unwrap();
    assert_eq!(made["metadata"]["annotations"], json!({"note": "b"}));
}

#[test]
fn a_job_on_a_named_cluster_makes_none() {
    assert_eq!(
        ray_cluster(&a_job(&[("/spec/rayClusterSpec", json!(null))]), "c"),
        None
    );
}

#[test]
fn the_dashboard_is_found_by_the_name_of_its_port() {
    let port = |name: &str, port| PortView {
        name: name.into(),
        port,
        ..PortView::default()
    };
    let mut service = ServiceView {
        name: "demo-head-svc".into(),
        ports: vec![port("client", 10001), port("dashboard", 8266)],
        ..ServiceView::default()
    };
    let url = dashboard_url(&service, "ns", "cluster.local");
    assert_eq!(
        url.as_deref(),
        Some("demo-head-svc.ns.svc.cluster.local:8266")
    );
    service.ports.pop();
    assert_eq!(dashboard_url(&service, "ns", "cluster.local"), None);
}
