//! Why a cluster is as it is.

use jiff::Timestamp;
use sundown_model::{Blocker, Explain, ObjectKey};

/// What the decision about a cluster concluded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reason {
    Gone,
    /// `spec.managedBy` names another controller.
    ManagedElsewhere,
    /// What belongs to it is the collector's.
    Deleting,
    Invalid {
        why: String,
    },
    /// It asks for something that nothing makes yet.
    Unsupported {
        field: String,
    },
    /// Somebody else's service has the name that it needs.
    ServiceTaken {
        service: ObjectKey,
    },
    /// Something of it cannot be made; it is tried again.
    Refused {
        why: String,
    },
    /// Its pods go.
    Suspends {
        left: usize,
    },
    Suspended,
    /// Its pods were made from another spec.
    Recreates,
    /// The head is lost, and it wants no other.
    HeadLost,
    AwaitsEndOfHead {
        until: Timestamp,
    },
    /// Something is made or unmade.
    Changes {
        creates: usize,
        deletes: usize,
    },
    /// Everything is there, but not all of it ready.
    AwaitsPods,
    Ready,
}

impl Explain for Reason {
    fn code(&self) -> &'static str {
        match self {
            Self::Gone => "Gone",
            Self::ManagedElsewhere => "ManagedElsewhere",
            Self::Deleting => "Deleting",
            Self::Invalid { .. } => "Invalid",
            Self::Unsupported { .. } => "Unsupported",
            Self::ServiceTaken { .. } => "ServiceTaken",
            Self::Refused { .. } => "Refused",
            Self::Suspends { .. } => "Suspends",
            Self::Suspended => "Suspended",
            Self::Recreates => "Recreates",
            Self::HeadLost => "HeadLost",
            Self::AwaitsEndOfHead { .. } => "AwaitsEndOfHead",
            Self::Changes { .. } => "Changes",
            Self::AwaitsPods => "AwaitsPods",
            Self::Ready => "Ready",
        }
    }

    fn sentence(&self) -> String {
        match self {
            Self::Gone => "the cluster is gone".to_owned(),
            Self::ManagedElsewhere => "spec.managedBy names another controller".to_owned(),
            Self::Deleting => "the cluster is being deleted, and its parts with it".to_owned(),
            Self::Invalid { why } => format!("the cluster is invalid: {why}"),
            Self::Unsupported { field } => format!("{field} is not supported by Sundown yet"),
            Self::ServiceTaken { service } => {
                format!("{service} has the name that it needs and is not owned by this cluster")
            }
            Self::Refused { why } => format!("{why}; it is tried again"),
            Self::Suspends { left } => format!("being suspended; {left} pods are left"),
            Self::Suspended => "suspended".to_owned(),
            Self::Recreates => "the spec changed, so that all pods are made anew".to_owned(),
            Self::HeadLost => "the head is lost, and an annotation wants no other".to_owned(),
            Self::AwaitsEndOfHead { until } => {
                format!("the head before this one is on its way out, waited for until {until}")
            }
            Self::Changes { creates, deletes } => {
                format!("{creates} objects are to be made and {deletes} pods to be deleted")
            }
            Self::AwaitsPods => "all pods are made, but not all are ready".to_owned(),
            Self::Ready => "all pods are there and ready".to_owned(),
        }
    }

    fn blockers(&self) -> Vec<Blocker> {
        match self {
            Self::AwaitsEndOfHead { until } => vec![Blocker::Until { at: *until }],
            Self::Gone
            | Self::ManagedElsewhere
            | Self::Deleting
            | Self::Invalid { .. }
            | Self::Unsupported { .. }
            | Self::ServiceTaken { .. }
            | Self::Refused { .. }
            | Self::Suspends { .. }
            | Self::Suspended
            | Self::Recreates
            | Self::HeadLost
            | Self::Changes { .. }
            | Self::AwaitsPods
            | Self::Ready => Vec::new(),
        }
    }
}
