//! What a decision says about an object, in words and as data. `sundown explain` prints it.

use std::borrow::Cow;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use sundown_model::{Action, Blocker, Need, Note, Part, Propagation, Write};

use crate::effect::Effect;

/// What one controller thinks of an object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Explanation {
    pub controller: Cow<'static, str>,
    pub code: Cow<'static, str>,
    pub sentence: String,
    pub blockers: Vec<Blocker>,
    /// What it would ask first.
    pub needs: Vec<Need>,
    /// What it does next, in words.
    pub actions: Vec<String>,
    /// When it looks again, if nothing happens before.
    pub wake_at: Option<Timestamp>,
}

impl Effect {
    /// What is done to the world, in words, without what it carries; None: nothing is.
    pub fn deed_in_words(&self) -> Option<String> {
        match self {
            Self::Write { write, .. } => Some(write_in_words(write)),
            Self::Do { deed, .. } => Some(deed.in_words()),
            Self::Discover { .. }
            | Self::List { .. }
            | Self::Watch { .. }
            | Self::Unwatch { .. }
            | Self::Get { .. }
            | Self::Barrier { .. }
            | Self::Ask { .. } => None,
        }
    }
}

pub(crate) fn action_in_words(action: &Action) -> String {
    match action {
        Action::Api(write) => write_in_words(write),
        Action::Tell(Note { about, reason, .. }) => format!("report {reason} on {about}"),
        Action::Do(deed) => deed.in_words(),
    }
}

fn write_in_words(write: &Write) -> String {
    match write {
        Write::Create(draft) => format!("create {}", draft.key),
        Write::Patch { at, part, .. } => match part {
            Part::Main => format!("patch {}", at.key()),
            Part::Status => format!("patch the status of {}", at.key()),
            Part::Finalize => format!("finalize {}", at.key()),
            Part::Binding => format!("bind {} to its node", at.key()),
        },
        Write::Delete { at, how } => match how {
            Propagation::Background => format!("delete {}", at.key()),
            Propagation::Foreground => format!("delete {} after its dependents", at.key()),
            Propagation::Orphan => format!("delete {} and keep its dependents", at.key()),
        },
        Write::Finish { at } => format!("finish the deletion of {}", at.key()),
    }
}
