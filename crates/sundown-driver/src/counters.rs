//! How many requests left, by what they were for. Tests ask it whether the engine is silent at
//! rest; metrics will read the same numbers.

use std::sync::{Mutex, PoisonError};

use serde::Serialize;
use sundown_engine::{Effect, Input};
use sundown_model::{Outcome, RefusalReason, Write};

/// Requests since the start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    pub discover: u64,
    pub list: u64,
    pub watch: u64,
    pub get: u64,
    pub barrier: u64,
    pub create: u64,
    pub patch: u64,
    pub delete: u64,
    /// Writes that the server refused because the object had changed.
    pub conflicts: u64,
    /// Writes that the server refused for another reason.
    pub refused: u64,
    /// Writes whose fate is not known.
    pub unknown: u64,
    /// Effects that panicked. Anything but 0 is a bug in Sundown.
    pub panicked: u64,
    /// Requests of any sort for which the server says that rights are missing.
    pub forbidden: u64,
}

impl Counts {
    /// All requests but the opening of watches, which end and begin again at rest.
    pub fn requests(&self) -> u64 {
        self.discover + self.list + self.get + self.barrier + self.writes()
    }

    /// Requests that change something.
    pub fn writes(&self) -> u64 {
        self.create + self.patch + self.delete
    }
}

/// What a request is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    Discover,
    List,
    Watch,
    Get,
    Barrier,
    Create,
    Patch,
    Delete,
}

impl Purpose {
    /// What the request of an effect is for; None where an effect is no request.
    pub(crate) fn of(effect: &Effect) -> Option<Self> {
        match effect {
            Effect::Discover { .. } => Some(Self::Discover),
            Effect::List { .. } => Some(Self::List),
            Effect::Watch { .. } => Some(Self::Watch),
            Effect::Unwatch { .. } | Effect::Ask { .. } | Effect::Do { .. } => None,
            Effect::Get { .. } => Some(Self::Get),
            Effect::Barrier { .. } => Some(Self::Barrier),
            Effect::Write { write, .. } => Some(match write {
                Write::Create(_) => Self::Create,
                Write::Patch { .. } => Self::Patch,
                Write::Delete { .. } | Write::Finish { .. } => Self::Delete,
            }),
        }
    }
}

#[derive(Debug, Default)]
pub(crate) struct Counters(Mutex<Counts>);

impl Counters {
    pub(crate) fn counts(&self) -> Counts {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn sent(&self, purpose: Purpose) {
        self.add(|counts| match purpose {
            Purpose::Discover => &mut counts.discover,
            Purpose::List => &mut counts.list,
            Purpose::Watch => &mut counts.watch,
            Purpose::Get => &mut counts.get,
            Purpose::Barrier => &mut counts.barrier,
            Purpose::Create => &mut counts.create,
            Purpose::Patch => &mut counts.patch,
            Purpose::Delete => &mut counts.delete,
        });
    }

    pub(crate) fn forbidden(&self) {
        self.add(|counts| &mut counts.forbidden);
    }

    pub(crate) fn answered(&self, input: &Input) {
        let Input::Wrote { outcome, .. } = input else {
            return;
        };
        match outcome {
            Outcome::Refused(refusal) if refusal.reason == RefusalReason::Conflict => {
                self.add(|counts| &mut counts.conflicts);
            }
            Outcome::Unknown => self.add(|counts| &mut counts.unknown),
            Outcome::Refused(_) => self.add(|counts| &mut counts.refused),
            Outcome::Done(_) => {}
        }
    }

    pub(crate) fn panicked(&self) {
        self.add(|counts| &mut counts.panicked);
    }

    fn add(&self, number: impl FnOnce(&mut Counts) -> &mut u64) {
        // Counting cannot panic, so a poisoned lock still holds whole numbers.
        *number(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner)) += 1;
    }
}
