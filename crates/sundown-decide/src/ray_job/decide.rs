//! The order of a decision on a job.

use sundown_kinds::Invalid;
use sundown_kinds::ray_job::{DeploymentStatus, JobStatus, RayJobStatus, SubmissionMode, validate};
use sundown_model::{Action, Decision, Object, Sight};

use super::lapse::Lapse;
use super::outcome::Failure;
use super::reason::Reason;
use super::view::View;
use super::{RayJobs, begin, cleanup, finalize, outcome, reset, running};
use crate::actions::warning;
use crate::ray::{place, unsupported, view};

/// Decides what a job needs.
pub(super) fn decide(object: &Object, config: &RayJobs, sight: Sight<'_>) -> Decision<Reason> {
    let job = match view::ray_job(object) {
        Ok(job) => job,
        Err(malformed) => return unreadable(object, malformed.to_string()),
    };
    if job.is_managed_elsewhere() {
        return Decision::idle(Reason::ManagedElsewhere);
    }
    let view = View::of(object, job, config, sight);
    if object.is_deleting() {
        return finalize::decide(&view);
    }
    let Some(flaw) = first_flaw(&view) else {
        return go_on(&view);
    };
    match view.job.status.job_deployment_status {
        DeploymentStatus::New | DeploymentStatus::ValidationFailed => refuse(&view, &flaw),
        DeploymentStatus::Initializing
        | DeploymentStatus::Running
        | DeploymentStatus::Complete
        | DeploymentStatus::Failed
        | DeploymentStatus::Suspending
        | DeploymentStatus::Suspended
        | DeploymentStatus::Retrying
        | DeploymentStatus::Waiting => go_on_in_spite_of(&view, &flaw),
    }
}

fn go_on(view: &View<'_>) -> Decision<Reason> {
    match view.job.status.job_deployment_status {
        DeploymentStatus::New => begin::new(view),
        DeploymentStatus::Initializing => begin::initializing(view),
        DeploymentStatus::Waiting => begin::waiting(view),
        DeploymentStatus::Running => running::decide(view),
        DeploymentStatus::Suspending | DeploymentStatus::Retrying => reset::decide(view),
        DeploymentStatus::Suspended => reset::suspended(view),
        DeploymentStatus::Complete | DeploymentStatus::Failed => cleanup::decide(view),
        DeploymentStatus::ValidationFailed => recover(view),
    }
}

/// What is wrong with a job: the event, and in words.
pub(super) struct Flaw {
    event: &'static str,
    pub(super) why: String,
}

pub(super) fn first_flaw(view: &View<'_>) -> Option<Flaw> {
    let gates = &view.config.settings.gates;
    let job = &view.job;
    let checks = [
        (
            "InvalidRayJobMetadata",
            validate::validate_metadata(&job.metadata),
        ),
        ("InvalidRayJobSpec", validate::validate_spec(job, gates)),
        ("InvalidRayJobStatus", validate::validate_status(job)),
    ];
    let found = checks
        .into_iter()
        .find_map(|(event, result)| Some((event, result.err()?)));
    if let Some((event, Invalid(why))) = found {
        return Some(Flaw { event, why });
    }
    let why = unsupported::message(&unsupported_field(view)?);
    let event = "InvalidRayJobSpec";
    Some(Flaw { event, why })
}

/// What is not supported stops a job before it begins; one that runs was begun by somebody who could.
fn unsupported_field(view: &View<'_>) -> Option<String> {
    let job = &view.job;
    match job.status.job_deployment_status {
        DeploymentStatus::New | DeploymentStatus::ValidationFailed => {}
        DeploymentStatus::Initializing
        | DeploymentStatus::Running
        | DeploymentStatus::Complete
        | DeploymentStatus::Failed
        | DeploymentStatus::Suspending
        | DeploymentStatus::Suspended
        | DeploymentStatus::Retrying
        | DeploymentStatus::Waiting => return None,
    }
    if job.spec.submission_mode == SubmissionMode::Sidecar {
        return Some("spec.submissionMode SidecarMode".to_owned());
    }
    let spec = job
        .spec
        .cluster
        .as_ref()
        .filter(|_| !job.selects_cluster())?;
    let gates = &view.config.settings.gates;
    let field = unsupported::field(spec, &job.metadata, gates)?;
    Some(match field.strip_prefix("spec.") {
        Some(below) => format!("spec.rayClusterSpec.{below}"),
        None => field,
    })
}

fn told(view: &View<'_>, flaw: &Flaw) -> Action {
    let message = format!("{}: {}", place(view.object.key()), flaw.why);
    warning(view.object, flaw.event, message)
}

fn refuse(view: &View<'_>, flaw: &Flaw) -> Decision<Reason> {
    let next = RayJobStatus {
        job_deployment_status: DeploymentStatus::ValidationFailed,
        reason: "ValidationFailed".to_owned(),
        message: flaw.why.clone(),
        ..view.job.status.clone()
    };
    let why = flaw.why.clone();
    let mut decision = outcome::write(view, next, Reason::Invalid { why });
    decision.actions.push(told(view, flaw));
    decision
}

/// The spec is valid again. A job that had begun goes on where its status says that it was.
fn recover(view: &View<'_>) -> Decision<Reason> {
    let status = &view.job.status;
    let is_lost = !status.job_status.is_terminal() && status.end_time.is_some();
    let state = match status.job_status {
        JobStatus::Failed => DeploymentStatus::Failed,
        JobStatus::Succeeded | JobStatus::Stopped => DeploymentStatus::Complete,
        // That Ray said nothing of its end does not begin it anew.
        JobStatus::New | JobStatus::Pending | JobStatus::Running if is_lost => {
            DeploymentStatus::Failed
        }
        // What ran is not judged once more by the time that it had to begin.
        JobStatus::Pending | JobStatus::Running
            if !status.dashboard_url.is_empty() && !view.config.lapses(Lapse::JudgesMended) =>
        {
            DeploymentStatus::Running
        }
        JobStatus::New | JobStatus::Pending | JobStatus::Running => {
            if status.ray_cluster_name.is_empty() {
                DeploymentStatus::New
            } else {
                DeploymentStatus::Initializing
            }
        }
    };
    let (reason, message) = if is_lost {
        (
            Failure::App.as_str().to_owned(),
            "The Ray job had ended without a result before its spec became invalid".to_owned(),
        )
    } else {
        (String::new(), String::new())
    };
    let next = RayJobStatus {
        job_deployment_status: state,
        reason,
        message,
        ..status.clone()
    };
    outcome::write(view, next, Reason::Recovers)
}

/// A job that has begun does not lose its state over an edit: what runs is watched to its end, and what
/// has ended goes as it says, if that much makes sense. What is made waits until all of the spec does.
fn go_on_in_spite_of(view: &View<'_>, flaw: &Flaw) -> Decision<Reason> {
    let mut decision = match view.job.status.job_deployment_status {
        // The user has named a job, which runs by now or soon will.
        DeploymentStatus::Waiting if view.is_interactive() && !view.submission_id().is_empty() => {
            Some(go_on(view))
        }
        DeploymentStatus::Initializing | DeploymentStatus::Waiting => begin::overdue(view),
        DeploymentStatus::Running | DeploymentStatus::Suspending | DeploymentStatus::Retrying => {
            Some(go_on(view))
        }
        DeploymentStatus::Complete | DeploymentStatus::Failed => {
            let gates = &view.config.settings.gates;
            let says = validate::validate_clean_up(&view.job, gates);
            says.is_ok().then(|| go_on(view))
        }
        DeploymentStatus::New
        | DeploymentStatus::ValidationFailed
        | DeploymentStatus::Suspended => None,
    }
    .unwrap_or_else(|| {
        let why = flaw.why.clone();
        let wake_at = begin::next_deadline(view).filter(|at| *at > view.now());
        Decision {
            wake_at,
            ..Decision::idle(Reason::Invalid { why })
        }
    });
    decision.actions.push(told(view, flaw));
    decision
}

/// Nothing can be read of it but that it goes: then it is not held.
fn unreadable(object: &Object, why: String) -> Decision<Reason> {
    let message = format!("{}: {why}", place(object.key()));
    let told = warning(object, "InvalidRayJobSpec", message);
    if object.is_deleting() {
        return finalize::release_unread(object, told);
    }
    Decision::act(told, Reason::Invalid { why })
}
