//! The conditions of a cluster.

use jiff::Timestamp;

use super::{Observed, Pass, PodView, head, is_complete};
use crate::ray_cluster::{ClusterStatus, Condition};

const PROVISIONED: &str = "RayClusterProvisioned";
const HEAD_READY: &str = "HeadPodReady";
const REPLICA_FAILURE: &str = "ReplicaFailure";
const SUSPENDING: &str = "RayClusterSuspending";
const SUSPENDED: &str = "RayClusterSuspended";
/// Of our own: upstream tells a refusal by an Event alone.
pub(super) const REFUSED: &str = "sundown.dev/Refused";

/// What a condition says, before it is known since when.
struct Said {
    kind: &'static str,
    /// `True`, `False` or `Unknown`.
    status: String,
    reason: String,
    message: String,
}

pub(super) fn set(status: &mut ClusterStatus, observed: &Observed<'_>, now: Timestamp) {
    set_replica_failure(status, observed.pass, now);
    put(status, head_ready(head(observed)), now);
    let is_suspended = status.is_true(SUSPENDED);
    if !status.is_true(PROVISIONED) && !is_suspended {
        put(status, provisioned(is_complete(observed)), now);
    }
    set_suspension(status, observed, now);
}

/// Says that the spec of this generation is refused.
pub(super) fn set_refused(status: &mut ClusterStatus, generation: i64, why: &str, now: Timestamp) {
    put(status, said(REFUSED, true, "Invalid", why), now);
    let own = status.conditions.iter_mut();
    for own in own.filter(|own| own.kind == REFUSED) {
        own.observed_generation = generation;
    }
}

/// Takes that back.
pub(super) fn clear_refused(status: &mut ClusterStatus) {
    status.conditions.retain(|own| own.kind != REFUSED);
}

fn set_replica_failure(status: &mut ClusterStatus, pass: Pass<'_>, now: Timestamp) {
    match pass {
        Pass::Succeeded => status.conditions.retain(|own| own.kind != REPLICA_FAILURE),
        Pass::Failed { reason: None, .. } => {}
        Pass::Failed {
            reason: Some(reason),
            message,
        } => put(status, said(REPLICA_FAILURE, true, reason, message), now),
    }
}

fn head_ready(head: Option<&PodView>) -> Said {
    let Some(head) = head else {
        return said(HEAD_READY, false, "HeadPodNotFound", "Head Pod not found");
    };
    let Some(ready) = &head.ready else {
        return said(HEAD_READY, false, "Unknown", "");
    };
    if head.is_running_and_ready() {
        // The kubelet's reason is that of a pod that is not ready because of its submitter.
        let own = if ready.status == "True" {
            ready.reason.as_str()
        } else {
            ""
        };
        let reason = if own.is_empty() {
            "HeadPodRunningAndReady"
        } else {
            own
        };
        return said(HEAD_READY, true, reason, &ready.message);
    }
    let stopped = head.containers.iter().find_map(|container| {
        let (reason, message) = container.stopped.as_ref()?;
        Some((reason, format!("{}: {message}", container.name)))
    });
    match stopped.filter(|_| ready.reason == "ContainersNotReady") {
        Some((reason, message)) => {
            let before = if ready.message.is_empty() { "" } else { "; " };
            let message = format!("{}{before}{message}", ready.message);
            said(HEAD_READY, false, reason, &message)
        }
        // A head on a lost node is neither ready nor not: the kubelet does not say.
        None => Said {
            status: ready.status.clone(),
            ..said(HEAD_READY, false, &ready.reason, &ready.message)
        },
    }
}

/// Sticky: once true, only a suspension makes it false.
fn provisioned(is_complete: bool) -> Said {
    if is_complete {
        let message = "All Ray Pods are ready for the first time";
        return said(PROVISIONED, true, "AllPodRunningAndReadyFirstTime", message);
    }
    let message = "RayCluster Pods are being provisioned for first time";
    said(PROVISIONED, false, "RayClusterPodsProvisioning", message)
}

/// Suspending runs to its end whatever the spec says meanwhile; suspended lasts until it no longer asks.
fn set_suspension(status: &mut ClusterStatus, observed: &Observed<'_>, now: Timestamp) {
    let wants = observed.cluster.spec.suspend == Some(true);
    let pair = |kind: &'static str, is_true: bool| said(kind, is_true, kind, "");
    if status.is_true(SUSPENDING) {
        if observed.pods.is_empty() {
            let message = "RayCluster has been suspended";
            put(
                status,
                said(PROVISIONED, false, "RayClusterPodsProvisioning", message),
                now,
            );
            put(status, pair(SUSPENDING, false), now);
            put(status, pair(SUSPENDED, true), now);
        }
    } else if status.is_true(SUSPENDED) {
        if !wants {
            put(status, pair(SUSPENDED, false), now);
        }
    } else {
        put(status, pair(SUSPENDED, false), now);
        put(status, pair(SUSPENDING, wants), now);
    }
}

fn said(kind: &'static str, is_true: bool, reason: &str, message: &str) -> Said {
    Said {
        kind,
        status: if is_true { "True" } else { "False" }.to_owned(),
        reason: fitting(reason),
        message: cut(message).to_owned(),
    }
}

/// A reason that the API server takes. Those of containers are free texts, and one that does not fit
/// would have every later status refused.
fn fitting(reason: &str) -> String {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | ',' | ':');
    let kept: String = reason.chars().filter(|c| fits(*c)).take(1024).collect();
    let kept = kept.trim_start_matches(|c: char| !c.is_ascii_alphabetic());
    let kept = kept.trim_end_matches([',', ':']);
    if kept.is_empty() {
        "Unknown".into()
    } else {
        kept.into()
    }
}

/// As much of a message as the API server takes.
fn cut(message: &str) -> &str {
    const BYTES_MAX: usize = 32768;
    let end = BYTES_MAX.min(message.len());
    let ends = (0..=end).rev();
    ends.into_iter()
        .find_map(|end| message.get(..end))
        .unwrap_or("")
}

/// Writes a condition; the instant changes only with the truth of it.
fn put(status: &mut ClusterStatus, said: Said, now: Timestamp) {
    let before = status.condition(said.kind);
    let since = before.filter(|before| before.status == said.status);
    let condition = Condition {
        kind: said.kind.into(),
        status: said.status,
        observed_generation: before.map_or(0, |before| before.observed_generation),
        last_transition_time: since.map_or(now, |since| since.last_transition_time),
        reason: said.reason,
        message: said.message,
    };
    match status
        .conditions
        .iter_mut()
        .find(|own| own.kind == said.kind)
    {
        Some(own) => *own = condition,
        None => status.conditions.push(condition),
    }
}
