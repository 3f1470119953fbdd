//! Revisions, and what may be compared with what.
//!
//! A resourceVersion orders the writes of one resource and nothing else, so [`Rv`] and [`Position`]
//! have no order of their own: the only comparison names the resource on both sides.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{Object, ObjectKey, Resource, Uid};

/// A resourceVersion. Deliberately without an order: see [`Position::reaches`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Rv(u64);

impl Rv {
    /// The revision with this number.
    pub fn new(number: u64) -> Self {
        Self(number)
    }

    /// Reads the decimal text that the API carries; None for anything else.
    pub fn parse(text: &str) -> Option<Self> {
        text.parse().ok().map(Self)
    }
}

impl fmt::Display for Rv {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

impl fmt::Debug for Rv {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rv{}", self.0)
    }
}

/// How far the history of one resource has been seen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Position {
    resource: Resource,
    rv: Rv,
}

impl Position {
    /// The position of a resource at a revision.
    pub fn new(resource: Resource, rv: Rv) -> Self {
        Self { resource, rv }
    }

    /// The resource whose history this is.
    pub fn resource(&self) -> &Resource {
        &self.resource
    }

    /// The revision.
    pub fn rv(&self) -> Rv {
        self.rv
    }

    /// Whether this position is at or past the other; None when they speak of two resources.
    pub fn reaches(&self, other: &Self) -> Option<bool> {
        (self.resource == other.resource).then_some(self.rv.0 >= other.rv.0)
    }
}

/// An object as it was observed: the only way to name something that shall be changed or deleted.
///
/// It can only be taken from an [`Object`] that an API server showed, so an unguarded delete or
/// patch cannot be written down.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Seen {
    key: ObjectKey,
    uid: Uid,
    rv: Rv,
}

impl Seen {
    pub(crate) fn of(object: &Object) -> Self {
        Self {
            key: object.key.clone(),
            uid: object.uid.clone(),
            rv: object.rv,
        }
    }

    /// Where it was seen.
    pub fn key(&self) -> &ObjectKey {
        &self.key
    }

    /// Which incarnation was seen.
    pub fn uid(&self) -> &Uid {
        &self.uid
    }

    /// At which revision.
    pub fn rv(&self) -> Rv {
        self.rv
    }
}

impl fmt::Debug for Seen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (uid {}, {:?})", self.key, self.uid, self.rv)
    }
}

/// A moment in the engine's own life: what was asked after a step has seen all that happened before
/// it. Steps order observations of different resources without comparing their revisions.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Step(u64);

impl Step {
    /// The step after this one.
    #[must_use]
    pub fn next(self) -> Self {
        Self(self.0 + 1)
    }
}
