//! Why an Event is kept or deleted.

use jiff::Timestamp;
use sundown_model::{Blocker, Explain};

/// What the decision about an Event concluded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    Gone,
    AlreadyDeleting,
    /// It does not say when it happened.
    TimeMissing,
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
            Self::TimeMissing => "TimeMissing",
            Self::NotDue { .. } => "NotDue",
            Self::Expired { .. } => "Expired",
        }
    }

    fn sentence(&self) -> String {
        match self {
            Self::Gone => "the Event is gone".to_owned(),
            Self::AlreadyDeleting => "the Event is being deleted".to_owned(),
            Self::TimeMissing => "the Event does not say when it happened".to_owned(),
            Self::NotDue { due_at } => format!("the Event is kept until {due_at}"),
            Self::Expired { due_at } => format!("the Event expired at {due_at}"),
        }
    }

    fn blockers(&self) -> Vec<Blocker> {
        match self {
            Self::NotDue { due_at } => vec![Blocker::Until { at: *due_at }],
            Self::Gone | Self::AlreadyDeleting | Self::TimeMissing | Self::Expired { .. } => {
                Vec::new()
            }
        }
    }
}
