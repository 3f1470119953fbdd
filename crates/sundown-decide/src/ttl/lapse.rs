//! Rules that would delete a job too early. The simulator puts them in and has to notice; a shipped build has no way
//! to.

/// A rule that is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lapse {
    /// A job whose finish time is missing counts as finished now.
    GuessesFinishTime,
    /// A job goes as soon as it has finished.
    ForgetsTtl,
}

#[cfg(feature = "mutants")]
impl super::Ttl {
    /// The same with a rule that is wrong.
    #[must_use]
    pub fn lapsed(mut self, lapse: Lapse) -> Self {
        self.lapse = Some(lapse);
        self
    }
}
