//! The durable store: every group of commits is one batch of fjall, synced before anything of it is
//! visible; a start checks that nothing acknowledged is missing and refuses to go on otherwise.
//!
//! fjall takes an undecodable entry of its journal for the end of it, so what it gives back is not
//! believed: a high-water revision lies outside the journal, revisions must be contiguous, every
//! record has a checksum, and each log record carries the checksum of the whole state after it.
//! What an object means, and who may write, is left to the server.

mod claim;
mod damage;
mod directory;
mod disk;
mod held;
mod high_water;
mod lock;
mod record;
mod recovery;
mod relaxed;
mod scratch;

pub use claim::Refusal;
pub use damage::Damage;
pub use directory::{Hold, find, is_in_use, prepare, while_free};
pub use disk::{AppendError, Disk, Keep, OpenError, Options, RELAXED_MAX};
pub use record::Sum;
pub use recovery::Summary;

/// Where everything of a data directory lies that its control plane keeps, replaces and removes.
pub fn state(directory: &std::path::Path) -> std::path::PathBuf {
    directory.join(claim::STATE)
}
