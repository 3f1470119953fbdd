//! Why a job stands as it does.

use jiff::Timestamp;
use sundown_model::{Blocker, Explain};

/// What the decision concluded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reason {
    Gone,
    ManagedElsewhere,
    Unsupported {
        field: &'static str,
    },
    /// It goes, and holds no pod back.
    Deleting,
    Finished,
    /// Pods of a job that is over or goes are let go.
    LetsGo,
    Ends {
        why: String,
    },
    Grows {
        to: i64,
    },
    Shrinks {
        to: i64,
    },
    BacksOff {
        until: Timestamp,
    },
    Suspended,
    Runs,
    /// A pod whose job is not known to be gone.
    OrphanUnproven,
    /// A pod whose job is gone is let go.
    OrphanReleased,
    NoOrphan,
}

impl Explain for Reason {
    fn code(&self) -> &'static str {
        match self {
            Self::Gone => "Gone",
            Self::ManagedElsewhere => "ManagedElsewhere",
            Self::Unsupported { .. } => "Unsupported",
            Self::Deleting => "Deleting",
            Self::Finished => "Finished",
            Self::LetsGo => "LetsGo",
            Self::Ends { .. } => "Ends",
            Self::Grows { .. } => "Grows",
            Self::Shrinks { .. } => "Shrinks",
            Self::BacksOff { .. } => "BacksOff",
            Self::Suspended => "Suspended",
            Self::Runs => "Runs",
            Self::OrphanUnproven => "OrphanUnproven",
            Self::OrphanReleased => "OrphanReleased",
            Self::NoOrphan => "NoOrphan",
        }
    }

    fn sentence(&self) -> String {
        match self {
            Self::Gone => "the job is gone".to_owned(),
            Self::ManagedElsewhere => "spec.managedBy names another controller".to_owned(),
            Self::Unsupported { field } => format!("spec.{field} is not supported here"),
            Self::Deleting => "the job is being deleted".to_owned(),
            Self::Finished => "the job is finished".to_owned(),
            Self::LetsGo => "the pods of the job are let go".to_owned(),
            Self::Ends { why } => format!("the job ends: {why}"),
            Self::Grows { to } => format!("pods are made until {to} are active"),
            Self::Shrinks { to } => format!("pods are given up until {to} are active"),
            Self::BacksOff { until } => format!("a pod failed; the next one comes at {until}"),
            Self::Suspended => "the job is suspended".to_owned(),
            Self::Runs => "the pods of the job run".to_owned(),
            Self::OrphanUnproven => "whether the job of the pod is gone is not known".to_owned(),
            Self::OrphanReleased => "the job of the pod is gone, so the pod is let go".to_owned(),
            Self::NoOrphan => "the pod is not held, or its job is there".to_owned(),
        }
    }

    fn blockers(&self) -> Vec<Blocker> {
        match self {
            Self::BacksOff { until } => vec![Blocker::Until { at: *until }],
            Self::Gone
            | Self::ManagedElsewhere
            | Self::Unsupported { .. }
            | Self::Deleting
            | Self::Finished
            | Self::LetsGo
            | Self::Ends { .. }
            | Self::Grows { .. }
            | Self::Shrinks { .. }
            | Self::Suspended
            | Self::Runs
            | Self::OrphanUnproven
            | Self::OrphanReleased
            | Self::NoOrphan => Vec::new(),
        }
    }
}
