//! What is told when a data directory cannot be trusted. How to go on is the reader's choice.

use std::path::PathBuf;

use sundown_store::Revision;

/// Why a start was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the data in {} is damaged: {what}", path.display())]
pub struct Damage {
    /// The data directory.
    pub path: PathBuf,
    /// What is damaged.
    pub what: String,
    /// The newest revision whose whole state is proven; None when none is.
    pub last_good: Option<Revision>,
    /// The newest revision that was acknowledged, as far as is known.
    pub acknowledged: Option<Revision>,
}

impl Damage {
    /// The revision to name in order to go on without what is lost; zero starts empty.
    pub fn way_on(&self) -> Revision {
        self.last_good.unwrap_or(Revision::ZERO)
    }
}
