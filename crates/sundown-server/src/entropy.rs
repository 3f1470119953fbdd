//! Where uids and audit ids come from. Keys and tokens always ask the system (`identity.rs`), so
//! that a seeded source in a test cannot weaken them.

use std::fmt;
use std::sync::Arc;

/// A source of 128-bit numbers, shared by all requests.
#[derive(Clone)]
pub struct Entropy(Arc<dyn Fn() -> u128 + Send + Sync>);

impl Entropy {
    /// The random source of the operating system, through the provider that TLS uses.
    pub fn system() -> Self {
        let random = rustls::crypto::ring::default_provider().secure_random;
        Self::from_fn(move || {
            let mut bytes = [0; 16];
            let filled = random.fill(&mut bytes);
            filled.expect("a system without randomness cannot serve TLS either");
            u128::from_ne_bytes(bytes)
        })
    }

    /// A source of the caller's choice, for runs that are to be repeated.
    pub fn from_fn(draw: impl Fn() -> u128 + Send + Sync + 'static) -> Self {
        Self(Arc::new(draw))
    }

    /// The next number.
    pub fn draw(&self) -> u128 {
        (self.0)()
    }

    /// The next number as a UUID of version 4.
    pub(crate) fn uuid(&self) -> String {
        const VERSION_MASK: u128 = 0xf000 << 64;
        const VARIANT_MASK: u128 = 0b11 << 62;
        let bits = (self.draw() & !VERSION_MASK & !VARIANT_MASK) | (0x4000 << 64) | (0b10 << 62);
        let hex = format!("{bits:032x}");
        format!(
            "{}-{}-{}-{}-{}",
            &hex[..8],
            &hex[8..12],
            &hex[12..16],
            &hex[16..20],
            &hex[20..]
        )
    }
}

impl fmt::Debug for Entropy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Entropy")
    }
}

#[cfg(test)]
mod tests {
    use super::Entropy;

    #[test]
    fn writes_version_and_variant_into_uuids() {
        let zeros = Entropy::from_fn(|| 0).uuid();
        assert_eq!(zeros, "00000000-0000-4000-8000-000000000000");
        let ones = Entropy::from_fn(|| u128::MAX).uuid();
        assert_eq!(ones, "ffffffff-ffff-4fff-bfff-ffffffffffff");
    }
}
