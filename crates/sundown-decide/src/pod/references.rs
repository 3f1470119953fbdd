//! The `ConfigMap`s and Secrets that a pod names, and how long it waits for one that is not there.
//! What they hold is read by the adapter only.

use jiff::Timestamp;
use serde_json::Value;
use sundown_model::{DeedFact, DeedOutcome, ObjectKey, Sight};

use super::view::PodView;
use crate::json::{after, items, list, text};
use crate::kinds::SECRET;

/// How long what is missing is waited for without a sign that it came. A change is seen at once; this
/// is for whatever nobody has thought of.
const LACKS_SECONDS_MAX: i64 = 60;

/// Until when a deed that was refused is not tried again.
pub(super) fn lacks_until(sight: &Sight<'_>, fact: &DeedFact) -> Option<Timestamp> {
    let missing = match &fact.outcome {
        DeedOutcome::Refused(refusal) => refusal.missing.as_ref()?,
        DeedOutcome::Done | DeedOutcome::Unknown { .. } => return None,
    };
    let seen = sight.cache.seen_step(missing);
    let has_changed = seen.is_some_and(|step| step > fact.asked);
    let until = after(fact.ended_at, LACKS_SECONDS_MAX);
    Some(until).filter(|until| !has_changed && sight.now < *until)
}

/// Whether a pod may wait for this object: it names it and has not finished.
pub(super) fn may_wait(pod: &PodView<'_>, object: &ObjectKey) -> bool {
    let lives = !pod.is_finished() && pod.deletion.is_none();
    lives && pod.namespace() == object.namespace_str() && names(pod, object)
}

fn names(pod: &PodView<'_>, object: &ObjectKey) -> bool {
    let (in_volume, volume_name, all_of, key_of) = if object.resource.is(&SECRET) {
        ("secret", "secretName", "secretRef", "secretKeyRef")
    } else {
        ("configMap", "name", "configMapRef", "configMapKeyRef")
    };
    let is = |source: Option<&Value>, member: &str| {
        source.is_some_and(|source| text(source, member) == &*object.name)
    };
    let of_part = |part: &Value| is(part.get(in_volume), "name");
    let of_volume = |volume: &Value| {
        let parts = volume.get("projected").map(|it| list(it, "sources"));
        is(volume.get(in_volume), volume_name) || parts.unwrap_or_default().iter().any(of_part)
    };
    let of_all = |from: &Value| is(from.get(all_of), "name");
    let of_key = |variable: &Value| {
        let source = variable.get("valueFrom");
        is(source.and_then(|it| it.get(key_of)), "name")
    };
    let mut volumes = items(pod.object.field("/spec/volumes")).iter();
    volumes.any(of_volume)
        || pod.containers().any(|it| {
            let all = list(it.json, "envFrom").iter().any(of_all);
            all || list(it.json, "env").iter().any(of_key)
        })
}
