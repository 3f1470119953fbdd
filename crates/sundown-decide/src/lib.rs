//! The controllers, as pure decisions. One module per controller; `view` reads, `decide` chooses.
#![deny(clippy::wildcard_enum_match_arm)]

pub mod crd;
pub mod kinds;
pub mod namespace;
pub mod owner_gc;
mod shipped;
#[cfg(test)]
mod testing;
pub mod ttl;

pub use crd::Definitions;
pub use namespace::Namespaces;
pub use owner_gc::OwnerGc;
pub use shipped::{Crew, shipped};
pub use ttl::Ttl;

/// Whether mutated rules are compiled in; what is shipped asserts that they are not.
pub const HAS_MUTANTS: bool = cfg!(feature = "mutants");
