//! The TTL rule.

use jiff::{SignedDuration, Timestamp};
use sundown_model::{Decision, Propagation};

use super::lapse::Lapse;
use super::reason::Reason;
use super::view::{Finish, JobView};
use crate::actions::{delete, warning};
use crate::clock_skew;

/// Decides whether a finished job has outlived its TTL.
pub(super) fn decide(job: &JobView<'_>, now: Timestamp, lapse: Option<Lapse>) -> Decision<Reason> {
    if job.is_deleting {
        return Decision::idle(Reason::AlreadyDeleting);
    }
    let Some(ttl_seconds) = job.ttl_seconds else {
        return Decision::idle(Reason::NoTtl);
    };
    let finished_at = match job.finish {
        Finish::StillRunning => return Decision::idle(Reason::StillRunning),
        Finish::TimeMissing if lapse == Some(Lapse::GuessesFinishTime) => now,
        Finish::TimeMissing => return time_missing(job),
        Finish::At(at) => at,
    };
    // Saturate: a TTL of centuries means "never", not an overflow.
    let due_at = finished_at
        .saturating_add(SignedDuration::from_secs(ttl_seconds.max(0)))
        .unwrap_or(Timestamp::MAX);
    if let Some(credible_at) = clock_skew::credible_at(finished_at, now) {
        return in_the_future(job, finished_at, due_at, credible_at);
    }
    let is_kept = now < due_at && lapse != Some(Lapse::ForgetsTtl);
    if is_kept {
        return Decision::wake_at(due_at, Reason::NotDue { due_at });
    }
    let goes = delete(job.object, Propagation::Foreground);
    Decision::act(goes, Reason::Expired { due_at })
}

/// No instant is made up: one that is too early would delete what its user still reads.
fn time_missing(job: &JobView<'_>) -> Decision<Reason> {
    let field = job.finish_field;
    let told = format!(
        "The job finished, but {field} is not set: its TTL cannot begin, and it will not be deleted"
    );
    let told = warning(job.object, "FinishTimeMissing", told);
    Decision::act(told, Reason::FinishTimeMissing { field })
}

/// The TTL counts from that instant all the same: whichever clock was wrong, nothing goes too early.
fn in_the_future(
    job: &JobView<'_>,
    finished_at: Timestamp,
    due_at: Timestamp,
    credible_at: Timestamp,
) -> Decision<Reason> {
    let told = clock_skew::warn(job.object, job.finish_field, finished_at);
    let reason = Reason::FinishInFuture {
        finished_at,
        due_at,
    };
    Decision {
        wake_at: Some(credible_at),
        ..Decision::act(told, reason)
    }
}
