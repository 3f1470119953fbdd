//! The controllers, as pure decisions. One module per controller; `view` reads, `decide` chooses.
#![deny(clippy::wildcard_enum_match_arm)]

pub mod kinds;
pub mod owner_gc;
#[cfg(test)]
mod testing;
pub mod ttl;

pub use owner_gc::OwnerGc;
pub use ttl::Ttl;
