//! Rules that lost or held up something, of peers and of before. The simulator puts them back and has to notice; a
//! shipped build has no way to.

#[cfg(feature = "mutants")]
mod twice;

#[cfg(feature = "mutants")]
pub use twice::Twice;

/// A rule that is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lapse {
    /// KEP-5080: nothing waits for the pods.
    AnyOrder,
    /// What is served counts as known, however long ago it was asked for.
    TrustsCatalog,
    /// Objects go one after the other, and one that may not go is in front of the rest.
    HeadOfLine,
    /// What keeps the namespace is written whenever it changes.
    TellsAtOnce,
}

#[cfg(feature = "mutants")]
impl super::Namespaces {
    /// The same with a rule that is wrong.
    #[must_use]
    pub fn lapsed(mut self, lapse: Lapse) -> Self {
        self.lapse = Some(lapse);
        self
    }
}
