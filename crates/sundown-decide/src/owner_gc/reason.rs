//! Why an object is kept, changed or deleted.

use sundown_model::{Blocker, Explain, Need, ObjectKey, Resource};

/// What the collector concluded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reason {
    Gone,
    NoOwners,
    /// At least one owner lives.
    Owned {
        holders: Vec<ObjectKey>,
    },
    /// It is held, but some references are of no use any more.
    PrunesReferences {
        holders: Vec<ObjectKey>,
    },
    AsksAboutOwners {
        needs: Vec<Need>,
    },
    /// More owners would have to be asked about than answers are remembered.
    TooManyOwners {
        count: usize,
    },
    UnknownOwnerKind {
        api_version: String,
        kind: String,
    },
    /// A cluster-scoped object names a namespaced owner.
    Misplaced {
        owner: String,
    },
    OwnersGone,
    OwnersWaiting {
        owners: Vec<ObjectKey>,
    },
    /// An owner is being deleted and its dependents are to stay.
    LetGo,
    /// It is being deleted, and it is not yet known who depends on it.
    AwaitsObservation {
        blind: Vec<Resource>,
    },
    WaitsForDependents {
        dependents: Vec<ObjectKey>,
    },
    Emptied,
    /// It waits only for itself, around a circle of owners.
    Circle {
        others: Vec<ObjectKey>,
    },
    LetsDependentsGo {
        dependents: Vec<ObjectKey>,
    },
    AllLetGo,
    Terminating {
        key: ObjectKey,
        finalizers: Vec<String>,
    },
}

impl Explain for Reason {
    fn code(&self) -> &'static str {
        match self {
            Self::Gone => "Gone",
            Self::NoOwners => "NoOwners",
            Self::Owned { .. } => "Owned",
            Self::PrunesReferences { .. } => "PrunesReferences",
            Self::AsksAboutOwners { .. } => "AsksAboutOwners",
            Self::TooManyOwners { .. } => "TooManyOwners",
            Self::UnknownOwnerKind { .. } => "UnknownOwnerKind",
            Self::Misplaced { .. } => "Misplaced",
            Self::OwnersGone => "OwnersGone",
            Self::OwnersWaiting { .. } => "OwnersWaiting",
            Self::LetGo => "LetGo",
            Self::AwaitsObservation { .. } => "AwaitsObservation",
            Self::WaitsForDependents { .. } => "WaitsForDependents",
            Self::Emptied => "Emptied",
            Self::Circle { .. } => "Circle",
            Self::LetsDependentsGo { .. } => "LetsDependentsGo",
            Self::AllLetGo => "AllLetGo",
            Self::Terminating { .. } => "Terminating",
        }
    }

    fn sentence(&self) -> String {
        match self {
            Self::Gone => "the object is gone".to_owned(),
            Self::NoOwners => "no owner, so the collector never touches it".to_owned(),
            Self::Owned { holders } => format!("held by {}", list(holders)),
            Self::PrunesReferences { holders } => {
                format!(
                    "held by {}; references to other owners are dropped",
                    list(holders)
                )
            }
            Self::AsksAboutOwners { needs } => {
                format!("asks about {} of its owners first", needs.len())
            }
            Self::TooManyOwners { count } => format!(
                "names {count} owners, too many to ask about each; it stays until references to those that are gone are removed"
            ),
            Self::UnknownOwnerKind { api_version, kind } => {
                format!("names an owner of kind {kind} in {api_version}, which is not served")
            }
            Self::Misplaced { owner } => format!(
                "a cluster-scoped object cannot be owned by {owner}, which lives in a namespace"
            ),
            Self::OwnersGone => "all its owners are gone".to_owned(),
            Self::OwnersWaiting { owners } => {
                format!("{} is deleted in foreground and waits for it", list(owners))
            }
            Self::LetGo => "its owner is deleted and leaves its dependents behind".to_owned(),
            Self::AwaitsObservation { blind } if blind.is_empty() => {
                "being deleted; makes sure that all dependents are seen".to_owned()
            }
            Self::AwaitsObservation { blind } => {
                format!("being deleted; {} cannot be listed", list(blind))
            }
            Self::WaitsForDependents { dependents } => {
                format!(
                    "being deleted in foreground; waits for {}",
                    list(dependents)
                )
            }
            Self::Emptied => "being deleted in foreground; nothing blocks it any more".to_owned(),
            Self::Circle { others } if others.is_empty() => {
                "being deleted in foreground; it owns itself and waits for nothing else".to_owned()
            }
            Self::Circle { others } => format!(
                "being deleted in foreground; it waits only for itself, around a circle of owners with {}",
                list(others)
            ),
            Self::LetsDependentsGo { dependents } => {
                format!("being deleted; lets go {}", list(dependents))
            }
            Self::AllLetGo => "being deleted; all dependents are let go".to_owned(),
            Self::Terminating { finalizers, .. } if finalizers.is_empty() => {
                "being deleted; the collector has no part in it".to_owned()
            }
            Self::Terminating { finalizers, .. } => {
                format!(
                    "being deleted; waits for finalizer {}",
                    finalizers.join(", ")
                )
            }
        }
    }

    fn blockers(&self) -> Vec<Blocker> {
        match self {
            Self::Owned { holders } | Self::PrunesReferences { holders } => holders
                .iter()
                .map(|owner| Blocker::Owner {
                    owner: owner.clone(),
                })
                .collect(),
            Self::UnknownOwnerKind { api_version, kind } => {
                let (api_version, kind) = (api_version.clone(), kind.clone());
                vec![Blocker::UnknownKind { api_version, kind }]
            }
            Self::AwaitsObservation { blind } => blind
                .iter()
                .map(|resource| Blocker::Unobservable {
                    resource: resource.clone(),
                })
                .collect(),
            Self::WaitsForDependents { dependents } | Self::LetsDependentsGo { dependents } => {
                let blocker = |key: &ObjectKey| Blocker::Dependent {
                    dependent: key.clone(),
                };
                dependents.iter().map(blocker).collect()
            }
            Self::Terminating { key, finalizers } => finalizers
                .iter()
                .map(|name| Blocker::Finalizer {
                    on: key.clone(),
                    finalizer: name.clone(),
                })
                .collect(),
            Self::Gone
            | Self::NoOwners
            | Self::AsksAboutOwners { .. }
            | Self::TooManyOwners { .. }
            | Self::Misplaced { .. }
            | Self::OwnersGone
            | Self::OwnersWaiting { .. }
            | Self::LetGo
            | Self::Emptied
            | Self::Circle { .. }
            | Self::AllLetGo => Vec::new(),
        }
    }
}

/// The first few, and how many more.
fn list(things: &[impl std::fmt::Display]) -> String {
    const SHOWN_MAX: usize = 3;
    let shown: Vec<_> = things
        .iter()
        .take(SHOWN_MAX)
        .map(ToString::to_string)
        .collect();
    match things.len().saturating_sub(SHOWN_MAX) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}
