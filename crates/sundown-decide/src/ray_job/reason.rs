//! Why a job is where it is.

use jiff::Timestamp;
use sundown_kinds::ray_job::DeletionPolicy;
use sundown_model::{Blocker, Explain, ObjectKey};

/// What the decision about a job concluded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reason {
    Gone,
    /// `spec.managedBy` names another controller.
    ManagedElsewhere,
    Invalid {
        why: String,
    },
    /// The spec is valid again.
    Recovers,
    /// Finalizer, names and ids are stored.
    Begins,
    MakesCluster,
    /// Something of it cannot be made; it is tried again.
    Refused {
        why: String,
    },
    /// Somebody else's cluster has the name; another is taken.
    ClusterTaken,
    AwaitsCluster,
    AwaitsDashboard,
    ClusterReady,
    /// Somebody else is to submit, or is at it.
    AwaitsSubmission,
    AsksForCluster,
    AsksRay,
    NoAnswer {
        until: Timestamp,
    },
    StoresIntent,
    Submits,
    Submitted,
    Runs,
    /// The job has ended; its submitter still follows the log.
    AwaitsSubmitter {
        until: Timestamp,
    },
    Ends,
    Fails {
        why: &'static str,
    },
    Stops {
        until: Timestamp,
    },
    Suspends,
    /// What an attempt has left goes before the next.
    Clears {
        left: Vec<ObjectKey>,
    },
    Cleared,
    Suspended,
    /// Nobody asked for anything to be deleted.
    Kept,
    /// No rule says what goes after this outcome.
    Uncovered,
    NotDue {
        at: Timestamp,
    },
    /// The job says that it ended at an instant that is still to come.
    EndInFuture {
        ended_at: Timestamp,
        at: Timestamp,
    },
    /// The job is read once more before a rule is carried out.
    Confirms {
        policy: DeletionPolicy,
    },
    Deletes {
        policy: DeletionPolicy,
    },
    CleanedUp,
    Releases,
    /// This controller has done its part.
    Released,
}

impl Explain for Reason {
    fn code(&self) -> &'static str {
        match self {
            Self::Gone => "Gone",
            Self::ManagedElsewhere => "ManagedElsewhere",
            Self::Invalid { .. } => "Invalid",
            Self::Recovers => "Recovers",
            Self::Begins => "Begins",
            Self::MakesCluster => "MakesCluster",
            Self::Refused { .. } => "Refused",
            Self::ClusterTaken => "ClusterTaken",
            Self::AwaitsCluster => "AwaitsCluster",
            Self::AwaitsDashboard => "AwaitsDashboard",
            Self::ClusterReady => "ClusterReady",
            Self::AwaitsSubmission => "AwaitsSubmission",
            Self::AsksForCluster => "AsksForCluster",
            Self::AsksRay => "AsksRay",
            Self::NoAnswer { .. } => "NoAnswer",
            Self::StoresIntent => "StoresIntent",
            Self::Submits => "Submits",
            Self::Submitted => "Submitted",
            Self::Runs => "Runs",
            Self::AwaitsSubmitter { .. } => "AwaitsSubmitter",
            Self::Ends => "Ends",
            Self::Fails { .. } => "Fails",
            Self::Stops { .. } => "Stops",
            Self::Suspends => "Suspends",
            Self::Clears { .. } => "Clears",
            Self::Cleared => "Cleared",
            Self::Suspended => "Suspended",
            Self::Kept => "Kept",
            Self::Uncovered => "Uncovered",
            Self::NotDue { .. } => "NotDue",
            Self::EndInFuture { .. } => "EndInFuture",
            Self::Confirms { .. } => "Confirms",
            Self::Deletes { .. } => "Deletes",
            Self::CleanedUp => "CleanedUp",
            Self::Releases => "Releases",
            Self::Released => "Released",
        }
    }

    fn sentence(&self) -> String {
        match self {
            Self::Gone => "the job is gone".to_owned(),
            Self::ManagedElsewhere => "spec.managedBy names another controller".to_owned(),
            Self::Invalid { why } => format!("the job is invalid: {why}"),
            Self::Recovers => "the spec is valid again, so the job goes on".to_owned(),
            Self::Begins => "an attempt begins; its names are stored first".to_owned(),
            Self::MakesCluster => "its cluster is to be made".to_owned(),
            Self::Refused { why } => format!("{why}; it is tried again"),
            Self::ClusterTaken => "the name of its cluster is taken, so it gets another".to_owned(),
            Self::AwaitsCluster => "waits for its cluster".to_owned(),
            Self::AwaitsDashboard => {
                "waits for a service with the port of the dashboard".to_owned()
            }
            Self::ClusterReady => "its cluster is ready".to_owned(),
            Self::AwaitsSubmission => "waits for the job to be submitted".to_owned(),
            Self::AsksForCluster => "makes sure that its cluster is gone".to_owned(),
            Self::AsksRay => "Ray is asked".to_owned(),
            Self::NoAnswer { until } => {
                format!("Ray does not answer, which is borne until {until}")
            }
            Self::StoresIntent => {
                "stores the cluster and the session that it is submitted to".to_owned()
            }
            Self::Submits => "is to be submitted".to_owned(),
            Self::Submitted => "Ray has taken the job".to_owned(),
            Self::Runs => "Ray runs the job".to_owned(),
            Self::AwaitsSubmitter { until } => {
                format!("the job has ended; its submitter is waited for until {until}")
            }
            Self::Ends => "the job has ended".to_owned(),
            Self::Fails { why } => format!("the attempt has failed: {why}"),
            Self::Stops { until } => format!("the job is being stopped, tried until {until}"),
            Self::Suspends => "begins to be suspended".to_owned(),
            Self::Clears { left } => match left.as_slice() {
                [] => "makes sure that nothing of the attempt is left".to_owned(),
                [one] => format!("{one} of the attempt is left"),
                all => format!("{} objects of the attempt are left", all.len()),
            },
            Self::Cleared => "nothing of the attempt is left".to_owned(),
            Self::Suspended => "suspended".to_owned(),
            Self::Kept => "the job has ended, and nothing is to be deleted".to_owned(),
            Self::Uncovered => "no deletion rule covers how the job has ended".to_owned(),
            Self::NotDue { at } => format!("the job has ended; the next rule is due at {at}"),
            Self::EndInFuture { ended_at, at } => format!(
                "the job says that it ended at {ended_at}, which is in the future; the next rule is due at {at}"
            ),
            Self::Confirms { policy } => {
                format!("the job has ended; {policy} is due, and the job is read once more before")
            }
            Self::Deletes { policy } => format!("the job has ended; {policy} is due"),
            Self::CleanedUp => "the job has ended, and all rules are carried out".to_owned(),
            Self::Releases => "being deleted; nothing of it runs, so it is let go".to_owned(),
            Self::Released => "being deleted; released by this controller".to_owned(),
        }
    }

    fn blockers(&self) -> Vec<Blocker> {
        match self {
            Self::Stops { until: at }
            | Self::NotDue { at }
            | Self::EndInFuture { at, .. }
            | Self::NoAnswer { until: at }
            | Self::AwaitsSubmitter { until: at } => vec![Blocker::Until { at: *at }],
            Self::Clears { left } => {
                let left = left.iter().cloned();
                left.map(|dependent| Blocker::Dependent { dependent })
                    .collect()
            }
            Self::Gone
            | Self::ManagedElsewhere
            | Self::Invalid { .. }
            | Self::Recovers
            | Self::Begins
            | Self::MakesCluster
            | Self::Refused { .. }
            | Self::ClusterTaken
            | Self::AwaitsCluster
            | Self::AwaitsDashboard
            | Self::ClusterReady
            | Self::AwaitsSubmission
            | Self::AsksForCluster
            | Self::AsksRay
            | Self::StoresIntent
            | Self::Submits
            | Self::Submitted
            | Self::Runs
            | Self::Ends
            | Self::Fails { .. }
            | Self::Suspends
            | Self::Cleared
            | Self::Suspended
            | Self::Kept
            | Self::Uncovered
            | Self::Confirms { .. }
            | Self::Deletes { .. }
            | Self::CleanedUp
            | Self::Releases
            | Self::Released => Vec::new(),
        }
    }
}
