//! The pods of a job: which are wanted, how they are named and made.

use jiff::Timestamp;
use serde_json::{Value, json};
use sundown_model::{Cache, Draft, ObjectKey};

use super::view::{INDEX, JobView, PodState, PodView, TRACKING};
use crate::json::after;
use crate::kinds::POD;

/// Upstream's back-off after failures, in seconds.
const BACKOFF_FIRST: i64 = 10;
const BACKOFF_MAX: i64 = 600;

/// The letters of generated names: no vowels, so that no words come about.
const LETTERS: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";
const SUFFIX: usize = 5;
/// What a pod's name may have before its suffix.
const BASE_MAX: usize = 57;

/// When the next pod may be made after failures; counted from the ends of pods, which are durable.
pub(super) fn backs_off_until(job: &JobView<'_>, pods: &[PodView]) -> Option<Timestamp> {
    let ends = |state: PodState| {
        let all = pods.iter().filter(move |pod| pod.state == state);
        all.map(|pod| pod.finished_at)
    };
    let last_success = ends(PodState::Succeeded).max();
    let failed = pods.iter().filter(|pod| pod.has_failed(job));
    let failed = failed.map(|pod| pod.finished_at);
    let failed: Vec<_> = failed
        .filter(|at| last_success.is_none_or(|success| *at > success))
        .collect();
    let last = failed.iter().max()?;
    let doublings = failed.len().saturating_sub(1).min(6);
    let delay = (BACKOFF_FIRST << doublings).min(BACKOFF_MAX);
    Some(after(*last, delay))
}

/// How many pods shall be active, by upstream's rule.
pub(super) fn wanted(job: &JobView<'_>, succeeded: i64, active: i64) -> i64 {
    if job.is_suspended {
        return 0;
    }
    match job.completions {
        None if succeeded > 0 => active,
        None => job.parallelism,
        Some(completions) => completions
            .saturating_sub(succeeded)
            .clamp(0, job.parallelism),
    }
}

/// The active pods in the order in which they are given up: those that lost their finalizer already,
/// those that are not ready, then the youngest names.
pub(super) fn victims<'a>(active: &[&'a PodView]) -> Vec<&'a PodView> {
    let mut order: Vec<&PodView> = active.to_vec();
    order.sort_by_key(|pod| {
        let key = pod.object.key().name.clone();
        (
            pod.is_tracked,
            pod.is_ready,
            pod.state,
            std::cmp::Reverse(key),
        )
    });
    order
}

/// The indexes that have no pod and are not done, in order.
pub(super) fn pending_indexes(job: &JobView<'_>, pods: &[PodView], count: usize) -> Vec<u32> {
    let is_taken = |index: u32| {
        let holds = |pod: &PodView| {
            let blocks = pod.is_active() || (job.replaces_failed_only && pod.is_terminating());
            pod.index == Some(index) && (blocks || pod.state == PodState::Succeeded)
        };
        job.completed.contains(index) || pods.iter().any(holds)
    };
    let last = u32::try_from(job.completions.unwrap_or(0)).unwrap_or(u32::MAX);
    let open = (0..last).filter(|index| !is_taken(*index));
    open.take(count).collect()
}

/// New pods of a job. Names are made of the job's uid and a number, so that deciding twice on one
/// state gives the same pod, not two.
pub(super) fn drafts(
    job: &JobView<'_>,
    cache: &Cache,
    count: usize,
    indexes: Option<&[u32]>,
) -> Vec<Draft> {
    let mut drafts = Vec::new();
    // Counted pods are behind us; whoever is there still is skipped by name.
    let mut number = job.succeeded.saturating_add(job.failed);
    let count = indexes.map_or(count, <[u32]>::len);
    while drafts.len() < count {
        let index = indexes.map(|indexes| indexes[drafts.len()]);
        let name = name(job, number, index);
        let namespace = job.object.key().namespace_str();
        let key = ObjectKey::namespaced(&POD.resource(), namespace, &name);
        if cache.get(&key).is_none() {
            drafts.push(draft(job, key, index));
        }
        number += 1;
    }
    drafts
}

fn name(job: &JobView<'_>, number: i64, index: Option<u32>) -> String {
    let own = &*job.object.key().name;
    let base = match index {
        Some(index) => {
            let tail = format!("-{index}");
            let room = BASE_MAX.saturating_sub(tail.len());
            format!("{}{tail}", own.chars().take(room).collect::<String>())
        }
        None => own.chars().take(BASE_MAX).collect(),
    };
    format!("{base}-{}", suffix(job.object.uid().as_str(), number))
}

/// Five letters from a uid and a number (FNV-1a, mixed once more so that near numbers look apart).
fn suffix(uid: &str, number: i64) -> String {
    let bytes = uid.bytes().chain(number.to_le_bytes());
    let mut hash = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    hash = (hash ^ (hash >> 31)).wrapping_mul(0x94d0_49bb_1331_11eb);
    let mut text = String::with_capacity(SUFFIX);
    for _ in 0..SUFFIX {
        let letter = usize::try_from(hash % 27).unwrap_or(0);
        text.push(char::from(LETTERS[letter]));
        hash /= 27;
    }
    text
}

fn draft(job: &JobView<'_>, key: ObjectKey, index: Option<u32>) -> Draft {
    let template = job.object.field("/spec/template").unwrap_or(&Value::Null);
    let part = |name: &str| template.pointer(name).cloned().unwrap_or_else(|| json!({}));
    let mut finalizers = match part("/metadata/finalizers") {
        Value::Array(list) => list,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_) => {
            Vec::new()
        }
    };
    if !finalizers.contains(&json!(TRACKING)) {
        finalizers.push(json!(TRACKING));
    }
    let mut body = json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": &*key.name,
            "namespace": key.namespace_str(),
            "labels": part("/metadata/labels"),
            "annotations": part("/metadata/annotations"),
            "finalizers": finalizers,
            "ownerReferences": [{
                "apiVersion": "batch/v1",
                "kind": "Job",
                "name": &*job.object.key().name,
                "uid": job.object.uid().as_str(),
                "controller": true,
                "blockOwnerDeletion": true,
            }],
        },
        "spec": part("/spec"),
    });
    if let Some(index) = index {
        mark_index(&mut body, job, index);
    }
    Draft::new(key, body)
}

/// An indexed pod knows its index by annotation, label, variable and host name.
fn mark_index(body: &mut Value, job: &JobView<'_>, index: u32) {
    body["metadata"]["annotations"][INDEX] = json!(index.to_string());
    body["metadata"]["labels"][INDEX] = json!(index.to_string());
    body["spec"]["hostname"] = json!(format!("{}-{index}", job.object.key().name));
    for list in ["initContainers", "containers"] {
        let containers = body["spec"].get_mut(list).and_then(Value::as_array_mut);
        for container in containers.into_iter().flatten() {
            let path = format!("metadata.labels['{INDEX}']");
            let variable = json!({
                "name": "JOB_COMPLETION_INDEX",
                "valueFrom": { "fieldRef": { "fieldPath": path } },
            });
            match container.get_mut("env").and_then(Value::as_array_mut) {
                Some(env) => {
                    let has = env.iter().any(|it| it["name"] == variable["name"]);
                    env.extend((!has).then_some(variable));
                }
                None => container["env"] = json!([variable]),
            }
        }
    }
}
