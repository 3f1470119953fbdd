//! Stops a job, within a bound: the submitter first, so that nothing follows, then the job in Ray, until
//! Ray itself says that it runs no more.

use jiff::{SignedDuration, Timestamp};
use sundown_kinds::ray_job::SubmissionMode;
use sundown_model::{
    Action, Decision, Deed, DeedOutcome, Need, Propagation, Step, Subject, What, ray,
};

use super::lapse::Lapse;
use super::reason::Reason;
use super::view::{FAILURE_COUNT_MIN, Sight, Submitter, Told, later};
use crate::ray::delete;

/// How long a job that was told to stop may take before it is told again.
const STOP_AGAIN: SignedDuration = SignedDuration::from_secs(5);

/// How long a job has to end after it was told to stop for the last time. Ray itself gives it three seconds.
const STOP_TIME: SignedDuration = SignedDuration::from_secs(10);

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

/// Stops what may run. The time counts from an instant that is stored, and may be over before anything was
/// tried, since the machine slept or no controller ran. So it ends the trying only after this controller
/// itself told Ray to stop the job, whatever came of that, and asked it once more.
pub(super) fn wind_down(sight: &Sight<'_>, until: Timestamp) -> Stop {
    let status = &sight.job.status;
    if status.job_status.is_terminal() || !sight.may_be_submitted() {
        return Stop::Ended;
    }
    if let Some(decision) = end_submitter(sight, until) {
        return Stop::Under(decision);
    }
    if status.dashboard_url.is_empty() || sight.submission_id().is_empty() {
        return Stop::Ended;
    }
    let told = match sight.ask(None) {
        Ok(told) => told,
        Err(need) => return Stop::Under(Decision::need(vec![need], Reason::Stops { until })),
    };
    match told.answer {
        Ok(None) => unknown(sight, until, &told),
        Ok(Some(job)) if job.status.is_terminal() => Stop::Ended,
        Ok(Some(_)) => tell_to_stop(sight, until, &told, "Ray says that it still runs"),
        // A Ray that is silent is told to stop only when there is no more time to find out.
        Err(ref why) if sight.now() >= until => tell_to_stop(sight, until, &told, why),
        Err(_) => {
            let next = sight.next_poll(&told).min(until);
            Stop::Under(Decision::wake_at(next, Reason::Stops { until }))
        }
    }
}

/// Ends the submitter first, within its own time; None when there is none, or no more time. One that the API
/// server refused to delete must not keep Ray from being told.
fn end_submitter(sight: &Sight<'_>, until: Timestamp) -> Option<Decision<Reason>> {
    let Submitter::Runs(job) = sight.submitter else {
        return None;
    };
    let Some(deletion) = job.deletion() else {
        let refusal = sight.scope.facts.refused_delete(job.key(), job.uid());
        if refusal.is_some() && sight.now() >= until {
            return None;
        }
        // Foreground: it is there as long as a pod of it is, which might still submit.
        let action = delete(job, Propagation::Foreground);
        return Some(Decision::act(action, Reason::Stops { until }));
    };
    let until = until.max(later(deletion.at, sight.scope.config.limits.stop));
    (sight.now() < until).then(|| Decision::wake_at(until, Reason::Stops { until }))
}

/// Ray does not know the job.
fn unknown(sight: &Sight<'_>, until: Timestamp, told: &Told<'_>) -> Stop {
    let ask = |need| Stop::Under(Decision::need(vec![need], Reason::Stops { until }));
    match quiet_since(sight) {
        Quiet::Since(step) if told.asked > step => Stop::Ended,
        Quiet::Since(_) => ask(Need::Ray(sight.job_query())),
        Quiet::NotYet => Stop::GaveUp("its submitter could not be ended in time".to_owned()),
        Quiet::Unproven(need) => ask(need),
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

/// Tells Ray to stop the job, again and again while there is time, and once in any case.
fn tell_to_stop(sight: &Sight<'_>, until: Timestamp, told: &Told<'_>, why: &str) -> Stop {
    let submission_id: std::sync::Arc<str> = sight.submission_id().into();
    let at = sight.dashboard();
    let subject = Subject::Stop(at.clone(), submission_id.clone());
    let reason = Reason::Stops { until };
    let tell = || {
        let what = What::Ray(ray::Call::Stop { at, submission_id });
        let about = sight.object.key().clone();
        Decision::act(Action::Do(Deed { about, what }), reason.clone())
    };
    let is_over = sight.now() >= until;
    if is_over && sight.scope.config.lapses(Lapse::GivesUpUntried) {
        return Stop::GaveUp(why.to_owned());
    }
    let Some(last) = sight.deed(&subject) else {
        return Stop::Under(tell());
    };
    let is_done = last.outcome == DeedOutcome::Done;
    let again_at = later(last.ended_at, STOP_AGAIN);
    let next_poll = sight.next_poll(told);
    if !is_over {
        let is_told = is_done && sight.now() < again_at;
        return Stop::Under(if is_told {
            Decision::wake_at(next_poll.min(until), reason)
        } else {
            tell()
        });
    }
    let is_in_vain = if is_done {
        sight.now() >= later(last.ended_at, STOP_TIME)
    } else {
        last.failures >= FAILURE_COUNT_MIN
    };
    if is_in_vain && told.at > last.ended_at {
        return Stop::GaveUp(why.to_owned());
    }
    Stop::Under(if is_done || is_in_vain {
        Decision::wake_at(next_poll, reason)
    } else {
        tell()
    })
}
