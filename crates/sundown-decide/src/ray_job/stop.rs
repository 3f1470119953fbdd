//! Stops a job, within a bound: the submitter first, so that nothing follows, then the job in Ray, until
//! Ray itself says that it runs no more.

use jiff::{SignedDuration, Timestamp};
use sundown_kinds::ray_job::{DeploymentStatus, SubmissionMode};
use sundown_model::{
    Action, Decision, Deed, DeedFact, DeedOutcome, Need, Object, Propagation, Step, What, ray,
};

use super::lapse::Lapse;
use super::outcome::Failure;
use super::reason::Reason;
use super::view::{FAILURE_COUNT_MIN, Submitter, Told, View, later};
use crate::actions::{delete, quoting};
use crate::ray::place;

/// How long a job that was told to stop may take before it is told again.
const STOP_AGAIN: SignedDuration = SignedDuration::from_secs(5);

/// How long it takes to tell Ray again what it refused or did not hear.
const STOP_RETRY: SignedDuration = SignedDuration::from_secs(2);

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
pub(super) fn wind_down(view: &View<'_>, until: Timestamp) -> Stop {
    let status = &view.job.status;
    if status.job_status.is_terminal() || !view.may_be_submitted() {
        return Stop::Ended;
    }
    if let Some(decision) = end_submitter(view, until) {
        return Stop::Under(decision);
    }
    let is_nowhere = status.dashboard_url.is_empty() || view.submission_id().is_empty();
    if is_nowhere || is_lost(view) || view.has_another_cluster() {
        return Stop::Ended;
    }
    let told = match view.ask(None) {
        Ok(told) => told,
        Err(need) => return Stop::Under(Decision::need(vec![need], Reason::Stops { until })),
    };
    match told.answer {
        Ok(None) => unknown(view, until, &told),
        Ok(Some(job)) if job.status.is_terminal() => Stop::Ended,
        Ok(Some(_)) => tell_to_stop(view, until, &told, "Ray says that it still runs"),
        // A Ray that is silent is told to stop only when there is no more time to find out.
        Err(ref why) if view.now() >= until => tell_to_stop(view, until, &told, why),
        Err(_) => {
            let next = view.next_poll(&told).min(until);
            Stop::Under(Decision::wake_at(next, Reason::Stops { until }))
        }
    }
}

/// What is told when that could not be confirmed.
pub(super) fn unstopped(view: &View<'_>, why: String) -> Action {
    let message = format!(
        "The Ray job {} of {} could not be stopped in time and may still run: ",
        view.submission_id(),
        place(view.object.key())
    );
    quoting(view.object, "FailedToStopRayJob", message, why)
}

/// Whether the attempt was given up because what it ran is gone: a job of its name, in the cluster that is there
/// now, is of another.
fn is_lost(view: &View<'_>) -> bool {
    let status = &view.job.status;
    let is_over = matches!(
        status.job_deployment_status,
        DeploymentStatus::Failed | DeploymentStatus::Retrying
    );
    is_over && status.reason == Failure::App.as_str()
}

/// Ends the submitter first, within its own time; None when there is none, or no more time. One that cannot be
/// deleted must not keep Ray from being told.
fn end_submitter(view: &View<'_>, until: Timestamp) -> Option<Decision<Reason>> {
    let Submitter::Runs(job) = view.submitter else {
        return None;
    };
    let Some(deletion) = job.deletion() else {
        if view.now() >= until && is_undeletable(view, job, until) {
            return None;
        }
        // Foreground: it is there as long as a pod of it is, which might still submit.
        let action = delete(job, Propagation::Foreground);
        return Some(Decision::act(action, Reason::Stops { until }));
    };
    let until = until.max(later(deletion.at, view.config.limits.stop));
    (view.now() < until).then(|| Decision::wake_at(until, Reason::Stops { until }))
}

/// Whether the API server refused to delete an object, or could not be brought to since this instant.
fn is_undeletable(view: &View<'_>, object: &Object, since: Timestamp) -> bool {
    let (facts, key, uid) = (view.sight.facts, object.key(), object.uid());
    let has_failed = facts.failed_delete(key, uid).is_some_and(|it| {
        it.failures >= FAILURE_COUNT_MIN
            && it.failed_at >= since
            && !view.config.lapses(Lapse::AwaitsSubmitter)
    });
    has_failed || facts.refused_delete(key, uid).is_some()
}

/// Ray does not know the job.
fn unknown(view: &View<'_>, until: Timestamp, told: &Told<'_>) -> Stop {
    let ask = |need| Stop::Under(Decision::need(vec![need], Reason::Stops { until }));
    match quiet_since(view) {
        Quiet::Since(step) if told.asked > step => Stop::Ended,
        Quiet::Since(_) => ask(Need::Ray(view.job_query())),
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
fn quiet_since(view: &View<'_>) -> Quiet {
    if view.job.spec.submission_mode != SubmissionMode::K8sJob {
        return Quiet::Since(Step::default());
    }
    let key = view.submitter_key();
    match &view.submitter {
        Submitter::Runs(_) => Quiet::NotYet,
        // Somebody took it away: it cannot be ended from here.
        Submitter::Foreign | Submitter::Completed(_) | Submitter::Failed(..) => {
            Quiet::Since(view.sight.cache.seen_step(&key).unwrap_or_default())
        }
        Submitter::Absent => {
            if let Err(need) = view.is_absent(&key) {
                return Quiet::Unproven(need);
            }
            let proof = view.sight.facts.live(&key);
            Quiet::Since(proof.map(|it| it.asked).unwrap_or_default())
        }
    }
}

/// Tells Ray to stop the job, again and again while there is time, and once in any case.
fn tell_to_stop(view: &View<'_>, until: Timestamp, told: &Told<'_>, why: &str) -> Stop {
    let reason = Reason::Stops { until };
    let call = call(view);
    let subject = call.subject();
    let tell = || {
        let about = view.object.key().clone();
        Decision::act(Action::Do(Deed { about, what: call }), reason.clone())
    };
    let now = view.now();
    let is_over = now >= until;
    if is_over && view.config.lapses(Lapse::GivesUpUntried) {
        return Stop::GaveUp(why.to_owned());
    }
    let Some(last) = view.deed(&subject) else {
        return Stop::Under(tell());
    };
    // What was told before this stopping began proves nothing: ids may be used again. When it began says the clock
    // of the API server, which may be ahead, so that the pause is kept in any case.
    let begun_at = later(until, -view.config.limits.stop);
    let is_of_this = last.ended_at >= begun_at;
    if is_of_this && is_elsewhere(last) {
        return Stop::Ended;
    }
    let is_done = last.outcome == DeedOutcome::Done;
    let pause = if is_done { STOP_AGAIN } else { STOP_RETRY };
    let again_at = later(last.ended_at, pause);
    let is_in_vain = is_over && is_of_this && is_in_vain(last, until, now);
    if is_in_vain && told.at > last.ended_at {
        return Stop::GaveUp(refusal(last).unwrap_or_else(|| why.to_owned()));
    }
    let is_told = is_in_vain || now < again_at || (is_over && is_of_this && is_done);
    if !is_told {
        return Stop::Under(tell());
    }
    let next = [view.next_poll(told), again_at, until].into_iter();
    let next = next.filter(|at| *at > now).min();
    Stop::Under(Decision {
        wake_at: next,
        ..Decision::idle(reason)
    })
}

/// What Ray is told: to stop the job in the session that it was submitted to, if that is known.
fn call(view: &View<'_>) -> What {
    What::Ray(ray::Call::Stop {
        at: view.dashboard(),
        session: view.intent().and_then(|it| it.session),
        submission_id: view.submission_id().into(),
    })
}

/// Whether nothing more is to be hoped for from what Ray was told.
fn is_in_vain(last: &DeedFact, until: Timestamp, now: Timestamp) -> bool {
    match last.outcome {
        DeedOutcome::Done => now >= later(last.ended_at, STOP_TIME),
        // What failed before the time was over, and then the machine slept, says nothing about now.
        DeedOutcome::Refused(_) | DeedOutcome::Unknown { .. } => {
            last.ended_at >= until && last.failures >= FAILURE_COUNT_MIN
        }
    }
}

/// Whether Ray is in another session than the one that the job was submitted to, and knows nothing of it.
fn is_elsewhere(last: &DeedFact) -> bool {
    matches!(&last.outcome, DeedOutcome::Refused(refusal)
        if refusal.reason == ray::Refused::OtherSession.into())
}

/// Why Ray did not stop the job, in its own words.
fn refusal(last: &DeedFact) -> Option<String> {
    let text = match &last.outcome {
        DeedOutcome::Done => return None,
        DeedOutcome::Refused(refusal) => refusal.text(),
        DeedOutcome::Unknown { message } => message.clone(),
    };
    (!text.is_empty()).then_some(text)
}
