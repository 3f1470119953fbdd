//! The API as its clients see it: requests in, answers and watch lines out.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panic, its helpers too"
)]

mod collections;
mod crds;
mod deletion;
mod discovery;
mod errors;
mod grace;
mod lists;
mod metadata;
mod namespaces;
mod patches;
mod races;
mod watches;
mod world;
