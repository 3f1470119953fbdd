//! Stops a job, within a bound: the submitter first, so that nothing follows, then the job in Ray, until
//! Ray itself says that it runs no more.

use jiff::{SignedDuration, Timestamp};
use sundown_kinds::ray_job::SubmissionMode;
use sundown_model::{
    Action, Decision, Deed, DeedOutcome, Need, Propagation, Step, Subject, What, ray,
};

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
        Ok(None) => match quiet_since(sight) {
            Quiet::Since(step) if told.asked > step => Stop::Ended,
            Quiet::Since(_) => ask_again(sight, until),
            Quiet::NotYet if is_over => {
                Stop::GaveUp("its submitter could not be ended in time".to_owned())
            }
            Quiet::NotYet => Stop::Under(Decision::wake_at(until, Reason::Stops { until })),
            Quiet::Unproven(need) => {
                Stop::Under(Decision::need(vec![need], Reason::Stops { until }))
            }
        },
        Ok(Some(job)) if job.status.is_terminal() => Stop::Ended,
        Ok(Some(_)) if is_over => Stop::GaveUp("Ray says that it still runs".to_owned()),
        Err(why) if is_over => Stop::GaveUp(why),
        Ok(Some(_)) => Stop::Under(tell_to_stop(sight, until, next_poll)),
        Err(_) => Stop::Under(Decision::wake_at(next_poll, Reason::Stops { until })),
    }
}

/// Whether anything can still be submitted.
enum Quiet {
    /// Nothing after this step: what Ray is asked later, it is asked for good.
    Since(Step),
    /// The submitter goes on.
    NotYet,
    /// It is not seen, which proves nothing.
    Unproven(Need),
}

/// That Ray does not know a job says nothing about it as long as a submitter may come.
fn quiet_since(sight: &Sight<'_>) -> Quiet {
    if sight.job.spec.submission_mode != SubmissionMode::K8sJob {
        return Quiet::Since(Step::default());
    }
    let key = sight.submitter_key();
    match &sight.submitter {
        Submitter::Runs(_) => Quiet::NotYet,
        // Somebody took it away: it cannot be ended from here.
        Submitter::Foreign | Submitter::Completed(_) | Submitter::Failed(..) => {
            Quiet::Since(sight.scope.cache.seen_step(&key).unwrap_or_default())
        }
        Submitter::Absent => {
            if let Err(need) = sight.is_absent(&key) {
                return Quiet::Unproven(need);
            }
            let proof = sight.scope.facts.live(&key);
            Quiet::Since(proof.map(|it| it.asked).unwrap_or_default())
        }
    }
}

fn ask_again(sight: &Sight<'_>, until: Timestamp) -> Stop {
    let need = Need::Ray(sight.job_query());
    Stop::Under(Decision::need(vec![need], Reason::Stops { until }))
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
