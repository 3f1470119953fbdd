//! Why a namespace is still there.

use sundown_model::{Blocker, Explain, Resource};

use crate::emptying::Left;

/// What the namespace decision concluded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reason {
    Gone,
    Active,
    /// Its content is being deleted.
    Empties {
        count: usize,
    },
    /// What is left waits for finalizers of others, or must not be deleted.
    Blocked(Left),
    /// What keeps the rest was written down a moment ago.
    Told {
        left: usize,
    },
    AwaitsObservation {
        blind: Vec<Resource>,
    },
    /// Nothing is left; it is about to be said, because the namespace stays for others.
    Emptied,
    Empty,
    /// An object goes along with its namespace.
    GoesAlong,
    /// An object of the namespace waits for its pods to go first.
    AwaitsPods {
        pods: usize,
    },
    /// An object of the namespace is on its way out.
    Terminating,
    /// This controller has done its part.
    Released,
}

impl Explain for Reason {
    fn code(&self) -> &'static str {
        match self {
            Self::Gone => "Gone",
            Self::Active => "Active",
            Self::Empties { .. } => "Empties",
            Self::Blocked(_) => "Blocked",
            Self::Told { .. } => "Told",
            Self::AwaitsObservation { .. } => "AwaitsObservation",
            Self::Emptied => "Emptied",
            Self::Empty => "Empty",
            Self::GoesAlong => "GoesAlong",
            Self::AwaitsPods { .. } => "AwaitsPods",
            Self::Terminating => "Terminating",
            Self::Released => "Released",
        }
    }

    fn sentence(&self) -> String {
        match self {
            Self::Gone => "the namespace is gone".to_owned(),
            Self::Active => "the namespace is in use".to_owned(),
            Self::Empties { count } => format!("terminating; {count} objects are to be deleted"),
            Self::Blocked(left) if left.refused.is_empty() => {
                let count = left.held.len();
                format!("terminating; {count} objects have yet to go")
            }
            Self::Blocked(left) => {
                let (count, refused) = (left.held.len(), left.refused.len());
                format!("terminating; {count} objects have yet to go, {refused} may not be deleted")
            }
            Self::Told { left } => format!("terminating; {left} objects have yet to go"),
            Self::AwaitsObservation { blind } if blind.is_empty() => {
                "terminating; makes sure that nothing is left".to_owned()
            }
            Self::AwaitsObservation { blind } => {
                format!("terminating; {blind:?} cannot be listed")
            }
            Self::Emptied | Self::Empty => "terminating and empty".to_owned(),
            Self::GoesAlong => "its namespace is terminating; it goes along".to_owned(),
            Self::AwaitsPods { pods: 0 } => {
                "its namespace is terminating; makes sure that no pod is left in it".to_owned()
            }
            Self::AwaitsPods { pods } => {
                format!("its namespace is terminating; {pods} pods go first")
            }
            Self::Terminating => "goes along with its namespace".to_owned(),
            Self::Released => "terminating; released by this controller".to_owned(),
        }
    }

    fn blockers(&self) -> Vec<Blocker> {
        match self {
            Self::Blocked(left) => left.blockers(),
            Self::AwaitsObservation { blind } => blind
                .iter()
                .map(|resource| Blocker::Unobservable {
                    resource: resource.clone(),
                })
                .collect(),
            Self::Gone
            | Self::Active
            | Self::Empties { .. }
            | Self::Told { .. }
            | Self::Emptied
            | Self::Empty
            | Self::GoesAlong
            | Self::AwaitsPods { .. }
            | Self::Terminating
            | Self::Released => Vec::new(),
        }
    }
}
