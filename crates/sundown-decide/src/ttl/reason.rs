//! Why a job is kept or deleted.

use jiff::Timestamp;
use sundown_model::{Blocker, Explain};

/// What the TTL decision concluded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reason {
    Gone,
    AlreadyDeleting,
    NoTtl,
    StillRunning,
    /// It finished, and this field does not say when.
    FinishTimeMissing {
        field: &'static str,
    },
    /// It finished at an instant that is still to come.
    FinishInFuture {
        finished_at: Timestamp,
        due_at: Timestamp,
    },
    NotDue {
        due_at: Timestamp,
    },
    Expired {
        due_at: Timestamp,
    },
}

impl Explain for Reason {
    fn code(&self) -> &'static str {
        match self {
            Self::Gone => "Gone",
            Self::AlreadyDeleting => "AlreadyDeleting",
            Self::NoTtl => "NoTtl",
            Self::StillRunning => "StillRunning",
            Self::FinishTimeMissing { .. } => "FinishTimeMissing",
            Self::FinishInFuture { .. } => "FinishInFuture",
            Self::NotDue { .. } => "NotDue",
            Self::Expired { .. } => "Expired",
        }
    }

    fn sentence(&self) -> String {
        match self {
            Self::Gone => "the job is gone".to_owned(),
            Self::AlreadyDeleting => "the job is being deleted already".to_owned(),
            Self::NoTtl => "spec.ttlSecondsAfterFinished is not set, so it stays".to_owned(),
            Self::StillRunning => "the job has not finished, so its TTL has not begun".to_owned(),
            Self::FinishTimeMissing { field } => {
                format!("the job finished, but {field} is not set: its TTL cannot begin")
            }
            Self::FinishInFuture {
                finished_at,
                due_at,
            } => format!(
                "the job says that it finished at {finished_at}, which is in the future; it is kept until {due_at}"
            ),
            Self::NotDue { due_at } => format!("the job finished and is kept until {due_at}"),
            Self::Expired { due_at } => format!("the TTL of the job ended at {due_at}"),
        }
    }

    fn blockers(&self) -> Vec<Blocker> {
        match self {
            Self::NotDue { due_at } | Self::FinishInFuture { due_at, .. } => {
                vec![Blocker::Until { at: *due_at }]
            }
            Self::Gone
            | Self::AlreadyDeleting
            | Self::NoTtl
            | Self::StillRunning
            | Self::FinishTimeMissing { .. }
            | Self::Expired { .. } => Vec::new(),
        }
    }
}
