//! What is added to the container that runs Ray, and to those that run before it.

use serde_json::{Map, Value, json};

use super::Context;
use crate::constants::{
    ANNOTATION_OVERWRITE_COMMAND, LABEL_CLUSTER, LABEL_GROUP, PORT_METRICS, VOLUME_SHARED_MEMORY,
};
use crate::template::{list, named};

const SHARED_MEMORY: &str = "/dev/shm";

/// A port for metrics, if there is none of that name.
pub(super) fn add_metrics_port(ray: &mut Value) {
    if named(list(ray.get("ports")), "metrics").is_none() {
        push(
            ray,
            "ports",
            json!({"name": "metrics", "containerPort": PORT_METRICS}),
        );
    }
}

/// Memory for the object store, unless it is kept elsewhere.
pub(super) fn add_shared_memory(pod: &mut Value, ray: &mut Value, context: &Context<'_>) {
    let mounts = list(ray.get("volumeMounts"));
    let is_mounted = mounts
        .iter()
        .any(|mount| mount["mountPath"] == SHARED_MEMORY);
    if is_mounted || context.params.contains_key("plasma-directory") {
        return;
    }
    if named(list(pod["spec"].get("volumes")), VOLUME_SHARED_MEMORY).is_none() {
        let mut volume = json!({"medium": "Memory"});
        let limit = ray.pointer("/resources/limits/memory");
        if let Some(size) = limit.or_else(|| ray.pointer("/resources/requests/memory")) {
            volume["sizeLimit"] = size.clone();
        }
        let volume = json!({"name": VOLUME_SHARED_MEMORY, "emptyDir": volume});
        push(&mut pod["spec"], "volumes", volume);
    }
    let mount = json!({"name": VOLUME_SHARED_MEMORY, "mountPath": SHARED_MEMORY});
    push(ray, "volumeMounts", mount);
}

/// The command, unless the user starts Ray: then the user's is left alone.
pub(super) fn set_command(
    ray: &mut Value,
    start: &str,
    annotations: &Value,
    context: &Context<'_>,
) {
    let own: Vec<&str> = ["command", "args"]
        .iter()
        .flat_map(|part| list(ray.get(part)))
        .filter_map(Value::as_str)
        .collect();
    // Each word has a space on either side, as in the flags of the command that follows.
    let own = match own.as_slice() {
        [] => String::new(),
        words => format!(" {} ", words.join("  ")),
    };
    let overwrites = annotations[ANNOTATION_OVERWRITE_COMMAND]
        .as_str()
        .unwrap_or("");
    if overwrites.eq_ignore_ascii_case("true") || own.contains("ray start") {
        return;
    }
    // Without it Ray runs out of files as soon as there are many workers.
    let start = format!("ulimit -n ${{RAY_START_ULIMIT_OPEN_FILES:-65536}}; {start}");
    let text = if own.is_empty() {
        start
    } else {
        format!("{own} && {start}")
    };
    ray["command"] = shell(context);
    ray["args"] = json!([text]);
}

/// The shell that runs a text.
pub(super) fn shell(context: &Context<'_>) -> Value {
    let flags = if context.settings.login_shell {
        "-cl"
    } else {
        "-c"
    };
    json!(["/bin/bash", flags, "--"])
}

/// Where the head is, for containers that run before Ray.
pub(super) fn set_init_env(pod: &mut Value, head: &str) {
    let containers = pod["spec"]
        .get_mut("initContainers")
        .and_then(Value::as_array_mut);
    for container in containers.into_iter().flatten() {
        for env in head_env(head) {
            push(container, "env", env);
        }
    }
}

fn head_env(head: &str) -> [Value; 2] {
    let first = head.split('.').next().unwrap_or(head);
    [literal("FQ_RAY_IP", head), literal("RAY_IP", first)]
}

fn literal(name: &str, value: &str) -> Value {
    json!({"name": name, "value": value})
}

fn field(name: &str, path: &str) -> Value {
    json!({"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}})
}

/// The environment of Ray, after the user's.
pub(super) fn add_env(ray: &mut Value, start: &str, context: &Context<'_>) {
    let spec = &context.cluster.spec;
    let version = spec
        .autoscaler
        .as_ref()
        .and_then(|options| options.version.as_deref());
    if let Some(version) = version.filter(|_| context.is_head() && spec.enable_autoscaling) {
        let value = (version == "v2").to_string();
        push(ray, "env", literal("RAY_enable_autoscaler_v2", &value));
    }
    for env in &context.settings.default_env {
        push_env_if_missing(ray, env.clone());
    }
    if !context.is_head() {
        for env in head_env(&context.head) {
            push(ray, "env", env);
        }
    }
    for env in identity_env(start) {
        push(ray, "env", env);
    }
    push_env_if_missing(ray, literal("RAY_PORT", &context.port));
    let host = if context.is_head() {
        "127.0.0.1"
    } else {
        &context.head
    };
    push_env_if_missing(
        ray,
        literal("RAY_ADDRESS", &format!("{host}:{}", context.port)),
    );
    push_env_if_missing(ray, literal("RAY_USAGE_STATS_KUBERAY_IN_USE", "1"));
    if context.is_head() {
        let version = &context.settings.operator_version;
        let origin = context.cluster.origin().as_str();
        let tags = format!("kuberay_version={version};kuberay_crd={origin}");
        push(ray, "env", literal("RAY_USAGE_STATS_EXTRA_TAGS", &tags));
    }
    push_env_if_missing(ray, literal("RAY_DASHBOARD_ENABLE_K8S_DISK_USAGE", "1"));
}

/// Who the node is: what the autoscaler and the dashboard ask for.
fn identity_env(start: &str) -> [Value; 5] {
    [
        field(
            "RAY_CLUSTER_NAME",
            &format!("metadata.labels['{LABEL_CLUSTER}']"),
        ),
        field("RAY_CLUSTER_NAMESPACE", "metadata.namespace"),
        field("RAY_CLOUD_INSTANCE_ID", "metadata.name"),
        field(
            "RAY_NODE_TYPE_NAME",
            &format!("metadata.labels['{LABEL_GROUP}']"),
        ),
        literal("KUBERAY_GEN_RAY_START_CMD", start),
    ]
}

fn push_env_if_missing(ray: &mut Value, env: Value) {
    let name = env["name"].as_str().unwrap_or("");
    if named(list(ray.get("env")), name).is_none() {
        push(ray, "env", env);
    }
}

/// Appends to a list that may not be there yet.
pub(super) fn push(object: &mut Value, name: &str, item: Value) {
    if !object.is_object() {
        *object = Value::Object(Map::new());
    }
    match &mut object[name] {
        Value::Array(items) => items.push(item),
        other @ (Value::Null
        | Value::Bool(_)
        | Value::Number(_)
        | Value::String(_)
        | Value::Object(_)) => *other = json!([item]),
    }
}
