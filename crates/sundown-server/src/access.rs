//! Who may call. There is one identity so far, the administrator (system:masters); what an identity
//! may do is for RBAC to decide later.

use std::fmt;
use std::sync::Arc;

use http::header::AUTHORIZATION;
use http::{HeaderMap, Method};
use subtle::ConstantTimeEq;

/// Paths that need no credentials, as upstream's `ClusterRole` `system:public-info-viewer` has them.
const PUBLIC_PATHS: [&str; 5] = ["/healthz", "/livez", "/readyz", "/version", "/version/"];

/// What a caller has shown before its first request.
#[derive(Debug, Clone)]
pub(crate) enum Access {
    /// In process, or a client certificate of our authority.
    Trusted,
    /// Nothing: each request brings the bearer token.
    Token(Token),
}

/// The administrator's bearer token.
#[derive(Clone)]
pub(crate) struct Token(Arc<str>);

impl Access {
    /// Whether this request may go on.
    ///
    /// A wrong token is refused everywhere, also where no token would do: upstream authenticates
    /// first, and only the absence of credentials makes a caller anonymous.
    pub(crate) fn allows(&self, method: &Method, path: &str, headers: &HeaderMap) -> bool {
        let Self::Token(token) = self else {
            return true;
        };
        match headers.get(AUTHORIZATION) {
            Some(header) => token.is_in(header.as_bytes()),
            None => method == Method::GET && PUBLIC_PATHS.contains(&path),
        }
    }
}

impl Token {
    pub(crate) fn new(token: &str) -> Self {
        Self(token.into())
    }

    /// Compares in constant time; only the length of a guess can be told from the duration.
    fn is_in(&self, authorization: &[u8]) -> bool {
        let Some((scheme, token)) = authorization.split_at_checked("Bearer ".len()) else {
            return false;
        };
        scheme.eq_ignore_ascii_case(b"Bearer ")
            && bool::from(token.trim_ascii().ct_eq(self.0.as_bytes()))
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(hidden)")
    }
}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, Method};

    use super::{Access, Token};

    fn check(authorization: Option<&'static str>, path: &str, expect: bool) {
        let mut headers = HeaderMap::new();
        if let Some(value) = authorization {
            headers.insert("authorization", value.parse().unwrap());
        }
        let allowed = Access::Token(Token::new("secret")).allows(&Method::GET, path, &headers);
        assert_eq!(allowed, expect, "{authorization:?} {path}");
    }

    #[test]
    fn asks_for_the_token_except_on_public_paths() {
        check(Some("Bearer secret"), "/api", true);
        check(Some("bearer secret "), "/api", true);
        check(Some("Bearer secret2"), "/api", false);
        check(Some("Bearer "), "/api", false);
        check(Some("Basic secret"), "/api", false);
        check(Some("secret"), "/api", false);
        check(None, "/api", false);
        check(None, "/healthz", true);
        check(None, "/healthz/etcd", false);
        check(Some("Bearer wrong"), "/healthz", false);
    }
}
