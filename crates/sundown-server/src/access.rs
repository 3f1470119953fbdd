//! Who calls: the administrator (system:masters), a service account, or nobody in particular. What
//! an identity may do is for RBAC to decide later.

use std::fmt;
use std::sync::Arc;

use http::header::AUTHORIZATION;
use http::{HeaderMap, Method};
use subtle::ConstantTimeEq;
use sundown_api::User;

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
    /// Who is asking; None: nobody who may go on.
    ///
    /// A wrong token is refused everywhere, also where no token would do: upstream authenticates
    /// first, and only the absence of credentials makes a caller anonymous.
    ///
    /// `whose` knows the tokens of service accounts.
    pub(crate) fn user(
        &self,
        method: &Method,
        path: &str,
        headers: &HeaderMap,
        whose: impl FnOnce(&str) -> Option<User>,
    ) -> Option<User> {
        let Self::Token(token) = self else {
            return Some(User::admin());
        };
        let is_public = method == Method::GET && PUBLIC_PATHS.contains(&path);
        let Some(header) = headers.get(AUTHORIZATION) else {
            return is_public.then(User::anonymous);
        };
        let shown = bearer(header.as_bytes())?;
        if token.is(shown) {
            return Some(User::admin());
        }
        whose(std::str::from_utf8(shown).ok()?)
    }

    /// Whether this is the administrator's token, for those who ask in a review.
    pub(crate) fn is_admin_token(&self, shown: &str) -> bool {
        matches!(self, Self::Token(token) if token.is(shown.as_bytes()))
    }
}

impl Token {
    pub(crate) fn new(token: &str) -> Self {
        Self(token.into())
    }

    /// Compares in constant time; only the length of a guess can be told from the duration.
    fn is(&self, shown: &[u8]) -> bool {
        bool::from(shown.ct_eq(self.0.as_bytes()))
    }
}

fn bearer(authorization: &[u8]) -> Option<&[u8]> {
    let (scheme, token) = authorization.split_at_checked("Bearer ".len())?;
    scheme
        .eq_ignore_ascii_case(b"Bearer ")
        .then(|| token.trim_ascii())
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
        let access = Access::Token(Token::new("secret"));
        let user = access.user(&Method::GET, path, &headers, |_| None);
        assert_eq!(user.is_some(), expect, "{authorization:?} {path}");
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
