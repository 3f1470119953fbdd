//! Kubernetes verbs over a snapshot: request in, answer or transaction out.
//!
//! Plain data throughout: [`Server`] is `Clone`, reads no clock and keeps no lock, so that the HTTPS
//! shell, the in-process client and the simulator run the same code.
#![deny(clippy::wildcard_enum_match_arm)]

mod commit;
mod create;
mod delete;
mod delete_collection;
mod deletion;
mod discovery;
mod dns;
mod document;
mod failure;
mod field;
mod http;
mod list;
mod negotiate;
mod openapi;
mod options;
mod patch;
mod registry;
mod render;
mod route;
mod selector;
mod server;
mod strategy;
mod update;
mod validate;
mod watch;

pub use commit::{Commit, Stale};
pub use http::{Method, Request, Response, User};
pub use server::{Called, Config, Cx, Server, Verdict};
pub use watch::{Polled, Watch};
