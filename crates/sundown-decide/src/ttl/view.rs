//! What the TTL decision reads of a Job.

use jiff::Timestamp;
use serde_json::Value;
use sundown_model::Object;

/// The fields that a watch has to keep.
pub(super) const FIELDS: &[&str] = &["/spec/ttlSecondsAfterFinished", "/status/conditions"];

/// A job, as far as its TTL is concerned.
#[derive(Debug, Clone)]
pub(super) struct JobView<'a> {
    pub(super) object: &'a Object,
    pub(super) is_deleting: bool,
    pub(super) ttl_seconds: Option<i64>,
    pub(super) finish: Finish,
}

/// Whether and when a job finished.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Finish {
    StillRunning,
    At(Timestamp),
    /// Finished, but nobody wrote down when.
    TimeMissing,
}

impl<'a> JobView<'a> {
    pub(super) fn of(job: &'a Object) -> Self {
        Self {
            object: job,
            is_deleting: job.is_deleting(),
            ttl_seconds: job
                .field("/spec/ttlSecondsAfterFinished")
                .and_then(Value::as_i64),
            finish: finish(job.field("/status/conditions")),
        }
    }
}

/// The first true Complete or Failed condition in list order counts, as upstream has it.
fn finish(conditions: Option<&Value>) -> Finish {
    let conditions = conditions.and_then(Value::as_array);
    let text = |condition: &Value, field: &str| {
        condition
            .get(field)
            .and_then(Value::as_str)
            .map(ToOwned::to_owned)
    };
    let finished = conditions.into_iter().flatten().find(|condition| {
        let kind = text(condition, "type");
        matches!(kind.as_deref(), Some("Complete" | "Failed"))
            && text(condition, "status").as_deref() == Some("True")
    });
    match finished {
        None => Finish::StillRunning,
        Some(condition) => text(condition, "lastTransitionTime")
            .and_then(|at| at.parse().ok())
            .map_or(Finish::TimeMissing, Finish::At),
    }
}
