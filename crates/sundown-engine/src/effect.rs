//! The engine's border: what it asks for, and what it is told. Both are data, so that a flight can
//! be recorded and flown again.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use sundown_model::{
    Catalog, Deed, DeedOutcome, Form, Namespace, Object, ObjectKey, Outcome, Position, Question,
    Reply, Report, Resource, ResourceType, Rv, Why, Write,
};

/// Names one effect, so that its answer can be told from others.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct EffectId(pub(crate) u64);

impl fmt::Debug for EffectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{}", self.0)
    }
}

/// Something that shall be done outside. A write can be sent; a record has a form of it that cannot.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Effect<W = Write> {
    /// Ask what is served.
    Discover { id: EffectId },
    /// One page of a consistent list.
    List {
        id: EffectId,
        ty: Arc<ResourceType>,
        form: Form,
        next: Option<String>,
    },
    /// Open a watch after this revision; its events come until `Closed`.
    Watch {
        id: EffectId,
        ty: Arc<ResourceType>,
        form: Form,
        from: Rv,
    },
    /// Close a watch; nothing is expected back.
    Unwatch { id: EffectId },
    /// A consistent read of one object.
    Get {
        id: EffectId,
        ty: Arc<ResourceType>,
        form: Form,
        key: ObjectKey,
    },
    /// How far have these resources come? Their positions, at or after now.
    Barrier {
        id: EffectId,
        types: Vec<Arc<ResourceType>>,
    },
    /// Change the world.
    Write {
        id: EffectId,
        ty: Arc<ResourceType>,
        form: Form,
        by: String,
        why: Arc<Why>,
        write: W,
    },
    /// Ask beyond the API server.
    Ask { id: EffectId, question: Question },
    /// Do something beyond the API server.
    Do {
        id: EffectId,
        by: String,
        why: Arc<Why>,
        deed: Deed,
    },
}

impl<W> Effect<W> {
    /// The id under which the answer is expected.
    pub fn id(&self) -> EffectId {
        match self {
            Self::Discover { id }
            | Self::List { id, .. }
            | Self::Watch { id, .. }
            | Self::Unwatch { id }
            | Self::Get { id, .. }
            | Self::Barrier { id, .. }
            | Self::Write { id, .. }
            | Self::Ask { id, .. }
            | Self::Do { id, .. } => *id,
        }
    }

    /// What it is, in a word.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Discover { .. } => "discover",
            Self::List { .. } => "list",
            Self::Watch { .. } => "watch",
            Self::Unwatch { .. } => "unwatch",
            Self::Get { .. } => "get",
            Self::Barrier { .. } => "barrier",
            Self::Write { .. } => "write",
            Self::Ask { .. } => "ask",
            Self::Do { .. } => "do",
        }
    }
}

/// Something that happened outside.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Input {
    /// Whether this engine may act. Without leadership it only watches.
    Lead(bool),
    Brake(Brake),
    Discovered {
        id: EffectId,
        result: Result<Catalog, Failure>,
    },
    Listed {
        id: EffectId,
        result: Result<Page, Failure>,
    },
    Watched {
        id: EffectId,
        event: WatchEvent,
    },
    Got {
        id: EffectId,
        result: Result<Option<Arc<Object>>, Failure>,
    },
    Positions {
        id: EffectId,
        result: Result<Vec<Position>, Failure>,
    },
    Wrote {
        id: EffectId,
        outcome: Outcome,
    },
    Answered {
        id: EffectId,
        reply: Reply,
    },
    /// A deed ended.
    Done {
        id: EffectId,
        outcome: DeedOutcome,
    },
    /// A port said something by itself.
    Reported(Report),
}

/// One page of a list.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Page {
    pub objects: Vec<Arc<Object>>,
    /// The revision of the whole list.
    pub rv: Rv,
    /// Set when there is another page.
    pub next: Option<String>,
}

/// One event of a watch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum WatchEvent {
    /// Added or modified: the cache knows which.
    Put(Arc<Object>),
    Deleted(Arc<Object>),
    Bookmark(Rv),
    /// The stream is over. Expired: the revision is no longer in the history, list again.
    Closed {
        expired: bool,
    },
}

/// A read that brought no answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{message}")]
pub struct Failure {
    pub message: String,
    /// The list token or revision is too old: begin again.
    pub expired: bool,
}

/// What must not be touched for now. Needs are still asked, decisions still made.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Brake {
    pub all: bool,
    pub namespaces: BTreeSet<Namespace>,
    pub resources: BTreeSet<Resource>,
}

impl Brake {
    /// Everything stands still.
    pub fn everything() -> Self {
        Self {
            all: true,
            ..Self::default()
        }
    }

    /// Whether writes to this key are held back.
    pub fn holds(&self, key: &ObjectKey) -> bool {
        self.all
            || self.resources.contains(&key.resource)
            || key
                .namespace
                .as_ref()
                .is_some_and(|namespace| self.namespaces.contains(namespace))
    }
}
