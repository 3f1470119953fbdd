//! Reasons in words. The same reason goes to the log, the event, the metric label and `explain`.

use std::borrow::Cow;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::{ObjectKey, Resource};

/// Implemented by the closed enum of reasons of each controller.
pub trait Explain: std::fmt::Debug {
    /// A stable CamelCase word: metric label, event reason, test name.
    fn code(&self) -> &'static str;

    /// One sentence for people, without a full stop.
    fn sentence(&self) -> String;

    /// What has to go (or to come) before the object goes. Empty when nothing holds it.
    fn blockers(&self) -> Vec<Blocker> {
        Vec::new()
    }
}

/// Why something is done: the reason of a decision, on its way with what was decided.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Why {
    /// As [`Explain::code`].
    pub code: Cow<'static, str>,
    /// As [`Explain::sentence`].
    pub sentence: String,
}

impl Why {
    /// What a reason says.
    pub fn of(reason: &impl Explain) -> Self {
        Self {
            code: Cow::Borrowed(reason.code()),
            sentence: reason.sentence(),
        }
    }
}

/// Something that keeps an object from going.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", tag = "type")]
pub enum Blocker {
    /// A finalizer that is not ours to remove.
    Finalizer { on: ObjectKey, finalizer: String },
    /// An owner that exists and does not wait for its dependents.
    Owner { owner: ObjectKey },
    /// A dependent that blocks its owner's foreground deletion.
    Dependent { dependent: ObjectKey },
    /// Something that still uses a deleted claim or volume.
    User { user: ObjectKey },
    /// An object that the API server refuses to delete.
    Refused { object: ObjectKey },
    /// Objects of this resource cannot be observed.
    Unobservable { resource: Resource },
    /// An owner reference names a kind that is not served.
    UnknownKind { api_version: String, kind: String },
    /// It is too early.
    Until { at: Timestamp },
}
