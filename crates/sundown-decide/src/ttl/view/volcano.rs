//! When a Volcano Job finished: by its phase.

use serde_json::Value;
use sundown_kinds::volcano::JobPhase;
use sundown_model::Object;

use super::{Finish, TTL};

/// The fields that a watch has to keep.
pub(in crate::ttl) const FIELDS: &[&str] = &[TTL, PHASE, SINCE];

/// Where the finish time stands.
pub(super) const FINISH_FIELD: &str = "status.state.lastTransitionTime";

const PHASE: &str = "/status/state/phase";
const SINCE: &str = "/status/state/lastTransitionTime";

/// A final phase counts since the instant at which it began. A phase that is not known is not final.
pub(super) fn finish(job: &Object) -> Finish {
    let phase = job.field(PHASE).and_then(Value::as_str);
    let phase = phase.and_then(JobPhase::named);
    if phase.is_some_and(JobPhase::is_final) {
        Finish::told_by(job.field(SINCE))
    } else {
        Finish::StillRunning
    }
}
