//! How long to wait after failures in a row.

use jiff::{SignedDuration, Timestamp};

/// The first wait, unless the engine is told otherwise; doubled for each further failure.
pub(crate) const DELAY_FIRST: SignedDuration = SignedDuration::from_millis(100);
/// The longest wait. Upstream goes to 1,000 s, after which people restart it by hand.
const DELAY_MAX: SignedDuration = SignedDuration::from_secs(60);

/// When to try again after this many failures in a row, the last of them now.
pub(crate) fn retry_at(now: Timestamp, failures: u32) -> Timestamp {
    retry_after(DELAY_FIRST, now, failures)
}

/// The same with another first wait.
pub(crate) fn retry_after(first: SignedDuration, now: Timestamp, failures: u32) -> Timestamp {
    let doublings = failures.saturating_sub(1).min(16);
    let delay = first.saturating_mul(1 << doublings).min(DELAY_MAX);
    now.saturating_add(delay).unwrap_or(Timestamp::MAX)
}
