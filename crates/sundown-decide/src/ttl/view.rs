//! What the TTL decision reads of a job, whatever its kind.

pub(super) mod batch;
pub(super) mod volcano;

use jiff::Timestamp;
use serde_json::Value;
use sundown_model::{Object, Resource};

use crate::kinds::{JOB, VOLCANO_JOB};

/// Where each kind holds its TTL.
const TTL: &str = "/spec/ttlSecondsAfterFinished";

/// What Go writes for an instant that was never set: the beginning of year 1, in seconds since 1970.
const NEVER: i64 = -62_135_596_800;

/// The kinds that go by a TTL of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Batch,
    Volcano,
}

/// A job, as far as its TTL is concerned.
#[derive(Debug, Clone)]
pub(super) struct JobView<'a> {
    pub(super) object: &'a Object,
    pub(super) is_deleting: bool,
    pub(super) ttl_seconds: Option<i64>,
    pub(super) finish: Finish,
    /// The field that says when it finished, as people write it.
    pub(super) finish_field: &'static str,
}

/// Whether and when a job finished.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Finish {
    StillRunning,
    At(Timestamp),
    /// Finished, and the object does not say when.
    TimeMissing,
}

impl Kind {
    /// The kind of a resource, if it is one of these.
    pub(super) fn of(resource: &Resource) -> Option<Self> {
        if resource.is(&JOB) {
            Some(Self::Batch)
        } else if resource.is(&VOLCANO_JOB) {
            Some(Self::Volcano)
        } else {
            None
        }
    }
}

impl<'a> JobView<'a> {
    pub(super) fn of(job: &'a Object, kind: Kind) -> Self {
        let (finish, finish_field) = match kind {
            Kind::Batch => (batch::finish(job), batch::FINISH_FIELD),
            Kind::Volcano => (volcano::finish(job), volcano::FINISH_FIELD),
        };
        Self {
            object: job,
            is_deleting: job.is_deleting(),
            ttl_seconds: job.field(TTL).and_then(Value::as_i64),
            finish,
            finish_field,
        }
    }
}

impl Finish {
    /// Finished at the instant that a field holds.
    fn told_by(field: Option<&Value>) -> Self {
        let at = field.and_then(Value::as_str).and_then(|at| at.parse().ok());
        at.filter(|at: &Timestamp| at.as_second() > NEVER)
            .map_or(Self::TimeMissing, Self::At)
    }
}
