//! What the decision reads of a Pod: its spec as far as a node needs it, and what was recorded of
//! its containers in the status.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::Value;
use sundown_model::{Deletion, Object, Uid};

use crate::json::{count, instant, is_set, items, number, text};

/// The fields that a watch has to keep.
pub(super) const FIELDS: &[&str] = &[
    "/metadata/labels",
    "/metadata/annotations",
    "/spec/activeDeadlineSeconds",
    "/spec/automountServiceAccountToken",
    "/spec/containers",
    "/spec/dnsConfig",
    "/spec/dnsPolicy",
    "/spec/ephemeralContainers",
    "/spec/hostAliases",
    "/spec/hostIPC",
    "/spec/hostNetwork",
    "/spec/hostPID",
    "/spec/hostUsers",
    "/spec/hostname",
    "/spec/initContainers",
    "/spec/nodeName",
    "/spec/readinessGates",
    "/spec/resourceClaims",
    "/spec/restartPolicy",
    "/spec/runtimeClassName",
    "/spec/securityContext",
    "/spec/serviceAccountName",
    "/spec/setHostnameAsFQDN",
    "/spec/shareProcessNamespace",
    "/spec/subdomain",
    "/spec/terminationGracePeriodSeconds",
    "/spec/volumes",
    "/status",
];

/// The condition that says that a pod has its place on the node.
pub(super) const PLACED: &str = "PodReadyToStartContainers";

/// How long a pod has to end, if it does not say.
const GRACE_SECONDS: i64 = 30;

/// A pod.
#[derive(Debug, Clone)]
pub(super) struct PodView<'a> {
    pub(super) object: &'a Object,
    pub(super) uid: Uid,
    pub(super) node: &'a str,
    pub(super) phase: &'a str,
    pub(super) deletion: Option<Deletion>,
    pub(super) policy: Policy,
    pub(super) grace_seconds: i64,
    pub(super) deadline_seconds: Option<i64>,
    /// status.startTime.
    pub(super) started_at: Option<Timestamp>,
    pub(super) init: Vec<ContainerView<'a>>,
    pub(super) main: Vec<ContainerView<'a>>,
    /// status.conditions.
    pub(super) conditions: &'a [Value],
}

/// spec.restartPolicy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Policy {
    Always,
    OnFailure,
    Never,
}

/// What part a container has in its pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    Init,
    /// An init container that goes on beside the others.
    Sidecar,
    Main,
}

/// A container of a pod.
#[derive(Debug, Clone)]
pub(super) struct ContainerView<'a> {
    pub(super) name: Arc<str>,
    pub(super) image: Arc<str>,
    pub(super) role: Role,
    pub(super) json: &'a Value,
    pub(super) record: Option<Record>,
}

/// What was recorded of a container.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Record {
    pub(super) attempt: u32,
    pub(super) state: Recorded,
    /// lastState.terminated.
    pub(super) last: Option<Value>,
    pub(super) is_ready: bool,
    pub(super) is_started: bool,
}

/// A recorded state.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Recorded {
    Waiting { reason: String },
    Running,
    Ended(Value),
}

/// Whether a pod has ended, without the effort of a whole view.
pub(super) fn is_finished(pod: &Object) -> bool {
    let phase = pod.field("/status/phase").and_then(Value::as_str);
    matches!(phase, Some("Succeeded" | "Failed"))
}

/// Whether a pod may still start something, so that it wants its images.
pub(super) fn may_start(pod: &Object) -> bool {
    !is_finished(pod) && pod.deletion().is_none()
}

/// The images of a pod's containers.
pub(super) fn images(pod: &Object) -> impl Iterator<Item = &str> {
    let init = items(pod.field("/spec/initContainers"));
    let main = items(pod.field("/spec/containers"));
    init.iter().chain(main).map(|it| text(it, "image"))
}

impl<'a> PodView<'a> {
    pub(super) fn of(object: &'a Object) -> Self {
        let field = |pointer| object.field(pointer).and_then(Value::as_str).unwrap_or("");
        let whole = |pointer| object.field(pointer).and_then(Value::as_i64);
        let status = object.field("/status").unwrap_or(&Value::Null);
        let containers = |pointer: &str, records: &str| {
            let records = items(status.get(records));
            let all = items(object.field(pointer)).iter();
            all.filter(|json| !text(json, "name").is_empty())
                .map(|json| ContainerView::of(json, records, pointer == "/spec/initContainers"))
                .collect()
        };
        Self {
            object,
            uid: object.uid().clone(),
            node: field("/spec/nodeName"),
            phase: text(status, "phase"),
            deletion: object.deletion(),
            policy: match field("/spec/restartPolicy") {
                "Never" => Policy::Never,
                "OnFailure" => Policy::OnFailure,
                _ => Policy::Always,
            },
            grace_seconds: whole("/spec/terminationGracePeriodSeconds")
                .unwrap_or(GRACE_SECONDS)
                .max(0),
            deadline_seconds: whole("/spec/activeDeadlineSeconds"),
            started_at: instant(status, "startTime"),
            init: containers("/spec/initContainers", "initContainerStatuses"),
            main: containers("/spec/containers", "containerStatuses"),
            conditions: items(status.get("conditions")),
        }
    }

    pub(super) fn namespace(&self) -> &'a str {
        self.object.key().namespace_str()
    }

    pub(super) fn name(&self) -> &'a str {
        &self.object.key().name
    }

    /// A member of the status.
    pub(super) fn status(&self, name: &str) -> Option<&'a Value> {
        self.object.field("/status")?.get(name)
    }

    /// All containers; init containers first, in their order.
    pub(super) fn containers(&self) -> impl Iterator<Item = &ContainerView<'a>> {
        self.init.iter().chain(&self.main)
    }

    pub(super) fn is_finished(&self) -> bool {
        matches!(self.phase, "Succeeded" | "Failed")
    }

    /// Whether it is on record that the pod has its place on the node. Nothing is started before, so
    /// that whatever was started can be missed later.
    pub(super) fn is_placed(&self) -> bool {
        self.has_condition(PLACED)
    }

    /// Whether a condition is true.
    pub(super) fn has_condition(&self, name: &str) -> bool {
        let mut all = self.conditions.iter();
        all.any(|it| text(it, "type") == name && text(it, "status") == "True")
    }
}

impl<'a> ContainerView<'a> {
    fn of(json: &'a Value, records: &[Value], is_init: bool) -> Self {
        let name = text(json, "name");
        let role = match (is_init, text(json, "restartPolicy")) {
            (true, "Always") => Role::Sidecar,
            (true, _) => Role::Init,
            (false, _) => Role::Main,
        };
        let record = records.iter().find(|record| text(record, "name") == name);
        Self {
            name: name.into(),
            image: text(json, "image").into(),
            role,
            json,
            record: record.map(Record::of),
        }
    }
}

impl Record {
    fn of(json: &Value) -> Self {
        let state = json.get("state").unwrap_or(&Value::Null);
        let last = json.pointer("/lastState/terminated").cloned();
        let (state, last) = match (state.get("terminated"), state.get("running")) {
            (Some(ended), _) => (Recorded::Ended(ended.clone()), last),
            (None, Some(_)) => (Recorded::Running, last),
            (None, None) => {
                let waiting = state.get("waiting").unwrap_or(&Value::Null);
                let reason = text(waiting, "reason").to_owned();
                match last {
                    // Between two runs: the last one is what counts.
                    Some(ended) if reason == super::chart::CRASH_LOOP => {
                        (Recorded::Ended(ended), None)
                    }
                    last => (Recorded::Waiting { reason }, last),
                }
            }
        };
        Self {
            attempt: count(json, "restartCount", 0),
            state,
            last,
            is_ready: is_set(json, "ready"),
            is_started: is_set(json, "started"),
        }
    }
}

/// The exit code of a recorded end.
pub(super) fn exit_code(ended: &Value) -> i64 {
    number(ended, "exitCode").unwrap_or(-1)
}
