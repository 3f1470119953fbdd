//! The API as its clients see it: requests in, answers and watch lines out.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panic, its helpers too"
)]

mod access;
mod builtins;
mod collections;
mod crds;
mod deletion;
mod discovery;
mod encodings;
mod errors;
mod grace;
mod granting;
mod hostile;
mod lists;
mod metadata;
mod namespaces;
mod openapi_v2;
mod parts;
mod patches;
mod races;
mod ray_kinds;
mod reviews;
mod schemas;
mod support;
mod tokens;
mod watches;
mod world;
