//! Rules that lost or kept something, of peers and of before. The simulator puts them back and has to notice; a
//! shipped build has no way to.

/// A rule that is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lapse {
    /// kubernetes#65200, #92743: owners are found by uid alone.
    UidOnly,
    /// Owners that wait for each other wait for ever.
    WaitsInCircles,
    /// What is served counts as known, however long ago it was asked for.
    TrustsCatalog,
}

#[cfg(feature = "mutants")]
impl super::OwnerGc {
    /// The same with a rule that is wrong.
    #[must_use]
    pub fn lapsed(mut self, lapse: Lapse) -> Self {
        self.lapse = Some(lapse);
        self
    }
}
