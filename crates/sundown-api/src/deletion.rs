//! What DELETE does to the metadata of an object: finalizers, grace, marking. Pure decisions after
//! upstream's `registry/generic/registry/store.go` and `registry/rest/delete.go`.

use jiff::{SignedDuration, Timestamp};

use crate::document::{Document, whole_seconds};
use crate::options::{DeleteOptions, Policy};
use crate::registry::{DefaultPolicy, Type};
use crate::validate::{FOREGROUND, ORPHAN};

/// What a grace period means for one DELETE.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Grace {
    /// Nothing to wait for: finalizers alone decide.
    Immediate,
    /// A grace period runs that this request does not shorten: nothing changes.
    Pending,
    /// The object is marked with this end and this many seconds.
    Marked { at: Timestamp, seconds: i64 },
}

/// The finalizers of an object after DELETE; None if they stay as they are.
pub(crate) fn gc_finalizers(
    default: DefaultPolicy,
    stored: &[String],
    options: &DeleteOptions,
) -> Option<Vec<String>> {
    let (orphan, foreground) = wanted(default, stored, options);
    rewritten(stored, orphan, foreground)
}

/// The rule of namespaces: what is not asked for stays, and `orphanDependents: false` means
/// foreground.
pub(crate) fn namespace_finalizers(
    stored: &[String],
    options: &DeleteOptions,
) -> Option<Vec<String>> {
    let policy = match (options.orphan_dependents, options.policy) {
        (Some(true), _) => Policy::Orphan,
        (Some(false), _) => Policy::Foreground,
        (None, Some(policy)) => policy,
        (None, None) => return None,
    };
    rewritten(
        stored,
        policy == Policy::Orphan,
        policy == Policy::Foreground,
    )
}

/// What the grace period of a type means for this DELETE.
pub(crate) fn grace(
    ty: &Type,
    object: &Document,
    options: &DeleteOptions,
    now: Timestamp,
) -> Grace {
    if !ty.graceful {
        return Grace::Immediate;
    }
    // Upstream reads a negative period as one second.
    let asked = options
        .grace_seconds
        .map(|seconds| if seconds < 0 { 1 } else { seconds });
    let Some(ends_at) = object.metadata.deletion_timestamp else {
        let seconds = first_grace(object, asked);
        return Grace::Marked {
            at: after(now, seconds),
            seconds,
        };
    };
    let running = object.metadata.deletion_grace_period_seconds.unwrap_or(0);
    if running <= 0 {
        return Grace::Immediate;
    }
    let Some(seconds) = asked.filter(|seconds| *seconds < running) else {
        return Grace::Pending;
    };
    let at = after(ends_at, seconds - running);
    let now = whole_seconds(now);
    if at >= now {
        return Grace::Marked { at, seconds };
    }
    Grace::Marked {
        at: now,
        seconds: seconds.min(1),
    }
}

/// Marks an object that survives its DELETE without grace.
pub(crate) fn mark(object: &mut Document, now: Timestamp) {
    let now = whole_seconds(now);
    let metadata = &mut object.metadata;
    if metadata.deletion_timestamp.is_none() && metadata.generation > 0 {
        metadata.generation += 1;
    }
    // A mark may be pulled to now, never postponed.
    if metadata.deletion_timestamp.is_none_or(|at| at > now) {
        metadata.deletion_timestamp = Some(now);
    }
    metadata.deletion_grace_period_seconds = Some(0);
}

/// Marks an object whose grace period begins or is shortened.
pub(crate) fn mark_graceful(object: &mut Document, at: Timestamp, seconds: i64) {
    let metadata = &mut object.metadata;
    if metadata.deletion_timestamp.is_none() && metadata.generation > 0 {
        metadata.generation += 1;
    }
    metadata.deletion_timestamp = Some(at);
    metadata.deletion_grace_period_seconds = Some(seconds);
}

fn wanted(default: DefaultPolicy, stored: &[String], options: &DeleteOptions) -> (bool, bool) {
    if default == DefaultPolicy::Unsupported {
        return (false, false);
    }
    if let Some(orphan) = options.orphan_dependents {
        return (orphan, false);
    }
    if let Some(policy) = options.policy {
        return (policy == Policy::Orphan, policy == Policy::Foreground);
    }
    match stored
        .iter()
        .find(|name| [ORPHAN, FOREGROUND].contains(&name.as_str()))
    {
        Some(name) => (name == ORPHAN, name == FOREGROUND),
        None => (default == DefaultPolicy::Orphan, false),
    }
}

fn rewritten(stored: &[String], orphan: bool, foreground: bool) -> Option<Vec<String>> {
    let is_gc = |name: &str| [ORPHAN, FOREGROUND].contains(&name);
    let has = |wanted: &str| stored.iter().any(|name| name == wanted);
    // Equal as sets: the order that clients gave stays.
    if has(ORPHAN) == orphan && has(FOREGROUND) == foreground {
        return None;
    }
    let mut new: Vec<String> = stored.iter().filter(|name| !is_gc(name)).cloned().collect();
    new.extend(orphan.then(|| ORPHAN.to_owned()));
    new.extend(foreground.then(|| FOREGROUND.to_owned()));
    Some(new)
}

fn first_grace(object: &Document, asked: Option<i64>) -> i64 {
    let own = object
        .at(&["spec", "terminationGracePeriodSeconds"])
        .and_then(serde_json::Value::as_i64);
    let is_finished = matches!(object.text_at(&["status", "phase"]), "Succeeded" | "Failed");
    // A pod that no node runs has nothing to stop.
    if object.text_at(&["spec", "nodeName"]).is_empty() || is_finished {
        return 0;
    }
    let seconds = asked.or(own).unwrap_or(0);
    if seconds < 0 { 1 } else { seconds }
}

fn after(at: Timestamp, seconds: i64) -> Timestamp {
    // Saturate: a grace of centuries means "never", not an overflow.
    whole_seconds(
        at.saturating_add(SignedDuration::from_secs(seconds))
            .unwrap_or(Timestamp::MAX),
    )
}
