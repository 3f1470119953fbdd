//! G1 to G4 and T8: what the collector owes to those that it does not mean.

use std::collections::BTreeSet;
use std::sync::Arc;

use sundown_api::Method;
use sundown_decide::kinds::FOREGROUND;

use super::{Violation, ttl};
use crate::ledger::{Event, Ledger, Version};

pub(super) fn judge(event: &Event, before: &Ledger, found: &mut Vec<Violation>) {
    let Some(prev) = &event.prev else { return };
    let destructive = event.method == Method::Delete || event.new.is_none();
    if matches!(event.by, crate::ledger::Actor::Controller(_)) && destructive {
        let invariant = if ttl::is_by_collector(event) {
            "T8"
        } else {
            "G2"
        };
        if event.guard.0.as_deref() != Some(prev.uid.as_str()) {
            let text = format!(
                "{}: touched uid {} by {:?}",
                event.key, prev.uid, event.guard
            );
            found.push(Violation::new(invariant, text));
        }
    }
    if event.is_by("owner_gc") && event.method == Method::Delete && event.first {
        collected(event, prev, before, found);
    }
    if event.new.is_none() {
        owner_went(event, prev, before, found);
    }
}

/// G1: every owner is absent, or waited in foreground at or after the object's revision.
fn collected(event: &Event, prev: &Version, before: &Ledger, found: &mut Vec<Violation>) {
    let owners = prev.owners();
    if owners.is_empty() {
        found.push(Violation::new(
            "G1",
            format!("{} was collected without owners", event.key),
        ));
    }
    for owner in &owners {
        // What went while its kind was served stays gone when the kind goes, too.
        let Some(key) = before.key_of(owner, &event.key) else {
            if before.has_gone(&owner.uid) {
                continue;
            }
            let text = format!(
                "{} was collected; its owner's kind is not served",
                event.key
            );
            found.push(Violation::new("G1", text));
            continue;
        };
        let is_there = before.owner(owner, &event.key).is_some();
        if is_there && !before.waited_since(&key, &owner.uid, prev.revision) {
            let text = format!("{} was collected although {key} holds it", event.key);
            found.push(Violation::new("G1", text));
        }
    }
    let promised = before.promises.iter().filter(|promise| promise.kept_alive);
    for promise in promised.filter(|promise| promise.dependents.contains(&prev.uid)) {
        // A switch from foreground to orphan counts from the moment the collector sees it.
        let wronged = owners.iter().any(|owner| {
            let key = before.key_of(owner, &event.key);
            owner.uid == promise.owner
                && !key.is_some_and(|key| before.waited_since(&key, &owner.uid, prev.revision))
        });
        if wronged {
            let text = format!("{} was collected although it was to be orphaned", event.key);
            found.push(Violation::new("G3", text));
        }
    }
}

/// Whether an owner that goes also waits below this dependent of it, around a circle. Then one of them has to
/// go first.
fn waits_above(dependent: &Version, owner: &Arc<Version>, before: &Ledger) -> bool {
    let waits = |it: &Version| it.deleted_at().is_some() && it.has_finalizer(FOREGROUND);
    let (mut open, mut seen) = (vec![owner.clone()], BTreeSet::new());
    while let Some(below) = open.pop() {
        for reference in below.owners().iter().filter(|it| it.is_blocking()) {
            let found = before.live.values().find(|it| it.uid == reference.uid);
            let Some(found) = found.filter(|it| waits(it)) else {
                continue;
            };
            if found.uid == dependent.uid {
                return true;
            }
            if seen.insert(found.uid.clone()) {
                open.push(found.clone());
            }
        }
    }
    false
}

/// G3 and G4: when an owner goes, its promises are due.
fn owner_went(event: &Event, prev: &Arc<Version>, before: &Ledger, found: &mut Vec<Violation>) {
    if event.by == crate::ledger::Actor::User {
        return;
    }
    for promise in before
        .promises
        .iter()
        .filter(|promise| promise.owner == prev.uid)
    {
        let left = before.live.iter().filter(|(_, version)| {
            promise.dependents.contains(&version.uid)
                && version.owners().iter().any(|owner| {
                    owner.uid == prev.uid && (promise.kept_alive || owner.is_blocking())
                })
        });
        for (key, version) in left {
            if !promise.kept_alive && waits_above(version, prev, before) {
                continue;
            }
            let (invariant, what) = if promise.kept_alive {
                ("G3", "still names it")
            } else {
                ("G4", "still blocks it")
            };
            let text = format!("{} went while {key} {what}", event.key);
            found.push(Violation::new(invariant, text));
        }
    }
}
