//! Rules of before. The simulator puts them back and has to notice; a shipped build has no way to.

use jiff::SignedDuration;

/// A rule that is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lapse {
    /// Each effect of a decision that fails is a failure of its own.
    CountsEachEffect,
    /// Whatever is answered counts as done.
    BelievesAnswers,
    /// A decision that waits for an instant ends a row of failures.
    WaitsEndRows,
}

/// How the failures of a key are counted, and how long it waits for them.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Patience {
    /// The wait after the first failure.
    pub(crate) first: SignedDuration,
    pub(crate) lapse: Option<Lapse>,
}

#[cfg(feature = "mutants")]
impl crate::Engine {
    /// The same with a rule that is wrong.
    ///
    /// Assumes: it has no controllers yet.
    #[must_use]
    pub fn lapsed(mut self, lapse: Lapse) -> Self {
        self.lapse = Some(lapse);
        self
    }
}
