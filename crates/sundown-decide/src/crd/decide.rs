//! The end of a `CustomResourceDefinition`.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Value, json};
use sundown_model::{
    ACTIONS_MAX, Action, Cache, Decision, Facts, Need, Object, Part, Patch, Propagation, Write,
};

use super::conditions;
use super::reason::Reason;
use super::view::{CLEANUP, DefinitionView};

/// All that a decision looks at.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sight<'a> {
    pub(super) cache: &'a Cache,
    pub(super) facts: &'a Facts,
    pub(super) now: Timestamp,
}

/// Decides what a definition needs in order to go.
pub(super) fn decide(object: &Object, sight: &Sight<'_>) -> Decision<Reason> {
    let definition = DefinitionView::of(object);
    if !definition.is_deleting {
        return Decision::idle(Reason::Active);
    }
    if !definition.is_held() {
        return Decision::idle(Reason::Released);
    }
    if !definition.is_established() {
        return Decision::act(release(&definition), Reason::NeverEstablished);
    }
    let left: Vec<_> = sight.cache.of(&definition.resource).collect();
    let deletes: Vec<_> = left.iter().filter(|object| !object.is_deleting()).collect();
    if !deletes.is_empty() {
        let count = deletes.len();
        // Told along with the first deletes; the two do not depend on each other.
        let told = tell(&definition, sight.now);
        let deletes = deletes.into_iter().map(|object| delete(object));
        let actions = told.into_iter().chain(deletes).take(ACTIONS_MAX);
        return Decision::act_all(actions.collect(), Reason::Empties { count });
    }
    if !left.is_empty() {
        return report(&definition, &left, sight.now);
    }
    let since = sight.cache.seen_step(object.key()).unwrap_or_default();
    if sight.facts.is_fresh(&definition.resource, since) {
        return Decision::act(release(&definition), Reason::Empty);
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

/// Background, as upstream: what depends on an instance is the collector's.
fn delete(object: &Object) -> Action {
    Action::Api(Write::Delete {
        at: object.seen(),
        how: Propagation::Background,
    })
}

/// Everything left is on its way out and held by somebody else: say so, once.
fn report(definition: &DefinitionView, left: &[&Arc<Object>], now: Timestamp) -> Decision<Reason> {
    let blocked = left.iter().map(|object| {
        let finalizers = object.finalizers().iter().map(ToString::to_string);
        (object.key().clone(), finalizers.collect())
    });
    let reason = Reason::Blocked {
        by: blocked.collect(),
    };
    match tell(definition, now) {
        Some(told) => Decision::act(told, reason),
        None => Decision::idle(reason),
    }
}

fn tell(definition: &DefinitionView, now: Timestamp) -> Option<Action> {
    let conditions = conditions::in_progress(&definition.conditions, now)?;
    let patch = json!({ "status": { "conditions": conditions } });
    Some(write(definition, Part::Status, patch))
}

fn release(definition: &DefinitionView) -> Action {
    let keep: Vec<_> = definition
        .finalizers
        .iter()
        .filter(|name| *name != CLEANUP)
        .collect();
    // A merge patch removes a field by null; an empty list would stay as an empty list.
    let keep = if keep.is_empty() {
        Value::Null
    } else {
        json!(keep)
    };
    write(
        definition,
        Part::Main,
        json!({ "metadata": { "finalizers": keep } }),
    )
}

fn write(definition: &DefinitionView, part: Part, patch: Value) -> Action {
    Action::Api(Write::Patch {
        at: definition.seen.clone(),
        part,
        patch: Patch::Merge(patch),
    })
}
