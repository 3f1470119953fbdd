//! Why the rules of a role are as they are.

use sundown_model::Explain;

/// What the decision about a role concluded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    Gone,
    /// It selects no other roles.
    OwnRules,
    Terminating,
    /// Not all roles are known yet.
    AwaitsRoles,
    UpToDate,
    Aggregates,
}

impl Explain for Reason {
    fn code(&self) -> &'static str {
        match self {
            Self::Gone => "Gone",
            Self::OwnRules => "OwnRules",
            Self::Terminating => "Terminating",
            Self::AwaitsRoles => "AwaitsRoles",
            Self::UpToDate => "UpToDate",
            Self::Aggregates => "Aggregates",
        }
    }

    fn sentence(&self) -> String {
        let said = match self {
            Self::Gone => "the role is gone",
            Self::OwnRules => "its rules are its own",
            Self::Terminating => "terminating; its rules stay as they are",
            Self::AwaitsRoles => "waiting until all cluster roles are known",
            Self::UpToDate => "has the rules of the roles that it selects",
            Self::Aggregates => "gets the rules of the roles that it selects",
        };
        said.to_owned()
    }
}
