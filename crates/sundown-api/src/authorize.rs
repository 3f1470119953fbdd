//! Who may do what: roles and bindings as upstream's RBAC authorizer reads them (plugin/pkg/auth/authorizer/rbac).
//!
//! One function answers for requests, for reviews and for the checks that other verbs make; who asks was
//! established before by whoever brought the request.

mod attributes;
mod bindings;
mod caller;
mod escalation;
mod impersonate;
mod owners;
mod policy;
mod rule;

use std::collections::BTreeSet;
use std::fmt;

pub(crate) use attributes::Attributes;
pub(crate) use bindings::Bindings;
pub use caller::{Caller, Proof};
pub use impersonate::Impersonation;
pub(crate) use policy::lay_in;
pub(crate) use rule::Rule;

use crate::document::Document;
use crate::failure::Failure;
use crate::route::{Route, Target, route};
use crate::{Request, Response, Server, User};
use bindings::{Binding, Granted};

/// The group whose members may do everything, whatever roles say.
const MASTERS: &str = "system:masters";

/// How many missing roles a refusal names.
pub(crate) const MISSING_MAX: usize = 20;

/// The API group of roles and bindings.
pub(crate) const GROUP: &str = "rbac.authorization.k8s.io";

/// How requests are judged.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Authorization {
    /// By the stored roles and bindings; a new server begins with those of every cluster.
    #[default]
    Rbac,
    /// Everybody with credentials may do everything. There are no default roles.
    AlwaysAllow,
}

/// What the roles say to a request.
#[derive(Debug)]
pub(crate) enum Decision<'a> {
    /// By whom, if a binding was asked at all.
    Allowed(Option<&'a Granted>),
    /// No rule allows it. Why rules may be missing: references to roles that are not there.
    NoOpinion(Vec<String>),
}

impl Decision<'_> {
    pub(crate) fn is_allowed(&self) -> bool {
        matches!(self, Self::Allowed(_))
    }
}

/// The reason in upstream's words; empty if there is none.
impl fmt::Display for Decision<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Allowed(None) => Ok(()),
            Self::Allowed(Some(granted)) => write!(f, "RBAC: allowed by {granted}"),
            Self::NoOpinion(errors) => match errors.as_slice() {
                [] => Ok(()),
                // The union of authorizers, here of one, puts its name before what it says in vain.
                [one] => write!(f, "rbac: RBAC: {one}"),
                many => write!(f, "rbac: RBAC: [{}]", many.join(", ")),
            },
        }
    }
}

/// Whether the roles are not even asked.
pub(crate) fn is_master(user: &User) -> bool {
    user.groups.iter().any(|group| group == MASTERS)
}

impl Server {
    /// Whether callers without credentials are let in, as `system:anonymous`. Where nothing is judged they
    /// are not, as upstream keeps them out with `AlwaysAllow`: they would be every user of the machine.
    pub fn takes_anonymous(&self) -> bool {
        self.bindings().is_some()
    }

    /// Whether the caller may do this. Looks at the head of the request only, so that the shell can ask
    /// before it reads the body; `handle` asks again.
    ///
    /// Errors: the answer for a caller who may not.
    pub fn authorize(&self, request: &Request) -> Result<(), Response> {
        if self.bindings().is_none() || is_master(&request.user) {
            return Ok(());
        }
        let attributes = Attributes::of(request);
        // What was judged must be what is done. Only a custom resource with the name of a special
        // path (`watch`, `status`) can differ, which upstream does not serve either.
        if let Route::Resource(target) = route(self.registry(), &request.path)
            && !attributes.is_about(&target)
        {
            return Err(Failure::no_such_resource().response());
        }
        match self.may(&attributes) {
            Decision::Allowed(_) => Ok(()),
            denied @ Decision::NoOpinion(_) => {
                Err(Failure::unauthorized(&attributes, &denied.to_string()).response())
            }
        }
    }

    /// Whether the user of these attributes may do what they say.
    pub(crate) fn may<'a>(&'a self, attributes: &Attributes<'a>) -> Decision<'a> {
        let Some(bindings) = self.bindings() else {
            return Decision::Allowed(None);
        };
        if is_master(attributes.user) {
            return Decision::Allowed(None);
        }
        let mut errors: Vec<String> = Vec::new();
        for granted in bindings.held(attributes.user, attributes.namespace) {
            let Some(rules) = bindings.rules(self.store(), &granted.binding.role) else {
                // Told to whoever is refused: its size and cost are not for the author of bindings to choose.
                if errors.len() < MISSING_MAX {
                    let error = granted.binding.missing_role();
                    if !errors.contains(&error) {
                        errors.push(error);
                    }
                }
                continue;
            };
            if rules.iter().any(|rule| rule.allows(attributes)) {
                return Decision::Allowed(Some(granted));
            }
        }
        Decision::NoOpinion(errors)
    }

    /// What a user holds in a namespace: each binding once, with the rules of its role if that is there.
    pub(crate) fn held<'a>(
        &'a self,
        user: &'a User,
        namespace: &'a str,
    ) -> impl Iterator<Item = (&'a Binding, Option<&'a [Rule]>)> {
        let mut seen = BTreeSet::new();
        let bindings = self.bindings().into_iter();
        bindings
            .flat_map(move |bindings| {
                bindings
                    .held(user, namespace)
                    .map(move |it| (bindings, &*it.binding))
            })
            .filter(move |(_, binding)| seen.insert(&binding.key))
            .map(|(bindings, binding)| (binding, bindings.rules(self.store(), &binding.role)))
    }
}

/// A write of an object, which may need more than the right to its verb.
struct Change<'a> {
    server: &'a Server,
    user: &'a User,
    target: &'a Target,
    /// None: it is created.
    old: Option<&'a Document>,
    new: &'a Document,
}

/// Checks what a write needs beyond its verb: rights that it gives away, owners that it takes.
pub(crate) fn check_write(
    server: &Server,
    user: &User,
    target: &Target,
    old: Option<&Document>,
    new: &Document,
) -> Result<(), Failure> {
    let change = Change {
        server,
        user,
        target,
        old,
        new,
    };
    change.check_grants()?;
    change.check_owners()
}

impl Change<'_> {
    fn namespace(&self) -> &str {
        self.target.namespace.as_deref().unwrap_or("")
    }

    fn forbidden(&self, why: &str) -> Failure {
        Failure::forbidden(&self.target.ty, &self.new.metadata.name, why, None)
    }
}

#[cfg(test)]
mod tests;
