//! The key that signs `ServiceAccount` tokens (ES256), and the two answers that need it. What a token
//! says is decided by `sundown-api`; whether its signature is ours is decided here.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair,
    UnparsedPublicKey,
};
use serde_json::{Value, json};
use sundown_api::{ISSUER, Response, User, user_info};

/// The signing key of one server.
pub(crate) struct Keys {
    pair: EcdsaKeyPair,
    /// The first part of every token: algorithm and key id, encoded.
    header: String,
}

impl Keys {
    /// A new key of the system's randomness.
    pub(crate) fn generate() -> Self {
        Self::read(&generate()).expect("the key was made for this algorithm")
    }

    /// A key that was kept; None: it is not one for this algorithm.
    pub(crate) fn read(pkcs8: &[u8]) -> Option<Self> {
        let algorithm = &ECDSA_P256_SHA256_FIXED_SIGNING;
        let pair = EcdsaKeyPair::from_pkcs8(algorithm, pkcs8, &SystemRandom::new()).ok()?;
        let digest = ring::digest::digest(&ring::digest::SHA256, pair.public_key().as_ref());
        let kid = URL_SAFE_NO_PAD.encode(digest);
        let header = json!({ "alg": "ES256", "kid": kid }).to_string();
        Some(Self {
            pair,
            header: URL_SAFE_NO_PAD.encode(header),
        })
    }

    /// The claims of a token, if we signed it.
    pub(crate) fn open(&self, token: &str) -> Option<Vec<u8>> {
        let (signed, signature) = token.rsplit_once('.')?;
        // One key, one header: any other algorithm or key id cannot be ours.
        let claims = signed.strip_prefix(&self.header)?.strip_prefix('.')?;
        let signature = URL_SAFE_NO_PAD.decode(signature).ok()?;
        let public = self.pair.public_key().as_ref();
        UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, public)
            .verify(signed.as_bytes(), &signature)
            .ok()?;
        URL_SAFE_NO_PAD.decode(claims).ok()
    }

    /// Signs the claims that an answer to a `TokenRequest` carries in `status.token`.
    pub(crate) fn seal(&self, response: &mut Response) {
        let Ok(mut body) = serde_json::from_slice::<Value>(&response.body) else {
            return;
        };
        if let Some(claims) = body.pointer("/status/token").and_then(Value::as_str) {
            body["status"]["token"] = self.sign(claims).into();
            response.body = body.to_string().into_bytes();
        }
    }

    fn sign(&self, claims: &str) -> String {
        let signed = format!("{}.{claims}", self.header);
        let random = SystemRandom::new();
        let signature = self.pair.sign(&random, signed.as_bytes());
        let signature = signature.expect("a system without randomness cannot serve TLS either");
        format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature))
    }
}

/// The bytes of a new key, to be kept.
pub(crate) fn generate() -> Vec<u8> {
    EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &SystemRandom::new())
        .expect("a system without randomness cannot serve TLS either")
        .as_ref()
        .to_vec()
}

/// Fills in whose the token of a `TokenReview` is, and for which of the audiences that were asked.
pub(crate) fn complete_review(
    response: &mut Response,
    whose: impl FnOnce(&str, &[&str]) -> Result<(User, Vec<String>), &'static str>,
) {
    let Ok(mut body) = serde_json::from_slice::<Value>(&response.body) else {
        return;
    };
    let text = |pointer: &str| body.pointer(pointer).and_then(Value::as_str);
    let Some(token) = text("/spec/token") else {
        return;
    };
    let asked = body.pointer("/spec/audiences").and_then(Value::as_array);
    let mut asked: Vec<&str> = asked
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    if asked.is_empty() {
        asked.push(ISSUER);
    }
    if let Ok((user, audiences)) = whose(token, &asked) {
        body["status"] = json!({
            "authenticated": true, "user": user_info(&user), "audiences": audiences,
        });
        response.body = body.to_string().into_bytes();
    }
}

impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Keys(hidden)")
    }
}

#[cfg(test)]
mod tests {
    use super::Keys;

    #[test]
    fn a_kept_key_opens_what_it_signed_before() {
        let kept = super::generate();
        let read = || Keys::read(&kept).expect("just made");
        let token = read().sign("e30");
        assert_eq!(read().open(&token).as_deref(), Some(&b"{}"[..]));
        assert!(Keys::read(&kept[1..]).is_none());
    }

    #[test]
    fn opens_only_what_it_signed() {
        let (own, other) = (Keys::generate(), Keys::generate());
        let token = own.sign("e30");
        assert_eq!(own.open(&token).as_deref(), Some(&b"{}"[..]));
        assert_eq!(other.open(&token), None);
        assert_eq!(own.open(&token.replace("e30", "e31")), None);
        for odd in ["", ".", "..", "a.b.c", "e30.e30."] {
            assert_eq!(own.open(odd), None, "{odd}");
        }
    }
}
