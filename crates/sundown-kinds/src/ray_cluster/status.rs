//! The status of a cluster as it is on the wire.
//!
//! Quantities and the head are always written, counters and texts only when they say something.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Serialize, Serializer};
use serde_json::Value;
use sundown_model::Quantity;

use crate::reader::{Malformed, Reader};

/// What was last told about a cluster.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ClusterStatus {
    #[serde(skip_serializing_if = "String::is_empty")]
    pub state: String,
    #[serde(rename = "desiredCPU", serialize_with = "canonical")]
    pub desired_cpu: Quantity,
    #[serde(serialize_with = "canonical")]
    pub desired_memory: Quantity,
    #[serde(rename = "desiredGPU", serialize_with = "canonical")]
    pub desired_gpu: Quantity,
    #[serde(rename = "desiredTPU", serialize_with = "canonical")]
    pub desired_tpu: Quantity,
    #[serde(
        skip_serializing_if = "Option::is_none",
        serialize_with = "optional_seconds"
    )]
    pub last_update_time: Option<Timestamp>,
    #[serde(
        skip_serializing_if = "BTreeMap::is_empty",
        serialize_with = "map_of_seconds"
    )]
    pub state_transition_times: BTreeMap<String, Timestamp>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub endpoints: BTreeMap<String, String>,
    pub head: HeadInfo,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reason: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
    #[serde(skip_serializing_if = "is_zero")]
    pub ready_worker_replicas: i32,
    #[serde(skip_serializing_if = "is_zero")]
    pub available_worker_replicas: i32,
    #[serde(skip_serializing_if = "is_zero")]
    pub desired_worker_replicas: i32,
    #[serde(skip_serializing_if = "is_zero")]
    pub min_worker_replicas: i32,
    #[serde(skip_serializing_if = "is_zero")]
    pub max_worker_replicas: i32,
    #[serde(skip_serializing_if = "is_zero_64")]
    pub observed_generation: i64,
}

/// Where the head is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct HeadInfo {
    #[serde(rename = "podIP", skip_serializing_if = "String::is_empty")]
    pub pod_ip: String,
    #[serde(rename = "serviceIP", skip_serializing_if = "String::is_empty")]
    pub service_ip: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub pod_name: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub service_name: String,
}

/// One condition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Condition {
    #[serde(rename = "type")]
    pub kind: String,
    /// `True`, `False` or `Unknown`.
    pub status: String,
    #[serde(skip_serializing_if = "is_zero_64")]
    pub observed_generation: i64,
    #[serde(serialize_with = "seconds")]
    pub last_transition_time: Timestamp,
    pub reason: String,
    pub message: String,
}

impl Default for ClusterStatus {
    fn default() -> Self {
        Self {
            state: String::new(),
            desired_cpu: Quantity::ZERO,
            desired_memory: Quantity::ZERO,
            desired_gpu: Quantity::ZERO,
            desired_tpu: Quantity::ZERO,
            last_update_time: None,
            state_transition_times: BTreeMap::new(),
            endpoints: BTreeMap::new(),
            head: HeadInfo::default(),
            reason: String::new(),
            conditions: Vec::new(),
            ready_worker_replicas: 0,
            available_worker_replicas: 0,
            desired_worker_replicas: 0,
            min_worker_replicas: 0,
            max_worker_replicas: 0,
            observed_generation: 0,
        }
    }
}

impl ClusterStatus {
    pub(crate) fn read(at: &Reader<'_>) -> Result<Self, Malformed> {
        let int = |name| Ok(at.int32(name)?.unwrap_or(0));
        Ok(Self {
            state: at.text("state")?,
            desired_cpu: at.quantity("desiredCPU")?,
            desired_memory: at.quantity("desiredMemory")?,
            desired_gpu: at.quantity("desiredGPU")?,
            desired_tpu: at.quantity("desiredTPU")?,
            last_update_time: at.instant("lastUpdateTime")?,
            state_transition_times: at.instants("stateTransitionTimes")?,
            endpoints: at.texts("endpoints")?,
            head: HeadInfo::read(&at.member("head")?)?,
            reason: at.text("reason")?,
            conditions: at.list("conditions", Condition::read)?,
            ready_worker_replicas: int("readyWorkerReplicas")?,
            available_worker_replicas: int("availableWorkerReplicas")?,
            desired_worker_replicas: int("desiredWorkerReplicas")?,
            min_worker_replicas: int("minWorkerReplicas")?,
            max_worker_replicas: int("maxWorkerReplicas")?,
            observed_generation: at.int64("observedGeneration")?.unwrap_or(0),
        })
    }

    /// As it is on the wire.
    pub fn to_value(&self) -> Value {
        serde_json::to_value(self).expect("plain fields and maps of strings are JSON")
    }

    /// The condition of this type.
    pub fn condition(&self, kind: &str) -> Option<&Condition> {
        self.conditions.iter().find(|own| own.kind == kind)
    }

    /// Whether the condition of this type is there and true.
    pub fn is_true(&self, kind: &str) -> bool {
        self.condition(kind).is_some_and(|own| own.status == "True")
    }
}

impl HeadInfo {
    fn read(at: &Reader<'_>) -> Result<Self, Malformed> {
        Ok(Self {
            pod_ip: at.text("podIP")?,
            service_ip: at.text("serviceIP")?,
            pod_name: at.text("podName")?,
            service_name: at.text("serviceName")?,
        })
    }
}

impl Condition {
    fn read(at: &Reader<'_>) -> Result<Self, Malformed> {
        Ok(Self {
            kind: at.text("type")?,
            status: at.text("status")?,
            observed_generation: at.int64("observedGeneration")?.unwrap_or(0),
            last_transition_time: at.instant("lastTransitionTime")?.unwrap_or_default(),
            reason: at.text("reason")?,
            message: at.text("message")?,
        })
    }
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "the signature that serde calls"
)]
fn is_zero(value: &i32) -> bool {
    *value == 0
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "the signature that serde calls"
)]
fn is_zero_64(value: &i64) -> bool {
    *value == 0
}

fn canonical<S: Serializer>(quantity: &Quantity, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(&quantity.canonical())
}

/// Times are written in whole seconds, as Kubernetes writes its own.
pub(crate) fn seconds<S: Serializer>(instant: &Timestamp, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(&in_seconds(*instant))
}

#[expect(clippy::ref_option, reason = "the signature that serde calls")]
pub(crate) fn optional_seconds<S: Serializer>(
    instant: &Option<Timestamp>,
    to: S,
) -> Result<S::Ok, S::Error> {
    match instant {
        Some(instant) => seconds(instant, to),
        None => to.serialize_none(),
    }
}

fn map_of_seconds<S: Serializer>(
    instants: &BTreeMap<String, Timestamp>,
    to: S,
) -> Result<S::Ok, S::Error> {
    to.collect_map(
        instants
            .iter()
            .map(|(key, instant)| (key, in_seconds(*instant))),
    )
}

fn in_seconds(instant: Timestamp) -> String {
    let whole = Timestamp::from_second(instant.as_second()).unwrap_or(instant);
    whole.to_string()
}
