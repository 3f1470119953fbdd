//! When deleted storage may go.

use sundown_model::{Cache, Decision, Facts, KnownKind, Need, Object, ObjectKey, Uid};

use super::reason::Reason;
use super::view;
use crate::actions::without_finalizer;
use crate::kinds::{CLAIM, CLAIM_PROTECTION, POD, VOLUME_PROTECTION};

/// Decides whether a claim is let go.
pub(super) fn claim(claim: &Object, cache: &Cache, facts: &Facts) -> Decision<Reason> {
    if let Some(idle) = not_ours(claim, CLAIM_PROTECTION) {
        return idle;
    }
    let namespace = claim.key().namespace.iter();
    let pods = namespace.flat_map(|it| cache.of_within(&POD.resource(), it));
    let users = pods.filter(|pod| view::uses(pod, claim));
    let by: Vec<ObjectKey> = users.map(|pod| pod.key().clone()).collect();
    if !by.is_empty() {
        return Decision::idle(Reason::InUse { by });
    }
    release_after(&POD, claim, CLAIM_PROTECTION, cache, facts)
}

/// Decides whether a volume is let go.
///
/// Upstream asks only for the phase, which its binder changes when the claim is gone. Where there is
/// no binder the phase stays, so that the claim itself is looked for.
pub(super) fn volume(volume: &Object, cache: &Cache, facts: &Facts) -> Decision<Reason> {
    if let Some(idle) = not_ours(volume, VOLUME_PROTECTION) {
        return idle;
    }
    let claim = view::claim_of(volume).filter(|_| view::is_bound(volume));
    let Some((key, uid)) = claim else {
        return Decision::act(without_finalizer(volume, VOLUME_PROTECTION), Reason::Unused);
    };
    let is_same = |it: &Uid| uid.as_ref().is_none_or(|uid| uid == it);
    if cache.get(&key).is_some_and(|it| is_same(it.uid())) {
        return Decision::idle(Reason::InUse { by: vec![key] });
    }
    if uid.is_some_and(|uid| cache.is_gone(&uid)) {
        return Decision::act(without_finalizer(volume, VOLUME_PROTECTION), Reason::Unused);
    }
    release_after(&CLAIM, volume, VOLUME_PROTECTION, cache, facts)
}

fn not_ours(object: &Object, finalizer: &str) -> Option<Decision<Reason>> {
    if !object.is_deleting() {
        return Some(Decision::idle(Reason::Wanted));
    }
    let is_held = object.has_finalizer(finalizer);
    (!is_held).then(|| Decision::idle(Reason::Released))
}

/// No user is known; once all of their kind were seen that there were when the storage was deleted,
/// there is none.
fn release_after(
    users: &KnownKind,
    object: &Object,
    finalizer: &str,
    cache: &Cache,
    facts: &Facts,
) -> Decision<Reason> {
    let since = cache.seen_step(object.key()).unwrap_or_default();
    let users = users.resource();
    if facts.is_fresh(&users, since) || cache.catalog().get(&users).is_none() {
        return Decision::act(without_finalizer(object, finalizer), Reason::Unused);
    }
    let blind = Some(users.clone()).filter(|it| !cache.is_synced(it));
    Decision::need(
        vec![Need::Barrier(vec![users])],
        Reason::AwaitsObservation { blind },
    )
}
