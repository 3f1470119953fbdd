//! Revisions, snapshots, transactions and the watch log, as plain data.
//!
//! [`Store`] is a value: a clone is a snapshot, a commit makes a new state. What an object means is
//! the API's business; how commits reach a disk is the server's.
#![deny(clippy::wildcard_enum_match_arm)]

mod body;
mod encode;
mod log;
mod revision;
mod store;
mod stored;

pub use body::{Body, Parts};
pub use log::{Compacted, Event, History};
pub use revision::Revision;
pub use store::{Committed, Restored, Stale, Store, Transaction, Write};
pub use stored::Stored;
