//! What one owner reference is worth: the judgement everything else follows from.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use sundown_model::{
    Catalog, LiveFact, Need, Object, ObjectKey, OwnerRef, Resolved, ResourceType, Step,
};

use super::decide::View;
use super::lapse::Lapse;
use crate::kinds::{FOREGROUND, ORPHAN};

/// How long a live read vouches for an owner whose kind cannot be watched. Such kinds are rare;
/// a complaint about dependents that stay too long would make it shorter.
const UNWATCHED_AGE_MAX: SignedDuration = SignedDuration::from_mins(10);

/// What is known of the owner that a reference names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Standing {
    /// It exists and does not wait for its dependents.
    Solid(ObjectKey),
    /// This incarnation is proven to be gone, or never was at that place.
    Gone,
    /// It is being deleted and waits for its dependents to go.
    Waiting(ObjectKey),
    /// It is being deleted and waits for its dependents to be let go.
    Orphaning,
    /// The reference names a kind that is not served: nothing follows.
    UnknownKind,
    /// A cluster-scoped object names an owner that lives in a namespace: nothing follows.
    Misplaced,
    /// Not known well enough.
    Ask(Need),
}

/// Judges one reference of an object that is in the cache.
pub(super) fn standing(owner: &OwnerRef, of: &Object, view: &View<'_>) -> Standing {
    let Resolved::Known(ty) = view
        .sight
        .cache
        .catalog()
        .resolve(&owner.api_version, &owner.kind)
    else {
        return Standing::UnknownKind;
    };
    let Some(key) = key_in(&ty, owner, of.key()) else {
        return Standing::Misplaced;
    };
    if view.sight.cache.is_gone(&owner.uid) {
        return Standing::Gone;
    }
    let since = view.sight.cache.seen_step(of.key()).unwrap_or_default();
    match cached(&key, owner, view) {
        Some(found) => by_cache(found, since, view),
        None => by_live_read(key, owner, since, view),
    }
}

/// The owner that a reference names, if the cache shows this very incarnation at that very place.
fn cached<'a>(key: &ObjectKey, owner: &OwnerRef, view: &View<'a>) -> Option<&'a Arc<Object>> {
    if view.lapses(Lapse::UidOnly) {
        return view.sight.cache.iter().find(|found| is_same(found, owner));
    }
    view.sight
        .cache
        .get(key)
        .filter(|found| is_same(found, owner))
}

/// The cache shows the owner. That it is being deleted counts only if it was still so when the
/// object had its present revision: the owner may have been switched from one way to another.
fn by_cache(owner: &Arc<Object>, since: Step, view: &View<'_>) -> Standing {
    let state = by_finalizer(owner);
    if matches!(state, Standing::Solid(_))
        || view.sight.facts.is_fresh(&owner.key().resource, since)
    {
        state
    } else {
        Standing::Ask(Need::Barrier(vec![owner.key().resource.clone()]))
    }
}

/// The cache does not show the owner, which proves nothing: it may lag. A live answer that was
/// asked after the reference was seen does.
fn by_live_read(key: ObjectKey, owner: &OwnerRef, since: Step, view: &View<'_>) -> Standing {
    let Some(fact) = view
        .sight
        .facts
        .live(&key)
        .filter(|fact| fact.asked > since)
    else {
        return Standing::Ask(Need::Live(key));
    };
    let Some(found) = fact.found.as_ref().filter(|found| is_same(found, owner)) else {
        return Standing::Gone;
    };
    if view.sight.now >= vouched_until(fact) {
        return Standing::Ask(Need::Live(key));
    }
    by_finalizer(found)
}

fn vouched_until(fact: &LiveFact) -> Timestamp {
    let until = fact.answered_at.saturating_add(UNWATCHED_AGE_MAX);
    until.unwrap_or(Timestamp::MAX)
}

/// When an owner that is held to live by a live read has to be asked about again.
pub(super) fn ask_again_at(
    owner: &OwnerRef,
    key: &ObjectKey,
    view: &View<'_>,
) -> Option<Timestamp> {
    if cached(key, owner, view).is_some() {
        return None;
    }
    view.sight.facts.live(key).map(vouched_until)
}

fn by_finalizer(owner: &Object) -> Standing {
    if owner.is_deleting() && owner.has_finalizer(FOREGROUND) {
        Standing::Waiting(owner.key().clone())
    } else if owner.is_deleting() && owner.has_finalizer(ORPHAN) {
        Standing::Orphaning
    } else {
        Standing::Solid(owner.key().clone())
    }
}

/// The same place is not enough, and neither is the same uid: upstream's collector matched by uid
/// alone and deleted the children of living owners (kubernetes#65200, #92743).
pub(super) fn is_same(found: &Object, owner: &OwnerRef) -> bool {
    found.uid() == &owner.uid
}

/// Where the owner that a reference names would live; None when it cannot be said.
pub(super) fn key_of(owner: &OwnerRef, of: &ObjectKey, catalog: &Catalog) -> Option<ObjectKey> {
    match catalog.resolve(&owner.api_version, &owner.kind) {
        Resolved::Known(ty) => key_in(&ty, owner, of),
        Resolved::Unknown => None,
    }
}

/// An owner lives in the namespace of its dependent or in none.
fn key_in(ty: &ResourceType, owner: &OwnerRef, of: &ObjectKey) -> Option<ObjectKey> {
    let namespace = if ty.namespaced {
        Some(of.namespace.clone()?)
    } else {
        None
    };
    Some(ObjectKey {
        resource: ty.resource.clone(),
        namespace,
        name: owner.name.clone(),
    })
}
