//! The cells of kinds that configure others: bindings, budgets, classes, slices, scalers.

use std::collections::BTreeSet;

use serde_json::Value;

use super::cells::{containers, items, labels, number, selector, size, strings, text, text_or};
use crate::registry::Type;

/// As many elements of a list are shown.
const SHOWN_MAX: usize = 3;
const METRICS_SHOWN_MAX: usize = 2;

/// One cell per column; None for kinds that only have a name and a time.
pub(super) fn cells(ty: &Type, object: &Value, age: Value) -> Option<Vec<Value>> {
    let at = |pointer: &str| Value::from(text(object, pointer));
    let or_none = |pointer: &str| Value::from(text_or(object, pointer, "<none>"));
    let name = at("/metadata/name");
    Some(match (ty.resource.group(), ty.resource.plural()) {
        ("", "serviceaccounts") => vec![name, age],
        ("", "endpoints") => vec![name, endpoints(object).into(), age],
        ("", "podtemplates") => {
            let [names, images] = containers(object, "/template/spec/containers");
            let own = labels(object, "/template/metadata/labels");
            vec![name, names, images, own.into()]
        }
        ("", "replicationcontrollers") => replication(object, age),
        ("", "resourcequotas") => {
            let [requests, limits] = quota(object);
            vec![name, requests.into(), limits.into(), age]
        }
        ("apps", "controllerrevisions") => {
            let owner = controller(object).into();
            vec![name, owner, number(object, "/revision").into(), age]
        }
        ("autoscaling", "horizontalpodautoscalers") => scaler(object, age),
        ("networking.k8s.io", "ingresses") => {
            let class = or_none("/spec/ingressClassName");
            let ports = match size(object, "/spec/tls") {
                0 => "80",
                _ => "80, 443",
            };
            let (hosts, address) = (hosts(object), addresses(object));
            vec![name, class, hosts.into(), address.into(), ports.into(), age]
        }
        ("networking.k8s.io", "ingressclasses") => {
            vec![name, at("/spec/controller"), parameters(object).into(), age]
        }
        ("networking.k8s.io", "networkpolicies") => {
            vec![name, selector(object, "/spec/podSelector").into(), age]
        }
        ("policy", "poddisruptionbudgets") => budget(object, age),
        ("rbac.authorization.k8s.io", "rolebindings" | "clusterrolebindings") => {
            bound_role(object, age)
        }
        ("storage.k8s.io", "storageclasses") => storage_class(object, age),
        ("scheduling.k8s.io", "priorityclasses") => vec![
            name,
            number(object, "/value").into(),
            is_true(object, "/globalDefault"),
            age,
            at("/preemptionPolicy"),
        ],
        ("discovery.k8s.io", "endpointslices") => {
            let (ports, addresses) = slice(object);
            vec![
                name,
                at("/addressType"),
                ports.into(),
                addresses.into(),
                age,
            ]
        }
        ("admissionregistration.k8s.io", _) => vec![name, size(object, "/webhooks").into(), age],
        ("apiregistration.k8s.io", "apiservices") => service(object, age),
        _ => return None,
    })
}

fn replication(object: &Value, age: Value) -> Vec<Value> {
    let counts = [
        "/spec/replicas",
        "/status/replicas",
        "/status/readyReplicas",
    ];
    let mut cells = vec![text(object, "/metadata/name").into()];
    cells.extend(counts.map(|pointer| Value::from(number(object, pointer))));
    cells.push(age);
    cells.extend(containers(object, "/spec/template/spec/containers"));
    cells.push(labels(object, "/spec/selector").into());
    cells
}

fn is_true(object: &Value, pointer: &str) -> Value {
    (object.pointer(pointer) == Some(&Value::Bool(true))).into()
}

fn budget(object: &Value, age: Value) -> Vec<Value> {
    let bound = |pointer: &str| {
        let found = object.pointer(pointer);
        let text = found.and_then(Value::as_str).map(str::to_owned);
        let number = found
            .and_then(Value::as_i64)
            .map(|number| number.to_string());
        Value::from(text.or(number).unwrap_or_else(|| "N/A".to_owned()))
    };
    vec![
        text(object, "/metadata/name").into(),
        bound("/spec/minAvailable"),
        bound("/spec/maxUnavailable"),
        number(object, "/status/disruptionsAllowed").into(),
        age,
    ]
}

fn storage_class(object: &Value, age: Value) -> Vec<Value> {
    vec![
        text(object, "/metadata/name").into(),
        text(object, "/provisioner").into(),
        text_or(object, "/reclaimPolicy", "Delete").into(),
        text_or(object, "/volumeBindingMode", "Immediate").into(),
        is_true(object, "/allowVolumeExpansion"),
        age,
    ]
}

/// The first few of a list, and how many there are besides.
fn few(all: &[String], shown_max: usize, separator: &str, none: &str) -> String {
    let shown = all[..all.len().min(shown_max)].join(separator);
    match all.len() {
        0 => none.to_owned(),
        count if count > shown_max => format!("{shown} + {} more...", count - shown_max),
        _ => shown,
    }
}

fn endpoints(object: &Value) -> String {
    let mut all = Vec::new();
    for subset in items(object, "/subsets") {
        let addresses = || items(subset, "/addresses").map(|it| text(it, "/ip").to_owned());
        if size(subset, "/ports") == 0 {
            all.extend(addresses());
        }
        for port in items(subset, "/ports") {
            let port = number(port, "/port");
            all.extend(addresses().map(|ip| format!("{ip}:{port}")));
        }
    }
    few(&all, SHOWN_MAX, ",", "<none>")
}

fn slice(object: &Value) -> (String, String) {
    let port = |port: &Value| match port.pointer("/port").and_then(Value::as_i64) {
        Some(number) => number.to_string(),
        None => text_or(port, "/name", "*").to_owned(),
    };
    let ports: Vec<String> = items(object, "/ports").map(port).collect();
    let addresses: Vec<String> = items(object, "/endpoints")
        .flat_map(|it| strings(it, "/addresses"))
        .map(str::to_owned)
        .collect();
    let few = |all: &[String]| few(all, SHOWN_MAX, ",", "<unset>");
    (few(&ports), few(&addresses))
}

fn quota(object: &Value) -> [String; 2] {
    let mut lists = [Vec::new(), Vec::new()];
    let hard = object.pointer("/status/hard").and_then(Value::as_object);
    for (name, hard) in hard.into_iter().flatten() {
        let used = object
            .pointer("/status/used")
            .and_then(|used| used.get(name));
        let used = used.and_then(Value::as_str).unwrap_or("0");
        let shown = format!("{name}: {used}/{}", hard.as_str().unwrap_or("0"));
        lists[usize::from(name.starts_with("limits."))].push(shown);
    }
    lists.map(|list| list.join(", "))
}

fn controller(object: &Value) -> String {
    let mut owners = items(object, "/metadata/ownerReferences");
    let owner = owners.find(|it| it["controller"] == true);
    owner.map_or_else(
        || "<none>".to_owned(),
        |owner| {
            let kind = text(owner, "/kind").to_lowercase();
            let group = text(owner, "/apiVersion").split_once('/');
            let group = group
                .map(|(group, _)| format!(".{group}"))
                .unwrap_or_default();
            format!("{kind}{group}/{}", text(owner, "/name"))
        },
    )
}

fn scaler(object: &Value, age: Value) -> Vec<Value> {
    let target = format!(
        "{}/{}",
        text(object, "/spec/scaleTargetRef/kind"),
        text(object, "/spec/scaleTargetRef/name")
    );
    let metrics: Vec<String> = items(object, "/spec/metrics")
        .enumerate()
        .map(|(index, metric)| {
            let current = object.pointer(&format!("/status/currentMetrics/{index}"));
            measured(metric, current.unwrap_or(&Value::Null))
        })
        .collect();
    let min = object.pointer("/spec/minReplicas").and_then(Value::as_i64);
    vec![
        text(object, "/metadata/name").into(),
        target.into(),
        few(&metrics, METRICS_SHOWN_MAX, ", ", "<none>").into(),
        min.map_or_else(|| "<unset>".into(), |min| min.to_string().into()),
        number(object, "/spec/maxReplicas").into(),
        number(object, "/status/currentReplicas").into(),
        age,
    ]
}

/// `NAME: CURRENT/TARGET` of a metric.
fn measured(metric: &Value, status: &Value) -> String {
    let member = match text(metric, "/type") {
        "Resource" => "resource",
        "ContainerResource" => "containerResource",
        "Pods" => "pods",
        "Object" => "object",
        "External" => "external",
        _ => return "<unknown type>".to_owned(),
    };
    let (own, seen) = (&metric[member], &status[member]["current"]);
    let name = match member {
        "resource" | "containerResource" => format!("{}: ", text(own, "/name")),
        _ => String::new(),
    };
    let target = &own["target"];
    let is_average = !target["averageValue"].is_null();
    let (unit, field) = if is_average {
        ("", "averageValue")
    } else if name.is_empty() {
        ("", "value")
    } else {
        ("%", "averageUtilization")
    };
    let shown = |value: &Value, none: &str| match &value[field] {
        Value::String(text) => text.clone(),
        Value::Number(number) => format!("{number}{unit}"),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => none.to_owned(),
    };
    let suffix = if is_average && matches!(member, "object" | "external") {
        " (avg)"
    } else {
        ""
    };
    let (current, target) = (shown(seen, "<unknown>"), shown(target, "<auto>"));
    format!("{name}{current}/{target}{suffix}")
}

fn hosts(object: &Value) -> String {
    let rules = size(object, "/spec/rules");
    let named = items(object, "/spec/rules").map(|rule| text(rule, "/host"));
    let named: Vec<&str> = named.filter(|host| !host.is_empty()).collect();
    let shown = named[..named.len().min(SHOWN_MAX)].join(",");
    match named.len() {
        0 => "*".to_owned(),
        count if count >= SHOWN_MAX && rules > SHOWN_MAX => {
            format!("{shown} + {} more...", rules - SHOWN_MAX)
        }
        _ => shown,
    }
}

fn addresses(object: &Value) -> String {
    let all = items(object, "/status/loadBalancer/ingress");
    let all: BTreeSet<&str> = all
        .map(|it| text_or(it, "/ip", text(it, "/hostname")))
        .filter(|address| !address.is_empty())
        .collect();
    all.into_iter().collect::<Vec<_>>().join(",")
}

fn parameters(object: &Value) -> String {
    let Some(parameters) = object.pointer("/spec/parameters") else {
        return "<none>".to_owned();
    };
    let group = match text(parameters, "/apiGroup") {
        "" => String::new(),
        group => format!(".{group}"),
    };
    format!(
        "{}{group}/{}",
        text(parameters, "/kind"),
        text(parameters, "/name")
    )
}

fn bound_role(object: &Value, age: Value) -> Vec<Value> {
    let role = format!(
        "{}/{}",
        text(object, "/roleRef/kind"),
        text(object, "/roleRef/name")
    );
    let subjects = |kind: &str| {
        let own = items(object, "/subjects").filter(|it| text(it, "/kind") == kind);
        let names = own.map(|it| match kind {
            "ServiceAccount" => format!("{}/{}", text(it, "/namespace"), text(it, "/name")),
            _ => text(it, "/name").to_owned(),
        });
        Value::from(names.collect::<Vec<_>>().join(", "))
    };
    vec![
        text(object, "/metadata/name").into(),
        role.into(),
        age,
        subjects("User"),
        subjects("Group"),
        subjects("ServiceAccount"),
    ]
}

fn service(object: &Value, age: Value) -> Vec<Value> {
    let service = match text(object, "/spec/service/name") {
        "" => "Local".to_owned(),
        name => format!("{}/{name}", text(object, "/spec/service/namespace")),
    };
    let mut conditions = items(object, "/status/conditions");
    let available = conditions.find(|it| text(it, "/type") == "Available");
    let shown = available.map_or_else(
        || "Unknown".to_owned(),
        |it| match (text(it, "/status"), text(it, "/reason")) {
            ("True", _) => "True".to_owned(),
            (status, reason) => format!("{status} ({reason})"),
        },
    );
    vec![
        text(object, "/metadata/name").into(),
        service.into(),
        shown.into(),
        age,
    ]
}
