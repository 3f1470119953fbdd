//! Writes that came to nothing, or may have, as facts: a decision that cannot wait for them goes on without.
//! What follows for those who wait is in `replies`.

use jiff::Timestamp;
use sundown_model::{Outcome, Part, RefusalReason};

use crate::engine::Engine;
use crate::sent::SentWrite;

impl Engine {
    /// Remembers that a write failed, for whatever reason.
    pub(crate) fn note_failed(&mut self, write: &SentWrite, outcome: &Outcome, now: Timestamp) {
        if !has_failed(write, outcome) {
            return;
        }
        let facts = &mut self.state.facts;
        match write {
            SentWrite::Delete { at, .. } => {
                facts.set_failed_delete(at.key.clone(), at.uid.clone(), now);
            }
            SentWrite::Create(draft) => facts.set_failed_write(draft.key.clone(), now),
            SentWrite::Patch { at, part, .. } if *part == Part::Main => {
                facts.set_failed_write(at.key.clone(), now);
            }
            SentWrite::Patch { .. } | SentWrite::Finish { .. } => {}
        }
    }
}

/// What is there already needs not be made, and what is gone not be deleted. Another writer who is faster each
/// time keeps an object from going as well as one who refuses.
fn has_failed(write: &SentWrite, outcome: &Outcome) -> bool {
    match outcome {
        Outcome::Done(_) => false,
        Outcome::Unknown => true,
        Outcome::Refused(refusal) => match refusal.reason {
            RefusalReason::Forbidden | RefusalReason::Invalid | RefusalReason::Busy => true,
            RefusalReason::NotFound => matches!(write, SentWrite::Create(_)),
            RefusalReason::Conflict => matches!(write, SentWrite::Delete { .. }),
            RefusalReason::AlreadyExists => false,
        },
    }
}
