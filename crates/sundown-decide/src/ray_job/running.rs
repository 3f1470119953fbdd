//! A job that runs, or is about to: Ray is asked, and what it says is what the job is.

use jiff::Timestamp;
use sundown_kinds::ray_job::{DeploymentStatus, JobStatus, RayJobStatus, SubmissionMode};
use sundown_model::{Decision, ray};

use super::begin::active_deadline;
use super::lapse::Lapse;
use super::outcome::{self, Failure};
use super::reason::Reason;
use super::stop::{self, Stop};
use super::submit;
use super::view::{Cluster, Submitter, Told, View, later};
use super::{decide, head_service, reset};
use crate::ray::place;

/// What is said when the submitter outlives the job.
const GRACE_TEXT: &str = "JobDeploymentStatus does not transition to Complete or Failed within the \
                          grace period after JobStatus reaches a terminal state.";

/// Decides on a job that was begun.
pub(super) fn decide(view: &View<'_>) -> Decision<Reason> {
    if view.job.status.job_status.is_terminal() {
        // Stored already: neither what became of the cluster since nor a wish to pause changes it.
        return conclude(view, view.next());
    }
    // On a cluster that stays it would rest beside what it runs.
    if view.shall_be_suspended() && !view.is_guest() {
        return suspend(view);
    }
    match &view.cluster {
        Cluster::There(..) if !view.has_another_cluster() => {}
        Cluster::There(..) | Cluster::Foreign(_) => return without_its_cluster(view),
        Cluster::Absent => {
            return match view.is_absent(&view.cluster_key()) {
                Err(need) => Decision::need(vec![need], Reason::AsksForCluster),
                Ok(_) => without_its_cluster(view),
            };
        }
    }
    let deadline = active_deadline(view);
    let passed = deadline.as_ref().filter(|(at, _)| *at <= view.now());
    let told = match view.ask(passed.map(|(at, _)| *at)) {
        Ok(told) => told,
        Err(need) => return Decision::need(vec![need], Reason::AsksRay),
    };
    let decision = match &told.answer {
        Ok(Some(job)) => observed(view, job, &told),
        Ok(None) => unknown(view, &told),
        Err(why) => unanswered(view, &view.job_query(), why, &told),
    };
    let decision = head_service::along_with(view, decision);
    Decision {
        wake_at: earliest(
            decision.wake_at,
            deadline.map(|(at, _)| at).filter(|at| *at > view.now()),
        ),
        ..decision
    }
}

/// Suspends a job, unless Ray says that it has ended: a result is not thrown away because it was not asked
/// for in time.
fn suspend(view: &View<'_>) -> Decision<Reason> {
    let may_have_ended = matches!(view.cluster, Cluster::There(..))
        && !view.has_another_cluster()
        && view.may_be_submitted()
        && !view.config.lapses(Lapse::SuspendsUnasked);
    if !may_have_ended {
        return reset::suspend(view);
    }
    let told = match view.ask(None) {
        Ok(told) => told,
        Err(need) => return Decision::need(vec![need], Reason::AsksRay),
    };
    match told.answer {
        Ok(Some(job)) if job.status.is_terminal() => observed(view, job, &told),
        Err(_) if !view.is_silence_proven(&view.job_query()) => {
            Decision::wake_at(view.next_poll(&told), Reason::AsksRay)
        }
        Ok(_) | Err(_) => reset::suspend(view),
    }
}

/// A cluster that went before anything was submitted is made again; after that, nobody knows what ran.
pub(super) fn without_its_cluster(view: &View<'_>) -> Decision<Reason> {
    if view.may_be_submitted() {
        let key = place(&view.cluster_key());
        let why = format!("the RayCluster {key} was deleted while the job ran on it");
        return lost(view, &why);
    }
    let next = RayJobStatus {
        job_deployment_status: DeploymentStatus::Initializing,
        dashboard_url: String::new(),
        ..view.job.status.clone()
    };
    outcome::write(view, next, Reason::AwaitsCluster)
}

/// The attempt cannot be followed any more. It is never submitted again by itself.
pub(super) fn lost(view: &View<'_>, why: &str) -> Decision<Reason> {
    let text = format!("The Ray job was lost: {why}");
    let decision = outcome::fail(view, view.next(), Failure::App, text);
    without_submitter(view, decision)
}

/// Ends the attempt, and its submitter with it.
fn without_submitter(view: &View<'_>, mut decision: Decision<Reason>) -> Decision<Reason> {
    decision.actions.extend(reset::end_submitter(view));
    decision
}

fn observed(view: &View<'_>, job: &ray::Job, told: &Told<'_>) -> Decision<Reason> {
    let mut next = with_answer(view, job);
    if job.status.is_terminal() {
        if let Some(text) = stopped_for_deadline(view, job) {
            return outcome::fail(view, next, Failure::Deadline, text);
        }
        next.ray_job_info.end_time.get_or_insert(view.now());
        return conclude(view, next);
    }
    if let Some(decision) = past_deadline(view, &next) {
        return decision;
    }
    going(view, next, told, Reason::Runs)
}

/// The status with what Ray says about the job.
fn with_answer(view: &View<'_>, job: &ray::Job) -> RayJobStatus {
    let mut next = view.next();
    next.job_status_check_failure_start_time = None;
    next.job_status = match job.status {
        ray::JobStatus::Pending => JobStatus::Pending,
        ray::JobStatus::Running => JobStatus::Running,
        ray::JobStatus::Stopped => JobStatus::Stopped,
        ray::JobStatus::Succeeded => JobStatus::Succeeded,
        ray::JobStatus::Failed => JobStatus::Failed,
    };
    next.message.clone_from(&job.message);
    next.ray_job_info.start_time = instant(job.start_time).or(next.ray_job_info.start_time);
    next.ray_job_info.end_time = instant(job.end_time).or(next.ray_job_info.end_time);
    next
}

/// What is said if a job was stopped because its time was over; None if it ended by itself.
fn stopped_for_deadline(view: &View<'_>, job: &ray::Job) -> Option<String> {
    let (at, text) = active_deadline(view)?;
    let ended = instant(job.end_time).is_none_or(|ended| ended >= at);
    (job.status == ray::JobStatus::Stopped && ended && view.now() >= at).then_some(text)
}

/// The time of a job that has not ended is over: it is stopped, then it has failed.
fn past_deadline(view: &View<'_>, next: &RayJobStatus) -> Option<Decision<Reason>> {
    let (at, text) = active_deadline(view).filter(|(at, _)| *at <= view.now())?;
    let until = later(at, view.config.limits.stop);
    Some(match stop::wind_down(view, until) {
        Stop::Under(decision) => decision,
        Stop::Ended => outcome::fail(view, next.clone(), Failure::Deadline, text),
        Stop::GaveUp(why) => {
            let text = format!("{text}. It could not be stopped: {why}");
            outcome::fail(view, next.clone(), Failure::Deadline, text)
        }
    })
}

/// The job has ended. Its submitter follows the log to the end, so that is waited for, but not for ever.
fn conclude(view: &View<'_>, mut next: RayJobStatus) -> Decision<Reason> {
    let has_failed = next.job_status == JobStatus::Failed;
    next.job_deployment_status = if has_failed {
        DeploymentStatus::Failed
    } else {
        DeploymentStatus::Complete
    };
    let failure = if has_failed {
        Failure::App.as_str()
    } else {
        ""
    };
    failure.clone_into(&mut next.reason);
    let ended_at = next.ray_job_info.end_time.unwrap_or(view.now());
    let until = later(ended_at, view.config.limits.transition_grace);
    if matches!(view.submitter, Submitter::Runs(_)) {
        if view.now() < until {
            next.job_deployment_status = DeploymentStatus::Running;
            next.reason = String::new();
            let reason = Reason::AwaitsSubmitter { until };
            let decision = outcome::write(view, next, reason);
            return Decision {
                wake_at: Some(until),
                ..decision
            };
        }
        Failure::TransitionGrace
            .as_str()
            .clone_into(&mut next.reason);
        GRACE_TEXT.clone_into(&mut next.message);
    }
    without_submitter(view, outcome::write(view, next, Reason::Ends))
}

/// Ray knows no such job.
fn unknown(view: &View<'_>, told: &Told<'_>) -> Decision<Reason> {
    if view.job.status.job_status != JobStatus::New {
        return lost(view, "Ray knew it and knows it no more");
    }
    let mut next = view.next();
    // It answered: what it does not know yet is not a failure to answer.
    next.job_status_check_failure_start_time = None;
    if let Some(decision) = past_deadline(view, &next) {
        return decision;
    }
    if let Some(why) = flaw_of_submission(view) {
        return held(view, next, told, why);
    }
    match view.job.spec.submission_mode {
        SubmissionMode::Http => submit::over_http(view, next, told),
        SubmissionMode::K8sJob => submit::by_job(view, next, told),
        SubmissionMode::Interactive | SubmissionMode::Sidecar | SubmissionMode::Unknown(_) => {
            going(view, next, told, Reason::AwaitsSubmission)
        }
    }
}

/// Waits for the spec to be mended. Ray is asked on while it may get what was sent before.
fn held(view: &View<'_>, next: RayJobStatus, told: &Told<'_>, why: String) -> Decision<Reason> {
    if let Err(need) = submit::is_settled(view, told) {
        return Decision::need(vec![need], Reason::AsksRay);
    }
    let reason = Reason::Invalid { why };
    if submit::may_arrive(view) {
        return going(view, next, told, reason);
    }
    outcome::write(view, next, reason)
}

/// What is wrong with a spec that is still to be submitted: that waits until it makes sense, as what is made does.
/// What the user submits does not wait for that.
fn flaw_of_submission(view: &View<'_>) -> Option<String> {
    let is_open = match view.submitter {
        Submitter::Absent => !view.is_interactive() && !submit::is_taken(view),
        // It is on its way, or has ended, with the spec of before.
        Submitter::Foreign
        | Submitter::Runs(_)
        | Submitter::Completed(_)
        | Submitter::Failed(..) => false,
    };
    let obeys_all = view.config.lapses(Lapse::ObeysFlaws);
    let flaw = decide::first_flaw(view).filter(|_| is_open && !obeys_all);
    flaw.map(|it| it.why)
}

/// No answer to a question that could be relied on. It is judged by itself: Ray may answer another one well.
pub(super) fn unanswered(
    view: &View<'_>,
    query: &ray::Query,
    why: &str,
    told: &Told<'_>,
) -> Decision<Reason> {
    let mut next = view.next();
    if let Some(decision) = past_deadline(view, &next) {
        return decision;
    }
    let now = view.now();
    let since = *next.job_status_check_failure_start_time.get_or_insert(now);
    let limit = view.config.limits.status_check;
    let until = later(since, limit);
    if now >= until && view.is_silence_proven(query) {
        let since = since.strftime("%Y-%m-%d %H:%M:%S");
        let text = format!(
            "Job status checks have been failing since {since}; exceeded timeout of {}s: {why}",
            limit.as_secs()
        );
        let decision = outcome::fail(view, next, Failure::StatusCheck, text);
        return without_submitter(view, decision);
    }
    let decision = going(view, next, told, Reason::NoAnswer { until });
    Decision {
        wake_at: earliest(decision.wake_at, Some(until).filter(|it| *it > now)),
        ..decision
    }
}

/// Goes on: tells what is new, and asks again in a while.
pub(super) fn going(
    view: &View<'_>,
    next: RayJobStatus,
    told: &Told<'_>,
    reason: Reason,
) -> Decision<Reason> {
    Decision {
        wake_at: Some(view.next_poll(told)),
        ..outcome::write(view, next, reason)
    }
}

fn earliest(one: Option<Timestamp>, two: Option<Timestamp>) -> Option<Timestamp> {
    one.into_iter().chain(two).min()
}

/// Milliseconds since 1970; None for 0 and for what is no instant.
fn instant(milliseconds: u64) -> Option<Timestamp> {
    let milliseconds = i64::try_from(milliseconds).ok().filter(|it| *it > 0)?;
    Timestamp::from_millisecond(milliseconds).ok()
}
