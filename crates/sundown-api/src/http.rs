//! Requests and responses as plain data. Sockets, TLS and chunking are the shell's business.

use std::collections::BTreeMap;

/// The group of everybody with valid credentials.
pub(crate) const AUTHENTICATED: &str = "system:authenticated";

/// An HTTP request, whoever brought it: the HTTPS server, the in-process client, the simulator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    pub method: Method,
    /// Percent-decoded path, without query.
    pub path: String,
    /// Decoded query parameters, in order.
    pub query: Vec<(String, String)>,
    /// Content-Type, if sent.
    pub content_type: Option<String>,
    /// Accept, if sent.
    pub accept: Option<String>,
    /// User-Agent, if sent.
    pub user_agent: Option<String>,
    /// If-None-Match, if sent.
    pub if_none_match: Option<String>,
    /// Who asks. Whoever brought the request has checked it.
    pub user: User,
    pub body: Vec<u8>,
}

/// An authenticated caller, as upstream's `user.Info`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct User {
    pub name: String,
    pub uid: String,
    pub groups: Vec<String>,
    /// What the authenticator wants to be known beyond that.
    pub extra: BTreeMap<String, Vec<String>>,
}

impl User {
    /// The administrator of this server, also for callers in this process.
    pub fn admin() -> Self {
        Self::new("kubernetes-admin", &["system:masters", AUTHENTICATED])
    }

    /// Somebody who showed no credentials.
    pub fn anonymous() -> Self {
        Self::new("system:anonymous", &["system:unauthenticated"])
    }

    /// A service account that showed a token.
    pub fn service_account(namespace: &str, name: &str) -> Self {
        let own = format!("system:serviceaccounts:{namespace}");
        let groups = ["system:serviceaccounts", &own, AUTHENTICATED];
        Self::new(
            &format!("system:serviceaccount:{namespace}:{name}"),
            &groups,
        )
    }

    fn new(name: &str, groups: &[&str]) -> Self {
        Self {
            name: name.to_owned(),
            uid: String::new(),
            groups: groups.iter().map(|group| (*group).to_owned()).collect(),
            extra: BTreeMap::new(),
        }
    }
}

/// The methods that the API has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    Get,
    Post,
    Put,
    Patch,
    Delete,
}

/// A complete answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Response {
    /// The HTTP status code; a Status body carries the same number, so the core has to know it.
    pub code: u16,
    pub content_type: &'static str,
    /// Texts of `Warning: 299` headers.
    pub warnings: Vec<String>,
    /// Further headers, by lower-case name; they win over what the shell sets by itself.
    pub headers: Vec<(&'static str, String)>,
    pub body: Vec<u8>,
}

impl Response {
    /// The same answer with one more warning, before all others.
    pub(crate) fn warned(mut self, warning: &str) -> Self {
        self.warnings.insert(0, warning.to_owned());
        self
    }
}

impl Request {
    /// Whether this asks for a token of a service account: the answer carries claims to be signed.
    ///
    /// Exactly that path: whoever signed the answers of a resource that is merely called `token`
    /// would sign whatever its objects say.
    pub fn is_for_token(&self) -> bool {
        self.method == Method::Post && crate::tokens::find(&self.path).is_some()
    }

    /// Whether this asks whose a token is: only the holder of the keys can complete the answer.
    pub fn is_token_review(&self) -> bool {
        let review = crate::reviews::find(&self.path);
        self.method == Method::Post && review.is_some_and(|(it, _)| it.kind == "TokenReview")
    }

    /// The first query parameter of this name.
    pub fn param(&self, name: &str) -> Option<&str> {
        self.query
            .iter()
            .find(|(key, _)| key == name)
            .map(|(_, value)| value.as_str())
    }
}
