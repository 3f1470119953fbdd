//! The number of a write. Store-wide and ordered, unlike the `Rv` of clients, who may only compare
//! within one resource.

use std::fmt;

use sundown_model::Rv;

/// The number of one write; also the state after it.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Revision(u64);

impl Revision {
    /// The state before any write.
    pub const ZERO: Self = Self(0);

    /// The revision with this number.
    pub fn new(number: u64) -> Self {
        Self(number)
    }

    /// Reads the decimal text of a resourceVersion; None for anything else.
    pub fn parse(text: &str) -> Option<Self> {
        text.parse().ok().map(Self)
    }

    /// The number itself.
    pub fn number(self) -> u64 {
        self.0
    }

    /// The revision of the write after this one.
    #[must_use]
    pub fn next(self) -> Self {
        Self(self.0 + 1)
    }

    /// The form that clients see.
    pub fn rv(self) -> Rv {
        Rv::new(self.0)
    }
}

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

impl fmt::Debug for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "r{}", self.0)
    }
}
