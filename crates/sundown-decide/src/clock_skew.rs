//! Instants at which something ended, when they are still to come: whether they are believed, and what is told.
//!
//! What they delay is decided by the controllers.

use jiff::{SignedDuration, Timestamp};
use sundown_model::{Action, Object};

use crate::actions::warning;

/// How far the clock of whoever wrote an instant may be ahead of ours without a word. Instants on the wire are cut to
/// whole seconds and clocks that are kept by NTP differ by less; clusters where every job is told of would change our mind.
const SKEW_MAX: SignedDuration = SignedDuration::from_secs(5);

/// When an instant at which something is said to have ended can be believed; None: it can be now.
pub(crate) fn credible_at(ended_at: Timestamp, now: Timestamp) -> Option<Timestamp> {
    let credible_at = ended_at.saturating_sub(SKEW_MAX).unwrap_or(Timestamp::MIN);
    (credible_at > now).then_some(credible_at)
}

/// Warns of it.
pub(crate) fn warn(object: &Object, field: &str, ended_at: Timestamp) -> Action {
    let told = format!(
        "Finished at {ended_at} by {field}, which is in the future; check the clock of the machine that wrote it. \
         Deletion is deferred: the TTL counts from that time"
    );
    warning(object, "FinishTimeInFuture", told)
}
