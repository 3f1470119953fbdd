//! Why a `CustomResourceDefinition` is still there.

use sundown_model::{Blocker, Explain, ObjectKey, Resource};

use crate::emptying::Left;

/// What the decision about a definition concluded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reason {
    Gone,
    Active,
    /// Its instances are being deleted.
    Empties,
    /// What is left waits for finalizers of others, or must not be deleted.
    Blocked(Left),
    /// An instance goes along with its definition.
    GoesAlong,
    /// An instance is on its way out.
    Terminating,
    AwaitsObservation {
        blind: Option<Resource>,
    },
    /// No instance is left; it is about to be said.
    Emptied,
    /// The collector has not dealt with these yet, and could not any more once the kind is gone.
    AwaitsCollector {
        dependents: Vec<ObjectKey>,
    },
    Empty,
    /// It was never served, so that it has no instances.
    NeverEstablished,
    /// This controller has done its part.
    Released,
}

impl Explain for Reason {
    fn code(&self) -> &'static str {
        match self {
            Self::Gone => "Gone",
            Self::Active => "Active",
            Self::Empties => "Empties",
            Self::GoesAlong => "GoesAlong",
            Self::Terminating => "Terminating",
            Self::Blocked(_) => "Blocked",
            Self::AwaitsObservation { .. } => "AwaitsObservation",
            Self::Emptied => "Emptied",
            Self::AwaitsCollector { .. } => "AwaitsCollector",
            Self::Empty => "Empty",
            Self::NeverEstablished => "NeverEstablished",
            Self::Released => "Released",
        }
    }

    fn sentence(&self) -> String {
        match self {
            Self::Gone => "the definition is gone".to_owned(),
            Self::Active => "the definition is in use".to_owned(),
            Self::Empties => "terminating; its instances are being deleted".to_owned(),
            Self::Blocked(left) if left.refused.is_empty() => {
                let count = left.held.len();
                format!("terminating; {count} instances wait for their finalizers")
            }
            Self::Blocked(left) => {
                let (count, refused) = (left.held.len(), left.refused.len());
                format!(
                    "terminating; {count} instances wait for their finalizers, {refused} may not be deleted"
                )
            }
            Self::GoesAlong => "its definition is terminating; it goes along".to_owned(),
            Self::Terminating => "goes along with its definition".to_owned(),
            Self::AwaitsObservation { blind: None } => {
                "terminating; makes sure that no instance is left".to_owned()
            }
            Self::AwaitsObservation {
                blind: Some(resource),
            } => {
                format!("terminating; {resource} cannot be listed")
            }
            Self::Emptied => "terminating; no instance is left".to_owned(),
            Self::AwaitsCollector { dependents } => {
                let count = dependents.len();
                format!("terminating; {count} dependents of its instances are to be collected")
            }
            Self::Empty => "terminating and without instances".to_owned(),
            Self::NeverEstablished => "terminating; it was never served".to_owned(),
            Self::Released => "terminating; released by this controller".to_owned(),
        }
    }

    fn blockers(&self) -> Vec<Blocker> {
        match self {
            Self::Blocked(left) => left.blockers(),
            Self::AwaitsObservation { blind } => {
                let blind = blind.iter().cloned();
                blind
                    .map(|resource| Blocker::Unobservable { resource })
                    .collect()
            }
            Self::AwaitsCollector { dependents } => {
                let dependents = dependents.iter().cloned();
                dependents
                    .map(|dependent| Blocker::Dependent { dependent })
                    .collect()
            }
            Self::Gone
            | Self::Active
            | Self::Empties
            | Self::GoesAlong
            | Self::Terminating
            | Self::Emptied
            | Self::Empty
            | Self::NeverEstablished
            | Self::Released => Vec::new(),
        }
    }
}
