//! What became of a write.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::Object;

/// The end of one write, as far as it is known.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Outcome {
    Done(Answer),
    Refused(Refusal),
    /// Sent, fate not known: the target has to be read before anything else is decided on it.
    Unknown,
}

/// What a successful write gave back.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Answer {
    /// The object as it is now.
    Object(Arc<Object>),
    /// The object that was addressed is no more.
    Gone,
    /// Done, without a word on what the object is now: it has to be read.
    Accepted,
}

/// An answer that says no, with certainty that nothing was done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusal {
    pub reason: RefusalReason,
    pub message: String,
    /// The server asked to wait this long.
    pub retry_after_seconds: Option<u32>,
}

/// Why a write was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum RefusalReason {
    /// The addressed incarnation is not there.
    NotFound,
    /// It changed, or another one bears its name.
    Conflict,
    AlreadyExists,
    /// Not allowed: RBAC, admission, or our own grants.
    Forbidden,
    /// The server will never accept this request as it is.
    Invalid,
    /// The server is busy, starting or throttling.
    Busy,
}
