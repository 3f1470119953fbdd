//! Stops a job, within a bound: the submitter first, so that nothing follows, then the job in Ray, until
//! Ray itself says that it runs no more.

use jiff::{SignedDuration, Timestamp};
use sundown_model::{Action, Decision, Deed, DeedOutcome, Propagation, Subject, What, ray};

use super::reason::Reason;
use super::view::{Sight, Submitter, later};
use crate::ray::delete;

/// How long a job that was told to stop may take before it is told again.
const STOP_AGAIN: SignedDuration = SignedDuration::from_secs(5);

/// How far the stopping has come.
#[derive(Debug)]
pub(super) enum Stop {
    /// There is something to do or to wait for.
    Under(Decision<Reason>),
    /// Nothing runs, as far as Ray knows.
    Ended,
    /// The time is over; why it could not be confirmed.
    GaveUp(String),
}

/// Stops what may run.
pub(super) fn wind_down(sight: &Sight<'_>, until: Timestamp) -> Stop {
    let status = &sight.job.status;
    let is_over = sight.now() >= until;
    if status.job_status.is_terminal() || !sight.may_be_submitted() {
        return Stop::Ended;
    }
    if let Submitter::Runs(job) = sight.submitter
        && !is_over
    {
        // Foreground: it is there as long as a pod of it is, which might still submit.
        let reason = Reason::Stops { until };
        return Stop::Under(if job.is_deleting() {
            Decision::wake_at(until, reason)
        } else {
            Decision::act(delete(job, Propagation::Foreground), reason)
        });
    }
    if status.dashboard_url.is_empty() || status.job_id.is_empty() {
        return Stop::Ended;
    }
    let told = match sight.ask(None) {
        Ok(told) => told,
        Err(_) if is_over => return Stop::GaveUp("Ray was not asked in time".to_owned()),
        Err(need) => {
            return Stop::Under(Decision::need(vec![need], Reason::Stops { until }));
        }
    };
    let next_poll = sight.next_poll(&told).min(until);
    match told.answer {
        Ok(None) => Stop::Ended,
        Ok(Some(job)) if job.status.is_terminal() => Stop::Ended,
        Ok(Some(_)) if is_over => Stop::GaveUp("Ray says that it still runs".to_owned()),
        Err(why) if is_over => Stop::GaveUp(why),
        Ok(Some(_)) => Stop::Under(tell_to_stop(sight, until, next_poll)),
        Err(_) => Stop::Under(Decision::wake_at(next_poll, Reason::Stops { until })),
    }
}

fn tell_to_stop(sight: &Sight<'_>, until: Timestamp, next_poll: Timestamp) -> Decision<Reason> {
    let submission_id: std::sync::Arc<str> = sight.job.status.job_id.as_str().into();
    let at = sight.dashboard();
    let subject = Subject::Stop(at.clone(), submission_id.clone());
    let is_told = sight.deed(&subject).is_some_and(|deed| {
        deed.outcome == DeedOutcome::Done && sight.now() < later(deed.ended_at, STOP_AGAIN)
    });
    let reason = Reason::Stops { until };
    if is_told {
        return Decision::wake_at(next_poll, reason);
    }
    let what = What::Ray(ray::Call::Stop { at, submission_id });
    let about = sight.object.key().clone();
    Decision::act(Action::Do(Deed { about, what }), reason)
}
