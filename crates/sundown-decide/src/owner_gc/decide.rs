//! The rules of collection, one object at a time.

use serde_json::json;
use sundown_model::{
    Action, Decision, Need, Object, ObjectKey, OwnerRef, Propagation, Resolved, ResourceType,
    Sight, Step,
};

use super::SCOPE;
use super::circle;
use super::graph::Graph;
use super::lapse::Lapse;
use super::owners::{Standing, ask_again_at, key_of, standing};
use super::reason::Reason;
use crate::actions::{delete, set_metadata, warning, without_finalizer};
use crate::kinds::{CRD, FOREGROUND, ORPHAN};
use crate::observation::unseen;

/// How many owners of one object are asked about. All answers have to be remembered until the last one is in, and
/// of all objects together only a few thousand are.
const ASKED_MAX: usize = 1_024;

/// How many of them are asked about at once: others have questions, too.
const ASKED_AT_ONCE_MAX: usize = 64;

/// All that a decision of the collector looks at.
#[derive(Debug, Clone, Copy)]
pub(super) struct View<'a> {
    pub(super) graph: &'a Graph,
    pub(super) sight: Sight<'a>,
    pub(super) lapse: Option<Lapse>,
}

impl View<'_> {
    /// Whether a rule that is wrong is back.
    pub(super) fn lapses(&self, lapse: Lapse) -> bool {
        self.lapse == Some(lapse)
    }
}

/// Decides what becomes of one object.
pub(super) fn decide(object: &Object, view: &View<'_>) -> Decision<Reason> {
    let judged: Vec<_> = object
        .owners()
        .iter()
        .map(|owner| (owner, standing(owner, object, view)))
        .collect();
    // Orphaning comes first and even for an object that is being deleted itself: its owner waits.
    if judged
        .iter()
        .any(|(_, standing)| *standing == Standing::Orphaning)
    {
        let reason = Reason::LetGo;
        return keep_owners(
            object,
            &judged,
            |standing| *standing != Standing::Orphaning,
            reason,
        );
    }
    if object.is_deleting() {
        return deleting(object, &judged, view);
    }
    if judged.is_empty() {
        return Decision::idle(Reason::NoOwners);
    }
    let mut needs = needs(&judged);
    if needs.len() > ASKED_MAX {
        let count = judged.len();
        return Decision::idle(Reason::TooManyOwners { count });
    }
    if !needs.is_empty() {
        needs.truncate(ASKED_AT_ONCE_MAX);
        return Decision::need(needs.clone(), Reason::AsksAboutOwners { needs });
    }
    owned(object, &judged, view)
}

type Judged<'a> = [(&'a OwnerRef, Standing)];

fn needs(judged: &Judged<'_>) -> Vec<Need> {
    let needs = judged.iter().filter_map(|(_, standing)| match standing {
        Standing::Ask(need) => Some(need.clone()),
        Standing::Solid(_)
        | Standing::Gone
        | Standing::Waiting(_)
        | Standing::Orphaning
        | Standing::UnknownKind
        | Standing::Misplaced => None,
    });
    let mut needs: Vec<_> = needs.collect();
    needs.sort();
    needs.dedup();
    needs
}

/// All owners are known as well as they can be: does one of them hold the object?
fn owned(object: &Object, judged: &Judged<'_>, view: &View<'_>) -> Decision<Reason> {
    if let Some((owner, _)) = judged.iter().find(|(_, it)| *it == Standing::Misplaced) {
        let decision = Decision::idle(Reason::Misplaced {
            owner: owner.name.to_string(),
        });
        let actions = misplaced_note(object, owner, view).into_iter().collect();
        return Decision {
            actions,
            ..decision
        };
    }
    let holders: Vec<ObjectKey> = judged
        .iter()
        .filter_map(|(_, standing)| match standing {
            Standing::Solid(key) => Some(key.clone()),
            Standing::Gone
            | Standing::Waiting(_)
            | Standing::Orphaning
            | Standing::UnknownKind
            | Standing::Misplaced
            | Standing::Ask(_) => None,
        })
        .collect();
    let idle = |standing: &Standing| matches!(standing, Standing::Gone | Standing::Waiting(_));
    if !holders.is_empty() {
        if judged.iter().any(|(_, standing)| idle(standing)) {
            let reason = Reason::PrunesReferences { holders };
            return keep_owners(object, judged, |standing| !idle(standing), reason);
        }
        // Nobody would tell us when an owner goes whose kind cannot be watched.
        let wake_at = judged
            .iter()
            .filter_map(|(owner, standing)| match standing {
                Standing::Solid(key) => ask_again_at(owner, key, view),
                Standing::Gone
                | Standing::Waiting(_)
                | Standing::Orphaning
                | Standing::UnknownKind
                | Standing::Misplaced
                | Standing::Ask(_) => None,
            });
        return Decision {
            wake_at: wake_at.min(),
            ..Decision::idle(Reason::Owned { holders })
        };
    }
    if let Some((owner, _)) = judged.iter().find(|(_, it)| *it == Standing::UnknownKind) {
        let (api_version, kind) = (owner.api_version.to_string(), owner.kind.to_string());
        return Decision::idle(Reason::UnknownOwnerKind { api_version, kind });
    }
    collect(object, judged, view)
}

/// No owner is left that holds the object.
fn collect(object: &Object, judged: &Judged<'_>, view: &View<'_>) -> Decision<Reason> {
    let waiting: Vec<ObjectKey> = judged
        .iter()
        .filter_map(|(_, standing)| match standing {
            Standing::Waiting(key) => Some(key.clone()),
            Standing::Solid(_)
            | Standing::Gone
            | Standing::Orphaning
            | Standing::UnknownKind
            | Standing::Misplaced
            | Standing::Ask(_) => None,
        })
        .collect();
    let how = if !waiting.is_empty() && view.graph.has_dependents(object.uid()) {
        Propagation::Foreground
    } else if object.has_finalizer(ORPHAN) {
        Propagation::Orphan
    } else if object.has_finalizer(FOREGROUND) {
        Propagation::Foreground
    } else {
        Propagation::Background
    };
    let mut actions = vec![delete(object, how)];
    let reason = if waiting.is_empty() {
        let strays = object
            .owners()
            .iter()
            .filter_map(|owner| misplaced_note(object, owner, view));
        actions.extend(strays.take(1));
        Reason::OwnersGone
    } else {
        Reason::OwnersWaiting { owners: waiting }
    };
    Decision::act_all(actions, reason)
}

/// The object is on its way out; the collector's own finalizers are its business.
fn deleting(object: &Object, judged: &Judged<'_>, view: &View<'_>) -> Decision<Reason> {
    // The finalizer goes only after we know whether an orphaning owner has to let us go. A barrier tells; whether an
    // owner is there at all does not matter any more, so that it is not read, however many owners there are.
    let mut needs = needs(judged);
    needs.retain(|need| matches!(need, Need::Barrier(_)));
    if !needs.is_empty() {
        return Decision::need(needs.clone(), Reason::AsksAboutOwners { needs });
    }
    if object.has_finalizer(FOREGROUND) {
        return empty_out(object, view);
    }
    if object.has_finalizer(ORPHAN) {
        return let_go(object, view);
    }
    let finalizers = object
        .finalizers()
        .iter()
        .map(ToString::to_string)
        .collect();
    Decision::idle(Reason::Terminating {
        key: object.key().clone(),
        finalizers,
    })
}

/// Foreground: goes when no dependent blocks it that existed when its deletion was seen.
fn empty_out(object: &Object, view: &View<'_>) -> Decision<Reason> {
    if let Some(decision) = unobserved(object, view) {
        return decision;
    }
    let blocking = || dependents(object, view).filter(|(_, owner)| owner.is_blocking());
    if blocking().next().is_none() {
        return Decision::act(without_finalizer(object, FOREGROUND), Reason::Emptied);
    }
    // A dependent that waits for nothing of its own is no member of a circle, so it is in the way of one.
    let may_circle = blocking().all(|(it, _)| it.is_deleting() && it.has_finalizer(FOREGROUND));
    if let Some(decision) = may_circle.then(|| in_circle(object, view)).flatten() {
        return decision;
    }
    let dependents = blocking().map(|(dependent, _)| dependent.key().clone());
    let dependents = dependents.collect();
    Decision::idle(Reason::WaitsForDependents { dependents })
}

/// An object that waits only for itself, around a circle of owners; None if it is in none, or if something
/// else is still in the way of one of its members.
fn in_circle(object: &Object, view: &View<'_>) -> Option<Decision<Reason>> {
    let members = circle::around(object, view);
    if members.is_empty() || view.lapses(Lapse::WaitsInCircles) {
        return None;
    }
    // The last of them to be deleted may have dependents that are not seen yet.
    if let Some(decision) = unobserved_of(members.values().copied(), view) {
        return Some(decision);
    }
    if circle::blockers(&members, view).next().is_some() {
        return None;
    }
    let others = members.values().map(|it| it.key().clone());
    let others = others.filter(|key| key != object.key()).collect();
    let action = without_finalizer(object, FOREGROUND);
    Some(Decision::act(action, Reason::Circle { others }))
}

/// Orphan: goes when no dependent that existed when its deletion was seen names it any more.
fn let_go(object: &Object, view: &View<'_>) -> Decision<Reason> {
    if let Some(decision) = unobserved(object, view) {
        return decision;
    }
    let mut dependents: Vec<_> = dependents(object, view)
        .map(|(dependent, _)| dependent.key().clone())
        .collect();
    dependents.dedup();
    if dependents.is_empty() {
        return Decision::act(without_finalizer(object, ORPHAN), Reason::AllLetGo);
    }
    Decision::idle(Reason::LetsDependentsGo { dependents })
}

/// The dependents that really mean this object, with the reference by which they do.
pub(super) fn dependents<'a>(
    object: &'a Object,
    view: &'a View<'_>,
) -> impl Iterator<Item = (&'a Object, &'a OwnerRef)> {
    let cached = view
        .graph
        .dependents(object.uid())
        .filter_map(|key| view.sight.cache.get(key));
    cached.flat_map(move |dependent| {
        let meant = dependent.owners().iter().filter(move |owner| {
            owner.uid == *object.uid()
                && key_of(owner, dependent.key(), view.sight.cache.catalog()).as_ref()
                    == Some(object.key())
        });
        meant.map(move |owner| (&**dependent, owner))
    })
}

/// What has to be observed before it can be said who depends on an object.
fn unobserved(object: &Object, view: &View<'_>) -> Option<Decision<Reason>> {
    unobserved_of(std::iter::once(object), view)
}

/// The same for several objects, by the one that was seen last: kinds are looked through once.
fn unobserved_of<'a>(
    objects: impl Iterator<Item = &'a Object>,
    view: &View<'_>,
) -> Option<Decision<Reason>> {
    let (mut since, mut is_cluster_wide) = (Step::default(), false);
    for object in objects {
        since = since.max(view.sight.cache.seen_step(object.key()).unwrap_or_default());
        is_cluster_wide |= object.key().namespace.is_none();
    }
    let may_hold = |ty: &ResourceType| SCOPE.includes(ty) && (ty.namespaced || is_cluster_wide);
    let mut resources = unseen(view.sight.cache, view.sight.facts, since, may_hold);
    if view.lapses(Lapse::TrustsCatalog) {
        resources.retain(|it| !it.is(&CRD));
    }
    if resources.is_empty() {
        return None;
    }
    let blind = resources
        .iter()
        .filter(|resource| !view.sight.cache.is_synced(resource));
    let reason = Reason::AwaitsObservation {
        blind: blind.cloned().collect(),
    };
    Some(Decision::need(vec![Need::Barrier(resources)], reason))
}

fn keep_owners(
    object: &Object,
    judged: &Judged<'_>,
    keep: impl Fn(&Standing) -> bool,
    reason: Reason,
) -> Decision<Reason> {
    let kept: Vec<&OwnerRef> = judged
        .iter()
        .filter(|(_, standing)| keep(standing))
        .map(|(owner, _)| *owner)
        .collect();
    Decision::act(set_metadata(object, "ownerReferences", json!(kept)), reason)
}

/// A reference into another namespace can never hold; the words are upstream's.
fn misplaced_note(object: &Object, owner: &OwnerRef, view: &View<'_>) -> Option<Action> {
    if view.sight.cache.is_gone(&owner.uid) {
        return None;
    }
    let Resolved::Known(ty) = view
        .sight
        .cache
        .catalog()
        .resolve(&owner.api_version, &owner.kind)
    else {
        return None;
    };
    let mut observed = view.sight.cache.of(&ty.resource);
    observed.find(|found| {
        found.uid() == &owner.uid && found.key().namespace != object.key().namespace
    })?;
    let namespace = object.key().namespace_str();
    let message = format!(
        "ownerRef [{}/{}, namespace: {namespace}, name: {}, uid: {}] does not exist in namespace \"{namespace}\"",
        owner.api_version, owner.kind, owner.name, owner.uid,
    );
    Some(warning(object, "OwnerRefInvalidNamespace", message))
}
