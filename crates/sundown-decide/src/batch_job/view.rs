//! What the decision reads of a Job and of its pods.

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::Value;
use sundown_model::{Object, Uid};

use super::indexes::Indexes;
use crate::json::{after, instant, items, number, text};

/// The finalizer that keeps a pod until its result is counted.
pub const TRACKING: &str = "batch.kubernetes.io/job-tracking";
/// Where the index of a pod stands.
pub(super) const INDEX: &str = "batch.kubernetes.io/job-completion-index";
/// Who looks after a job that names nobody.
const OWN_MANAGER: &str = "kubernetes.io/job-controller";

/// The fields of a Job that a watch has to keep.
pub(super) const JOB_FIELDS: &[&str] = &[
    "/spec/activeDeadlineSeconds",
    "/spec/backoffLimit",
    "/spec/backoffLimitPerIndex",
    "/spec/completionMode",
    "/spec/completions",
    "/spec/managedBy",
    "/spec/parallelism",
    "/spec/podFailurePolicy",
    "/spec/podReplacementPolicy",
    "/spec/successPolicy",
    "/spec/suspend",
    "/spec/template",
    "/status",
];

/// The fields of a Pod that a watch has to keep.
pub(super) const POD_FIELDS: &[&str] = &[
    "/metadata/annotations",
    "/metadata/creationTimestamp",
    "/status/conditions",
    "/status/containerStatuses",
    "/status/phase",
];

/// A job.
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a statement of its own about the object"
)]
#[derive(Debug, Clone)]
pub(super) struct JobView<'a> {
    pub(super) object: &'a Object,
    pub(super) parallelism: i64,
    /// None: done when one pod succeeds and the rest have ended.
    pub(super) completions: Option<i64>,
    pub(super) is_indexed: bool,
    pub(super) backoff_limit: i64,
    pub(super) deadline_seconds: Option<i64>,
    pub(super) is_suspended: bool,
    /// A pod that goes is replaced only when it is gone.
    pub(super) replaces_failed_only: bool,
    pub(super) restarts_on_failure: bool,
    pub(super) started_at: Option<Timestamp>,
    pub(super) succeeded: i64,
    pub(super) failed: i64,
    pub(super) uncounted_succeeded: BTreeSet<Uid>,
    pub(super) uncounted_failed: BTreeSet<Uid>,
    pub(super) completed: Indexes,
    pub(super) conditions: &'a [Value],
    /// What the manifest asks for and is not supported.
    pub(super) unsupported: Option<&'static str>,
    pub(super) is_managed_elsewhere: bool,
}

/// A pod of a job.
#[derive(Debug, Clone)]
pub(super) struct PodView {
    pub(super) object: Arc<Object>,
    pub(super) state: PodState,
    pub(super) is_deleting: bool,
    pub(super) is_tracked: bool,
    pub(super) is_ready: bool,
    pub(super) restarts: i64,
    pub(super) index: Option<u32>,
    pub(super) finished_at: Timestamp,
}

/// The phase of a pod, as far as a job is concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum PodState {
    Pending,
    Running,
    Succeeded,
    Failed,
}

impl<'a> JobView<'a> {
    pub(super) fn of(object: &'a Object) -> Self {
        let whole = |pointer| object.field(pointer).and_then(Value::as_i64);
        let word = |pointer| object.field(pointer).and_then(Value::as_str).unwrap_or("");
        let status = object.field("/status").unwrap_or(&Value::Null);
        let uncounted = |name: &str| {
            let uids = status.pointer(&format!("/uncountedTerminatedPods/{name}"));
            let uids = items(uids).iter().filter_map(Value::as_str);
            uids.map(Uid::from).collect()
        };
        let template = object.field("/spec/template").unwrap_or(&Value::Null);
        let manager = word("/spec/managedBy");
        let is_asked = |name: &&&str| object.field(&format!("/spec/{name}")).is_some();
        let unsupported = ["podFailurePolicy", "successPolicy", "backoffLimitPerIndex"];
        Self {
            object,
            parallelism: whole("/spec/parallelism").unwrap_or(1).max(0),
            completions: whole("/spec/completions").map(|count| count.max(0)),
            is_indexed: word("/spec/completionMode") == "Indexed",
            backoff_limit: whole("/spec/backoffLimit").unwrap_or(6),
            deadline_seconds: whole("/spec/activeDeadlineSeconds"),
            is_suspended: object.field("/spec/suspend") == Some(&Value::Bool(true)),
            replaces_failed_only: word("/spec/podReplacementPolicy") == "Failed",
            restarts_on_failure: template.pointer("/spec/restartPolicy")
                == Some(&Value::String("OnFailure".to_owned())),
            started_at: instant(status, "startTime"),
            succeeded: number(status, "succeeded").unwrap_or(0),
            failed: number(status, "failed").unwrap_or(0),
            uncounted_succeeded: uncounted("succeeded"),
            uncounted_failed: uncounted("failed"),
            completed: Indexes::parse(text(status, "completedIndexes")),
            conditions: items(status.get("conditions")),
            unsupported: unsupported.iter().find(is_asked).copied(),
            is_managed_elsewhere: !manager.is_empty() && manager != OWN_MANAGER,
        }
    }

    /// A true condition.
    pub(super) fn condition(&self, name: &str) -> Option<&'a Value> {
        let mut all = self.conditions.iter();
        all.find(|it| text(it, "type") == name && text(it, "status") == "True")
    }

    pub(super) fn is_finished(&self) -> bool {
        self.condition("Complete").is_some() || self.condition("Failed").is_some()
    }

    pub(super) fn deadline(&self) -> Option<Timestamp> {
        Some(after(self.started_at?, self.deadline_seconds?.max(0)))
    }
}

impl PodView {
    pub(super) fn of(object: &Arc<Object>) -> Self {
        let phase = object.field("/status/phase").and_then(Value::as_str);
        let containers = items(object.field("/status/containerStatuses"));
        let index = object.field("/metadata/annotations");
        let index = index.map(|it| text(it, INDEX)).unwrap_or_default();
        let ends = containers
            .iter()
            .map(|it| it.pointer("/state/terminated").and_then(finish));
        let ended: Option<Vec<_>> = ends.collect();
        let created = object.field("/metadata/creationTimestamp");
        let created = created
            .and_then(Value::as_str)
            .and_then(|at| at.parse().ok());
        let deleted = object.deletion().map(|it| after(it.at, -it.grace_seconds));
        let ended = ended.and_then(|ends| ends.into_iter().max());
        Self {
            state: match phase {
                Some("Succeeded") => PodState::Succeeded,
                Some("Failed") => PodState::Failed,
                Some("Running") => PodState::Running,
                Some(_) | None => PodState::Pending,
            },
            is_deleting: object.is_deleting(),
            is_tracked: object.has_finalizer(TRACKING),
            is_ready: is_ready(items(object.field("/status/conditions"))),
            restarts: containers
                .iter()
                .filter_map(|it| number(it, "restartCount"))
                .sum(),
            index: index.parse().ok(),
            finished_at: ended.or(deleted).or(created).unwrap_or(Timestamp::MIN),
            object: object.clone(),
        }
    }

    pub(super) fn uid(&self) -> &Uid {
        self.object.uid()
    }

    pub(super) fn is_active(&self) -> bool {
        !self.is_over() && !self.is_deleting
    }

    /// Whether it is on its way out and may still run.
    pub(super) fn is_terminating(&self) -> bool {
        self.is_deleting && !self.is_over()
    }

    pub(super) fn is_over(&self) -> bool {
        match self.state {
            PodState::Succeeded | PodState::Failed => true,
            PodState::Pending | PodState::Running => false,
        }
    }

    /// Whether it counts as failed, as upstream's `isPodFailed`.
    pub(super) fn has_failed(&self, job: &JobView<'_>) -> bool {
        match self.state {
            PodState::Failed => true,
            PodState::Succeeded => false,
            PodState::Pending | PodState::Running => self.is_deleting && !job.replaces_failed_only,
        }
    }
}

fn finish(ended: &Value) -> Option<Timestamp> {
    instant(ended, "finishedAt")
}

fn is_ready(conditions: &[Value]) -> bool {
    let mut all = conditions.iter();
    all.any(|it| text(it, "type") == "Ready" && text(it, "status") == "True")
}
