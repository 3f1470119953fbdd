//! When an Event has been there for long enough.

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;
use sundown_model::{Decision, Object, Propagation};

use super::reason::Reason;
use crate::actions::delete;

/// How long an Event stays after the last time that it happened, as with upstream's default.
const TTL: SignedDuration = SignedDuration::from_hours(1);

/// The fields that a watch has to keep.
pub(super) const FIELDS: &[&str] = &[
    "/metadata/creationTimestamp",
    "/lastTimestamp",
    "/eventTime",
    "/series/lastObservedTime",
];

/// Decides whether an Event is old enough to go.
pub(super) fn decide(event: &Object, now: Timestamp) -> Decision<Reason> {
    if event.is_deleting() {
        return Decision::idle(Reason::AlreadyDeleting);
    }
    let Some(last_at) = last_at(event, now) else {
        return Decision::idle(Reason::TimeMissing);
    };
    let due_at = last_at.saturating_add(TTL).unwrap_or(Timestamp::MAX);
    if now < due_at {
        return Decision::wake_at(due_at, Reason::NotDue { due_at });
    }
    let goes = delete(event, Propagation::Background);
    Decision::act(goes, Reason::Expired { due_at })
}

/// When it happened last. Whoever writes an Event again tells so in it; an instant that is still to
/// come is not believed, or the Event would stay until then.
fn last_at(event: &Object, now: Timestamp) -> Option<Timestamp> {
    let [created, others @ ..] = FIELDS else {
        return None;
    };
    let read = |field: &str| -> Option<Timestamp> {
        let text = event.field(field).and_then(Value::as_str)?;
        text.parse().ok()
    };
    let others = others.iter().filter_map(|field| read(field));
    // Where the clock was set back, the creation is all there is.
    read(created)
        .into_iter()
        .chain(others.filter(|at| *at <= now))
        .max()
}
