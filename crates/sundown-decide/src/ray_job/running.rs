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
use super::view::{Cluster, Sight, Submitter, Told, later};
use super::{decide, head_service, reset};
use crate::ray::place;

/// What is said when the submitter outlives the job.
const GRACE_TEXT: &str = "JobDeploymentStatus does not transition to Complete or Failed within the \
                          grace period after JobStatus reaches a terminal state.";

/// Decides on a job that was begun.
pub(super) fn decide(sight: &Sight<'_>) -> Decision<Reason> {
    if sight.job.status.job_status.is_terminal() {
        // Stored already: neither what became of the cluster since nor a wish to pause changes it.
        return conclude(sight, sight.next());
    }
    // On a cluster that stays it would rest beside what it runs.
    if sight.shall_be_suspended() && !sight.is_guest() {
        return suspend(sight);
    }
    match &sight.cluster {
        Cluster::There(..) if !sight.has_another_cluster() => {}
        Cluster::There(..) | Cluster::Foreign(_) => return without_its_cluster(sight),
        Cluster::Absent => {
            return match sight.is_absent(&sight.cluster_key()) {
                Err(need) => Decision::need(vec![need], Reason::AsksForCluster),
                Ok(_) => without_its_cluster(sight),
            };
        }
    }
    let deadline = active_deadline(sight);
    let passed = deadline.as_ref().filter(|(at, _)| *at <= sight.now());
    let told = match sight.ask(passed.map(|(at, _)| *at)) {
        Ok(told) => told,
        Err(need) => return Decision::need(vec![need], Reason::AsksRay),
    };
    let decision = match &told.answer {
        Ok(Some(job)) => observed(sight, job, &told),
        Ok(None) => unknown(sight, &told),
        Err(why) => unanswered(sight, &sight.job_query(), why, &told),
    };
    let decision = head_service::along_with(sight, decision);
    Decision {
        wake_at: earliest(
            decision.wake_at,
            deadline.map(|(at, _)| at).filter(|at| *at > sight.now()),
        ),
        ..decision
    }
}

/// Suspends a job, unless Ray says that it has ended: a result is not thrown away because it was not asked
/// for in time.
fn suspend(sight: &Sight<'_>) -> Decision<Reason> {
    let may_have_ended = matches!(sight.cluster, Cluster::There(..))
        && !sight.has_another_cluster()
        && sight.may_be_submitted()
        && !sight.scope.config.lapses(Lapse::SuspendsUnasked);
    if !may_have_ended {
        return reset::suspend(sight);
    }
    let told = match sight.ask(None) {
        Ok(told) => told,
        Err(need) => return Decision::need(vec![need], Reason::AsksRay),
    };
    match told.answer {
        Ok(Some(job)) if job.status.is_terminal() => observed(sight, job, &told),
        Err(_) if !sight.is_silence_proven(&sight.job_query()) => {
            Decision::wake_at(sight.next_poll(&told), Reason::AsksRay)
        }
        Ok(_) | Err(_) => reset::suspend(sight),
    }
}

/// A cluster that went before anything was submitted is made again; after that, nobody knows what ran.
pub(super) fn without_its_cluster(sight: &Sight<'_>) -> Decision<Reason> {
    if sight.may_be_submitted() {
        let key = place(&sight.cluster_key());
        let why = format!("the RayCluster {key} was deleted while the job ran on it");
        return lost(sight, &why);
    }
    let next = RayJobStatus {
        job_deployment_status: DeploymentStatus::Initializing,
        dashboard_url: String::new(),
        ..sight.job.status.clone()
    };
    outcome::write(sight, next, Reason::AwaitsCluster)
}

/// The attempt cannot be followed any more. It is never submitted again by itself.
pub(super) fn lost(sight: &Sight<'_>, why: &str) -> Decision<Reason> {
    let text = format!("The Ray job was lost: {why}");
    let decision = outcome::fail(sight, sight.next(), Failure::App, text);
    without_submitter(sight, decision)
}

/// Ends the attempt, and its submitter with it.
fn without_submitter(sight: &Sight<'_>, mut decision: Decision<Reason>) -> Decision<Reason> {
    decision.actions.extend(reset::end_submitter(sight));
    decision
}

fn observed(sight: &Sight<'_>, job: &ray::Job, told: &Told<'_>) -> Decision<Reason> {
    let mut next = with_answer(sight, job);
    if job.status.is_terminal() {
        if let Some(text) = stopped_for_deadline(sight, job) {
            return outcome::fail(sight, next, Failure::Deadline, text);
        }
        next.ray_job_info.end_time.get_or_insert(sight.now());
        return conclude(sight, next);
    }
    if let Some(decision) = past_deadline(sight, &next) {
        return decision;
    }
    going(sight, next, told, Reason::Runs)
}

/// The status with what Ray says about the job.
fn with_answer(sight: &Sight<'_>, job: &ray::Job) -> RayJobStatus {
    let mut next = sight.next();
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
fn stopped_for_deadline(sight: &Sight<'_>, job: &ray::Job) -> Option<String> {
    let (at, text) = active_deadline(sight)?;
    let ended = instant(job.end_time).is_none_or(|ended| ended >= at);
    (job.status == ray::JobStatus::Stopped && ended && sight.now() >= at).then_some(text)
}

/// The time of a job that has not ended is over: it is stopped, then it has failed.
fn past_deadline(sight: &Sight<'_>, next: &RayJobStatus) -> Option<Decision<Reason>> {
    let (at, text) = active_deadline(sight).filter(|(at, _)| *at <= sight.now())?;
    let until = later(at, sight.scope.config.limits.stop);
    Some(match stop::wind_down(sight, until) {
        Stop::Under(decision) => decision,
        Stop::Ended => outcome::fail(sight, next.clone(), Failure::Deadline, text),
        Stop::GaveUp(why) => {
            let text = format!("{text}. It could not be stopped: {why}");
            outcome::fail(sight, next.clone(), Failure::Deadline, text)
        }
    })
}

/// The job has ended. Its submitter follows the log to the end, so that is waited for, but not for ever.
fn conclude(sight: &Sight<'_>, mut next: RayJobStatus) -> Decision<Reason> {
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
    let ended_at = next.ray_job_info.end_time.unwrap_or(sight.now());
    let until = later(ended_at, sight.scope.config.limits.transition_grace);
    if matches!(sight.submitter, Submitter::Runs(_)) {
        if sight.now() < until {
            next.job_deployment_status = DeploymentStatus::Running;
            next.reason = String::new();
            let reason = Reason::AwaitsSubmitter { until };
            let decision = outcome::write(sight, next, reason);
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
    without_submitter(sight, outcome::write(sight, next, Reason::Ends))
}

/// Ray knows no such job.
fn unknown(sight: &Sight<'_>, told: &Told<'_>) -> Decision<Reason> {
    if sight.job.status.job_status != JobStatus::New {
        return lost(sight, "Ray knew it and knows it no more");
    }
    let mut next = sight.next();
    // It answered: what it does not know yet is not a failure to answer.
    next.job_status_check_failure_start_time = None;
    if let Some(decision) = past_deadline(sight, &next) {
        return decision;
    }
    if let Some(why) = flaw_of_submission(sight) {
        return held(sight, next, told, why);
    }
    match sight.job.spec.submission_mode {
        SubmissionMode::Http => submit::over_http(sight, next, told),
        SubmissionMode::K8sJob => submit::by_job(sight, next, told),
        SubmissionMode::Interactive | SubmissionMode::Sidecar | SubmissionMode::Unknown(_) => {
            going(sight, next, told, Reason::AwaitsSubmission)
        }
    }
}

/// Waits for the spec to be mended. Ray is asked on while it may get what was sent before.
fn held(sight: &Sight<'_>, next: RayJobStatus, told: &Told<'_>, why: String) -> Decision<Reason> {
    if let Err(need) = submit::is_settled(sight, told) {
        return Decision::need(vec![need], Reason::AsksRay);
    }
    let reason = Reason::Invalid { why };
    if submit::may_arrive(sight) {
        return going(sight, next, told, reason);
    }
    outcome::write(sight, next, reason)
}

/// What is wrong with a spec that is still to be submitted: that waits until it makes sense, as what is made does.
/// What the user submits does not wait for that.
fn flaw_of_submission(sight: &Sight<'_>) -> Option<String> {
    let is_open = match sight.submitter {
        Submitter::Absent => !sight.is_interactive() && !submit::is_taken(sight),
        // It is on its way, or has ended, with the spec of before.
        Submitter::Foreign
        | Submitter::Runs(_)
        | Submitter::Completed(_)
        | Submitter::Failed(..) => false,
    };
    let obeys_all = sight.scope.config.lapses(Lapse::ObeysFlaws);
    let flaw = decide::first_flaw(sight).filter(|_| is_open && !obeys_all);
    flaw.map(|it| it.why)
}

/// No answer to a question that could be relied on. It is judged by itself: Ray may answer another one well.
pub(super) fn unanswered(
    sight: &Sight<'_>,
    query: &ray::Query,
    why: &str,
    told: &Told<'_>,
) -> Decision<Reason> {
    let mut next = sight.next();
    if let Some(decision) = past_deadline(sight, &next) {
        return decision;
    }
    let now = sight.now();
    let since = *next.job_status_check_failure_start_time.get_or_insert(now);
    let limit = sight.scope.config.limits.status_check;
    let until = later(since, limit);
    if now >= until && sight.is_silence_proven(query) {
        let since = since.strftime("%Y-%m-%d %H:%M:%S");
        let text = format!(
            "Job status checks have been failing since {since}; exceeded timeout of {}s: {why}",
            limit.as_secs()
        );
        let decision = outcome::fail(sight, next, Failure::StatusCheck, text);
        return without_submitter(sight, decision);
    }
    let decision = going(sight, next, told, Reason::NoAnswer { until });
    Decision {
        wake_at: earliest(decision.wake_at, Some(until).filter(|it| *it > now)),
        ..decision
    }
}

/// Goes on: tells what is new, and asks again in a while.
pub(super) fn going(
    sight: &Sight<'_>,
    next: RayJobStatus,
    told: &Told<'_>,
    reason: Reason,
) -> Decision<Reason> {
    Decision {
        wake_at: Some(sight.next_poll(told)),
        ..outcome::write(sight, next, reason)
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
