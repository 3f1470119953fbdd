//! A Ray cluster through its dashboard: what may be asked, what may be told, what was answered.
//!
//! Answers are strict: what Ray did not say in so many words is a [`Failure`], and a job that Ray does
//! not know is something else than a path that nobody serves.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{ObjectKey, Subject};

/// Where a dashboard is: `host:port`, as in `status.dashboardURL`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Dashboard(pub Arc<str>);

/// What a dashboard may be asked.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Query {
    /// Which session of Ray this is.
    Session { at: Dashboard },
    Job {
        at: Dashboard,
        submission_id: Arc<str>,
    },
}

/// What a dashboard may be told.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Call {
    /// Submits a job to this session and no other: on one connection it is asked for, then told.
    Submit {
        at: Dashboard,
        session: Arc<str>,
        job: Arc<Submission>,
    },
    /// Stops a job, in this session and in no other if it is known: another one may have a job of the same id.
    Stop {
        at: Dashboard,
        #[serde(default)]
        session: Option<Arc<str>>,
        submission_id: Arc<str>,
    },
}

/// A job to be submitted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Submission {
    pub submission_id: Arc<str>,
    pub entrypoint: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runtime_env: Option<Value>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub metadata: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entrypoint_num_cpus: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entrypoint_num_gpus: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entrypoint_resources: Option<Value>,
}

/// What a dashboard answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Answer {
    Session {
        name: Arc<str>,
        ray_version: Arc<str>,
    },
    /// None: Ray itself said that it knows no such job.
    Job(Option<Job>),
}

/// A job as Ray tells of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Job {
    pub status: JobStatus,
    pub message: String,
    /// Milliseconds since 1970; 0: not told.
    pub start_time: u64,
    pub end_time: u64,
    pub exit_code: Option<i64>,
}

/// The state of a job in Ray.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum JobStatus {
    Pending,
    Running,
    Stopped,
    Succeeded,
    Failed,
}

impl JobStatus {
    /// Whether nothing follows.
    pub fn is_terminal(self) -> bool {
        match self {
            Self::Pending | Self::Running => false,
            Self::Stopped | Self::Succeeded | Self::Failed => true,
        }
    }
}

/// No answer that could be relied on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    pub kind: FailureKind,
    /// In words, without secrets.
    pub message: String,
}

/// What kind of failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum FailureKind {
    /// Nobody answered, or not in time.
    Unreachable,
    /// Somebody answered, but not as a dashboard does.
    NotRay,
    /// Ray cannot now: it said so.
    Busy,
    /// Not let in.
    Unauthorized,
}

/// Why a dashboard did not do what it was told; nothing was done, for certain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Refused {
    /// Ray has a job of this id.
    AlreadyExists,
    /// Another session than the one that was meant.
    OtherSession,
    /// Ray says that what it was told is wrong; it will say so again.
    Invalid,
    /// Ray cannot now: it said so.
    Busy,
    /// Not let in.
    Unauthorized,
    /// What answered is no dashboard.
    NotRay,
    /// Nothing answered, so nothing was sent.
    Unreachable,
}

impl Query {
    /// What it asks, in words.
    pub(crate) fn in_words(&self) -> String {
        match self {
            Self::Session { at } => format!("ask {} for its session", at.0),
            Self::Job { at, submission_id } => format!("ask {} about job {submission_id}", at.0),
        }
    }
}

impl Call {
    /// What it is done to, so that its outcome can be found again.
    pub(crate) fn subject(&self) -> Subject {
        match self {
            Self::Submit { at, job, .. } => {
                Subject::Submission(at.clone(), job.submission_id.clone())
            }
            Self::Stop {
                at, submission_id, ..
            } => Subject::Stop(at.clone(), submission_id.clone()),
        }
    }

    /// What it does, in words, without what it carries.
    pub(crate) fn in_words(&self, about: &ObjectKey) -> String {
        match self {
            Self::Submit { job, .. } => format!("submit job {} of {about}", job.submission_id),
            Self::Stop { submission_id, .. } => format!("stop job {submission_id} of {about}"),
        }
    }
}

impl Failure {
    /// That nothing answered.
    pub fn unreachable(message: String) -> Self {
        let kind = FailureKind::Unreachable;
        Self { kind, message }
    }
}
