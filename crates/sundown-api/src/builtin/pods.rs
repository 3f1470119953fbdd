//! What pods and the templates of pods have when nobody says otherwise, after upstream's
//! `apis/core/v1/defaults.go`. What they may not have is in `pod_rules`.

use serde_json::{Map, Value, json};

use super::{each, section, set};
use crate::document::Document;
use crate::quantity::Quantity;

/// Fills in the template of a spec, if there is one.
pub(super) fn default_template(holder: &mut Map<String, Value>) {
    if let Some(Value::Object(template)) = holder.get_mut("template") {
        default_spec(section(template, "spec"));
    }
}

/// Fills in a pod, beyond what its spec has in common with templates.
pub(super) fn default_pod(object: &mut Document) {
    default_status(object);
    let spec = object.section("spec");
    default_spec(spec);
    if let Some(grace) = spec.get_mut("terminationGracePeriodSeconds")
        && grace.as_i64().is_some_and(|seconds| seconds < 0)
    {
        *grace = json!(1);
    }
    set(spec, "enableServiceLinks", json!(true));
    let on_host = spec.get("hostNetwork") == Some(&json!(true));
    for list in ["containers", "initContainers"] {
        for container in each(spec, list) {
            default_requests(container);
            if on_host {
                default_host_ports(container);
            }
        }
    }
}

/// One address and the list of addresses say the same.
pub(super) fn default_status(object: &mut Document) {
    let address = object.text_at(&["status", "podIP"]).to_owned();
    let listed = object
        .at(&["status", "podIPs"])
        .and_then(|list| list.get(0));
    let listed = listed.and_then(|first| first["ip"].as_str());
    let listed = listed.map(str::to_owned);
    if !address.is_empty() && listed.as_deref() != Some(&address) {
        let list = json!([{ "ip": address }]);
        object.section("status").insert("podIPs".into(), list);
    } else if let Some(listed) = listed {
        let status = object.section("status");
        status.insert("podIP".into(), json!(listed));
    }
}

/// Fills in the spec of a pod.
pub(super) fn default_spec(spec: &mut Map<String, Value>) {
    set(spec, "dnsPolicy", json!("ClusterFirst"));
    set(spec, "restartPolicy", json!("Always"));
    set(spec, "schedulerName", json!("default-scheduler"));
    set(spec, "securityContext", json!({}));
    set(spec, "terminationGracePeriodSeconds", json!(30));
    if let Some(account) = spec.get("serviceAccountName").cloned() {
        spec.insert("serviceAccount".into(), account);
    } else if let Some(account) = spec.get("serviceAccount").cloned() {
        set(spec, "serviceAccountName", account);
    }
    for list in ["containers", "initContainers", "ephemeralContainers"] {
        each(spec, list).for_each(default_container);
    }
    each(spec, "volumes").for_each(default_volume);
    each(spec, "topologySpreadConstraints").for_each(|rule| {
        set(rule, "whenUnsatisfiable", json!("DoNotSchedule"));
    });
}

fn default_container(container: &mut Map<String, Value>) {
    let image = container.get("image").and_then(Value::as_str).unwrap_or("");
    set(container, "imagePullPolicy", json!(pull_policy(image)));
    set(container, "resources", json!({}));
    set(
        container,
        "terminationMessagePath",
        json!("/dev/termination-log"),
    );
    set(container, "terminationMessagePolicy", json!("File"));
    for port in each(container, "ports") {
        set(port, "protocol", json!("TCP"));
    }
    for variable in each(container, "env") {
        if let Some(Value::Object(source)) = variable.get_mut("valueFrom") {
            default_reference(source);
        }
    }
    for probe in ["livenessProbe", "readinessProbe", "startupProbe"] {
        if let Some(Value::Object(probe)) = container.get_mut(probe) {
            default_probe(probe);
        }
    }
    if let Some(Value::Object(lifecycle)) = container.get_mut("lifecycle") {
        for handler in ["postStart", "preStop"] {
            if let Some(Value::Object(handler)) = lifecycle.get_mut(handler) {
                default_handler(handler);
            }
        }
    }
}

fn default_reference(holder: &mut Map<String, Value>) {
    if let Some(Value::Object(field)) = holder.get_mut("fieldRef") {
        set(field, "apiVersion", json!("v1"));
    }
    if let Some(Value::Object(field)) = holder.get_mut("resourceFieldRef") {
        set(field, "divisor", json!("0"));
    }
}

/// What is limited is requested, unless another request is there.
fn default_requests(container: &mut Map<String, Value>) {
    let resources = section(container, "resources");
    let Some(Value::Object(limits)) = resources.get("limits").cloned() else {
        return;
    };
    let requests = section(resources, "requests");
    for (name, limit) in limits {
        set(requests, &name, limit);
    }
}

fn default_host_ports(container: &mut Map<String, Value>) {
    for port in each(container, "ports") {
        if let Some(number) = port.get("containerPort").cloned() {
            set(port, "hostPort", number);
        }
    }
}

fn default_probe(probe: &mut Map<String, Value>) {
    for (member, number) in [
        ("timeoutSeconds", 1),
        ("periodSeconds", 10),
        ("successThreshold", 1),
        ("failureThreshold", 3),
    ] {
        set(probe, member, json!(number));
    }
    default_handler(probe);
    if let Some(Value::Object(grpc)) = probe.get_mut("grpc") {
        set(grpc, "service", json!(""));
    }
}

fn default_handler(handler: &mut Map<String, Value>) {
    if let Some(Value::Object(get)) = handler.get_mut("httpGet") {
        set(get, "path", json!("/"));
        set(get, "scheme", json!("HTTP"));
    }
}

fn default_volume(volume: &mut Map<String, Value>) {
    for source in ["secret", "configMap", "downwardAPI", "projected"] {
        if let Some(Value::Object(source)) = volume.get_mut(source) {
            set(source, "defaultMode", json!(0o644));
        }
    }
    if let Some(Value::Object(path)) = volume.get_mut("hostPath") {
        set(path, "type", json!(""));
    }
    if let Some(Value::Object(image)) = volume.get_mut("image") {
        let name = image.get("reference").and_then(Value::as_str);
        let policy = pull_policy(name.unwrap_or(""));
        set(image, "pullPolicy", json!(policy));
    }
    if let Some(Value::Object(downward)) = volume.get_mut("downwardAPI") {
        each(downward, "items").for_each(default_reference);
    }
    if let Some(Value::Object(projected)) = volume.get_mut("projected") {
        for source in each(projected, "sources") {
            if let Some(Value::Object(token)) = source.get_mut("serviceAccountToken") {
                set(token, "expirationSeconds", json!(3600));
            }
            if let Some(Value::Object(downward)) = source.get_mut("downwardAPI") {
                each(downward, "items").for_each(default_reference);
            }
        }
    }
    if volume.len() == 1 && volume.contains_key("name") {
        volume.insert("emptyDir".into(), json!({}));
    }
}

fn pull_policy(image: &str) -> &'static str {
    if is_latest(image) {
        "Always"
    } else {
        "IfNotPresent"
    }
}

/// Whether an image has the tag `latest`, or none and no digest.
fn is_latest(image: &str) -> bool {
    if image.is_empty() || image.contains('@') {
        return false;
    }
    let last = image.rsplit('/').next().unwrap_or(image);
    last.split_once(':').is_none_or(|(_, tag)| tag == "latest")
}

/// How a pod is treated when resources are short, after upstream's `apis/core/v1/helper/qos`.
pub(super) fn quality_of_service(spec: Option<&Value>) -> &'static str {
    let mut sums = [[0_i128; 2]; 2];
    let mut is_guaranteed = true;
    let none = Value::Null;
    let spec = spec.unwrap_or(&none);
    let lists = ["containers", "initContainers"];
    let containers = lists.iter().filter_map(|list| spec[*list].as_array());
    for container in containers.flatten() {
        for (side, member) in ["requests", "limits"].into_iter().enumerate() {
            for (kind, name) in ["cpu", "memory"].into_iter().enumerate() {
                let amount = container["resources"][member][name].as_str();
                let amount = amount.and_then(Quantity::parse);
                let amount = amount.map_or(0, Quantity::billionths).max(0);
                sums[side][kind] = sums[side][kind].saturating_add(amount);
                if side == 1 && amount == 0 {
                    is_guaranteed = false;
                }
            }
        }
    }
    let [requests, limits] = sums;
    if requests == [0, 0] && limits == [0, 0] {
        "BestEffort"
    } else if is_guaranteed && requests == limits {
        "Guaranteed"
    } else {
        "Burstable"
    }
}
