//! The secret of one forward.

use std::{fmt, io};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use rustix::rand::{GetRandomFlags, getrandom};
use subtle::ConstantTimeEq as _;

/// Too many to guess, and few enough that the address fits a terminal of 80 columns.
const BYTES: usize = 16;

/// Proves that a request comes from someone who was told the address.
#[derive(Clone)]
pub struct Token(String);

impl Token {
    /// A new one, from the kernel.
    ///
    /// # Errors
    /// The kernel gives no randomness.
    pub(super) fn random() -> io::Result<Self> {
        let mut bytes = [0; BYTES];
        // So few bytes are never cut short.
        if getrandom(&mut bytes, GetRandomFlags::empty())? != BYTES {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(Self(URL_SAFE_NO_PAD.encode(bytes)))
    }

    #[cfg(test)]
    pub(super) fn fixed(text: &str) -> Self {
        Self(text.to_owned())
    }

    /// As it stands in an address, a cookie or a header: letters, digits, `-` and `_`.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// Compares without telling by its time how much of it was right.
    pub(super) fn is(&self, told: &[u8]) -> bool {
        self.0.as_bytes().ct_eq(told).into()
    }
}

/// Without the secret.
impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_tokens_differ_and_fit_an_address_as_they_are() {
        let (one, two) = (Token::random().unwrap(), Token::random().unwrap());
        assert_ne!(one.reveal(), two.reveal());
        assert!(one.is(one.reveal().as_bytes()) && !one.is(two.reveal().as_bytes()));
        assert!(!one.is(b""));
        let is_plain = |it: char| it.is_ascii_alphanumeric() || it == '-' || it == '_';
        assert!(one.reveal().len() == 22 && one.reveal().chars().all(is_plain));
        assert_eq!(format!("{one:?}"), "Token");
    }
}
