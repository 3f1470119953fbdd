//! A write once it has left: what its answer is judged by, and what a record tells of it.
//!
//! A write that can leave is made of what was seen, and neither can be read from a file. What was sent can,
//! and cannot be sent again.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use sundown_model::{Draft, Object, ObjectKey, Part, Patch, Propagation, Rv, Seen, Uid, Write};

use crate::effect::Effect;

/// An effect that has left.
pub type SentEffect = Effect<SentWrite>;

/// A write that has left.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename = "Write")]
pub enum SentWrite {
    Create(Arc<Draft>),
    Patch {
        at: SentTarget,
        part: Part,
        patch: Patch,
    },
    Delete {
        at: SentTarget,
        how: Propagation,
    },
    Finish {
        at: SentTarget,
    },
}

/// What a write was about, as it had been seen.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename = "Seen")]
pub struct SentTarget {
    pub key: ObjectKey,
    pub uid: Uid,
    pub rv: Rv,
}

impl SentWrite {
    /// The object that is written to.
    pub fn key(&self) -> &ObjectKey {
        match self {
            Self::Create(draft) => &draft.key,
            Self::Patch { at, .. } | Self::Delete { at, .. } | Self::Finish { at } => &at.key,
        }
    }
}

impl From<&Write> for SentWrite {
    fn from(write: &Write) -> Self {
        match write {
            Write::Create(draft) => Self::Create(Arc::clone(draft)),
            Write::Patch { at, part, patch } => Self::Patch {
                at: at.into(),
                part: *part,
                patch: patch.clone(),
            },
            Write::Delete { at, how } => Self::Delete {
                at: at.into(),
                how: *how,
            },
            Write::Finish { at } => Self::Finish { at: at.into() },
        }
    }
}

impl SentTarget {
    /// Whether an object is still as it had been seen.
    pub(crate) fn is(&self, object: &Object) -> bool {
        (&self.key, &self.uid, self.rv) == (object.key(), object.uid(), object.rv())
    }
}

impl fmt::Debug for SentTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (uid {}, {:?})", self.key, self.uid, self.rv)
    }
}

impl From<&Seen> for SentTarget {
    fn from(seen: &Seen) -> Self {
        Self {
            key: seen.key().clone(),
            uid: seen.uid().clone(),
            rv: seen.rv(),
        }
    }
}

impl From<&Effect> for SentEffect {
    fn from(effect: &Effect) -> Self {
        match effect.clone() {
            Effect::Discover { id } => Self::Discover { id },
            Effect::List { id, ty, form, next } => Self::List { id, ty, form, next },
            Effect::Watch { id, ty, form, from } => Self::Watch { id, ty, form, from },
            Effect::Unwatch { id } => Self::Unwatch { id },
            Effect::Get { id, ty, form, key } => Self::Get { id, ty, form, key },
            Effect::Barrier { id, types } => Self::Barrier { id, types },
            Effect::Write {
                id,
                ty,
                form,
                by,
                why,
                write,
            } => Self::Write {
                id,
                ty,
                form,
                by,
                why,
                write: (&write).into(),
            },
            Effect::Ask { id, question } => Self::Ask { id, question },
            Effect::Do { id, by, why, deed } => Self::Do { id, by, why, deed },
        }
    }
}
