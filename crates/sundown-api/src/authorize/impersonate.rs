//! Acting as somebody else: the `Impersonate-*` headers of a request, and who may send them
//! (apiserver, endpoints/filters/impersonation).
//!
//! Upstream asks in several ways, the narrowest first: whether the caller may do just this while acting as
//! such a user (`impersonate-on:MODE:VERB` and `impersonate:MODE`), then whether it may act as that user at
//! all (`impersonate`). What it tells of a node that a pod runs on is left out: our tokens name no node.

use std::collections::BTreeMap;

use sundown_model::dns;

use super::{Attributes, Decision, MASTERS};
use crate::failure::Failure;
use crate::http::AUTHENTICATED;
use crate::{Request, Response, Server, User};

const AUTHENTICATION: &str = "authentication.k8s.io";
const ANONYMOUS: &str = "system:anonymous";
const UNAUTHENTICATED: &str = "system:unauthenticated";

/// What the headers of a request ask for, as they were sent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Impersonation {
    /// `Impersonate-User`.
    pub user: String,
    /// `Impersonate-Uid`.
    pub uid: String,
    /// `Impersonate-Group`.
    pub groups: Vec<String>,
    /// `Impersonate-Extra-KEY`.
    pub extra: BTreeMap<String, Vec<String>>,
}

/// One way of asking.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    ArbitraryNode,
    ServiceAccount,
    UserInfo,
    Legacy,
}

const MODES: [Mode; 4] = [
    Mode::ArbitraryNode,
    Mode::ServiceAccount,
    Mode::UserInfo,
    Mode::Legacy,
];

impl Server {
    /// Whom a request of this user acts as, and the request as that user's.
    ///
    /// Errors: the answer for a caller who may not act so.
    pub fn impersonate(
        &self,
        wanted: &Impersonation,
        request: &mut Request,
    ) -> Result<(), Response> {
        if *wanted == Impersonation::default() {
            return Ok(());
        }
        if wanted.user.is_empty() {
            let message = format!(
                "requested {} without impersonating a user name",
                wanted.in_go()
            );
            return Err(Failure::bad_request(message).response());
        }
        let mut first = None;
        for mode in MODES.into_iter().filter(|mode| mode.applies_to(wanted)) {
            match self.acting(mode, wanted, request) {
                Ok(user) => {
                    request.user = user;
                    return Ok(());
                }
                Err(failure) => {
                    first.get_or_insert(failure);
                }
            }
        }
        let failure = first.expect("the last way applies to everybody");
        Err(failure.response())
    }

    fn acting(
        &self,
        mode: Mode,
        wanted: &Impersonation,
        request: &Request,
    ) -> Result<User, Failure> {
        let asked = Attributes::of(request);
        if let Some(name) = mode.name() {
            let verb = format!("impersonate-on:{name}:{}", asked.verb);
            self.check(&Attributes {
                verb: &verb,
                ..asked
            })?;
        }
        let verb = mode.name().map(|name| format!("impersonate:{name}"));
        let verb = verb.as_deref().unwrap_or("impersonate");
        let group = if mode == Mode::Legacy {
            ""
        } else {
            AUTHENTICATION
        };
        let on = |group, resource, name| Attributes {
            name,
            ..Attributes::on(&request.user, verb, group, resource)
        };
        let mut acting = User {
            name: wanted.user.clone(),
            uid: wanted.uid.clone(),
            groups: wanted.groups.clone(),
            extra: wanted.extra.clone(),
        };
        if let Some((namespace, name)) = account(&wanted.user) {
            if wanted.groups.is_empty() {
                acting.groups = User::service_account(namespace, name).groups;
                acting.groups.retain(|group| group != AUTHENTICATED);
            }
            self.check(&Attributes {
                namespace,
                ..on(group, "serviceaccounts", name)
            })?;
        } else if let Some(node) = node(&wanted.user).filter(|_| mode == Mode::ArbitraryNode) {
            acting.groups = vec!["system:nodes".to_owned()];
            self.check(&on(group, "nodes", node))?;
        } else {
            self.check(&on(group, "users", &wanted.user))?;
        }
        if !wanted.uid.is_empty() {
            self.check(&on(AUTHENTICATION, "uids", &wanted.uid))?;
        }
        self.check_groups(mode, &wanted.groups, &on(group, "groups", ""))?;
        self.check_extra(mode, &wanted.extra, &on(AUTHENTICATION, "userextras", ""))?;
        complete(&mut acting);
        Ok(acting)
    }

    fn check_groups(
        &self,
        mode: Mode,
        groups: &[String],
        on: &Attributes<'_>,
    ) -> Result<(), Failure> {
        if mode != Mode::Legacy && groups.iter().any(String::is_empty) {
            let why = "impersonating the empty string group is not allowed";
            return Err(Failure::unauthorized(on, why));
        }
        if mode != Mode::Legacy && groups.iter().any(|group| group == MASTERS) {
            let on = Attributes {
                name: MASTERS,
                ..*on
            };
            let why = "impersonating the system:masters group is not allowed";
            return Err(Failure::unauthorized(&on, why));
        }
        groups
            .iter()
            .try_for_each(|name| self.check(&Attributes { name, ..*on }))
    }

    fn check_extra(
        &self,
        mode: Mode,
        extra: &BTreeMap<String, Vec<String>>,
        on: &Attributes<'_>,
    ) -> Result<(), Failure> {
        for (subresource, values) in extra {
            if mode != Mode::Legacy
                && (subresource.is_empty() || values.iter().any(String::is_empty))
            {
                let what = if subresource.is_empty() {
                    "key"
                } else {
                    "value"
                };
                let why = format!("impersonating the empty string {what} in extra is not allowed");
                return Err(Failure::unauthorized(on, &why));
            }
            for name in values {
                self.check(&Attributes {
                    subresource,
                    name,
                    ..*on
                })?;
            }
        }
        Ok(())
    }

    fn check(&self, asked: &Attributes<'_>) -> Result<(), Failure> {
        match self.may(asked) {
            Decision::Allowed(_) => Ok(()),
            denied @ Decision::NoOpinion(_) => {
                Err(Failure::unauthorized(asked, &denied.to_string()))
            }
        }
    }
}

impl Mode {
    fn name(self) -> Option<&'static str> {
        match self {
            Self::ArbitraryNode => Some("arbitrary-node"),
            Self::ServiceAccount => Some("serviceaccount"),
            Self::UserInfo => Some("user-info"),
            Self::Legacy => None,
        }
    }

    fn applies_to(self, wanted: &Impersonation) -> bool {
        let is_name_alone =
            wanted.uid.is_empty() && wanted.groups.is_empty() && wanted.extra.is_empty();
        let (is_node, is_account) = (
            node(&wanted.user).is_some(),
            account(&wanted.user).is_some(),
        );
        match self {
            Self::ArbitraryNode => is_name_alone && is_node,
            Self::ServiceAccount => is_name_alone && is_account,
            Self::UserInfo => !is_node && !is_account,
            Self::Legacy => true,
        }
    }
}

impl Impersonation {
    /// As Go prints its struct.
    fn in_go(&self) -> String {
        let list = |texts: &[String]| {
            let texts: Vec<String> = texts.iter().map(|text| format!("{text:?}")).collect();
            format!("[]string{{{}}}", texts.join(", "))
        };
        let groups = match self.groups.as_slice() {
            [] => "[]string(nil)".to_owned(),
            groups => list(groups),
        };
        let extra = if self.extra.is_empty() {
            "map[string][]string(nil)".to_owned()
        } else {
            let pairs = self
                .extra
                .iter()
                .map(|(key, values)| format!("{key:?}:{}", list(values)));
            format!(
                "map[string][]string{{{}}}",
                pairs.collect::<Vec<_>>().join(", ")
            )
        };
        format!(
            "&user.DefaultInfo{{Name:{:?}, UID:{:?}, Groups:{groups}, Extra:{extra}}}",
            self.user, self.uid
        )
    }
}

/// Whoever is impersonated is authenticated, but the anonymous user and those who are said not to be.
fn complete(user: &mut User) {
    let is_in = |user: &User, group: &str| user.groups.iter().any(|own| own == group);
    let group = if user.name == ANONYMOUS {
        UNAUTHENTICATED
    } else if is_in(user, UNAUTHENTICATED) {
        return;
    } else {
        AUTHENTICATED
    };
    if !is_in(user, group) {
        user.groups.push(group.to_owned());
    }
}

/// Namespace and name of a service account.
fn account(user: &str) -> Option<(&str, &str)> {
    let rest = user.strip_prefix("system:serviceaccount:")?;
    let (namespace, name) = rest.split_once(':')?;
    let is_plain = dns::label(namespace).is_empty() && dns::subdomain(name).is_empty();
    is_plain.then_some((namespace, name))
}

fn node(user: &str) -> Option<&str> {
    let name = user.strip_prefix("system:node:")?;
    dns::subdomain(name).is_empty().then_some(name)
}
