//! G5, G6, G12, T3, E1 and H2: what must hold when nothing more happens; and the end state itself.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;
use sundown_engine::Engine;
use sundown_model::{ObjectKey, Resource};

use super::ttl::due;
use super::{Violation, ray};
use crate::ledger::{Ledger, Version};

/// Judges a world at rest in which nobody holds a foreign finalizer any more.
pub(crate) fn at_rest(ledger: &Ledger, engine: &Engine, now: Timestamp) -> Vec<Violation> {
    let mut found: Vec<Violation> = Vec::new();
    for (key, version) in &ledger.live {
        found.extend(judge(key, version, ledger, now));
    }
    found.extend(
        engine
            .audit()
            .into_iter()
            .map(|text| Violation::new("G12", text)),
    );
    let mut uids = BTreeSet::new();
    let mut objects = engine.cache().iter();
    if let Some(twin) = objects.find(|it| !uids.insert(it.uid().clone())) {
        found.push(Violation::new(
            "H2",
            format!("{} is there twice", twin.key()),
        ));
    }
    if engine.not_granted() > 0 {
        found.push(Violation::new(
            "X1",
            format!("{} writes", engine.not_granted()),
        ));
    }
    found
}

fn judge(key: &ObjectKey, version: &Version, ledger: &Ledger, now: Timestamp) -> Option<Violation> {
    if key.resource == Resource::new("", "events") {
        let text = || format!("{key} is overdue and still there");
        return is_stale(version, now).then(|| Violation::new("E1", text()));
    }
    let owners = version.owners();
    // Unknown kinds and misplaced references keep an object; nothing follows from them.
    let judgeable = owners
        .iter()
        .all(|owner| ledger.key_of(owner, key).is_some());
    let present = owners
        .iter()
        .filter(|owner| ledger.owner(owner, key).is_some())
        .count();
    if version.deleted_at().is_some() {
        return Some(Violation::new(
            "G5",
            format!("{key} is still terminating: {}", version.json),
        ));
    }
    if judgeable && !owners.is_empty() && present == 0 {
        return Some(Violation::new(
            "G5",
            format!("{key} has no owner left and is still there"),
        ));
    }
    if judgeable && present > 0 && present < owners.len() {
        return Some(Violation::new(
            "G6",
            format!("{key} still names an owner that is gone"),
        ));
    }
    if due(key, version).is_some_and(|at| at <= now) {
        return Some(Violation::new(
            "T3",
            format!("{key} is overdue and still there"),
        ));
    }
    None
}

/// Whether an Event was made an hour ago. In no story one happens again.
fn is_stale(event: &Version, now: Timestamp) -> bool {
    let made_at = event.json.pointer("/metadata/creationTimestamp");
    let made_at = made_at.and_then(|at| at.as_str()?.parse::<Timestamp>().ok());
    made_at.is_some_and(|at| now.duration_since(at) >= SignedDuration::from_hours(1))
}

/// What is left, with all that may rightly differ between two runs taken out.
pub(crate) fn end_state(ledger: &Ledger) -> BTreeMap<ObjectKey, String> {
    let shown = ledger
        .live
        .iter()
        .filter(|(key, _)| ledger.catalog.get(&key.resource).is_some())
        .filter(|(key, _)| key.resource != Resource::new("", "events"))
        .filter(|(_, version)| !ray::is_chance(version));
    let describe = |version: &Version| {
        let finalizers: Vec<_> = version.finalizers().collect();
        let owners: Vec<_> = version
            .owners()
            .iter()
            .map(|owner| owner.name.to_string())
            .collect();
        let spec = format!("{:?}", version.json.get("spec"));
        // The selector of a job names its uid.
        let uid = version
            .json
            .pointer("/metadata/uid")
            .and_then(Value::as_str);
        let spec = uid.map_or(spec.clone(), |uid| spec.replace(uid, "UID"));
        format!("finalizers {finalizers:?} owners {owners:?} spec {spec}")
    };
    let mut all = BTreeMap::new();
    for (key, version) in shown {
        match ray::described(version) {
            None => all.insert(key.clone(), describe(version)),
            Some((name, text)) => {
                let mut key = key.clone();
                let mut names = (0..).map(|index| format!("{name}-{index}").into());
                key.name = names
                    .find(|name| {
                        let key = ObjectKey {
                            name: Arc::clone(name),
                            ..key.clone()
                        };
                        !all.contains_key(&key)
                    })
                    .expect("numbers do not end");
                all.insert(key, text)
            }
        };
    }
    all
}
