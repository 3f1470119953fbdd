//! What lies beyond the API server: questions, deeds, and what became of them.

use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::{ObjectKey, Step, Uid, node, ray};

/// Where something beyond the API server is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Port {
    Ray,
    Node,
}

/// What may be asked there.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Question {
    Ray(ray::Query),
    Node(node::Query),
}

/// What was answered. That nobody answered is an answer too: a fact with an age.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Reply {
    Ray(Result<ray::Answer, ray::Failure>),
    Node(Result<node::Answer, String>),
}

impl Question {
    /// Where it is asked.
    pub fn port(&self) -> Port {
        match self {
            Self::Ray(_) => Port::Ray,
            Self::Node(_) => Port::Node,
        }
    }

    /// What it asks, in words.
    pub fn in_words(&self) -> String {
        match self {
            Self::Ray(query) => query.in_words(),
            Self::Node(query) => query.in_words(),
        }
    }

    /// The answer where there is no such port; the message says so.
    pub fn unreachable(&self, message: String) -> Reply {
        match self {
            Self::Ray(_) => Reply::Ray(Err(ray::Failure::unreachable(message))),
            Self::Node(_) => Reply::Node(Err(message)),
        }
    }

    /// The answer of a port that broke at it; the message says so.
    pub fn broken(&self, message: String) -> Reply {
        match self {
            Self::Ray(_) => Reply::Ray(Err(ray::Failure::unreachable(message))),
            Self::Node(query) => Reply::Node(query.broken(message)),
        }
    }
}

impl Reply {
    /// Of which of its two sorts an answer is; None when there was none, or there are no sorts. That Ray gives
    /// none is one.
    pub(crate) fn is_well(&self) -> Option<bool> {
        match self {
            Self::Ray(answer) => Some(answer.is_ok()),
            Self::Node(answer) => answer.as_ref().ok().map(node::Answer::is_well),
        }
    }
}

/// What a port says by itself.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Report {
    Node(node::Report),
}

/// What may be done there, on account of an object.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Deed {
    /// A brake on this object holds the deed back.
    pub about: ObjectKey,
    pub what: What,
}

impl Deed {
    /// What it does, in words, without what it carries.
    pub fn in_words(&self) -> String {
        match &self.what {
            What::Ray(call) => call.in_words(&self.about),
            What::Node(call) => call.in_words(&self.about),
        }
    }
}

/// What is to be done.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum What {
    Ray(ray::Call),
    Node(node::Call),
}

impl What {
    /// Where it is done.
    pub fn port(&self) -> Port {
        match self {
            Self::Ray(_) => Port::Ray,
            Self::Node(_) => Port::Node,
        }
    }

    /// What it is done to, so that its outcome can be found again.
    pub fn subject(&self) -> Subject {
        match self {
            Self::Ray(call) => call.subject(),
            Self::Node(call) => call.subject(),
        }
    }

    /// Whether the decision itself says how often it is tried, as it has a bound to keep. Every other deed that
    /// came to nothing has a pause, which grows.
    pub fn is_paced_by_decision(&self) -> bool {
        match self {
            Self::Ray(call) => matches!(call, ray::Call::Stop { .. }),
            Self::Node(_) => false,
        }
    }

    /// The outcome where there is no such port; the message says so.
    pub fn unreachable(&self, message: String) -> DeedOutcome {
        let reason = match self {
            Self::Ray(_) => DeedReason::Ray(ray::Refused::Unreachable),
            Self::Node(_) => DeedReason::Node(node::Refused::Unreachable),
        };
        DeedOutcome::Refused(DeedRefusal::new(reason, message))
    }

    /// The outcome at a port that broke at it; the message says so.
    pub fn broken(&self, message: String) -> DeedOutcome {
        match self {
            // A job may have been submitted: Ray is asked before it is submitted again.
            Self::Ray(_) => DeedOutcome::Unknown { message },
            // The node does nothing twice and tells what became of it; a refusal is what people are shown.
            Self::Node(_) => {
                DeedOutcome::Refused(DeedRefusal::new(node::Refused::Panicked, message))
            }
        }
    }
}

/// What a deed is done to.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Subject {
    Submission(ray::Dashboard, std::sync::Arc<str>),
    Stop(ray::Dashboard, std::sync::Arc<str>),
    Pod(Uid),
    Release(Uid),
    Removal(Uid),
    Run(node::Run),
    Hook(node::Run),
    Signal(node::Run, i32),
    Image(std::sync::Arc<str>),
    Names,
}

/// What became of a deed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum DeedOutcome {
    Done,
    /// Nothing was done, for certain.
    Refused(DeedRefusal),
    /// Sent, fate not known; what was answered, if anything was.
    Unknown {
        message: String,
    },
}

impl DeedOutcome {
    /// Sent, and nobody answered.
    pub fn unanswered() -> Self {
        let message = String::new();
        Self::Unknown { message }
    }
}

/// Why nothing was done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeedRefusal {
    pub reason: DeedReason,
    /// In Sundown's own words, without secrets.
    pub message: String,
    /// What Ray or a program of the pod said, word for word; it follows the message. A flight record hides it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub quote: String,
    /// The object without which it cannot be done, or without whose other content. It is not tried
    /// again before that changes; that is for the decision to see.
    #[serde(default)]
    pub missing: Option<ObjectKey>,
}

impl DeedRefusal {
    /// A refusal in our own words.
    pub fn new(reason: impl Into<DeedReason>, message: impl Into<String>) -> Self {
        Self {
            reason: reason.into(),
            message: message.into(),
            quote: String::new(),
            missing: None,
        }
    }

    /// The same, with what Ray or a program of the pod said about it.
    #[must_use]
    pub fn quoting(self, quote: impl Into<String>) -> Self {
        let quote = quote.into();
        Self { quote, ..self }
    }

    /// The same, because of an object: nothing is tried again before that changes.
    #[must_use]
    pub fn for_lack_of(self, object: ObjectKey) -> Self {
        let missing = Some(object);
        Self { missing, ..self }
    }

    /// The whole text.
    pub fn text(&self) -> String {
        format!("{}{}", self.message, self.quote)
    }
}

/// Why a port refused: each has a closed set of reasons, so that a decision looks at all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum DeedReason {
    Ray(ray::Refused),
    Node(node::Refused),
}

impl From<ray::Refused> for DeedReason {
    fn from(refused: ray::Refused) -> Self {
        Self::Ray(refused)
    }
}

impl From<node::Refused> for DeedReason {
    fn from(refused: node::Refused) -> Self {
        Self::Node(refused)
    }
}

/// The CamelCase word that log lines and `sundown replay` show.
impl fmt::Display for DeedReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ray(refused) => write!(f, "{refused:?}"),
            Self::Node(refused) => write!(f, "{refused:?}"),
        }
    }
}

/// An answer to a question, with its age.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReplyFact {
    /// Asked after this step.
    pub asked: Step,
    pub answered_at: Timestamp,
    pub reply: Reply,
}

/// The outcome of the last deed on a subject.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeedFact {
    /// Sent after this step.
    #[serde(default)]
    pub asked: Step,
    pub ended_at: Timestamp,
    pub outcome: DeedOutcome,
    /// How often in a row such a deed came to nothing, or may have; counted by [`crate::Facts::set_deed`].
    #[serde(default)]
    pub failures: u32,
}
