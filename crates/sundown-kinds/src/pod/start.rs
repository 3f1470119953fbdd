//! The command that starts Ray: the parameters of users, completed, and put into words.

use std::collections::BTreeMap;
use std::fmt::Write;

use serde_json::{Map, Number, Value};
use sundown_model::Quantity;

use crate::constants::{PORT_DASHBOARD_AGENT, PORT_METRICS};
use crate::names::NodeType;
use crate::ray_cluster::{RayCluster, WorkerGroup};
use crate::resources::{Amounts, amounts, is_gpu};

type Params = BTreeMap<String, String>;

/// Resources of containers that Ray knows by other names.
const ACCELERATORS: [(&str, &str); 2] = [
    ("aws.amazon.com/neuroncore", "neuron_cores"),
    ("google.com/tpu", "TPU"),
];
/// Parameters for which `true` and `false` are values, not switches.
const WITH_VALUE: [&str; 3] = ["log-color", "include-dashboard", "include-log-monitor"];

/// The parameters of a head.
pub(super) fn head_params(cluster: &RayCluster) -> Params {
    let group = &cluster.spec.head;
    let mut params = group.ray_start_params.clone();
    add_resources(&mut params, &group.resources);
    add_labels(&mut params, &group.labels);
    add_missing(&mut params, "dashboard-host", "0.0.0.0");
    add_defaults(&mut params);
    if cluster.spec.enable_autoscaling {
        // The autoscaler of the cluster does what the monitor would.
        params.insert("no-monitor".into(), "true".into());
    }
    params
}

/// The parameters of the workers of a group.
pub(super) fn worker_params(group: &WorkerGroup, head: &str, port: &str) -> Params {
    let mut params = group.ray_start_params.clone();
    add_resources(&mut params, &group.resources);
    add_labels(&mut params, &group.labels);
    add_missing(&mut params, "address", &format!("{head}:{port}"));
    add_defaults(&mut params);
    params
}

fn add_missing(params: &mut Params, name: &str, value: &str) {
    params
        .entry(name.to_owned())
        .or_insert_with(|| value.to_owned());
}

fn add_defaults(params: &mut Params) {
    add_missing(params, "metrics-export-port", &PORT_METRICS.to_string());
    add_missing(
        params,
        "dashboard-agent-listen-port",
        &PORT_DASHBOARD_AGENT.to_string(),
    );
    params.insert("block".into(), "true".into());
}

/// The resources of a group; what is no quantity is left out.
fn add_resources(params: &mut Params, resources: &BTreeMap<String, String>) {
    let mut others = Map::new();
    for (name, text) in resources {
        let Some(amount) = Quantity::parse(text) else {
            continue;
        };
        let param = match name.to_lowercase().as_str() {
            "cpu" => "num-cpus",
            "memory" => "memory",
            name if is_gpu(name) => "num-gpus",
            _ => {
                others.insert(name.clone(), float(amount));
                continue;
            }
        };
        params.insert(param.into(), amount.value().to_string());
    }
    if !others.is_empty() {
        params.insert("resources".into(), format!("'{}'", Value::Object(others)));
    }
}

fn add_labels(params: &mut Params, labels: &BTreeMap<String, String>) {
    if !labels.is_empty() {
        let pairs: Vec<String> = labels
            .iter()
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        params.insert("labels".into(), pairs.join(","));
    }
}

/// The command of a node: with what the resources of its container say, where the parameters do not.
pub(super) fn command(node_type: NodeType, params: &Params, container: &Value) -> String {
    let mut params = params.clone();
    let limits = amounts(container, "limits");
    let not_zero =
        |amounts: &Amounts, name: &str| amounts.get(name).copied().filter(|it| !it.is_zero());
    let cpu = not_zero(&limits, "cpu").or_else(|| not_zero(&amounts(container, "requests"), "cpu"));
    if let Some(cpu) = cpu {
        add_missing(&mut params, "num-cpus", &cpu.value().to_string());
    }
    if let Some(memory) = not_zero(&limits, "memory") {
        add_missing(&mut params, "memory", &memory.value().to_string());
    }
    add_accelerators(&mut params, &limits);
    let head = match node_type {
        NodeType::Head => "--head ",
        NodeType::Worker => "",
    };
    format!("ray start {head}{}", in_words(&params))
}

/// GPUs, and the first of the accelerators that Ray knows, unless one is there.
fn add_accelerators(params: &mut Params, limits: &Amounts) {
    // A text that is no JSON is the user's, and Ray will say so: nothing is added to it.
    let Some(mut resources) = read_resources(params.get("resources")) else {
        return;
    };
    let mut has_one = ACCELERATORS
        .iter()
        .any(|(_, name)| resources.contains_key(*name));
    for (name, amount) in limits.iter().filter(|(_, amount)| !amount.is_zero()) {
        if is_gpu(name) {
            add_missing(params, "num-gpus", &amount.value().to_string());
        }
        let known = ACCELERATORS.iter().find(|(own, _)| own == name);
        if let Some((_, known)) = known.filter(|_| !has_one) {
            resources.insert((*known).into(), float(*amount));
            let text = format!("'{}'", Value::Object(resources.clone()));
            params.insert("resources".into(), text);
            has_one = true;
        }
    }
}

fn read_resources(text: Option<&String>) -> Option<Map<String, Value>> {
    let Some(text) = text else {
        return Some(Map::new());
    };
    let text = text.trim_matches(['\'', '"', '`', ' ']);
    let resources: Map<String, Value> = serde_json::from_str(text).ok()?;
    resources
        .values()
        .all(Value::is_number)
        .then_some(resources)
}

/// A number as Go writes a float: without a fraction where there is none.
fn float(amount: Quantity) -> Value {
    let value = amount.approximate();
    if value.fract() == 0.0 {
        return Value::from(amount.value());
    }
    Number::from_f64(value).map_or(Value::Null, Value::Number)
}

fn in_words(params: &Params) -> String {
    let mut text = String::new();
    for (name, value) in params {
        let switch = value.to_lowercase();
        let is_switch = matches!(switch.as_str(), "true" | "false");
        // Writing to a string cannot fail.
        let _ = match (
            is_switch && !WITH_VALUE.contains(&name.as_str()),
            switch == "true",
        ) {
            (true, true) => write!(text, " --{name} "),
            (true, false) => Ok(()),
            (false, _) => write!(text, " --{name}={value} "),
        };
    }
    text
}

#[cfg(test)]
mod tests;
