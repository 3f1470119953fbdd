//! Why names stand as they do.

use sundown_model::Explain;

/// What the decision concluded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reason {
    Gone,
    /// Somebody else names its endpoints.
    NoSelector,
    /// The slice is as it should be.
    Listed {
        endpoints: usize,
    },
    Lists {
        endpoints: usize,
    },
    /// There is no node that could be told.
    NodeAway,
    Announced {
        names: usize,
    },
    Announces {
        names: usize,
    },
}

impl Explain for Reason {
    fn code(&self) -> &'static str {
        match self {
            Self::Gone => "Gone",
            Self::NoSelector => "NoSelector",
            Self::Listed { .. } => "Listed",
            Self::Lists { .. } => "Lists",
            Self::NodeAway => "NodeAway",
            Self::Announced { .. } => "Announced",
            Self::Announces { .. } => "Announces",
        }
    }

    fn sentence(&self) -> String {
        match self {
            Self::Gone => "the service is gone or goes".to_owned(),
            Self::NoSelector => "the service has no selector; others list its endpoints".to_owned(),
            Self::Listed { endpoints } => format!("{endpoints} endpoints are listed"),
            Self::Lists { endpoints } => format!("{endpoints} endpoints are to be listed"),
            Self::NodeAway => "the node has not reported".to_owned(),
            Self::Announced { names } => format!("the node knows all {names} names"),
            Self::Announces { names } => format!("the node is told {names} names"),
        }
    }
}
