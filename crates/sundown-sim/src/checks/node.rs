//! P1 and P3 to P5: what the operator owes to processes; B1 and B2: what it owes to jobs. P2, never a
//! signal to a recycled process id, is the real node's business: here a run has no number.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde_json::Value;
use sundown_model::node::{Call, Run};
use sundown_model::{Resource, Uid};

use super::Violation;
use crate::ledger::{Event, Ledger, Version};
use crate::node::{Node, Truth};

/// Judges one write about a pod by what really happened on the node.
pub(crate) fn on_event(event: &Event, before: &Ledger, node: &Node, found: &mut Vec<Violation>) {
    if event.key.resource != Resource::new("", "pods") {
        return;
    }
    let mut broken = |invariant, text: String| {
        found.push(Violation::new(invariant, format!("{}: {text}", event.key)));
    };
    if let (Some(prev), None) = (&event.prev, &event.new)
        && event.is_by("pod")
        && node.runs(&prev.uid)
    {
        broken("P1", "finished while something of it runs".to_owned());
    }
    let (Some(new), prev) = (&event.new, &event.prev) else {
        return;
    };
    let recorded = prev.as_ref().map(|prev| ends(prev)).unwrap_or_default();
    for (id, (code, reason)) in ends(new) {
        if recorded.get(&id).is_some_and(|before| before.0 != code) {
            broken("P4", format!("the exit code of {id} became {code}"));
        }
        if let Some(why) = untrue(&id, code, &reason, &node.truth) {
            broken("P4", why);
        }
    }
    if prev.is_none() && event.is_by("batch_job") {
        parallel(new, before, &mut broken);
    }
}

/// Judges one deed before it is done.
pub(crate) fn on_call(
    call: &Call,
    ledger: &Ledger,
    node: &Node,
    now: Timestamp,
) -> Option<Violation> {
    let pod = match call {
        Call::Signal { run, signal: 9 } => &run.pod,
        Call::Remove { pod } => pod,
        Call::Release { pod } => return on_release(pod, ledger, node),
        Call::Prepare(_)
        | Call::Start(_)
        | Call::Hook { .. }
        | Call::Signal { .. }
        | Call::Pull { .. }
        | Call::Names(_) => {
            return None;
        }
    };
    let live = ledger.live.values().find(|version| version.uid == *pod);
    let version = live.filter(|_| node.runs(pod))?;
    let ends_at: Option<Timestamp> = version.deleted_at().and_then(|at| at.parse().ok());
    let has_deadline = version
        .json
        .pointer("/spec/activeDeadlineSeconds")
        .is_some();
    let is_early = ends_at.map_or(!has_deadline, |at| now < at);
    is_early.then(|| Violation::new("P5", format!("{pod} is killed before its grace is over")))
}

/// What a finished pod ran in goes after its end is on record, and never with something in it.
fn on_release(pod: &Uid, ledger: &Ledger, node: &Node) -> Option<Violation> {
    if node.runs(pod) {
        return Some(Violation::new(
            "P5",
            format!("{pod} is released while it runs"),
        ));
    }
    let live = ledger.live.values().find(|version| version.uid == *pod);
    let is_early = live.is_some_and(|version| !is_over(version));
    is_early.then(|| Violation::new("P4", format!("{pod} is released before its end is told")))
}

fn is_over(pod: &Version) -> bool {
    let phase = pod.json.pointer("/status/phase").and_then(Value::as_str);
    matches!(phase, Some("Succeeded" | "Failed"))
}

/// Judges a world at rest.
pub(crate) fn at_rest(ledger: &Ledger, node: &Node) -> Vec<Violation> {
    let mut found = Vec::new();
    let live: BTreeSet<&Uid> = ledger.live.values().map(|version| &version.uid).collect();
    for pod in node.pods().filter(|pod| !live.contains(pod)) {
        let text = format!("{pod} is gone and still on the node");
        found.push(Violation::new("P1", text));
    }
    let over = ledger.live.values().filter(|version| is_over(version));
    let over: BTreeSet<&Uid> = over.map(|version| &version.uid).collect();
    for pod in node.placed().filter(|pod| over.contains(pod)) {
        let text = format!("{pod} is finished and keeps its place on the node");
        found.push(Violation::new("P1", text));
    }
    for run in &node.truth.doubled {
        found.push(Violation::new("P3", format!("{run:?} was started twice")));
    }
    found.extend(counted(ledger));
    found
}

/// B1: every success of a pod is counted once. Of a pod that goes, upstream counts the deletion as a
/// failure at once, so its success may count or not.
fn counted(ledger: &Ledger) -> Vec<Violation> {
    let mut certain: BTreeMap<Uid, BTreeSet<Uid>> = BTreeMap::new();
    let mut possible: BTreeMap<Uid, BTreeSet<Uid>> = BTreeMap::new();
    for event in &ledger.events {
        let Some(new) = &event.new else { continue };
        if new.json.pointer("/status/phase") != Some(&Value::from("Succeeded")) {
            continue;
        }
        let is_first = event.prev.as_ref().is_none_or(|prev| {
            prev.json.pointer("/status/phase") != Some(&Value::from("Succeeded"))
        });
        for owner in new.owners() {
            let uid = owner.uid;
            let all = possible.entry(uid.clone()).or_default();
            all.insert(new.uid.clone());
            if is_first && new.deleted_at().is_none() {
                let all = certain.entry(uid).or_default();
                all.insert(new.uid.clone());
            }
        }
    }
    let jobs = Resource::new("batch", "jobs");
    let jobs = ledger.live.iter().filter(|(key, _)| key.resource == jobs);
    let wrong = jobs.filter_map(|(key, job)| {
        let is = job.json.pointer("/status/succeeded");
        let is = is.and_then(Value::as_u64).unwrap_or(0);
        let count =
            |of: &BTreeMap<Uid, BTreeSet<Uid>>| of.get(&job.uid).map_or(0, |all| all.len() as u64);
        let (least, most) = (count(&certain), count(&possible));
        (is < least || is > most).then(|| {
            let text = format!("{key} counts {is} successes of {least} to {most}");
            Violation::new("B1", text)
        })
    });
    wrong.collect()
}

/// B2: never more active pods than the job wants at once.
fn parallel(new: &Version, before: &Ledger, broken: &mut dyn FnMut(&'static str, String)) {
    for owner in new.owners() {
        let job = before
            .live
            .values()
            .find(|version| version.uid == owner.uid);
        let wanted = job.and_then(|job| job.json.pointer("/spec/parallelism")?.as_u64());
        let is_active = |version: &&std::sync::Arc<Version>| {
            version.deleted_at().is_none()
                && !is_over(version)
                && version.owners().iter().any(|it| it.uid == owner.uid)
        };
        let active = before.live.values().filter(is_active).count() as u64;
        if wanted.is_some_and(|wanted| active + 1 > wanted) {
            broken("B2", format!("one more than {wanted:?} active pods"));
        }
    }
}

/// What a status says about ended runs: exit code and reason by the id of the run.
fn ends(pod: &Version) -> BTreeMap<String, (i64, String)> {
    let mut all = BTreeMap::new();
    for list in ["containerStatuses", "initContainerStatuses"] {
        let list = pod.json.pointer(&format!("/status/{list}"));
        for status in list.and_then(Value::as_array).into_iter().flatten() {
            for state in ["state", "lastState"] {
                let Some(ended) = status.pointer(&format!("/{state}/terminated")) else {
                    continue;
                };
                let id = ended["containerID"].as_str().unwrap_or_default();
                let code = ended["exitCode"].as_i64().unwrap_or(-1);
                let reason = ended["reason"].as_str().unwrap_or_default();
                all.insert(id.to_owned(), (code, reason.to_owned()));
            }
        }
    }
    all
}

/// Why a recorded end is not what happened.
fn untrue(id: &str, code: i64, reason: &str, truth: &Truth) -> Option<String> {
    let mut parts = id.strip_prefix("sundown://")?.split('/');
    let run = Run {
        pod: Uid::from(parts.next()?),
        container: parts.next()?.into(),
        attempt: parts.next()?.parse().ok()?,
    };
    if reason == "ContainerStatusUnknown" {
        let is_lost = truth.lost_pods.contains(&run.pod);
        return (!is_lost).then(|| format!("{id} is recorded as lost and was not"));
    }
    let really = truth.exits.get(&run).map(|code| i64::from(*code));
    (really != Some(code)).then(|| format!("{id} is recorded with {code}, it was {really:?}"))
}
