//! What happens inside of the engine, counted for logs and metrics. No decision looks at it, and it is no part of
//! what is saved.

use std::collections::BTreeMap;

/// How many different things without a grant are kept; the words name objects.
const UNGRANTED_MAX: usize = 64;

/// What was counted since it was last taken.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tally {
    /// Decisions, by controller and code of the reason.
    pub decisions: BTreeMap<(&'static str, &'static str), u64>,
    /// What no grant covered and so did not leave: by whom, and what. Anything here is a defect of ours.
    pub ungranted: Vec<(&'static str, String)>,
}

/// What a controller has still to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backlog {
    pub controller: &'static str,
    /// Keys that are ready to be decided on.
    pub ready: usize,
    /// How often a key had to wait because an effect failed, since the start.
    pub failures: u64,
}

impl Tally {
    pub(crate) fn decided(&mut self, by: &'static str, code: &'static str) {
        *self.decisions.entry((by, code)).or_default() += 1;
    }

    pub(crate) fn ungranted(&mut self, by: &'static str, what: String) {
        if self.ungranted.len() < UNGRANTED_MAX {
            self.ungranted.push((by, what));
        }
    }

    /// Whether nothing was counted.
    pub fn is_empty(&self) -> bool {
        self.decisions.is_empty() && self.ungranted.is_empty()
    }
}
