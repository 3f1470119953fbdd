//! What the answers of a dashboard mean, strictly: only what Ray says in so many words counts.

use serde::Deserialize;
use sundown_model::ray::{Answer, Failure, FailureKind, Job, JobStatus, Refused};
use sundown_model::{DeedOutcome, DeedRefusal};

use super::connection::Response;

/// More of an error nobody reads; Ray answers with whole tracebacks.
const MESSAGE_CHARS_MAX: usize = 500;

#[derive(Deserialize)]
struct Version {
    session_name: String,
    ray_version: String,
}

#[derive(Deserialize)]
struct JobInfo {
    submission_id: Option<String>,
    job_id: Option<String>,
    status: JobStatus,
    message: Option<String>,
    start_time: Option<u64>,
    end_time: Option<u64>,
    driver_exit_code: Option<i64>,
}

#[derive(Deserialize)]
struct Submitted {
    submission_id: String,
}

#[derive(Deserialize)]
struct Stopped {
    #[serde(rename = "stopped")]
    _stopped: bool,
}

/// The answer to `GET /api/version`.
pub(super) fn session(response: &Response) -> Result<Answer, Failure> {
    let version: Version = read(response)?;
    Ok(Answer::Session {
        name: version.session_name.into(),
        ray_version: version.ray_version.into(),
    })
}

/// The answer to `GET /api/jobs/ID`.
pub(super) fn job(submission_id: &str, response: &Response) -> Result<Answer, Failure> {
    if response.code == 404 && is_unknown_job(submission_id, response) {
        return Ok(Answer::Job(None));
    }
    let info: JobInfo = read(response)?;
    // A job of Ray Client or a notebook has no submission id, and is known by the other one.
    let ids = [&info.submission_id, &info.job_id];
    if !ids.iter().any(|id| id.as_deref() == Some(submission_id)) {
        return Err(not_ray("told of another job".to_owned()));
    }
    Ok(Answer::Job(Some(Job {
        status: info.status,
        message: info.message.unwrap_or_default(),
        start_time: info.start_time.unwrap_or(0),
        end_time: info.end_time.unwrap_or(0),
        exit_code: info.driver_exit_code,
    })))
}

/// The answer to `POST /api/jobs/`.
pub(super) fn submitted(response: &Response) -> DeedOutcome {
    let text = text(response);
    match response.code {
        200..=299 if read::<Submitted>(response).is_ok_and(|it| !it.submission_id.is_empty()) => {
            DeedOutcome::Done
        }
        // Ray tells of a known id by the code of a failure.
        400..=599 if text.contains("already exists") => refused(Refused::AlreadyExists, &text),
        500..=599 if text.contains("No available agent") => refused(Refused::Busy, &text),
        401 | 403 => refused(Refused::Unauthorized, &text),
        // Ray's own refusal ends in the words of an exception. Every other one is of something in between.
        400 if text.contains("Traceback") => refused(Refused::Invalid, &text),
        400..=499 => refused(Refused::NotRay, &text),
        // It may have been taken before something else went wrong.
        _ => unknown(response),
    }
}

/// The answer to `POST /api/jobs/ID/stop`. A job that has ended, or that Ray does not know, needs no
/// stopping.
pub(super) fn stopped(submission_id: &str, response: &Response) -> DeedOutcome {
    let text = text(response);
    match response.code {
        // Whether it was stopped now or had ended before is told by the job itself.
        200..=299 if read::<Stopped>(response).is_ok() => DeedOutcome::Done,
        404 if is_unknown_job(submission_id, response) => DeedOutcome::Done,
        401 | 403 => refused(Refused::Unauthorized, &text),
        400..=499 => refused(Refused::Invalid, &text),
        _ => unknown(response),
    }
}

/// Ray's own words; a path that nobody serves, or a proxy, says something else.
fn is_unknown_job(submission_id: &str, response: &Response) -> bool {
    text(response).contains(&format!("Job {submission_id} does not exist"))
}

fn read<'a, T: Deserialize<'a>>(response: &'a Response) -> Result<T, Failure> {
    match response.code {
        200..=299 => serde_json::from_slice(&response.body)
            .map_err(|error| not_ray(format!("is not what a dashboard says: {error}"))),
        401 | 403 => Err(Failure {
            kind: FailureKind::Unauthorized,
            message: told(response),
        }),
        500..=599 => Err(Failure {
            kind: FailureKind::Busy,
            message: told(response),
        }),
        _ => Err(not_ray(told(response))),
    }
}

fn not_ray(message: String) -> Failure {
    Failure {
        kind: FailureKind::NotRay,
        message,
    }
}

fn told(response: &Response) -> String {
    format!("answered {}: {}", response.code, last_line(&text(response)))
}

/// What was sent may have been done; what Ray said about it is all that anybody will know.
fn unknown(response: &Response) -> DeedOutcome {
    let message = told(response);
    DeedOutcome::Unknown { message }
}

fn refused(reason: Refused, text: &str) -> DeedOutcome {
    DeedOutcome::Refused(DeedRefusal::new(reason, "").quoting(last_line(text)))
}

fn text(response: &Response) -> String {
    String::from_utf8_lossy(&response.body).into_owned()
}

/// The last line of a traceback says what happened.
fn last_line(text: &str) -> String {
    let last = text.lines().rev().find(|line| !line.trim().is_empty());
    last.unwrap_or("nothing")
        .chars()
        .take(MESSAGE_CHARS_MAX)
        .collect()
}

#[cfg(test)]
mod tests;
