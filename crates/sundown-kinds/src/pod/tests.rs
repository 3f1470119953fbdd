//! Whole pods, and what changes them.

use serde_json::{Value, json};

use super::*;
use crate::testing::{a_cluster, container};

const PLACE: WorkerPlace<'static> = WorkerPlace {
    replica_index: 1,
    replica_name: "small-bc9bc",
    host_index: 0,
};

fn head(changes: &[(&str, Value)]) -> Value {
    head_pod(&a_cluster(changes), None, &Settings::default())
}

fn worker(changes: &[(&str, Value)]) -> Value {
    let cluster = a_cluster(changes);
    worker_pod(
        &cluster,
        &cluster.spec.worker_groups[0],
        PLACE,
        None,
        &Settings::default(),
    )
}

fn ray(pod: &Value) -> &Value {
    &pod["spec"]["containers"][0]
}

fn env_names(container: &Value) -> Vec<&str> {
    list(container.get("env"))
        .iter()
        .filter_map(|env| env["name"].as_str())
        .collect()
}

fn env<'a>(container: &'a Value, name: &str) -> &'a Value {
    crate::template::named(list(container.get("env")), name).unwrap_or(&Value::Null)
}

const HEAD: &str = "/spec/headGroupSpec/template";
const WORKER: &str = "/spec/workerGroupSpecs/0/template";

#[test]
fn a_head_is_complete() {
    let pod = head(&[]);
    let start = "ray start --head  --block  --dashboard-agent-listen-port=52365  \
                 --dashboard-host=0.0.0.0  --metrics-export-port=8080 ";
    let probe = |delay: u8, failures: u8| {
        json!({
            "httpGet": {"path": "/api/healthz", "port": 52365},
            "initialDelaySeconds": delay, "periodSeconds": 5, "timeoutSeconds": 5,
            "successThreshold": 1, "failureThreshold": failures,
        })
    };
    let field = |name: &str, path: &str| json!({"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}});
    let version = concat!("sundown-v", env!("CARGO_PKG_VERSION"));
    assert_eq!(
        pod["spec"],
        json!({
            "containers": [{
                "name": "ray-head",
                "image": "rayproject/ray:2.55.0",
                "command": ["/bin/bash", "-c", "--"],
                "args": [format!("ulimit -n ${{RAY_START_ULIMIT_OPEN_FILES:-65536}}; {start}")],
                "ports": [{"name": "metrics", "containerPort": 8080}],
                "volumeMounts": [{"name": "shared-mem", "mountPath": "/dev/shm"}],
                "env": [
                    field("RAY_CLUSTER_NAME", "metadata.labels['ray.io/cluster']"),
                    field("RAY_CLUSTER_NAMESPACE", "metadata.namespace"),
                    field("RAY_CLOUD_INSTANCE_ID", "metadata.name"),
                    field("RAY_NODE_TYPE_NAME", "metadata.labels['ray.io/group']"),
                    {"name": "KUBERAY_GEN_RAY_START_CMD", "value": start},
                    {"name": "RAY_PORT", "value": "6379"},
                    {"name": "RAY_ADDRESS", "value": "127.0.0.1:6379"},
                    {"name": "RAY_USAGE_STATS_KUBERAY_IN_USE", "value": "1"},
                    {"name": "RAY_USAGE_STATS_EXTRA_TAGS",
                     "value": format!("kuberay_version={version};kuberay_crd=RayCluster")},
                    {"name": "RAY_DASHBOARD_ENABLE_K8S_DISK_USAGE", "value": "1"},
                ],
                "livenessProbe": probe(30, 120),
                "readinessProbe": probe(10, 10),
            }],
            "volumes": [{"name": "shared-mem", "emptyDir": {"medium": "Memory"}}],
        })
    );
    let metadata = &pod["metadata"];
    assert_eq!(metadata["generateName"], "demo-head-");
    assert_eq!(metadata["namespace"], "ns");
    assert_eq!(metadata["ownerReferences"][0]["uid"], "uid-1");
    assert_eq!(metadata["annotations"]["ray.io/ft-enabled"], "false");
    assert_eq!(metadata["annotations"]["ray.io/kuberay-version"], version);
    assert_eq!(
        metadata["labels"],
        json!({
            "ray.io/cluster": "demo", "ray.io/node-type": "head", "ray.io/group": "headgroup",
            "ray.io/is-ray-node": "yes", "ray.io/identifier": "demo-head",
            "app.kubernetes.io/name": "kuberay", "app.kubernetes.io/created-by": "kuberay-operator",
        })
    );
}

#[test]
fn a_worker_waits_for_the_head_and_knows_where_it_is() {
    let env = json!([{"name": "OWN", "value": "1"}]);
    let pod = worker(&[(&format!("{WORKER}/spec/containers/0/env"), env)]);
    let domain_name = "demo-head-svc.ns.svc.cluster.local";
    assert_eq!(pod["metadata"]["generateName"], "demo-small-worker-");
    assert_eq!(
        pod["metadata"]["labels"]["ray.io/identifier"],
        "demo-worker"
    );
    let ray = ray(&pod);
    assert_eq!(env_names(ray)[..3], ["OWN", "FQ_RAY_IP", "RAY_IP"]);
    assert_eq!(
        self::env(ray, "RAY_ADDRESS")["value"],
        format!("{domain_name}:6379")
    );
    assert_eq!(ray["livenessProbe"]["timeoutSeconds"], 2);
    let init = &pod["spec"]["initContainers"][0];
    assert_eq!(init["name"], "wait-gcs-ready");
    assert_eq!(init["image"], "rayproject/ray:2.55.0");
    assert_eq!(
        init["resources"]["limits"],
        json!({"cpu": "200m", "memory": "256Mi"})
    );
    assert_eq!(
        init["env"][1],
        json!({"name": "FQ_RAY_IP", "value": domain_name})
    );
    assert_eq!(
        init["env"][2],
        json!({"name": "RAY_IP", "value": "demo-head-svc"})
    );
    let check = format!("ray health-check --address {domain_name}:6379");
    assert!(init["args"][0].as_str().unwrap().contains(&check));
}

#[test]
fn a_suffix_makes_the_name_that_a_server_would_make() {
    let cluster = a_cluster(&[(&format!("{WORKER}/metadata/name"), json!("same"))]);
    let settings = Settings::default();
    let pod = head_pod(&cluster, Some("bc9bc"), &settings);
    assert_eq!(pod["metadata"]["name"], "demo-head-bc9bc");
    let group = &cluster.spec.worker_groups[0];
    let pod = worker_pod(&cluster, group, PLACE, Some("bc9bc"), &settings);
    assert_eq!(pod["metadata"]["name"], "demo-small-worker-bc9bc");
    // One name for many pods would let only one of them be.
    assert_eq!(
        worker_pod(&cluster, group, PLACE, None, &settings)["metadata"]["name"],
        json!(null)
    );
}

#[test]
fn a_head_is_called_what_the_user_says_or_always_the_same() {
    let named = [(&*format!("{HEAD}/metadata/name"), json!("mine"))];
    let metadata = head(&named)["metadata"].clone();
    assert_eq!(
        (&metadata["name"], &metadata["generateName"]),
        (&json!("mine"), &json!(null))
    );
    let settings = Settings {
        deterministic_head_name: true,
        ..Settings::default()
    };
    let pod = head_pod(&a_cluster(&[]), Some("bc9bc"), &settings);
    assert_eq!(pod["metadata"]["name"], "demo-head");
}

#[test]
fn users_override_labels_but_not_those_that_pods_are_found_by() {
    let template = json!({
        "ray.io/cluster": "other", "ray.io/node-type": "x", "ray.io/group": "y",
        "app.kubernetes.io/name": "mine", "a": "template", "b": "template",
    });
    let pod = head(&[
        (&format!("{HEAD}/metadata/labels"), template),
        (
            "/spec/headGroupSpec/labels",
            json!({"a": "group", "ray.io/cluster": "third"}),
        ),
    ]);
    let labels = &pod["metadata"]["labels"];
    assert_eq!(labels["ray.io/cluster"], "demo");
    assert_eq!(labels["ray.io/node-type"], "head");
    assert_eq!(labels["ray.io/group"], "headgroup");
    assert_eq!(labels["app.kubernetes.io/name"], "mine");
    assert_eq!(
        (&labels["a"], &labels["b"]),
        (&json!("group"), &json!("template"))
    );
}

#[test]
fn the_metadata_of_a_template_is_carried_over_except_its_namespace() {
    let metadata =
        json!({"namespace": "elsewhere", "annotations": {"n": "1"}, "finalizers": ["f/x"]});
    let pod = worker(&[(&format!("{WORKER}/metadata"), metadata)]);
    assert_eq!(pod["metadata"]["namespace"], "ns");
    assert_eq!(pod["metadata"]["annotations"], json!({"n": "1"}));
    assert_eq!(pod["metadata"]["finalizers"], json!(["f/x"]));
}

#[test]
fn replicas_are_numbered_and_hosts_only_where_there_are_several() {
    let labels = worker(&[])["metadata"]["labels"].clone();
    assert_eq!(labels["ray.io/worker-group-replica-index"], "1");
    assert_eq!(labels["ray.io/worker-group-replica-name"], json!(null));
    let pod = worker(&[("/spec/workerGroupSpecs/0/numOfHosts", json!(4))]);
    let labels = &pod["metadata"]["labels"];
    assert_eq!(labels["ray.io/worker-group-replica-name"], "small-bc9bc");
    assert_eq!(labels["ray.io/replica-host-index"], "0");
}

#[test]
fn a_command_of_the_user_runs_before_ray() {
    let at = |part: &str| format!("{HEAD}/spec/containers/0/{part}");
    let pod = head(&[
        (&at("command"), json!(["echo"])),
        (&at("args"), json!(["hi"])),
    ]);
    let text = ray(&pod)["args"][0].as_str().unwrap().to_owned();
    assert!(text.starts_with(" echo  hi  && ulimit -n "), "{text}");
    assert_eq!(ray(&pod)["command"], json!(["/bin/bash", "-c", "--"]));
}

#[test]
fn a_user_who_starts_ray_is_left_alone() {
    let args = format!("{HEAD}/spec/containers/0/args");
    let overwrite = (
        "/metadata/annotations",
        json!({"ray.io/overwrite-container-cmd": "True"}),
    );
    for changes in [
        vec![(args.as_str(), json!(["ray start --head"]))],
        vec![(args.as_str(), json!(["sleep 1"])), overwrite],
    ] {
        let pod = head(&changes);
        assert_eq!(ray(&pod)["args"], changes[0].1);
        assert_eq!(ray(&pod)["command"], json!(null));
        let generated = env(ray(&pod), "KUBERAY_GEN_RAY_START_CMD")["value"]
            .as_str()
            .unwrap();
        assert!(generated.starts_with("ray start --head "));
    }
}

#[test]
fn shared_memory_is_as_large_as_the_memory_and_left_out_where_it_is_not_used() {
    let resources = format!("{HEAD}/spec/containers/0/resources");
    for (amounts, size) in [
        (
            json!({"limits": {"memory": "2Gi"}, "requests": {"memory": "1Gi"}}),
            json!("2Gi"),
        ),
        (json!({"requests": {"memory": "1Gi"}}), json!("1Gi")),
        (json!({}), json!(null)),
    ] {
        let pod = head(&[(&resources, amounts)]);
        assert_eq!(pod["spec"]["volumes"][0]["emptyDir"]["sizeLimit"], size);
    }
    let mounts = format!("{HEAD}/spec/containers/0/volumeMounts");
    let own = json!([{"name": "x", "mountPath": "/dev/shm"}]);
    assert_eq!(head(&[(&mounts, own)])["spec"]["volumes"], json!(null));
    let params = (
        "/spec/headGroupSpec/rayStartParams",
        json!({"plasma-directory": "/x"}),
    );
    assert_eq!(head(&[params])["spec"]["volumes"], json!(null));
}

#[test]
fn older_versions_are_probed_by_a_command() {
    let ports = json!({"dashboard-port": "1234", "dashboard-agent-listen-port": "5678"});
    for version in ["2.52.0", "", "nightly"] {
        let pod = head(&[
            ("/spec/rayVersion", json!(version)),
            ("/spec/headGroupSpec/rayStartParams", ports.clone()),
        ]);
        assert_eq!(
            ray(&pod)["livenessProbe"]["exec"]["command"][2],
            "wget --tries 1 -T 2 -q -O- http://localhost:5678/api/local_raylet_healthz | grep success \
             && wget --tries 1 -T 10 -q -O- http://localhost:1234/api/gcs_healthz | grep success"
        );
    }
    let pod = worker(&[("/spec/rayVersion", json!("2.52.0"))]);
    assert_eq!(
        ray(&pod)["readinessProbe"]["exec"]["command"][2],
        "wget --tries 1 -T 2 -q -O- http://localhost:52365/api/local_raylet_healthz | grep success"
    );
}

#[test]
fn probes_of_users_and_settings_are_respected() {
    let own = json!({"exec": {"command": ["true"]}});
    let probe = format!("{HEAD}/spec/containers/0/livenessProbe");
    let pod = head(&[(&probe, own.clone())]);
    assert_eq!(ray(&pod)["livenessProbe"], own);
    assert!(ray(&pod)["readinessProbe"].is_object());
    let settings = Settings {
        inject_probes: false,
        inject_init_container: false,
        login_shell: true,
        worker_sidecars: vec![container("log")],
        default_env: vec![json!({"name": "D", "value": "1"})],
        default_pod_labels: [("team".to_owned(), "x".to_owned())].into(),
        ..Settings::default()
    };
    let cluster = a_cluster(&[]);
    let pod = worker_pod(
        &cluster,
        &cluster.spec.worker_groups[0],
        PLACE,
        None,
        &settings,
    );
    assert_eq!(ray(&pod)["readinessProbe"], json!(null));
    assert_eq!(pod["spec"]["initContainers"], json!(null));
    assert_eq!(ray(&pod)["command"], json!(["/bin/bash", "-cl", "--"]));
    assert_eq!(pod["spec"]["containers"][1], container("log"));
    assert_eq!(env_names(ray(&pod))[0], "D");
    assert_eq!(pod["metadata"]["labels"]["team"], "x");
}

#[test]
fn the_second_autoscaler_wants_pods_that_do_not_come_back() {
    let changes = [
        ("/spec/enableInTreeAutoscaling", json!(true)),
        ("/spec/autoscalerOptions/version", json!("v2")),
    ];
    assert_eq!(worker(&changes)["spec"]["restartPolicy"], "Never");
    let pod = head(&changes);
    assert_eq!(env(ray(&pod), "RAY_enable_autoscaler_v2")["value"], "true");
    assert_eq!(pod["spec"]["restartPolicy"], "Never");
}

#[test]
fn the_hash_is_of_what_makes_pods_different() {
    let hash = |changes: &[(&str, Value)]| recreate_hash(&a_cluster(changes).spec);
    let plain = hash(&[]);
    for changes in [
        vec![("/spec/workerGroupSpecs/0/replicas", json!(4))],
        vec![("/spec/workerGroupSpecs/0/maxReplicas", json!(9))],
        vec![(
            "/spec/workerGroupSpecs/0/scaleStrategy",
            json!({"workersToDelete": ["a"]}),
        )],
        vec![("/spec/upgradeStrategy", json!({"type": "Recreate"}))],
        vec![(&*format!("{HEAD}/spec/tolerations"), json!([{"key": "a"}]))],
    ] {
        assert_eq!(hash(&changes), plain, "{changes:?}");
    }
    assert_ne!(
        hash(&[(&format!("{HEAD}/spec/containers/0/image"), json!("other"))]),
        plain
    );
}

#[test]
fn a_template_that_makes_no_sense_makes_a_pod_that_makes_none() {
    let pod = head(&[(&format!("{HEAD}/spec/containers"), json!([]))]);
    assert_eq!(pod["spec"]["containers"], json!([]));
}
