//! Pods and services as the status of a cluster sees them. Total: what is malformed is missing.

use serde_json::Value;

use crate::constants::{CONTAINER_SUBMITTER, LABEL_GROUP, LABEL_NODE_TYPE};
use crate::names::NodeType;
use crate::template::list;

/// A pod of a cluster.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PodView {
    pub name: String,
    pub uid: String,
    /// None for a pod that runs no Ray.
    pub node_type: Option<NodeType>,
    pub group: String,
    pub phase: String,
    pub ip: String,
    pub is_deleting: bool,
    pub restart_policy: String,
    /// The condition `Ready`, once there is one.
    pub ready: Option<Ready>,
    pub containers: Vec<ContainerView>,
}

/// What the kubelet says about the readiness of a pod.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ready {
    pub status: String,
    pub reason: String,
    pub message: String,
}

/// A container of a pod.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ContainerView {
    pub name: String,
    pub is_ready: bool,
    /// Reason and message, if it waits or has ended.
    pub stopped: Option<(String, String)>,
    /// The exit code, if it has ended.
    pub exit_code: Option<i64>,
}

/// A service.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ServiceView {
    pub name: String,
    pub cluster_ip: String,
    pub ports: Vec<PortView>,
}

/// A port of a service.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PortView {
    pub name: String,
    pub port: i64,
    /// 0 if it has none.
    pub node_port: i64,
    /// A number or a name; empty if it has none.
    pub target_port: String,
}

impl PodView {
    /// What there is to see of a pod.
    pub fn read(json: &Value) -> Self {
        let metadata = &json["metadata"];
        let label = |name: &str| text(&metadata["labels"][name]);
        let conditions = list(json["status"].get("conditions")).iter();
        let ready = conditions
            .filter(|condition| condition["type"] == "Ready")
            .map(|condition| Ready {
                status: text(&condition["status"]),
                reason: text(&condition["reason"]),
                message: text(&condition["message"]),
            });
        let containers = list(json["status"].get("containerStatuses")).iter();
        Self {
            name: text(&metadata["name"]),
            uid: text(&metadata["uid"]),
            node_type: match label(LABEL_NODE_TYPE).as_str() {
                "head" => Some(NodeType::Head),
                "worker" => Some(NodeType::Worker),
                _ => None,
            },
            group: label(LABEL_GROUP),
            phase: text(&json["status"]["phase"]),
            ip: text(&json["status"]["podIP"]),
            is_deleting: metadata["deletionTimestamp"].is_string(),
            restart_policy: text(&json["spec"]["restartPolicy"]),
            ready: ready.into_iter().next(),
            containers: containers.map(ContainerView::read).collect(),
        }
    }

    /// Whether it runs and is ready.
    ///
    /// A submitter beside the head makes the pod unready when it has ended, which says nothing about
    /// Ray: a job whose submitter is quick would never see its cluster ready.
    pub fn is_running_and_ready(&self) -> bool {
        let Some(ready) = self.ready.as_ref().filter(|_| self.phase == "Running") else {
            return false;
        };
        ready.status == "True" || self.is_only_submitter_unready()
    }

    fn is_only_submitter_unready(&self) -> bool {
        let (submitters, others): (Vec<_>, Vec<_>) = self
            .containers
            .iter()
            .partition(|container| container.name == CONTAINER_SUBMITTER);
        let has_ended = submitters
            .iter()
            .any(|container| container.exit_code.is_some());
        has_ended && !others.is_empty() && others.iter().all(|container| container.is_ready)
    }
}

impl ContainerView {
    fn read(json: &Value) -> Self {
        let state = &json["state"];
        let stopped = ["waiting", "terminated"]
            .iter()
            .find_map(|kind| state.get(kind));
        Self {
            name: text(&json["name"]),
            is_ready: json["ready"].as_bool().unwrap_or(false),
            stopped: stopped.map(|state| (text(&state["reason"]), text(&state["message"]))),
            exit_code: state["terminated"]["exitCode"].as_i64(),
        }
    }
}

impl ServiceView {
    /// What there is to see of a service.
    pub fn read(json: &Value) -> Self {
        let ports = list(json["spec"].get("ports")).iter().map(|port| PortView {
            name: text(&port["name"]),
            port: port["port"].as_i64().unwrap_or(0),
            node_port: port["nodePort"].as_i64().unwrap_or(0),
            target_port: match &port["targetPort"] {
                Value::Number(number) if number.as_i64() != Some(0) => number.to_string(),
                Value::String(name) => name.clone(),
                Value::Null
                | Value::Bool(_)
                | Value::Number(_)
                | Value::Array(_)
                | Value::Object(_) => String::new(),
            },
        });
        Self {
            name: text(&json["metadata"]["name"]),
            cluster_ip: text(&json["spec"]["clusterIP"]),
            ports: ports.collect(),
        }
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or("").to_owned()
}
