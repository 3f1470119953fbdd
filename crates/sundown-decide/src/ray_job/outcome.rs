//! The status of a job, written when something changed; attempts are counted on the way.

use sundown_kinds::ray_job::{DeploymentStatus, JobStatus, RayJobStatus};
use sundown_model::{Action, Decision};

use super::decide;
use super::reason::Reason;
use super::view::View;
use crate::actions::{set_status, warning};
use crate::ray::merge;

/// Why an attempt failed, as in `status.reason`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Failure {
    Submission,
    Deadline,
    PreRunningDeadline,
    App,
    TransitionGrace,
    StatusCheck,
}

impl Failure {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Submission => "SubmissionFailed",
            Self::Deadline => "DeadlineExceeded",
            Self::PreRunningDeadline => "PreRunningDeadlineExceeded",
            Self::App => "AppFailed",
            Self::TransitionGrace => "JobDeploymentStatusTransitionGracePeriodExceeded",
            Self::StatusCheck => "JobStatusCheckTimeoutExceeded",
        }
    }
}

/// Ends an attempt.
pub(super) fn fail(
    view: &View<'_>,
    next: RayJobStatus,
    why: Failure,
    text: String,
) -> Decision<Reason> {
    let next = RayJobStatus {
        job_deployment_status: DeploymentStatus::Failed,
        reason: why.as_str().to_owned(),
        message: text,
        ..next
    };
    write(view, next, Reason::Fails { why: why.as_str() })
}

/// Tries once more what the API server refused, and says why it did, in an event and in the status.
pub(super) fn refused(
    view: &View<'_>,
    next: RayJobStatus,
    again: Action,
    event: &str,
    why: String,
) -> Decision<Reason> {
    let told = warning(view.object, event, why.clone());
    let message = why.clone();
    let status = change(view, RayJobStatus { message, ..next });
    let actions = [again, told].into_iter().chain(status);
    Decision::act_all(actions, Reason::Refused { why })
}

/// Writes a status if it says anything new. A failure after which the spec does not say whether another attempt
/// follows waits for that where the job is: neither an end nor another attempt could be taken back.
pub(super) fn write(view: &View<'_>, next: RayJobStatus, reason: Reason) -> Decision<Reason> {
    let (next, reason) = match unsaid(view, &next) {
        None => (next, reason),
        Some(why) => {
            let next = RayJobStatus {
                job_deployment_status: view.job.status.job_deployment_status,
                reason: String::new(),
                ..next
            };
            (next, Reason::Invalid { why })
        }
    };
    match change(view, next) {
        Some(action) => Decision::act(action, reason),
        None => Decision::idle(reason),
    }
}

/// The write to the next status; None if it is the present one.
pub(super) fn change(view: &View<'_>, mut next: RayJobStatus) -> Option<Action> {
    let present = &view.job.status;
    next.observed_generation = Some(view.job.metadata.generation);
    if next.job_deployment_status != present.job_deployment_status {
        count(view, &mut next);
    }
    let ends_now = next.job_deployment_status.is_terminal() && !had_ended(present);
    if ends_now || (next.job_deployment_status.is_terminal() && next.end_time.is_none()) {
        next.end_time = Some(view.now());
    }
    let change = merge::between(&present.to_value(), &next.to_value())?;
    Some(set_status(view.object, &change))
}

/// One that was complete before an edit made its spec invalid ended then.
fn had_ended(present: &RayJobStatus) -> bool {
    present.job_deployment_status.is_terminal()
        || present.job_deployment_status == DeploymentStatus::ValidationFailed
}

/// An attempt that failed and may be tried again is never shown as failed: clients would take it for
/// the end.
fn count(view: &View<'_>, next: &mut RayJobStatus) {
    let mut failed = next.failed.unwrap_or(0);
    let mut succeeded = next.succeeded.unwrap_or(0);
    // What was complete before somebody made the spec invalid was counted then.
    let is_new = view.job.status.job_deployment_status != DeploymentStatus::ValidationFailed;
    match next.job_deployment_status {
        DeploymentStatus::Failed if is_new => {
            failed = failed.saturating_add(1);
            if retry(view, next, failed) == Retry::Follows {
                next.job_deployment_status = DeploymentStatus::Retrying;
            }
        }
        DeploymentStatus::Complete if is_new && next.job_status == JobStatus::Succeeded => {
            succeeded = succeeded.saturating_add(1);
        }
        DeploymentStatus::New
        | DeploymentStatus::Initializing
        | DeploymentStatus::Running
        | DeploymentStatus::Complete
        | DeploymentStatus::Failed
        | DeploymentStatus::ValidationFailed
        | DeploymentStatus::Suspending
        | DeploymentStatus::Suspended
        | DeploymentStatus::Retrying
        | DeploymentStatus::Waiting => {}
    }
    next.failed = Some(failed);
    next.succeeded = Some(succeeded);
}

/// Whether another attempt follows one that has failed.
#[derive(Debug, PartialEq, Eq)]
enum Retry {
    Follows,
    Never,
    /// The spec says something about it that makes no sense, and what it said before is not known.
    Unsaid,
}

fn retry(view: &View<'_>, next: &RayJobStatus, failed: i32) -> Retry {
    let is_final = [Failure::Deadline, Failure::StatusCheck]
        .iter()
        .any(|why| why.as_str() == next.reason);
    // Where the job is a guest, the next attempt might begin beside this one.
    let may_follow = !is_final && !view.is_guest();
    match view.job.spec.backoff_limit.filter(|_| may_follow) {
        Some(limit) if is_refused(view, limit) => Retry::Unsaid,
        Some(limit) if failed <= limit => Retry::Follows,
        None | Some(_) => Retry::Never,
    }
}

/// Whether a limit is what is wrong with a spec, by itself or beside another field. One beside a selector that was
/// added is that of the cluster of the job's own.
fn is_refused(view: &View<'_>, limit: i32) -> bool {
    let selects = view.job.selects_cluster() && !view.owns_cluster();
    limit < 0 || (limit > 0 && (view.is_interactive() || selects))
}

/// Why an attempt that has failed does not count yet; None if it does.
fn unsaid(view: &View<'_>, next: &RayJobStatus) -> Option<String> {
    let fails =
        next.job_deployment_status == DeploymentStatus::Failed && !had_ended(&view.job.status);
    let failed = next.failed.unwrap_or(0).saturating_add(1);
    if !fails || retry(view, next, failed) != Retry::Unsaid {
        return None;
    }
    decide::first_flaw(view).map(|it| it.why)
}
