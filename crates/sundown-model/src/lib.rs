//! The contract of the house: look at a snapshot, decide as a value, apply it somewhere else.
//!
//! Everything here is plain data. What a controller sees ([`Cache`], [`Facts`]), what it may say
//! ([`Decision`]) and how it is asked ([`Controller`]) live here; who runs it does not.
#![deny(clippy::wildcard_enum_match_arm)]

mod cache;
mod catalog;
mod controller;
mod decision;
pub mod dns;
mod explain;
mod facts;
mod name;
pub mod node;
mod object;
mod outcome;
pub mod path;
mod port;
pub mod quantity;
pub mod ray;
mod recent;
mod redacted;
mod revision;

pub use cache::{Cache, Put, Table};
pub use catalog::{Catalog, Resolved, ResourceType, Verb};
pub use controller::{Change, Controller, Form, Grant, Interest, Permit, Scope, Sight};
pub use decision::{
    ACTIONS_MAX, Action, Actions, Decision, Draft, Need, Note, Part, Patch, Propagation, Write,
};
pub use explain::{Blocker, Explain, Why};
pub use facts::{Facts, FailedFact, LiveFact, RefusalFact, Streak};
pub use name::{KnownKind, Namespace, ObjectKey, Resource, Uid};
pub use object::{Deletion, Malformed, Object, OwnerRef};
pub use outcome::{Answer, Outcome, Refusal, RefusalReason};
pub use port::{
    Deed, DeedFact, DeedOutcome, DeedReason, DeedRefusal, Port, Question, Reply, ReplyFact, Report,
    Subject, What,
};
pub use quantity::Quantity;
pub use redacted::{byte_count, is_redacted, redacted, redacted_label};
pub use revision::{Position, Rv, Seen, Step};
