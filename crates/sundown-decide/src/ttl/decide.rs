//! The TTL rule.

use jiff::{SignedDuration, Timestamp};
use sundown_model::{Decision, Propagation};

use super::reason::Reason;
use super::view::{Finish, JobView};
use crate::actions::delete;

/// Decides whether a finished job has outlived its TTL.
pub(super) fn decide(job: &JobView<'_>, now: Timestamp) -> Decision<Reason> {
    if job.is_deleting {
        return Decision::idle(Reason::AlreadyDeleting);
    }
    let Some(ttl_seconds) = job.ttl_seconds else {
        return Decision::idle(Reason::NoTtl);
    };
    let finished_at = match job.finish {
        Finish::StillRunning => return Decision::idle(Reason::StillRunning),
        Finish::TimeMissing => return Decision::idle(Reason::FinishTimeMissing),
        Finish::At(at) => at,
    };
    // Saturate: a TTL of centuries means "never", not an overflow.
    let due_at = finished_at
        .saturating_add(SignedDuration::from_secs(ttl_seconds.max(0)))
        .unwrap_or(Timestamp::MAX);
    if now < due_at {
        return Decision::wake_at(due_at, Reason::NotDue { due_at });
    }
    let goes = delete(job.object, Propagation::Foreground);
    Decision::act(goes, Reason::Expired { due_at })
}
