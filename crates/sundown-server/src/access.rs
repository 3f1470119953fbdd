//! Who calls: somebody who is known already, the administrator, a service account, or an anonymous
//! caller. What they may do is decided in `sundown-api`.

use std::fmt;
use std::sync::Arc;

use http::HeaderMap;
use http::header::AUTHORIZATION;
use subtle::ConstantTimeEq;
use sundown_api::{Proof, User};

/// What a caller has shown before its first request.
#[derive(Debug, Clone)]
pub(crate) enum Access {
    /// In process, or by a client certificate of our authority.
    Known(Arc<User>),
    /// Nothing: each request brings the bearer token.
    Token(Token),
}

/// The administrator's bearer token.
#[derive(Clone)]
pub(crate) struct Token(Arc<str>);

impl Access {
    /// What a caller has shown; None: credentials that are not valid, or none where `takes_anonymous` says
    /// that callers without any are not let in.
    ///
    /// A wrong token is refused everywhere, also where no token would do: upstream authenticates
    /// first, and only the absence of credentials makes a caller anonymous.
    ///
    /// `open` gives the claims of a token of a service account that has our signature. Whether they still
    /// count is for the state to say that the request is decided on.
    pub(crate) fn proof(
        &self,
        headers: &HeaderMap,
        takes_anonymous: bool,
        open: impl FnOnce(&str) -> Option<Vec<u8>>,
    ) -> Option<Proof> {
        let token = match self {
            Self::Known(user) => return Some(Proof::Known(User::clone(user))),
            Self::Token(token) => token,
        };
        let Some(header) = headers.get(AUTHORIZATION) else {
            return takes_anonymous.then(|| Proof::Known(User::anonymous()));
        };
        let shown = bearer(header.as_bytes())?;
        if token.is(shown) {
            return Some(Proof::Known(User::admin()));
        }
        open(std::str::from_utf8(shown).ok()?).map(Proof::Claims)
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
    use http::HeaderMap;

    use sundown_api::Proof;

    use super::{Access, Token};

    fn check(authorization: Option<&'static str>, expect: Option<&str>) {
        let mut headers = HeaderMap::new();
        if let Some(value) = authorization {
            headers.insert("authorization", value.parse().unwrap());
        }
        let access = Access::Token(Token::new("secret"));
        for takes_anonymous in [true, false] {
            let proof = access.proof(&headers, takes_anonymous, |_| None);
            let name = match &proof {
                Some(Proof::Known(user)) => Some(user.name.as_str()),
                Some(Proof::Claims(_)) | None => None,
            };
            let expect = expect.filter(|name| takes_anonymous || *name != "system:anonymous");
            assert_eq!(name, expect, "{authorization:?}");
        }
    }

    #[test]
    fn a_wrong_token_is_refused_and_none_makes_anonymous() {
        check(Some("Bearer secret"), Some("kubernetes-admin"));
        check(Some("bearer secret "), Some("kubernetes-admin"));
        check(Some("Bearer secret2"), None);
        check(Some("Bearer "), None);
        check(Some("Basic secret"), None);
        check(Some("secret"), None);
        check(None, Some("system:anonymous"));
    }
}
