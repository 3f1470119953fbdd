//! The end of a `CustomResourceDefinition`.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use sundown_model::{Action, Decision, Facts, Need, Object, ObjectKey, Resource, Sight};

use super::conditions;
use super::reason::Reason;
use super::view::{CLEANUP, DefinitionView};
use super::{INSTANCES, owned_kinds};
use crate::actions::{set_status, without_finalizer};
use crate::emptying::{self, Left, goes_along, refusal};
use crate::owner_gc;

/// How long a definition waits for the collector. Nobody may collect here at all, so there is an end
/// to it; a complaint about dependents that stayed would make it longer.
const COLLECTOR_TIME_MAX: SignedDuration = SignedDuration::from_mins(1);

/// Decides what a definition needs in order to go.
pub(super) fn decide(object: &Object, sight: &Sight<'_>) -> Decision<Reason> {
    let definition = DefinitionView::of(object);
    if !definition.object.is_deleting() {
        return Decision::idle(Reason::Active);
    }
    if !definition.is_held() {
        return Decision::idle(Reason::Released);
    }
    if !definition.is_established() {
        return Decision::act(release(&definition), Reason::NeverEstablished);
    }
    let instances = || sight.cache.of(&definition.resource);
    // Asked at the end of each instance, so that they are not counted each time.
    if instances().any(|it| is_open(it, sight.facts)) {
        return match tell(&definition, conditions::in_progress(), sight.now) {
            Some(told) => Decision::act(told, Reason::Empties),
            None => Decision::idle(Reason::Empties),
        };
    }
    let left: Vec<_> = instances().collect();
    if !left.is_empty() {
        return report(&definition, &left, sight);
    }
    let since = sight.cache.seen_step(object.key()).unwrap_or_default();
    if sight.facts.is_fresh(&definition.resource, since) {
        return match tell(&definition, conditions::completed(), sight.now) {
            Some(told) => Decision::act(told, Reason::Emptied),
            None => after_collector(object, &definition, sight),
        };
    }
    let resource = definition.resource.clone();
    if sight.cache.catalog().get(&resource).is_none() {
        // Nobody can look: what is not proven to be gone is not assumed to be.
        let blind = Some(resource);
        return Decision::idle(Reason::AwaitsObservation { blind });
    }
    let blind = Some(resource.clone()).filter(|it| !sight.cache.is_synced(it));
    let reason = Reason::AwaitsObservation { blind };
    Decision::need(vec![Need::Barrier(vec![resource])], reason)
}

/// No instance is left. Once the kind is not served any more, nobody can prove that an owner of it is
/// gone, so the collector comes first: what it has not looked at by then would stay for ever.
fn after_collector(
    object: &Object,
    definition: &DefinitionView<'_>,
    sight: &Sight<'_>,
) -> Decision<Reason> {
    let completed_at = conditions::completed_at(&definition.conditions);
    let until = completed_at.and_then(|at| at.checked_add(COLLECTOR_TIME_MAX).ok());
    let Some(until) = until.filter(|until| sight.now < *until) else {
        return Decision::act(release(definition), Reason::Empty);
    };
    let since = sight.cache.seen_step(object.key()).unwrap_or_default();
    let unseen = unseen(since, sight);
    if !unseen.is_empty() {
        let reason = Reason::AwaitsObservation { blind: None };
        return Decision::need(vec![Need::Barrier(unseen)], reason);
    }
    let dependents = uncollected(&definition.resource, sight);
    if dependents.is_empty() {
        return Decision::act(release(definition), Reason::Empty);
    }
    Decision::wake_at(until, Reason::AwaitsCollector { dependents })
}

/// The kinds that may hold dependents which we have not heard of. One that cannot be listed is left
/// out: the collector cannot work on it either.
fn unseen(since: sundown_model::Step, sight: &Sight<'_>) -> Vec<Resource> {
    let kinds = sight.cache.catalog().iter();
    let kinds = kinds
        .filter(|ty| INSTANCES.includes(ty))
        .map(|ty| &ty.resource);
    let unseen = kinds.filter(|it| sight.cache.is_synced(it) && !sight.facts.is_fresh(it, since));
    unseen.cloned().collect()
}

/// What names an instance as its owner and is still to be collected or let go.
fn uncollected(resource: &Resource, sight: &Sight<'_>) -> Vec<ObjectKey> {
    let catalog = sight.cache.catalog();
    let owned = sight.cache.iter().filter(|it| !it.is_deleting());
    let owned = owned.filter(|it| owned_kinds(it, catalog).any(|kind| kind == *resource));
    let open = owned.filter(|it| owner_gc::has_work(it, *sight));
    open.map(|it| it.key().clone()).collect()
}

/// Decides whether an instance goes with its definition.
pub(super) fn instance(object: &Object, definition: &Object) -> Decision<Reason> {
    let definition = DefinitionView::of(definition);
    if !definition.object.is_deleting() || !definition.is_established() {
        return Decision::idle(Reason::Active);
    }
    if !definition.is_held() {
        return Decision::idle(Reason::Released);
    }
    if object.is_deleting() {
        return Decision::idle(Reason::Terminating);
    }
    Decision::act(goes_along(object), Reason::GoesAlong)
}

/// Everything left is on its way out and held by somebody else, or must not go: say so, once.
fn report(
    definition: &DefinitionView<'_>,
    left: &[&Arc<Object>],
    sight: &Sight<'_>,
) -> Decision<Reason> {
    let refusals = left.iter().filter_map(|it| refusal(it, sight.facts));
    let condition = conditions::after(refusals.map(|it| it.message.as_str()));
    let reason = Reason::Blocked(Left::of(left, sight.facts));
    match tell(definition, condition, sight.now) {
        Some(told) => Decision::act(told, reason),
        None => Decision::idle(reason),
    }
}

fn tell(definition: &DefinitionView<'_>, condition: Value, now: Timestamp) -> Option<Action> {
    let conditions = emptying::conditions(&[condition], &definition.conditions, now)?;
    let fields = json!({ "conditions": conditions });
    Some(set_status(definition.object, &fields))
}

fn release(definition: &DefinitionView<'_>) -> Action {
    without_finalizer(definition.object, CLEANUP)
}

/// Whether it is still to be deleted.
fn is_open(instance: &Object, facts: &Facts) -> bool {
    !instance.is_deleting() && refusal(instance, facts).is_none()
}
