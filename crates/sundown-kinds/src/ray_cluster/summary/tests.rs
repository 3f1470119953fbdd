//! The status that follows from what is there.

use serde_json::{Value, json};

use super::*;
use crate::testing::a_cluster;

const SUCCEEDED: Pass<'static> = Pass::Succeeded;

fn now() -> Timestamp {
    "2026-01-02T03:04:05.678Z".parse().unwrap()
}

fn pod(node_type: &str, is_ready: bool) -> PodView {
    let ready = if is_ready { "True" } else { "False" };
    PodView::read(&json!({
        "metadata": {"name": format!("{node_type}-1"), "labels": {"ray.io/node-type": node_type}},
        "status": {"phase": "Running", "podIP": "10.1.1.1",
                   "conditions": [{"type": "Ready", "status": ready}]},
    }))
}

fn all_ready() -> Vec<PodView> {
    vec![pod("head", true), pod("worker", true), pod("worker", true)]
}

fn service() -> ServiceView {
    ServiceView::read(&json!({
        "metadata": {"name": "demo-head-svc"},
        "spec": {"clusterIP": "None", "ports": [
            {"name": "a", "port": 1, "targetPort": 11}, {"name": "b", "port": 2, "nodePort": 30002, "targetPort": 2},
            {"name": "c", "port": 3, "targetPort": "named"}, {"port": 4, "targetPort": 4},
        ]},
    }))
}

fn summary(cluster: &RayCluster, pods: &[PodView], pass: Pass<'_>) -> ClusterStatus {
    let service = service();
    let observed = Observed {
        cluster,
        pods,
        service: Some(&service),
        pass,
    };
    summarize(&observed, &Gates::default(), now())
}

/// Status, reason and message of a condition.
fn condition<'a>(status: &'a ClusterStatus, kind: &str) -> (&'a str, &'a str, &'a str) {
    let found = status.condition(kind);
    found.map_or(("", "", ""), |it| (&it.status, &it.reason, &it.message))
}

fn reapplied(changes: &[(&str, Value)], status: &ClusterStatus) -> RayCluster {
    let mut cluster = a_cluster(changes);
    cluster.status = status.clone();
    cluster
}

#[test]
fn a_cluster_whose_pods_are_all_ready_is_ready() {
    let status = summary(&a_cluster(&[]), &all_ready(), SUCCEEDED);
    assert_eq!(status.state, "ready");
    assert_eq!(status.observed_generation, 3);
    assert_eq!(
        (
            status.ready_worker_replicas,
            status.available_worker_replicas,
            status.desired_worker_replicas
        ),
        (2, 2, 2)
    );
    assert_eq!(
        (status.min_worker_replicas, status.max_worker_replicas),
        (1, 5)
    );
    assert_eq!(status.state_transition_times["ready"], now());
    assert_eq!(
        condition(&status, "RayClusterProvisioned"),
        (
            "True",
            "AllPodRunningAndReadyFirstTime",
            "All Ray Pods are ready for the first time"
        )
    );
    assert_eq!(
        condition(&status, "HeadPodReady"),
        ("True", "HeadPodRunningAndReady", "")
    );
    assert_eq!(condition(&status, "RayClusterSuspending").0, "False");
    assert_eq!(condition(&status, "RayClusterSuspended").0, "False");
}

#[test]
fn the_status_is_written_as_go_writes_it() {
    let empty = ClusterStatus::default().to_value();
    let zero = json!({"desiredCPU": "0", "desiredMemory": "0", "desiredGPU": "0", "desiredTPU": "0",
                      "head": {}});
    assert_eq!(empty, zero);
    let status = summary(&a_cluster(&[]), &all_ready(), SUCCEEDED).to_value();
    assert_eq!(status["lastUpdateTime"], "2026-01-02T03:04:05Z");
    assert_eq!(
        status["endpoints"],
        json!({"a": "11", "b": "30002", "c": "named"})
    );
    let head = json!({"podIP": "10.1.1.1", "podName": "head-1", "serviceIP": "10.1.1.1",
                      "serviceName": "demo-head-svc"});
    assert_eq!(status["head"], head);
    let read = a_cluster(&[("/status", status.clone())]).status;
    assert_eq!(read.to_value(), status);
}

#[test]
fn resources_are_summed_over_the_head_and_all_workers() {
    let of = |amounts: Value| json!({"requests": amounts});
    let cluster = a_cluster(&[
        (
            "/spec/headGroupSpec/template/spec/containers/0/resources",
            of(json!({"cpu": "500m", "memory": "1Gi"})),
        ),
        (
            "/spec/workerGroupSpecs/0/template/spec/containers/0/resources",
            of(
                json!({"cpu": "1", "memory": "512Mi", "nvidia.com/gpu": 1, "nvidia.com/mig-1g.5gb": "2",
                      "google.com/tpu": "4"}),
            ),
        ),
        ("/spec/workerGroupSpecs/0/numOfHosts", json!(2)),
    ]);
    let status = summary(&cluster, &[], SUCCEEDED);
    let sums = [
        status.desired_cpu,
        status.desired_memory,
        status.desired_gpu,
        status.desired_tpu,
    ];
    assert_eq!(sums.map(Quantity::canonical), ["4500m", "3Gi", "12", "16"]);
}

/// Upstream counts pods inside their bounds and resources outside of them.
#[test]
fn resources_are_counted_inside_the_bounds_as_pods_are() {
    let resources = "/spec/workerGroupSpecs/0/template/spec/containers/0/resources";
    let cluster = a_cluster(&[
        ("/spec/workerGroupSpecs/0/replicas", json!(9)),
        (resources, json!({"requests": {"cpu": "1"}})),
    ]);
    let status = summary(&cluster, &[], SUCCEEDED);
    assert_eq!(status.desired_worker_replicas, 5);
    assert_eq!(status.desired_cpu.canonical(), "5");
}

#[test]
fn suspended_groups_and_too_large_bounds_do_not_spoil_the_counters() {
    let group = a_cluster(&[]).spec.raw["workerGroupSpecs"][0].clone();
    let large = crate::testing::with(
        group.clone(),
        &[("/maxReplicas", json!(i32::MAX)), ("/numOfHosts", json!(3))],
    );
    let asleep = crate::testing::with(group, &[("/suspend", json!(true))]);
    let cluster = a_cluster(&[("/spec/workerGroupSpecs", json!([large, asleep]))]);
    let status = summary(&cluster, &[], SUCCEEDED);
    assert_eq!(status.max_worker_replicas, i32::MAX);
    assert_eq!(
        (status.desired_worker_replicas, status.min_worker_replicas),
        (6, 3)
    );
}

#[test]
fn ready_stays_when_a_worker_is_lost_and_what_a_job_waits_for_does_not() {
    let status = summary(&a_cluster(&[]), &all_ready(), SUCCEEDED);
    let cluster = reapplied(&[], &status);
    let pods = &all_ready()[..2];
    assert_eq!(summary(&cluster, pods, SUCCEEDED).state, "ready");
    let observed = Observed {
        cluster: &cluster,
        pods,
        service: None,
        pass: SUCCEEDED,
    };
    assert!(!is_complete(&observed));
}

/// Upstream says provisioned when the head alone is there, its workers being over quota.
#[test]
fn a_head_without_its_workers_is_not_a_provisioned_cluster() {
    let failed = Pass::Failed {
        reason: Some("FailedCreateWorkerPod"),
        message: "exceeded quota",
    };
    for pass in [failed, SUCCEEDED] {
        let status = summary(&a_cluster(&[]), &[pod("head", true)], pass);
        assert_eq!(status.state, "");
        assert_eq!(
            condition(&status, "RayClusterProvisioned"),
            (
                "False",
                "RayClusterPodsProvisioning",
                "RayCluster Pods are being provisioned for first time"
            )
        );
    }
}

#[test]
fn failures_to_make_pods_are_told_and_taken_back() {
    let failed = Pass::Failed {
        reason: Some("FailedCreateHeadPod"),
        message: "forbidden: exceeded quota",
    };
    let status = summary(&a_cluster(&[]), &[], failed);
    assert_eq!(
        condition(&status, "ReplicaFailure"),
        ("True", "FailedCreateHeadPod", "forbidden: exceeded quota")
    );
    assert_eq!(
        condition(&status, "HeadPodReady"),
        ("False", "HeadPodNotFound", "Head Pod not found")
    );
    let cluster = reapplied(&[], &status);
    let other = Pass::Failed {
        reason: None,
        message: "timeout",
    };
    assert_eq!(
        condition(&summary(&cluster, &[], other), "ReplicaFailure").0,
        "True"
    );
    assert_eq!(
        condition(&summary(&cluster, &[], SUCCEEDED), "ReplicaFailure").0,
        ""
    );
}

#[test]
fn a_head_that_is_not_ready_says_which_container_is_to_blame() {
    let head = PodView::read(&json!({
        "metadata": {"name": "h", "labels": {"ray.io/node-type": "head"}},
        "status": {
            "phase": "Pending",
            "conditions": [{"type": "Ready", "status": "False", "reason": "ContainersNotReady",
                            "message": "containers with unready status: [ray-head]"}],
            "containerStatuses": [
                {"name": "ray-head", "ready": false,
                 "state": {"waiting": {"reason": "ImagePullBackOff", "message": "no such image"}}},
            ],
        },
    }));
    assert_eq!(
        condition(
            &summary(&a_cluster(&[]), &[head], SUCCEEDED),
            "HeadPodReady"
        ),
        (
            "False",
            "ImagePullBackOff",
            "containers with unready status: [ray-head]; ray-head: no such image"
        )
    );
    let silent = PodView {
        ready: None,
        ..pod("head", true)
    };
    let status = summary(&a_cluster(&[]), &[silent], SUCCEEDED);
    assert_eq!(condition(&status, "HeadPodReady"), ("False", "Unknown", ""));
}

/// The reason of a container is a free text; upstream copies it, and one that does not fit the pattern
/// of reasons has every later status refused.
#[test]
fn reasons_of_containers_are_made_to_fit() {
    for (reason, expected) in [
        ("", "Unknown"),
        ("1 bad reason:", "badreason"),
        ("Out Of/Memory", "OutOfMemory"),
    ] {
        let head = PodView::read(&json!({
            "metadata": {"labels": {"ray.io/node-type": "head"}},
            "status": {
                "phase": "Running",
                "conditions": [{"type": "Ready", "status": "False", "reason": "ContainersNotReady"}],
                "containerStatuses": [{"name": "r", "state": {"terminated": {"reason": reason, "message": "m"}}}],
            },
        }));
        let status = summary(&a_cluster(&[]), &[head], SUCCEEDED);
        assert_eq!(
            condition(&status, "HeadPodReady"),
            ("False", expected, "r: m")
        );
    }
}

/// Upstream waits for ever for the cluster of a job whose submitter ended before the last worker was
/// ready: the ended container makes the pod of the head unready.
#[test]
fn a_submitter_that_has_ended_does_not_make_the_head_unready() {
    let head = |ray_is_ready: bool| {
        PodView::read(&json!({
            "metadata": {"labels": {"ray.io/node-type": "head"}},
            "status": {
                "phase": "Running",
                "conditions": [{"type": "Ready", "status": "False", "reason": "ContainersNotReady"}],
                "containerStatuses": [
                    {"name": "ray-head", "ready": ray_is_ready, "state": {"running": {}}},
                    {"name": "ray-job-submitter", "ready": false,
                     "state": {"terminated": {"exitCode": 0, "reason": "Completed"}}},
                ],
            },
        }))
    };
    let pods = |is_ready| vec![head(is_ready), pod("worker", true), pod("worker", true)];
    let status = summary(&a_cluster(&[]), &pods(true), SUCCEEDED);
    assert_eq!(status.state, "ready");
    assert_eq!(condition(&status, "HeadPodReady").0, "True");
    assert_eq!(summary(&a_cluster(&[]), &pods(false), SUCCEEDED).state, "");
}

/// Upstream's whole computation fails when there is no head service, and hides why there is none.
#[test]
fn a_missing_service_hides_nothing_else() {
    let cluster = a_cluster(&[]);
    let failed = Pass::Failed {
        reason: Some("FailedCreateHeadPod"),
        message: "no account",
    };
    let observed = Observed {
        cluster: &cluster,
        pods: &[],
        service: None,
        pass: failed,
    };
    let status = summarize(&observed, &Gates::default(), now());
    assert_eq!(condition(&status, "ReplicaFailure").2, "no account");
    assert_eq!(status.head, HeadInfo::default());
}

#[test]
fn terminating_pods_do_not_count_as_there_but_hold_a_suspension() {
    let going = |node_type: &str| PodView {
        is_deleting: true,
        ..pod(node_type, true)
    };
    let mut pods = all_ready();
    pods.push(going("worker"));
    let status = summary(&a_cluster(&[]), &pods, SUCCEEDED);
    assert_eq!(
        (status.state.as_str(), status.ready_worker_replicas),
        ("ready", 2)
    );
}

#[test]
fn a_suspension_runs_to_its_end_and_is_undone() {
    let suspend = [("/spec/suspend", json!(true))];
    let status = summary(
        &reapplied(&suspend, &summary(&a_cluster(&[]), &all_ready(), SUCCEEDED)),
        &all_ready(),
        SUCCEEDED,
    );
    assert_eq!(condition(&status, "RayClusterSuspending").0, "True");
    // Flipped back half-way: what has begun is ended.
    let going = [PodView {
        is_deleting: true,
        ..pod("head", true)
    }];
    let status = summary(&reapplied(&[], &status), &going, SUCCEEDED);
    assert_eq!(condition(&status, "RayClusterSuspending").0, "True");
    let status = summary(&reapplied(&suspend, &status), &[], SUCCEEDED);
    assert_eq!(status.state, "suspended");
    assert_eq!(condition(&status, "RayClusterSuspending").0, "False");
    assert_eq!(
        condition(&status, "RayClusterSuspended"),
        ("True", "RayClusterSuspended", "")
    );
    assert_eq!(
        condition(&status, "RayClusterProvisioned"),
        (
            "False",
            "RayClusterPodsProvisioning",
            "RayCluster has been suspended"
        )
    );
    let status = summary(
        &reapplied(&[("/spec/suspend", json!(false))], &status),
        &[],
        SUCCEEDED,
    );
    assert_eq!(condition(&status, "RayClusterSuspended").0, "False");
}

/// Upstream resumes only on an explicit false: a removed field leaves the cluster suspended for ever.
#[test]
fn removing_the_field_resumes_as_false_does() {
    let suspended = json!([{"type": "RayClusterSuspended", "status": "True", "reason": "RayClusterSuspended",
                            "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}]);
    let cluster = a_cluster(&[("/status/conditions", suspended)]);
    let status = summary(&cluster, &[], SUCCEEDED);
    assert_eq!(condition(&status, "RayClusterSuspended").0, "False");
}

#[test]
fn without_conditions_a_suspended_cluster_still_says_so() {
    let gates = Gates {
        ray_cluster_status_conditions: false,
        ..Gates::default()
    };
    let cluster = a_cluster(&[("/spec/suspend", json!(true))]);
    let observed = Observed {
        cluster: &cluster,
        pods: &[],
        service: None,
        pass: SUCCEEDED,
    };
    let status = summarize(&observed, &gates, now());
    assert_eq!(
        (status.state.as_str(), status.conditions.len()),
        ("suspended", 0)
    );
}

#[test]
fn instants_change_with_the_truth_and_alone_are_not_worth_a_write() {
    let before = summary(&a_cluster(&[]), &all_ready(), SUCCEEDED);
    let cluster = reapplied(&[], &before);
    let service = service();
    let observed = Observed {
        cluster: &cluster,
        pods: &all_ready(),
        service: Some(&service),
        pass: SUCCEEDED,
    };
    let later = now() + jiff::SignedDuration::from_secs(60);
    let after = summarize(&observed, &Gates::default(), later);
    assert_eq!(after.conditions, before.conditions);
    assert!(!is_worth_writing(&before, &after));
    // Upstream writes a new generation only along with other changes.
    let mut newer = after.clone();
    newer.observed_generation += 1;
    assert!(is_worth_writing(&before, &newer));
}

/// 1Gi and 500M make a number that reads as decimal when it comes back; it was written for ever.
#[test]
fn amounts_that_are_written_alike_are_no_news() {
    let memory = |pointer: &'static str, amount: &str| {
        let resources = json!({"requests": {"memory": amount}});
        (pointer, resources)
    };
    let cluster = a_cluster(&[
        memory(
            "/spec/headGroupSpec/template/spec/containers/0/resources",
            "1Gi",
        ),
        memory(
            "/spec/workerGroupSpecs/0/template/spec/containers/0/resources",
            "500M",
        ),
    ]);
    let first = summary(&cluster, &all_ready(), SUCCEEDED);
    let stored = a_cluster(&[("/status", first.to_value())]).status;
    assert_ne!(first.desired_memory, stored.desired_memory);
    assert!(!is_worth_writing(&stored, &first));
}

#[test]
fn a_reason_stands_as_long_as_something_is_wrong() {
    let failed = Pass::Failed {
        reason: None,
        message: "no room",
    };
    let before = summary(&a_cluster(&[]), &[], failed);
    assert_eq!(before.reason, "no room");
    let after = summary(&reapplied(&[], &before), &[], SUCCEEDED);
    assert_eq!(after.reason, "", "although it is not ready yet");
}
