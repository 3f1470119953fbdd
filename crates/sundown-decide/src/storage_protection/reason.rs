//! Why storage is still there.

use sundown_model::{Blocker, Explain, ObjectKey, Resource};

/// What the decision about a claim or a volume concluded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reason {
    Gone,
    /// It was not deleted.
    Wanted,
    /// It was deleted, and these still use it.
    InUse {
        by: Vec<ObjectKey>,
    },
    /// Users may exist that have not been seen.
    AwaitsObservation {
        blind: Option<Resource>,
    },
    /// It was deleted and has no user.
    Unused,
    /// This controller has done its part.
    Released,
}

impl Explain for Reason {
    fn code(&self) -> &'static str {
        match self {
            Self::Gone => "Gone",
            Self::Wanted => "Wanted",
            Self::InUse { .. } => "InUse",
            Self::AwaitsObservation { .. } => "AwaitsObservation",
            Self::Unused => "Unused",
            Self::Released => "Released",
        }
    }

    fn sentence(&self) -> String {
        match self {
            Self::Gone => "the storage is gone".to_owned(),
            Self::Wanted => "the storage is not to be deleted".to_owned(),
            Self::InUse { by } => {
                let by: Vec<_> = by.iter().map(ToString::to_string).collect();
                format!("terminating; still used by {}", by.join(", "))
            }
            Self::AwaitsObservation { blind: None } => {
                "terminating; makes sure that it is not in use".to_owned()
            }
            Self::AwaitsObservation { blind: Some(blind) } => {
                format!("terminating; {blind} cannot be listed")
            }
            Self::Unused => "terminating and not in use".to_owned(),
            Self::Released => "terminating; released by this controller".to_owned(),
        }
    }

    fn blockers(&self) -> Vec<Blocker> {
        match self {
            Self::InUse { by } => {
                let by = by.iter().cloned();
                by.map(|user| Blocker::User { user }).collect()
            }
            Self::AwaitsObservation { blind } => {
                let blind = blind.iter().cloned();
                let unobservable = blind.map(|resource| Blocker::Unobservable { resource });
                unobservable.collect()
            }
            Self::Gone | Self::Wanted | Self::Unused | Self::Released => Vec::new(),
        }
    }
}
