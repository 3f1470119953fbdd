//! Why a namespace is still there.

use sundown_model::{Blocker, Explain, ObjectKey, Resource};

/// What the namespace decision concluded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reason {
    Gone,
    Active,
    /// Its content is being deleted.
    Empties {
        count: usize,
    },
    /// What is left waits for finalizers of others.
    Blocked {
        by: Vec<(ObjectKey, Vec<String>)>,
    },
    AwaitsObservation {
        blind: Vec<Resource>,
    },
    Empty,
    /// This controller has done its part.
    Released,
}

impl Explain for Reason {
    fn code(&self) -> &'static str {
        match self {
            Self::Gone => "Gone",
            Self::Active => "Active",
            Self::Empties { .. } => "Empties",
            Self::Blocked { .. } => "Blocked",
            Self::AwaitsObservation { .. } => "AwaitsObservation",
            Self::Empty => "Empty",
            Self::Released => "Released",
        }
    }

    fn sentence(&self) -> String {
        match self {
            Self::Gone => "the namespace is gone".to_owned(),
            Self::Active => "the namespace is in use".to_owned(),
            Self::Empties { count } => format!("terminating; {count} objects are to be deleted"),
            Self::Blocked { by } => {
                format!(
                    "terminating; {} objects wait for their finalizers",
                    by.len()
                )
            }
            Self::AwaitsObservation { blind } if blind.is_empty() => {
                "terminating; makes sure that nothing is left".to_owned()
            }
            Self::AwaitsObservation { blind } => {
                format!("terminating; {blind:?} cannot be listed")
            }
            Self::Empty => "terminating and empty".to_owned(),
            Self::Released => "terminating; released by this controller".to_owned(),
        }
    }

    fn blockers(&self) -> Vec<Blocker> {
        match self {
            Self::Blocked { by } => by
                .iter()
                .flat_map(|(key, finalizers)| {
                    finalizers.iter().map(|finalizer| Blocker::Finalizer {
                        on: key.clone(),
                        finalizer: finalizer.clone(),
                    })
                })
                .collect(),
            Self::AwaitsObservation { blind } => blind
                .iter()
                .map(|resource| Blocker::Unobservable {
                    resource: resource.clone(),
                })
                .collect(),
            Self::Gone | Self::Active | Self::Empties { .. } | Self::Empty | Self::Released => {
                Vec::new()
            }
        }
    }
}
