//! S1 to S3, S8 to S10, S12 and S13: what the API server owes everybody.

use jiff::Timestamp;
use serde_json::Value;
use sundown_api::Method;
use sundown_decide::kinds::{FOREGROUND, ORPHAN};
use sundown_model::Resource;

use super::Violation;
use crate::ledger::{Event, Ledger, Version};

/// The kinds, by group and plural, whose status is written apart.
const WITH_STATUS: [(&str, &str); 5] = [
    ("", "pods"),
    ("apps", "deployments"),
    ("apps", "replicasets"),
    ("batch", "jobs"),
    ("batch.volcano.sh", "jobs"),
];

pub(super) fn judge(event: &Event, before: &Ledger, found: &mut Vec<Violation>) {
    let mut broken = |invariant, text: String| {
        found.push(Violation::new(invariant, format!("{}: {text}", event.key)));
    };
    let last = before
        .events
        .last()
        .map_or(event.revision - 1, |last| last.revision);
    if event.revision != last + 1 {
        broken("S1", format!("revision {} follows {last}", event.revision));
    }
    match (&event.prev, &event.new) {
        (None, Some(new)) => created(event, new, before, &mut broken),
        (Some(prev), Some(new)) => changed(event, prev, new, &mut broken),
        (Some(prev), None) => removed(event, prev, before, &mut broken),
        (None, None) => broken("S1", "a write of nothing".to_owned()),
    }
    if let (Some(prev), true) = (&event.prev, event.first) {
        let (uid, rv) = &event.guard;
        if rv
            .as_ref()
            .is_some_and(|rv| *rv != prev.revision.to_string())
        {
            broken("S2", format!("written although {rv:?} was stale"));
        }
        if uid.as_ref().is_some_and(|uid| uid != prev.uid.as_str()) {
            broken("S3", format!("written although uid {uid:?} is another"));
        }
    }
}

type Broken<'a> = dyn FnMut(&'static str, String) + 'a;

fn created(event: &Event, new: &Version, before: &Ledger, broken: &mut Broken<'_>) {
    if before.uids.contains(&new.uid) {
        broken("S3", format!("uid {} was given out before", new.uid));
    }
    if let Some(namespace) = &event.key.namespace {
        let live = before.live.iter().find(|(key, _)| {
            key.resource == Resource::new("", "namespaces") && *key.name == *namespace.as_str()
        });
        if live.is_none_or(|(_, version)| version.deleted_at().is_some()) {
            broken(
                "S13",
                format!("created in namespace {namespace}, which is not there to stay"),
            );
        }
    }
}

fn changed(event: &Event, prev: &Version, new: &Version, broken: &mut Broken<'_>) {
    if prev.uid != new.uid {
        broken("S3", format!("uid {} became {}", prev.uid, new.uid));
    }
    if without_rv(&prev.json) == without_rv(&new.json) {
        broken("S1", "a no-op was written".to_owned());
    }
    if let Some(at) = prev.deleted_at() {
        // RFC 3339 in one zone and of one precision orders as text. A grace period that is cut short after it
        // was over ends now, as upstream has it; it never ends later.
        let is_cut = grace_seconds(new) < grace_seconds(prev) && event.method == Method::Delete;
        let is_past = |it: &str| it.parse::<Timestamp>().is_ok_and(|it| it <= event.at);
        if new
            .deleted_at()
            .is_none_or(|now| now > at && !(is_cut && is_past(now)))
        {
            broken(
                "S9",
                format!("deletion at {at} became {:?}", new.deleted_at()),
            );
        }
        let own = |name: &&str| *name != FOREGROUND && *name != ORPHAN;
        if let Some(name) = new
            .finalizers()
            .filter(own)
            .find(|name| !prev.has_finalizer(name))
        {
            broken("S9", format!("finalizer {name} was added during deletion"));
        }
    }
    let lives_on = event.key.resource == Resource::new("", "namespaces") || grace_seconds(new) > 0;
    let removed_at_once = event.method == Method::Delete;
    if new.deleted_at().is_some()
        && new.finalizers().next().is_none()
        && !lives_on
        && !removed_at_once
    {
        broken(
            "S10",
            "terminating without finalizers, and still stored".to_owned(),
        );
    }
    isolation(event, prev, new, broken);
}

fn grace_seconds(version: &Version) -> i64 {
    let seconds = version.json.pointer("/metadata/deletionGracePeriodSeconds");
    seconds.and_then(Value::as_i64).unwrap_or(0)
}

fn isolation(event: &Event, prev: &Version, new: &Version, broken: &mut Broken<'_>) {
    let (old_spec, new_spec) = (prev.json.get("spec"), new.json.get("spec"));
    let generation = |version: &Version| {
        version
            .json
            .pointer("/metadata/generation")
            .and_then(Value::as_i64)
    };
    if event.path.ends_with("/status") && old_spec != new_spec {
        broken("S12", "spec was changed through status".to_owned());
    }
    let resource = &event.key.resource;
    if WITH_STATUS.contains(&(resource.group(), resource.plural()))
        && !event.path.ends_with("/status")
        && !event.path.ends_with("/binding")
        && prev.json.get("status") != new.json.get("status")
    {
        broken("S12", "status was changed through the object".to_owned());
    }
    let deletion_begins = prev.deleted_at().is_none() && new.deleted_at().is_some();
    if generation(prev) != generation(new) && old_spec == new_spec && !deletion_begins {
        let same = without_metadata(&prev.json) == without_metadata(&new.json);
        // As upstream has it, annotations are a part of what a deployment is to roll out.
        let annotations =
            |version: &Version| version.json.pointer("/metadata/annotations").cloned();
        let is_rollout = *resource == Resource::new("apps", "deployments")
            && annotations(prev) != annotations(new);
        if same && !is_rollout {
            broken(
                "S12",
                "generation changed although nothing else did".to_owned(),
            );
        }
    }
    if old_spec != new_spec
        && generation(prev).is_some()
        && generation(prev) == generation(new)
        && event.key.resource != Resource::new("", "namespaces")
        // As upstream has it, a pod that gets its node is no other pod.
        && !event.path.ends_with("/binding")
    {
        broken("S12", "spec changed and generation did not".to_owned());
    }
}

fn removed(event: &Event, prev: &Version, before: &Ledger, broken: &mut Broken<'_>) {
    let foreign = |name: &&str| *name != FOREGROUND && *name != ORPHAN;
    if event.method == Method::Delete
        && let Some(name) = prev.finalizers().find(foreign)
    {
        broken(
            "S8",
            format!("removed although finalizer {name} was acknowledged"),
        );
    }
    if event.key.resource == Resource::new("", "namespaces") {
        let inside = before.live.keys().find(|key| {
            key.namespace
                .as_ref()
                .is_some_and(|namespace| namespace.as_str() == &*event.key.name)
        });
        if let Some(key) = inside {
            broken("S13", format!("the namespace went while {key} was in it"));
        }
    }
}

fn without_rv(json: &Value) -> Value {
    let mut json = json.clone();
    json["metadata"]["resourceVersion"] = Value::Null;
    json
}

fn without_metadata(json: &Value) -> Value {
    let mut json = json.clone();
    json["metadata"] = Value::Null;
    json
}
