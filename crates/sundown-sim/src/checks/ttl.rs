//! T1 to T5 and T7: what whoever deletes the finished owes to them, by the version that it deletes. T3 and T8
//! are judged elsewhere (`rest`, `collector`) by what this file says of kinds and controllers.
//!
//! The rules are written anew after the specification, so that they can disagree with `sundown-decide`.

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;
use sundown_api::Method;
use sundown_decide::kinds::EVENT;
use sundown_model::{ObjectKey, Resource};

use super::Violation;
use crate::ledger::{Event, Version};

/// The controllers that delete what finished so long ago.
const COLLECTORS: [&str; 1] = ["ttl"];

/// A kind whose objects go some time after they finished.
struct Kind {
    group: &'static str,
    plural: &'static str,
    /// When an object finished; None: it has not, or that is not known.
    finished_at: fn(&Value) -> Option<Timestamp>,
}

const KINDS: [Kind; 2] = [
    Kind {
        group: "batch",
        plural: "jobs",
        finished_at: by_condition,
    },
    Kind {
        group: "batch.volcano.sh",
        plural: "jobs",
        finished_at: by_phase,
    },
];

/// Whether a controller wrote it that deletes what finished.
pub(super) fn is_by_collector(event: &Event) -> bool {
    COLLECTORS.iter().any(|name| event.is_by(name))
}

pub(super) fn judge(event: &Event, found: &mut Vec<Violation>) {
    // What it tells people is judged by nothing but the rest that follows (Q2).
    if !is_by_collector(event) || !event.first || event.key.resource.is(&EVENT) {
        return;
    }
    let mut broken = |invariant, text: &str| {
        found.push(Violation::new(invariant, format!("{}: {text}", event.key)));
    };
    if event.method != Method::Delete {
        broken("T4", "what finished was changed and not deleted");
        return;
    }
    let Some(job) = &event.prev else { return };
    let Some(kind) = kind(&event.key.resource) else {
        return broken("T7", "deleted although its kind never finishes");
    };
    let Some(finished_at) = (kind.finished_at)(&job.json) else {
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

/// When an object is due, if it is of a kind that finishes, did so, and has a TTL.
pub(super) fn due(key: &ObjectKey, version: &Version) -> Option<Timestamp> {
    let finished_at = (kind(&key.resource)?.finished_at)(&version.json)?;
    Some(due_at(finished_at, ttl(version)?))
}

fn kind(resource: &Resource) -> Option<&'static Kind> {
    let mut kinds = KINDS.iter();
    kinds.find(|it| it.group == resource.group() && it.plural == resource.plural())
}

fn due_at(finished_at: Timestamp, ttl: i64) -> Timestamp {
    finished_at
        .saturating_add(SignedDuration::from_secs(ttl))
        .unwrap_or(Timestamp::MAX)
}

fn ttl(version: &Version) -> Option<i64> {
    let seconds = version.json.pointer("/spec/ttlSecondsAfterFinished");
    seconds.and_then(Value::as_i64)
}

/// By the first true condition that says so.
fn by_condition(job: &Value) -> Option<Timestamp> {
    let conditions = job.pointer("/status/conditions")?.as_array()?;
    let finished = conditions.iter().find(|condition| {
        let mut says_so = ["Complete", "Failed"].iter();
        condition["status"] == "True" && says_so.any(|kind| condition["type"] == *kind)
    })?;
    finished["lastTransitionTime"].as_str()?.parse().ok()
}

/// By the phase that it stays in.
fn by_phase(job: &Value) -> Option<Timestamp> {
    let state = job.pointer("/status/state")?;
    let phase = state["phase"].as_str()?;
    let is_final = ["Completed", "Failed", "Terminated"].contains(&phase);
    let since = state["lastTransitionTime"].as_str();
    since.filter(|_| is_final)?.parse().ok()
}
