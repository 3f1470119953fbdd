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
    FinishTimeMissing,
    NotDue { due_at: Timestamp },
    Expired { due_at: Timestamp },
}

impl Explain for Reason {
    fn code(&self) -> &'static str {
        match self {
            Self::Gone => "Gone",
            Self::AlreadyDeleting => "AlreadyDeleting",
            Self::NoTtl => "NoTtl",
            Self::StillRunning => "StillRunning",
            Self::FinishTimeMissing => "FinishTimeMissing",
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
            Self::FinishTimeMissing => {
                "the job finished, but its condition has no lastTransitionTime".to_owned()
            }
            Self::NotDue { due_at } => format!("the job finished and is kept until {due_at}"),
            Self::Expired { due_at } => format!("the TTL of the job ended at {due_at}"),
        }
    }

    fn blockers(&self) -> Vec<Blocker> {
        match self {
            Self::NotDue { due_at } => vec![Blocker::Until { at: *due_at }],
            Self::Gone
            | Self::AlreadyDeleting
            | Self::NoTtl
            | Self::StillRunning
            | Self::FinishTimeMissing
            | Self::Expired { .. } => Vec::new(),
        }
    }
}
