//! The status of a job, and what of it is not on record yet.

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde_json::{Map, Value, json};
use sundown_model::Uid;

use super::tally::Tally;
use super::view::{JobView, PodView};
use crate::json::{number, text, written};

/// What stands in the status beside the results.
#[derive(Debug)]
pub(super) struct Rest {
    pub(super) conditions: Vec<Value>,
    pub(super) has_ended: bool,
    pub(super) is_success: bool,
}

/// The members that differ from what is recorded; None: nothing does.
pub(super) fn patch(
    job: &JobView<'_>,
    tally: &Tally,
    pods: &[PodView],
    rest: &Rest,
    now: Timestamp,
) -> Option<Value> {
    let status = job.object.field("/status").unwrap_or(&Value::Null);
    let mut changed = Map::new();
    let count = |which: fn(&PodView) -> bool| {
        i64::try_from(pods.iter().filter(|pod| which(pod)).count()).unwrap_or(i64::MAX)
    };
    for (name, is) in [
        ("active", count(PodView::is_active)),
        ("succeeded", tally.succeeded),
        ("failed", tally.failed),
    ] {
        // Upstream leaves a zero out.
        if number(status, name).unwrap_or(0) != is {
            changed.insert(
                name.to_owned(),
                if is == 0 { Value::Null } else { json!(is) },
            );
        }
    }
    for (name, is) in [
        ("ready", count(|pod| pod.is_active() && pod.is_ready)),
        ("terminating", count(PodView::is_terminating)),
    ] {
        if number(status, name) != Some(is) {
            changed.insert(name.to_owned(), json!(is));
        }
    }
    let was = status.get("uncountedTerminatedPods");
    let is_same = tally.uncounted_succeeded == job.uncounted_succeeded
        && tally.uncounted_failed == job.uncounted_failed;
    if was.is_none() || !is_same {
        let uncounted = json!({
            "succeeded": uids(&tally.uncounted_succeeded),
            "failed": uids(&tally.uncounted_failed),
        });
        changed.insert("uncountedTerminatedPods".to_owned(), uncounted);
    }
    let completed = tally.completed.to_string();
    if job.is_indexed && text(status, "completedIndexes") != completed {
        changed.insert("completedIndexes".to_owned(), json!(completed));
    }
    if rest.conditions != job.conditions {
        changed.insert("conditions".to_owned(), json!(rest.conditions));
    }
    times(job, rest, now, &mut changed);
    (!changed.is_empty()).then_some(Value::Object(changed))
}

/// An empty list leaves the member out, as upstream does.
fn uids(all: &BTreeSet<Uid>) -> Value {
    if all.is_empty() {
        return Value::Null;
    }
    all.iter().map(|uid| json!(uid.as_str())).collect()
}

fn times(job: &JobView<'_>, rest: &Rest, now: Timestamp, changed: &mut Map<String, Value>) {
    let was_suspended = job.condition("Suspended").is_some();
    let starts = !job.is_suspended && (job.started_at.is_none() || was_suspended);
    if starts {
        changed.insert("startTime".to_owned(), json!(written(now)));
    }
    if job.is_suspended && job.started_at.is_some() && !rest.has_ended {
        // The deadline counts only while the job is active.
        changed.insert("startTime".to_owned(), Value::Null);
    }
    if rest.has_ended && rest.is_success {
        changed.insert("completionTime".to_owned(), json!(written(now)));
    }
}
