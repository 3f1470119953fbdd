//! What becomes of a manifest: the place and the run.

use serde_json::{Value, json};
use sundown_model::node::{Call, Content, Files, Launch, Sandbox, Text, Variable};

use super::life::{Life, a_pod};
use crate::pod::Reason;
use crate::testing::{A, a};

fn sandbox(pod: A) -> Sandbox {
    let mut life = Life::of(pod);
    let calls = life.turn(0).1;
    let [Call::Prepare(sandbox)] = &calls[..] else {
        panic!("a place first: {calls:?}");
    };
    (**sandbox).clone()
}

fn launch(pod: A) -> Launch {
    started(&Life::of(pod).settle(0))
}

fn started(calls: &[Call]) -> Launch {
    let launch = calls.iter().find_map(|call| match call {
        Call::Start(launch) => Some((**launch).clone()),
        Call::Prepare(_)
        | Call::Hook { .. }
        | Call::Signal { .. }
        | Call::Release { .. }
        | Call::Remove { .. }
        | Call::Pull { .. }
        | Call::Names(_) => None,
    });
    launch.expect("the container starts")
}

fn with_env(env: &Value) -> A {
    let resources = json!({ "limits": { "cpu": "1500m", "memory": "1Gi" } });
    let container = json!({ "name": "main", "image": "i", "env": env, "resources": resources });
    a_pod()
        .with("/metadata/labels", json!({ "app": "x" }))
        .with("/spec/containers", json!([container]))
}

fn value_of(launch: &Launch, wanted: &str) -> Option<String> {
    launch.variables.iter().find_map(|it| match it {
        Variable::Text { name, value } if name == wanted => Some(value.clone()),
        Variable::Text { .. }
        | Variable::ConfigMapKey { .. }
        | Variable::SecretKey { .. }
        | Variable::ConfigMap { .. }
        | Variable::Secret { .. } => None,
    })
}

#[test]
fn fields_and_resources_become_values_and_secrets_stay_names() {
    let field = |path: &str| json!({ "fieldRef": { "fieldPath": path } });
    let resource = |what: &str, divisor: &str| json!({ "resourceFieldRef": { "resource": what, "divisor": divisor } });
    let launch = launch(with_env(&json!([
        { "name": "PLAIN", "value": "$(OTHER)" },
        { "name": "NAME", "valueFrom": field("metadata.name") },
        { "name": "LABEL", "valueFrom": field("metadata.labels['app']") },
        { "name": "IP", "valueFrom": field("status.podIP") },
        { "name": "NODE", "valueFrom": field("spec.nodeName") },
        { "name": "ACCOUNT", "valueFrom": field("spec.serviceAccountName") },
        { "name": "CPUS", "valueFrom": resource("limits.cpu", "0") },
        { "name": "MILLI", "valueFrom": resource("limits.cpu", "1m") },
        { "name": "MEGA", "valueFrom": resource("requests.memory", "1Mi") },
        { "name": "KEY", "valueFrom": { "secretKeyRef": { "name": "s", "key": "k" } } },
    ])));
    for (name, expect) in [
        ("PLAIN", "$(OTHER)"),
        ("NAME", "p"),
        ("LABEL", "x"),
        ("IP", "10.0.0.7"),
        ("NODE", "sundown"),
        ("ACCOUNT", "default"),
        ("CPUS", "2"),
        ("MILLI", "1500"),
        ("MEGA", "1024"),
        ("KUBERNETES_SERVICE_HOST", "kubernetes.default.svc"),
    ] {
        assert_eq!(value_of(&launch, name).as_deref(), Some(expect), "{name}");
    }
    let secret = launch.variables.last();
    assert!(matches!(secret, Some(Variable::SecretKey { of, key, .. }) if of == "s" && key == "k"));
}

#[test]
fn a_variable_that_cannot_be_known_is_an_error_of_the_container() {
    let odd = json!([{ "name": "X", "valueFrom": { "fieldRef": { "fieldPath": "spec.odd" } } }]);
    let mut life = Life::of(with_env(&odd));
    life.settle(0);
    let waiting = life.status("/containerStatuses/0/state/waiting");
    assert_eq!(waiting["reason"], "CreateContainerConfigError");
    assert_eq!(waiting["message"], "unsupported fieldPath: spec.odd");
}

/// It was 0, and who divides work by it divided by 0.
#[test]
fn without_a_limit_a_container_has_what_the_node_has() {
    let resource = |what: &str| json!({ "resourceFieldRef": { "resource": what, "divisor": "1" } });
    let env = json!([
        { "name": "CPUS", "valueFrom": resource("limits.cpu") },
        { "name": "BYTES", "valueFrom": resource("limits.memory") },
        { "name": "ASKED", "valueFrom": resource("requests.cpu") },
        { "name": "GPUS", "valueFrom": resource("limits.nvidia.com/gpu") },
    ]);
    let container = json!({
        "name": "main", "image": "i", "env": env, "resources": { "limits": { "cpu": "0" } },
    });
    let pod = a_pod().with("/spec/containers", json!([container]));
    let mut life = Life::of(pod);
    let has = json!({ "cpu": "3500m", "memory": "2Ki", "nvidia.com/gpu": "4" });
    let node = a("node", "sundown").with("/status/allocatable", has);
    life.scene = life.scene.clone().seeing(&node);
    let launch = started(&life.settle(0));
    for (name, value) in [
        ("CPUS", "4"),
        ("BYTES", "2048"),
        ("ASKED", "0"),
        ("GPUS", "0"),
    ] {
        assert_eq!(value_of(&launch, name).as_deref(), Some(value), "{name}");
    }
}

#[test]
fn a_place_has_names_hosts_and_volumes() {
    let pod = a_pod()
        .with("/spec/hostname", json!("head"))
        .with("/spec/subdomain", json!("set"))
        .with("/spec/hostAliases", json!([
            { "ip": "10.1.1.1", "hostnames": ["a", "b"] }, { "ip": "fd00::7", "hostnames": ["c"] },
        ]))
        .with(
            "/spec/volumes",
            json!([
                { "name": "shm", "emptyDir": { "medium": "Memory", "sizeLimit": "1Gi" } },
                { "name": "code", "configMap": { "name": "c", "items": [{ "key": "k", "path": "p" }] } },
                { "name": "host", "hostPath": { "path": "/data" } },
                { "name": "self", "downwardAPI": { "items": [
                    { "path": "name", "fieldRef": { "fieldPath": "metadata.name" }, "mode": 256 } ] } },
            ]),
        )
        .with("/spec/containers", json!([{
            "name": "main", "image": "i",
            "volumeMounts": [{ "name": "shm", "mountPath": "/dev/shm" }],
        }]));
    let sandbox = sandbox(pod);
    assert_eq!(sandbox.hostname, "head");
    let domain = "set.here.svc.cluster.local";
    assert_eq!(sandbox.domain.as_deref(), Some(domain));
    assert_eq!(sandbox.search[0], "here.svc.cluster.local");
    assert_eq!(sandbox.hosts[0].1, ["a", "b"]);
    assert_eq!(sandbox.hosts[1].0.to_string(), "fd00::7");
    assert_eq!(sandbox.shared_memory_bytes, Some(1 << 30));
    let names: Vec<_> = sandbox.volumes.iter().map(|it| it.name.as_str()).collect();
    assert_eq!(names, ["shm", "code", "host", "self", "kube-api-access"]);
    let Content::Files { from, .. } = &sandbox.volumes[3].content else {
        panic!("files");
    };
    let name = Text {
        text: "p".to_owned(),
        mode: Some(0o400),
    };
    assert_eq!(from[..], [Files::Texts([("name".to_owned(), name)].into())]);
}

#[test]
fn an_alias_without_an_address_is_refused_by_name() {
    let odd = json!([{ "ip": "nowhere", "hostnames": ["a"] }]);
    let mut life = Life::of(a_pod().with("/spec/hostAliases", odd));
    let (reason, calls) = life.turn(0);
    let message = "hostAliases: \"nowhere\" is no address".to_owned();
    assert_eq!(reason, Reason::Unsupported { message });
    assert!(calls.is_empty());
}

#[test]
fn a_pod_that_wants_no_token_gets_none() {
    let pod = a_pod().with("/spec/automountServiceAccountToken", json!(false));
    assert!(sandbox(pod.clone()).volumes.is_empty());
    assert!(launch(pod).mounts.is_empty());
    let mounts = launch(a_pod()).mounts;
    assert_eq!(
        mounts[0].path,
        "/var/run/secrets/kubernetes.io/serviceaccount"
    );
}

#[test]
fn a_mount_without_a_volume_is_an_error_of_the_container() {
    let container = json!([{
        "name": "main", "image": "i", "volumeMounts": [{ "name": "none", "mountPath": "/x" }],
    }]);
    let mut life = Life::of(a_pod().with("/spec/containers", container));
    life.settle(0);
    assert_eq!(
        life.status("/containerStatuses/0/state/waiting/reason"),
        "CreateContainerConfigError"
    );
}
