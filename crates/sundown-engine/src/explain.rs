//! What a decision says about an object, in words and as data. `sundown explain` prints it.

use jiff::Timestamp;
use serde::Serialize;
use sundown_model::{Action, Blocker, Need, Note, Part, Propagation, Write};

/// What one controller thinks of an object.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Explanation {
    pub controller: &'static str,
    pub code: &'static str,
    pub sentence: String,
    pub blockers: Vec<Blocker>,
    /// What it would ask first.
    pub needs: Vec<Need>,
    /// What it does next, in words.
    pub actions: Vec<String>,
    /// When it looks again, if nothing happens before.
    pub wake_at: Option<Timestamp>,
}

pub(crate) fn action_in_words(action: &Action) -> String {
    match action {
        Action::Api(Write::Create(draft)) => format!("create {}", draft.key),
        Action::Api(Write::Patch { at, part, .. }) => match part {
            Part::Main => format!("patch {}", at.key()),
            Part::Status => format!("patch the status of {}", at.key()),
            Part::Finalize => format!("finalize {}", at.key()),
            Part::Binding => format!("bind {} to its node", at.key()),
        },
        Action::Api(Write::Delete { at, how }) => match how {
            Propagation::Background => format!("delete {}", at.key()),
            Propagation::Foreground => format!("delete {} after its dependents", at.key()),
            Propagation::Orphan => format!("delete {} and keep its dependents", at.key()),
        },
        Action::Api(Write::Finish { at }) => format!("finish the deletion of {}", at.key()),
        Action::Tell(Note { about, reason, .. }) => format!("report {reason} on {about}"),
        Action::Do(deed) => deed.in_words(),
    }
}
