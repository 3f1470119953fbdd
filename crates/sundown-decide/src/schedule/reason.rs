//! Why a pod has its node, or none yet.

use sundown_model::Explain;

/// What the decision concluded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reason {
    Gone,
    /// It has a node, is over, or is another scheduler's.
    NotPending,
    /// Nobody has registered the node.
    NoNode,
    Gated,
    Unschedulable {
        message: String,
    },
    /// Too many heavy pods start already.
    AwaitsStarts {
        starting: usize,
    },
    Binds,
    /// A round over all pending pods.
    Round {
        bound: usize,
        waiting: usize,
    },
}

impl Explain for Reason {
    fn code(&self) -> &'static str {
        match self {
            Self::Gone => "Gone",
            Self::NotPending => "NotPending",
            Self::NoNode => "NoNode",
            Self::Gated => "Gated",
            Self::Unschedulable { .. } => "Unschedulable",
            Self::AwaitsStarts { .. } => "AwaitsStarts",
            Self::Binds => "Binds",
            Self::Round { .. } => "Round",
        }
    }

    fn sentence(&self) -> String {
        match self {
            Self::Gone => "the pod is gone".to_owned(),
            Self::NotPending => "the pod is not pending".to_owned(),
            Self::NoNode => "no node is registered".to_owned(),
            Self::Gated => "the pod has scheduling gates".to_owned(),
            Self::Unschedulable { message } => message.clone(),
            Self::AwaitsStarts { starting } => {
                format!("waiting for {starting} other pods to start")
            }
            Self::Binds => "scheduled".to_owned(),
            Self::Round { bound, waiting } => {
                format!("{bound} pods scheduled, {waiting} waiting")
            }
        }
    }
}
