//! Kubernetes verbs over a snapshot: request in, answer or transaction out.
//!
//! Plain data throughout: [`Server`] is `Clone`, reads no clock and keeps no lock, so that the HTTPS
//! shell, the in-process client and the simulator run the same code.
#![deny(clippy::wildcard_enum_match_arm)]

mod authorize;
mod builtin;
mod commit;
mod create;
mod custom;
mod decode;
mod delete;
mod delete_collection;
mod deletion;
mod discovery;
mod document;
mod encoding;
mod facts;
mod failure;
mod field;
mod fields;
mod go_json;
mod http;
mod list;
mod logs;
mod negotiate;
mod openapi;
mod options;
mod patch;
mod protobuf;
mod registry;
mod render;
mod reviews;
mod route;
mod scale;
mod selector;
mod server;
mod strategy;
mod table;
mod timeout;
mod tokens;
mod update;
mod validate;
mod view;
mod watch;
mod yaml;

use sundown_model::{dns, quantity};

pub use authorize::{Authorization, Caller, Impersonation, Proof};
pub use builtin::is_about_server;
pub use commit::{Commit, Stale};
pub use encoding::Encoding;
pub use http::{Method, Request, Response, User};
pub use logs::Log;
pub use reviews::user_info;
pub use server::{Called, Config, Cx, Server, Verdict};
pub use tokens::ISSUER;
pub use watch::{Polled, Watch};
