//! T1, T2, T4, T5 and T7: what the TTL controller owes to a job, by the version that it deletes.

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;
use sundown_api::Method;

use super::Violation;
use crate::ledger::{Event, Version};

pub(super) fn judge(event: &Event, found: &mut Vec<Violation>) {
    if !event.is_by("ttl") || !event.first {
        return;
    }
    let mut broken = |invariant, text: &str| {
        found.push(Violation::new(invariant, format!("{}: {text}", event.key)));
    };
    if event.method != Method::Delete {
        broken("T4", "the TTL controller changed a job");
        return;
    }
    let Some(job) = &event.prev else { return };
    let Some(finished_at) = finish(job) else {
        return broken("T7", "deleted although it is not finished");
    };
    let Some(ttl) = ttl(job) else {
        return broken("T2", "deleted although its TTL was removed");
    };
    if finished_at > event.at {
        broken("T5", "deleted although its finish lies in the future");
    } else if due_at(finished_at, ttl) > event.at {
        broken("T1", "deleted before its time");
    }
}

/// When a job is due, if it is finished and has a TTL.
pub(super) fn due(job: &Version) -> Option<Timestamp> {
    Some(due_at(finish(job)?, ttl(job)?))
}

fn due_at(finished_at: Timestamp, ttl: i64) -> Timestamp {
    finished_at
        .saturating_add(SignedDuration::from_secs(ttl))
        .unwrap_or(Timestamp::MAX)
}

fn ttl(job: &Version) -> Option<i64> {
    job.json
        .pointer("/spec/ttlSecondsAfterFinished")
        .and_then(Value::as_i64)
}

fn finish(job: &Version) -> Option<Timestamp> {
    let conditions = job.json.pointer("/status/conditions")?.as_array()?;
    let finished = conditions.iter().find(|condition| {
        ["Complete", "Failed"]
            .iter()
            .any(|kind| condition["type"] == *kind)
            && condition["status"] == "True"
    })?;
    finished["lastTransitionTime"].as_str()?.parse().ok()
}
