//! When a batch Job finished: by its conditions.

use serde_json::Value;
use sundown_model::Object;

use super::{Finish, TTL};

/// The fields that a watch has to keep.
pub(in crate::ttl) const FIELDS: &[&str] = &[TTL, CONDITIONS];

/// Where the finish time stands.
pub(super) const FINISH_FIELD: &str = "the lastTransitionTime of its Complete or Failed condition";

const CONDITIONS: &str = "/status/conditions";

/// The first true Complete or Failed condition in list order counts, as upstream has it.
pub(super) fn finish(job: &Object) -> Finish {
    let conditions = job.field(CONDITIONS).and_then(Value::as_array);
    let says = |condition: &Value, field: &str, words: &[&str]| {
        let text = condition.get(field).and_then(Value::as_str);
        text.is_some_and(|text| words.contains(&text))
    };
    let finished = conditions.into_iter().flatten().find(|condition| {
        says(condition, "type", &["Complete", "Failed"]) && says(condition, "status", &["True"])
    });
    finished.map_or(Finish::StillRunning, |condition| {
        Finish::told_by(condition.get("lastTransitionTime"))
    })
}
