//! The submission of a job, at most once: over HTTP, or by a Job that is fenced to one session.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use sundown_kinds::ray_job::submitter::SubmitError;
use sundown_kinds::ray_job::{JobStatus, RayJobStatus, http, submitter};
use sundown_model::ray::Refused;
use sundown_model::{
    Action, Decision, Deed, DeedFact, DeedOutcome, DeedReason, Need, Object, Part, Question,
    RefusalFact, RefusalReason, Reply, Subject, What, ray,
};

use super::intent::Intent;
use super::lapse::Lapse;
use super::outcome::{self, Failure};
use super::reason::Reason;
use super::running::{going, lost, unanswered};
use super::view::{Cluster, Submitter, Told, View, later};
use crate::actions::{patch, warning};
use crate::kinds::JOB;
use crate::ray::{self as shared, create, place};

/// How old an answer about the session may be: it is only stored, and checked again with the submission.
const SESSION_AGE_MAX: SignedDuration = SignedDuration::from_secs(10);

/// The session that a submission of this attempt goes to and to no other, and since when that is so.
struct Fence {
    session: Arc<str>,
    stored_at: Timestamp,
}

fn fence(view: &View<'_>) -> Option<Fence> {
    let intent = view.intent()?;
    Some(Fence {
        session: intent.session?,
        stored_at: intent.stored_at,
    })
}

/// Submits over HTTP. Ray has just said that it does not know the job.
pub(super) fn over_http(view: &View<'_>, next: RayJobStatus, told: &Told<'_>) -> Decision<Reason> {
    let submission = match submission(view) {
        Ok(submission) => submission,
        Err(error) => return outcome::fail(view, next, Failure::Submission, error.to_string()),
    };
    let Some(fence) = fence(view) else {
        return store_intent(view, told);
    };
    let Some(last) = last(view, &fence) else {
        return submit(view, &fence, submission);
    };
    match &last.outcome {
        DeedOutcome::Done => submitted(view, next),
        DeedOutcome::Refused(refusal) => match refusal.reason {
            DeedReason::Ray(Refused::AlreadyExists) => submitted(view, next),
            DeedReason::Ray(Refused::OtherSession) => {
                let text = "its head was replaced before it could be submitted, or lost after";
                lost(view, text)
            }
            DeedReason::Ray(Refused::Invalid) => {
                let text = format!("Job submission has failed: {}", refusal.text());
                outcome::fail(view, next, Failure::Submission, text)
            }
            DeedReason::Ray(
                Refused::Busy | Refused::Unauthorized | Refused::NotRay | Refused::Unreachable,
            )
            | DeedReason::Node(_) => {
                again(view, next, told, &fence, submission, &refusal.text(), last)
            }
        },
        DeedOutcome::Unknown { message } => {
            let mut why = "it is not known whether the job was taken".to_owned();
            if !message.is_empty() {
                why = format!("{why}: {message}");
            }
            again(view, next, told, &fence, submission, &why, last)
        }
    }
}

/// What became of the last submission of this attempt, as far as this process knows.
fn last<'a>(view: &View<'a>, fence: &Fence) -> Option<&'a DeedFact> {
    let id = view.job.status.job_id.as_str().into();
    let last = view.deed(&Subject::Submission(view.dashboard(), id));
    // What was submitted before this attempt is another story.
    last.filter(|it| it.ended_at >= fence.stored_at)
}

/// Whether Ray said that it has the job.
pub(super) fn is_taken(view: &View<'_>) -> bool {
    let last = fence(view).and_then(|it| last(view, &it));
    last.is_some_and(|it| match &it.outcome {
        DeedOutcome::Done => true,
        DeedOutcome::Refused(refusal) => refusal.reason == Refused::AlreadyExists.into(),
        DeedOutcome::Unknown { .. } => false,
    })
}

/// Whether a submission without an answer may still arrive.
pub(super) fn may_arrive(view: &View<'_>) -> bool {
    let Some(fence) = fence(view) else {
        return false;
    };
    match last(view, &fence).map(|it| &it.outcome) {
        Some(DeedOutcome::Unknown { .. }) => true,
        Some(DeedOutcome::Done | DeedOutcome::Refused(_)) => false,
        // A process before this one may have sent it, for as long as a submission is tried.
        None => view.now() < later(fence.stored_at, view.config.limits.status_check),
    }
}

/// Whether Ray was asked since the last submission came to an end; Err with the question otherwise.
pub(super) fn is_settled(view: &View<'_>, told: &Told<'_>) -> Result<(), Need> {
    let id = view.job.status.job_id.as_str().into();
    let last = view.deed(&Subject::Submission(view.dashboard(), id));
    if last.is_some_and(|it| told.at <= it.ended_at) {
        return Err(Need::Ray(view.job_query()));
    }
    Ok(())
}

/// Tries once more, to the same session, if Ray was asked since and does not know the job; not for ever.
fn again(
    view: &View<'_>,
    next: RayJobStatus,
    told: &Told<'_>,
    fence: &Fence,
    submission: ray::Submission,
    why: &str,
    last: &DeedFact,
) -> Decision<Reason> {
    if told.at <= last.ended_at {
        return Decision::need(vec![Need::Ray(view.job_query())], Reason::AsksRay);
    }
    let until = later(fence.stored_at, view.config.limits.status_check);
    // What failed before the time was over, and then the machine slept, says nothing about now.
    let is_over = last.ended_at >= until;
    if is_over && last.failures >= view.failure_count_min(Lapse::BelievesOneSubmission) {
        let text = format!("Job submission has failed: {why}");
        return outcome::fail(view, next, Failure::Submission, text);
    }
    submit(view, fence, submission)
}

fn submit(view: &View<'_>, fence: &Fence, submission: ray::Submission) -> Decision<Reason> {
    let call = ray::Call::Submit {
        at: view.dashboard(),
        session: fence.session.clone(),
        job: Arc::new(submission),
    };
    let deed = Deed {
        about: view.object.key().clone(),
        what: What::Ray(call),
    };
    Decision::act(Action::Do(deed), Reason::Submits)
}

/// Stored, so that a job that Ray does not know from here on is lost and not new.
fn submitted(view: &View<'_>, next: RayJobStatus) -> Decision<Reason> {
    let job_status = JobStatus::Pending;
    let next = RayJobStatus { job_status, ..next };
    outcome::write(view, next, Reason::Submitted)
}

/// Submits by a Job. It asks Ray first and submits to one session only, so that it may be made again.
pub(super) fn by_job(view: &View<'_>, next: RayJobStatus, told: &Told<'_>) -> Decision<Reason> {
    let key = view.submitter_key();
    // What is concluded from the Job, Ray must have been asked after the Job was seen to be so: it may
    // have submitted before it ended, or before somebody took it away.
    let seen = view.sight.cache.seen_step(&key).unwrap_or_default();
    let is_asked_since = told.asked > seen;
    match &view.submitter {
        Submitter::Foreign | Submitter::Completed(_) | Submitter::Failed(..) if !is_asked_since => {
            Decision::need(vec![Need::Ray(view.job_query())], Reason::AsksRay)
        }
        Submitter::Runs(_) => {
            // What kept it from being made is over.
            let message = String::new();
            let next = RayJobStatus { message, ..next };
            going(view, next, told, Reason::AwaitsSubmission)
        }
        Submitter::Foreign => {
            let text = format!(
                "Kubernetes Job {} exists and is not owned by this RayJob",
                place(&key)
            );
            let message = format!(
                "Failed to create new Kubernetes Job {}: {text}",
                place(&key)
            );
            let mut decision = outcome::fail(view, next, Failure::Submission, text);
            let told = warning(view.object, "FailedToCreateRayJobSubmitter", message);
            decision.actions.push(told);
            decision
        }
        Submitter::Completed(_) | Submitter::Failed(..) => without_trace(view, next),
        Submitter::Absent => match fence(view) {
            None => store_intent(view, told),
            Some(fence) => make_submitter(view, next, &fence),
        },
    }
}

/// The submitter has ended, and Ray knows nothing of the job.
fn without_trace(view: &View<'_>, next: RayJobStatus) -> Decision<Reason> {
    match &view.submitter {
        Submitter::Failed(_, why) => {
            let text = format!("Job submission has failed. {why}");
            outcome::fail(view, next, Failure::Submission, text)
        }
        Submitter::Completed(_) | Submitter::Runs(_) | Submitter::Absent | Submitter::Foreign => {
            let text = "Submitter completed but Ray job not found in RayCluster.".to_owned();
            outcome::fail(view, next, Failure::App, text)
        }
    }
}

fn make_submitter(view: &View<'_>, next: RayJobStatus, fence: &Fence) -> Decision<Reason> {
    let Cluster::There(_, cluster) = &view.cluster else {
        return Decision::idle(Reason::AwaitsCluster);
    };
    let settings = &view.config.settings;
    let body = submitter::job(&view.job, &cluster.spec, Some(&fence.session), settings);
    match body {
        Err(error) => outcome::fail(view, next, Failure::Submission, error.to_string()),
        Ok(body) => {
            let place = place(&view.submitter_key());
            let told = shared::Told {
                reason: "CreatedRayJobSubmitter",
                message: format!("Created Kubernetes Job {place}"),
            };
            let makes = create(view.object, &JOB, body, told);
            match refusal(view, fence) {
                Some(refusal) => refused(view, next, makes, refusal),
                None => Decision::act(makes, Reason::Submits),
            }
        }
    }
}

/// Why the submitter of this attempt could not be made. One of an attempt before had the same name.
fn refusal<'a>(view: &View<'a>, fence: &Fence) -> Option<&'a RefusalFact> {
    let refusal = view.refusal(&view.submitter_key());
    refusal.filter(|it| it.refused_at >= fence.stored_at)
}

/// What is not allowed now may be allowed later; what makes no sense never will.
fn refused(
    view: &View<'_>,
    next: RayJobStatus,
    again: Action,
    refusal: &RefusalFact,
) -> Decision<Reason> {
    let place = place(&view.submitter_key());
    let why = format!(
        "Failed to create new Kubernetes Job {place}: {}",
        refusal.message
    );
    let event = "FailedToCreateRayJobSubmitter";
    if refusal.reason != RefusalReason::Invalid {
        return outcome::refused(view, next, again, event, why);
    }
    let told = warning(view.object, event, why.clone());
    let mut decision = outcome::fail(view, next, Failure::Submission, why);
    decision.actions.push(told);
    decision
}

/// Stores which session is going to be submitted to, before it is.
fn store_intent(view: &View<'_>, told: &Told<'_>) -> Decision<Reason> {
    let Cluster::There(cluster, _) = &view.cluster else {
        return Decision::idle(Reason::AwaitsCluster);
    };
    let query = ray::Query::Session {
        at: view.dashboard(),
    };
    let fact = view.sight.facts.reply(&Question::Ray(query.clone()));
    let young = fact.filter(|fact| {
        fact.asked > view.seen() && view.now() < later(fact.answered_at, SESSION_AGE_MAX)
    });
    let Some(fact) = young else {
        return Decision::need(vec![Need::Ray(query)], Reason::AsksRay);
    };
    let session = match &fact.reply {
        Reply::Ray(Ok(ray::Answer::Session { name, .. })) => name.clone(),
        Reply::Ray(Err(failure)) => return unanswered(view, &query, &failure.message, told),
        Reply::Ray(Ok(ray::Answer::Job(_))) | Reply::Node(_) => {
            return unanswered(view, &query, "the answer is to another question", told);
        }
    };
    store(view, cluster, Some(session), &view.job.status.job_id)
}

/// Stores which cluster the user submits to, when the job is named; None if that is stored. The spec may say
/// another one later.
pub(super) fn store_place(view: &View<'_>, cluster: &Object) -> Option<Decision<Reason>> {
    let id = view.job.spec.job_id.as_str();
    let is_this = |it: &Intent| {
        *it.cluster_uid == *cluster.uid().as_str()
            && it.cluster == cluster.key().name
            && *it.submission_id == *id
    };
    let stored = Intent::of(view.object).filter(is_this);
    stored.is_none().then(|| store(view, cluster, None, id))
}

fn store(
    view: &View<'_>,
    cluster: &Object,
    session: Option<Arc<str>>,
    id: &str,
) -> Decision<Reason> {
    let intent = Intent {
        cluster: cluster.key().name.clone(),
        cluster_uid: cluster.uid().as_str().into(),
        session,
        submission_id: id.into(),
        stored_at: view.now(),
    };
    let action = patch(view.object, Part::Main, intent.patch());
    Decision::act(action, Reason::StoresIntent)
}

fn submission(view: &View<'_>) -> Result<ray::Submission, SubmitError> {
    let body = http::submission(&view.job)?;
    let submission = serde_json::from_value(body);
    submission.map_err(|error| SubmitError::Resources(error.to_string()))
}
