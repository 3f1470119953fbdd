//! The cells of built-in kinds, in the order of their columns (`columns.rs`), after upstream's
//! `pkg/printers/internalversion/printers.go`. Always the wide ones: the client hides them by priority.

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde_json::Value;

use super::{age, pod, settings};
use crate::registry::Type;

/// One cell per column.
pub(super) fn cells(ty: &Type, object: &Value, now: Timestamp) -> Vec<Value> {
    let name = || Value::from(text(object, "/metadata/name"));
    let created = object.pointer("/metadata/creationTimestamp");
    let age = || Value::from(age::since(created, now));
    let at = |pointer| Value::from(text(object, pointer));
    let count = |pointer| Value::from(number(object, pointer));
    let len = |pointer| Value::from(size(object, pointer));
    match (ty.resource.group(), ty.resource.plural()) {
        ("", "pods") => pod::cells(object, now),
        ("", "namespaces") => vec![name(), at("/status/phase"), age()],
        ("", "configmaps") => {
            let keys = size(object, "/data") + size(object, "/binaryData");
            vec![name(), keys.into(), age()]
        }
        ("", "secrets") => vec![name(), at("/type"), len("/data"), age()],
        ("", "services") => service(object, age()),
        ("", "nodes") => node(object, age()),
        ("", "persistentvolumes") => volume(object, age()),
        ("", "persistentvolumeclaims") => claim(object, age()),
        ("" | "events.k8s.io", "events") => event(object, now),
        ("coordination.k8s.io", "leases") => vec![name(), at("/spec/holderIdentity"), age()],
        ("apiextensions.k8s.io", "customresourcedefinitions") => definition(object),
        ("batch", "jobs") => job(object, now, age()),
        ("batch", "cronjobs") => cron_job(object, now, age()),
        ("apps", "deployments") => {
            let ready = ready(object);
            let (updated, available) = ("/status/updatedReplicas", "/status/availableReplicas");
            let mut cells = vec![name(), ready, count(updated), count(available), age()];
            cells.extend(containers(object, "/spec/template/spec/containers"));
            cells.push(selector(object, "/spec/selector").into());
            cells
        }
        ("apps", "replicasets") => {
            let (current, ready) = ("/status/replicas", "/status/readyReplicas");
            let mut cells = vec![name(), count("/spec/replicas"), count(current)];
            cells.extend([count(ready), age()]);
            cells.extend(containers(object, "/spec/template/spec/containers"));
            cells.push(selector(object, "/spec/selector").into());
            cells
        }
        ("apps", "statefulsets") => {
            let mut cells = vec![name(), ready(object), age()];
            cells.extend(containers(object, "/spec/template/spec/containers"));
            cells
        }
        ("apps", "daemonsets") => daemon_set(object, age()),
        _ => settings::cells(ty, object, age())
            .unwrap_or_else(|| vec![name(), created.cloned().unwrap_or_default()]),
    }
}

/// What marks a whole row.
pub(super) fn row_conditions(ty: &Type, object: &Value) -> Option<Value> {
    let is_pod = (ty.resource.group(), ty.resource.plural()) == ("", "pods");
    is_pod.then(|| pod::row_conditions(object)).flatten()
}

pub(super) fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    text_or(object, pointer, "")
}

/// The text at a pointer, or another one if there is none.
pub(super) fn text_or<'a>(object: &'a Value, pointer: &str, other: &'a str) -> &'a str {
    let found = object.pointer(pointer).and_then(Value::as_str);
    found.filter(|text| !text.is_empty()).unwrap_or(other)
}

/// The integer at a pointer; zero if there is none.
pub(super) fn number(object: &Value, pointer: &str) -> i64 {
    let found = object.pointer(pointer).and_then(Value::as_i64);
    found.unwrap_or(0)
}

/// The items of the list at a pointer.
pub(super) fn items<'a>(
    object: &'a Value,
    pointer: &str,
) -> impl Iterator<Item = &'a Value> + use<'a> {
    let list = object.pointer(pointer).and_then(Value::as_array);
    list.into_iter().flatten()
}

pub(super) fn size(object: &Value, pointer: &str) -> usize {
    match object.pointer(pointer) {
        Some(Value::Object(map)) => map.len(),
        Some(Value::Array(list)) => list.len(),
        _ => 0,
    }
}

fn joined<'a>(texts: impl Iterator<Item = &'a str>) -> String {
    texts.collect::<Vec<_>>().join(",")
}

fn or_none(text: String) -> String {
    if text.is_empty() {
        "<none>".to_owned()
    } else {
        text
    }
}

pub(super) fn strings<'a>(
    object: &'a Value,
    pointer: &str,
) -> impl Iterator<Item = &'a str> + use<'a> {
    items(object, pointer).filter_map(Value::as_str)
}

/// `ready/desired`.
fn ready(object: &Value) -> Value {
    let ready = number(object, "/status/readyReplicas");
    format!("{ready}/{}", number(object, "/spec/replicas")).into()
}

/// Names and images.
pub(super) fn containers(object: &Value, pointer: &str) -> [Value; 2] {
    let all = |field| joined(items(object, pointer).map(|it| text(it, field)));
    [all("/name").into(), all("/image").into()]
}

/// `a=b,c=d` of a map of labels.
pub(super) fn labels(object: &Value, pointer: &str) -> String {
    let map = object.pointer(pointer).and_then(Value::as_object);
    let pairs: Vec<String> = map
        .into_iter()
        .flatten()
        .map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or("")))
        .collect();
    or_none(pairs.join(","))
}

/// A label selector, in the words of `FormatLabelSelector`.
pub(super) fn selector(object: &Value, pointer: &str) -> String {
    let mut parts = Vec::new();
    let equal = object.pointer(&format!("{pointer}/matchLabels"));
    for (key, value) in equal.and_then(Value::as_object).into_iter().flatten() {
        parts.push((
            key.clone(),
            format!("{key}={}", value.as_str().unwrap_or("")),
        ));
    }
    for rule in items(object, &format!("{pointer}/matchExpressions")) {
        let key = text(rule, "/key");
        let mut values: Vec<&str> = strings(rule, "/values").collect();
        values.sort_unstable();
        let values = values.join(",");
        let part = match text(rule, "/operator") {
            "In" => format!("{key} in ({values})"),
            "NotIn" => format!("{key} notin ({values})"),
            "Exists" => key.to_owned(),
            "DoesNotExist" => format!("!{key}"),
            _ => "<error>".to_owned(),
        };
        parts.push((key.to_owned(), part));
    }
    parts.sort_by(|(one, _), (other, _)| one.cmp(other));
    let parts: Vec<String> = parts.into_iter().map(|(_, part)| part).collect();
    or_none(parts.join(","))
}

fn daemon_set(object: &Value, age: Value) -> Vec<Value> {
    let count = |field: &str| Value::from(number(object, &format!("/status/{field}")));
    let mut cells = vec![
        text(object, "/metadata/name").into(),
        count("desiredNumberScheduled"),
        count("currentNumberScheduled"),
        count("numberReady"),
        count("updatedNumberScheduled"),
        count("numberAvailable"),
        labels(object, "/spec/template/spec/nodeSelector").into(),
        age,
    ];
    cells.extend(containers(object, "/spec/template/spec/containers"));
    cells.push(selector(object, "/spec/selector").into());
    cells
}

fn job(object: &Value, now: Timestamp, age: Value) -> Vec<Value> {
    let has = |kind: &str| {
        items(object, "/status/conditions").any(|it| it["type"] == kind && it["status"] == "True")
    };
    let is_deleting = !object["metadata"]["deletionTimestamp"].is_null();
    let status = match () {
        () if has("Complete") => "Complete",
        () if has("Failed") => "Failed",
        () if is_deleting => "Terminating",
        () if has("Suspended") => "Suspended",
        () if has("FailureTarget") => "FailureTarget",
        () if has("SuccessCriteriaMet") => "SuccessCriteriaMet",
        () => "Running",
    };
    let done = number(object, "/status/succeeded");
    let parallelism = number(object, "/spec/parallelism");
    let completions = match object.pointer("/spec/completions").and_then(Value::as_i64) {
        Some(wanted) => format!("{done}/{wanted}"),
        None if parallelism > 1 => format!("{done}/1 of {parallelism}"),
        None => format!("{done}/1"),
    };
    let instant = |pointer| object.pointer(pointer).and_then(age::instant);
    let duration = instant("/status/startTime").map_or(String::new(), |start| {
        let end = instant("/status/completionTime").unwrap_or(now);
        age::human(end.duration_since(start))
    });
    let name = Value::from(text(object, "/metadata/name"));
    let mut cells = vec![
        name,
        status.into(),
        completions.into(),
        duration.into(),
        age,
    ];
    cells.extend(containers(object, "/spec/template/spec/containers"));
    cells.push(selector(object, "/spec/selector").into());
    cells
}

fn cron_job(object: &Value, now: Timestamp, age: Value) -> Vec<Value> {
    let suspend = match object.pointer("/spec/suspend").and_then(Value::as_bool) {
        Some(true) => "True",
        Some(false) => "False",
        None => "<unset>",
    };
    let last = object.pointer("/status/lastScheduleTime");
    let last = last.map_or("<none>".to_owned(), |at| age::since(Some(at), now));
    let mut cells = vec![
        text(object, "/metadata/name").into(),
        text(object, "/spec/schedule").into(),
        text_or(object, "/spec/timeZone", "<none>").into(),
        suspend.into(),
        size(object, "/status/active").into(),
        last.into(),
        age,
    ];
    cells.extend(containers(
        object,
        "/spec/jobTemplate/spec/template/spec/containers",
    ));
    cells.push(selector(object, "/spec/jobTemplate/spec/selector").into());
    cells
}

fn service(object: &Value, age: Value) -> Vec<Value> {
    let ports: Vec<String> = items(object, "/spec/ports")
        .map(|port| {
            let protocol = text(port, "/protocol");
            match (number(port, "/port"), number(port, "/nodePort")) {
                (port, 0) => format!("{port}/{protocol}"),
                (port, node) => format!("{port}:{node}/{protocol}"),
            }
        })
        .collect();
    vec![
        text(object, "/metadata/name").into(),
        text(object, "/spec/type").into(),
        text_or(object, "/spec/clusterIPs/0", "<none>").into(),
        external_address(object).into(),
        or_none(ports.join(",")).into(),
        age,
        labels(object, "/spec/selector").into(),
    ]
}

fn external_address(service: &Value) -> String {
    let own = joined(strings(service, "/spec/externalIPs"));
    match text(service, "/spec/type") {
        "ClusterIP" | "NodePort" => or_none(own),
        "LoadBalancer" => {
            let given: BTreeSet<&str> = items(service, "/status/loadBalancer/ingress")
                .map(|it| text_or(it, "/ip", text(it, "/hostname")))
                .filter(|address| !address.is_empty())
                .collect();
            let all: Vec<&str> = given
                .into_iter()
                .chain(strings(service, "/spec/externalIPs"))
                .collect();
            if all.is_empty() {
                "<pending>".to_owned()
            } else {
                all.join(",")
            }
        }
        "ExternalName" => text(service, "/spec/externalName").to_owned(),
        _ => "<unknown>".to_owned(),
    }
}

fn node(object: &Value, age: Value) -> Vec<Value> {
    let ready = items(object, "/status/conditions").find(|it| it["type"] == "Ready");
    let mut status = match ready {
        Some(ready) if ready["status"] == "True" => "Ready",
        Some(_) => "NotReady",
        None => "Unknown",
    }
    .to_owned();
    if object["spec"]["unschedulable"] == true {
        status.push_str(",SchedulingDisabled");
    }
    let labels = object
        .pointer("/metadata/labels")
        .and_then(Value::as_object);
    let roles: BTreeSet<&str> = labels
        .into_iter()
        .flatten()
        .filter_map(|(key, value)| match key.as_str() {
            "kubernetes.io/role" => value.as_str(),
            key => key.strip_prefix("node-role.kubernetes.io/"),
        })
        .filter(|role| !role.is_empty())
        .collect();
    let address = |kind: &str| {
        let found = items(object, "/status/addresses").find(|it| it["type"] == kind);
        Value::from(found.map_or("<none>", |it| text(it, "/address")))
    };
    let info = |field| text_or(object, field, "<unknown>");
    let kernel = info("/status/nodeInfo/kernelVersion");
    let kernel = match text(object, "/status/nodeInfo/architecture") {
        "" => kernel.to_owned(),
        architecture => format!("{kernel} ({architecture})"),
    };
    vec![
        text(object, "/metadata/name").into(),
        status.into(),
        or_none(joined(roles.into_iter())).into(),
        age,
        text(object, "/status/nodeInfo/kubeletVersion").into(),
        address("InternalIP"),
        address("ExternalIP"),
        info("/status/nodeInfo/osImage").into(),
        kernel.into(),
        info("/status/nodeInfo/containerRuntimeVersion").into(),
    ]
}

fn access_modes(object: &Value, pointer: &str) -> String {
    let asked: Vec<&str> = strings(object, pointer).collect();
    let known = [
        ("ReadWriteOnce", "RWO"),
        ("ReadOnlyMany", "ROX"),
        ("ReadWriteMany", "RWX"),
        ("ReadWriteOncePod", "RWOP"),
    ];
    let short = known.iter().filter(|(long, _)| asked.contains(long));
    joined(short.map(|(_, short)| *short))
}

fn phase(object: &Value) -> &str {
    if object["metadata"]["deletionTimestamp"].is_null() {
        text(object, "/status/phase")
    } else {
        "Terminating"
    }
}

fn storage_class(object: &Value) -> &str {
    let annotation = "/metadata/annotations/volume.beta.kubernetes.io~1storage-class";
    text_or(object, annotation, text(object, "/spec/storageClassName"))
}

fn volume(object: &Value, age: Value) -> Vec<Value> {
    let claim = object
        .pointer("/spec/claimRef")
        .map_or(String::new(), |it| {
            format!("{}/{}", text(it, "/namespace"), text(it, "/name"))
        });
    vec![
        text(object, "/metadata/name").into(),
        text_or(object, "/spec/capacity/storage", "0").into(),
        access_modes(object, "/spec/accessModes").into(),
        text(object, "/spec/persistentVolumeReclaimPolicy").into(),
        phase(object).into(),
        claim.into(),
        storage_class(object).into(),
        text_or(object, "/spec/volumeAttributesClassName", "<unset>").into(),
        text(object, "/status/reason").into(),
        age,
        text_or(object, "/spec/volumeMode", "<unset>").into(),
    ]
}

fn claim(object: &Value, age: Value) -> Vec<Value> {
    let volume = text(object, "/spec/volumeName");
    let (capacity, modes) = if volume.is_empty() {
        ("", String::new())
    } else {
        let modes = access_modes(object, "/status/accessModes");
        (text_or(object, "/status/capacity/storage", "0"), modes)
    };
    vec![
        text(object, "/metadata/name").into(),
        phase(object).into(),
        volume.into(),
        capacity.into(),
        modes.into(),
        storage_class(object).into(),
        text_or(object, "/spec/volumeAttributesClassName", "<unset>").into(),
        age,
        text_or(object, "/spec/volumeMode", "<unset>").into(),
    ]
}

/// An Event of either group: `note` and `regarding` are `message` and `involvedObject` there.
fn event(object: &Value, now: Timestamp) -> Vec<Value> {
    let either = |one, other| text_or(object, one, text(object, other));
    let known = |pointers: &[&str]| {
        let mut found = pointers.iter().filter_map(|it| object.pointer(it));
        found.find(|it| !it.is_null())
    };
    let first = known(&["/firstTimestamp", "/deprecatedFirstTimestamp", "/eventTime"]);
    let last = known(&[
        "/series/lastObservedTime",
        "/lastTimestamp",
        "/deprecatedLastTimestamp",
    ]);
    let count = known(&["/series/count", "/count", "/deprecatedCount"]);
    let count = count.and_then(Value::as_i64).filter(|count| *count > 0);
    let kind = either("/involvedObject/kind", "/regarding/kind").to_lowercase();
    let target = match either("/involvedObject/name", "/regarding/name") {
        "" => kind,
        name => format!("{kind}/{name}"),
    };
    let component = either("/source/component", "/deprecatedSource/component");
    let component = if component.is_empty() {
        either("/reportingComponent", "/reportingController")
    } else {
        component
    };
    let host = text_or(object, "/source/host", text(object, "/reportingInstance"));
    let source = match host {
        "" => component.to_owned(),
        host => format!("{component}, {host}"),
    };
    vec![
        age::since(last.or(first), now).into(),
        text(object, "/type").into(),
        text(object, "/reason").into(),
        target.into(),
        either("/involvedObject/fieldPath", "/regarding/fieldPath").into(),
        source.into(),
        either("/message", "/note").trim().into(),
        age::since(first, now).into(),
        count.unwrap_or(1).into(),
        text(object, "/metadata/name").into(),
    ]
}

fn definition(object: &Value) -> Vec<Value> {
    let served = items(object, "/spec/versions").filter(|it| it["served"] == true);
    let mut versions: Vec<String> = served
        .map(|it| {
            let is_stored = it["storage"] == true;
            let mark = if is_stored { "(storage)" } else { "" };
            format!("{}{mark}", text(it, "/name"))
        })
        .collect();
    versions.sort();
    let is_established = items(object, "/status/conditions")
        .any(|it| it["type"] == "Established" && it["status"] == "True");
    vec![
        text(object, "/metadata/name").into(),
        text(object, "/spec/scope").into(),
        versions.join(",").into(),
        text(object, "/metadata/creationTimestamp").into(),
        text(object, "/spec/group").into(),
        text(object, "/spec/names/kind").into(),
        joined(strings(object, "/spec/names/shortNames")).into(),
        is_established.into(),
    ]
}
