//! Circles of owners that are deleted in the foreground: each waits for another, so none would ever go.
//!
//! Upstream breaks what may be a circle by unblocking references, one request more for each. Here it is known:
//! a strongly connected component over objects that wait for their dependents, an owner of itself included. If
//! nothing outside of it blocks any of its members, it has only itself to wait for, and each member may go.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use sundown_model::{Object, ObjectKey, Uid};

use super::decide::{View, dependents};
use super::owners::{is_same, key_of};
use crate::kinds::FOREGROUND;

/// The members of the circle that an object waits in; empty if it waits in none.
pub(super) fn around<'a>(object: &'a Object, view: &'a View<'_>) -> BTreeMap<Uid, &'a Object> {
    let (above, below) = owners_above(object, view);
    // Of those above it, the ones that lead back to it.
    let mut members = BTreeMap::new();
    let mut open = vec![object.uid().clone()];
    while let Some(uid) = open.pop() {
        for dependent in below.get(&uid).into_iter().flatten() {
            let Some(found) = above.get(dependent) else {
                continue;
            };
            if members.insert(dependent.clone(), *found).is_none() {
                open.push(dependent.clone());
            }
        }
    }
    // Without a way back to itself it is in no circle.
    if members.contains_key(object.uid()) {
        members
    } else {
        BTreeMap::new()
    }
}

/// Dependents by owner.
type Below = BTreeMap<Uid, BTreeSet<Uid>>;

/// Everything that waits above an object, by the references that block, itself included; and who of them
/// depends on whom. Upwards, as an object has few owners and may have many dependents.
fn owners_above<'a>(object: &'a Object, view: &'a View<'_>) -> (BTreeMap<Uid, &'a Object>, Below) {
    let mut above = BTreeMap::from([(object.uid().clone(), object)]);
    let mut below = Below::new();
    let mut open = vec![object];
    while let Some(dependent) = open.pop() {
        for owner in waiting_owners(dependent, view) {
            let of = below.entry(owner.uid().clone()).or_default();
            of.insert(dependent.uid().clone());
            if above.insert(owner.uid().clone(), owner).is_none() {
                open.push(owner);
            }
        }
    }
    (above, below)
}

fn waiting_owners<'a>(
    dependent: &'a Object,
    view: &'a View<'_>,
) -> impl Iterator<Item = &'a Object> {
    let blocking = dependent.owners().iter().filter(|it| it.is_blocking());
    blocking.filter_map(move |owner| {
        let key = key_of(owner, dependent.key(), view.sight.cache.catalog())?;
        let found: &Arc<Object> = view.sight.cache.get(&key)?;
        let waits = found.is_deleting() && found.has_finalizer(FOREGROUND);
        (is_same(found, owner) && waits).then_some(&**found)
    })
}

/// Who blocks a member of a circle from outside of it.
pub(super) fn blockers<'a>(
    members: &'a BTreeMap<Uid, &'a Object>,
    view: &'a View<'_>,
) -> impl Iterator<Item = ObjectKey> {
    let all = members.values().flat_map(|it| dependents(it, view));
    all.filter(|(dependent, owner)| owner.is_blocking() && !members.contains_key(dependent.uid()))
        .map(|(dependent, _)| dependent.key().clone())
}
