//! The durable store: every group of commits is one batch of fjall, synced before anything of it is
//! visible; a start checks that nothing acknowledged is missing and refuses to go on otherwise.
//!
//! fjall takes an undecodable entry of its journal for the end of it, so what it gives back is not
//! believed: a high-water revision lies outside the journal, revisions must be contiguous, every
//! record has a checksum, and each log record carries the checksum of the whole state after it.
//! What an object means, and who may write, is left to the server.

mod damage;
mod directory;
mod disk;
mod high_water;
mod record;
mod recovery;
mod relaxed;
mod scratch;

pub use damage::Damage;
pub use directory::Hold;
pub use disk::{AppendError, Disk, Keep, OpenError, Options, RELAXED_MAX};
pub use record::Sum;
pub use recovery::Summary;
