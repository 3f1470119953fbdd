//! The end of a namespace.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::json;
use sundown_model::{
    ACTIONS_MAX, Action, Cache, Decision, Facts, Need, Object, Part, Patch, Propagation, Resource,
    ResourceType, Write,
};

use super::reason::Reason;
use super::view::{KUBERNETES, NamespaceView};
use super::{CONTENT, conditions};
use crate::observation;

/// All that a decision looks at.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sight<'a> {
    pub(super) cache: &'a Cache,
    pub(super) facts: &'a Facts,
    pub(super) now: Timestamp,
}

/// Decides what a namespace needs in order to go.
pub(super) fn decide(object: &Object, sight: &Sight<'_>) -> Decision<Reason> {
    let namespace = NamespaceView::of(object);
    if namespace.deletion.is_none() {
        return Decision::idle(Reason::Active);
    }
    if !namespace.is_held() {
        return Decision::idle(Reason::Released);
    }
    let left: Vec<_> = sight.cache.within(&namespace.name).collect();
    let deletes: Vec<_> = left.iter().filter(|object| !object.is_deleting()).collect();
    if !deletes.is_empty() {
        let reason = Reason::Empties {
            count: deletes.len(),
        };
        let actions = deletes
            .into_iter()
            .take(ACTIONS_MAX)
            .map(|object| delete(object));
        return Decision::act_all(actions.collect(), reason);
    }
    if !left.is_empty() {
        return report(&namespace, &left, sight.now);
    }
    let unseen = unseen(object, sight);
    if !unseen.is_empty() {
        let blind = unseen
            .iter()
            .filter(|resource| !sight.cache.is_synced(resource));
        let reason = Reason::AwaitsObservation {
            blind: blind.cloned().collect(),
        };
        return Decision::need(vec![Need::Barrier(unseen)], reason);
    }
    Decision::act(release(&namespace), Reason::Empty)
}

/// Background, as upstream: what depends on the content is content too, or the collector's.
fn delete(object: &Object) -> Action {
    Action::Api(Write::Delete {
        at: object.seen(),
        how: Propagation::Background,
    })
}

/// Everything left is on its way out and held by somebody else: say so, once.
fn report(namespace: &NamespaceView, left: &[&Arc<Object>], now: Timestamp) -> Decision<Reason> {
    let blocked = left.iter().map(|object| {
        let finalizers = object
            .finalizers()
            .iter()
            .map(ToString::to_string)
            .collect();
        (object.key().clone(), finalizers)
    });
    let reason = Reason::Blocked {
        by: blocked.collect(),
    };
    let Some(conditions) = conditions::of(left, &namespace.conditions, now) else {
        return Decision::idle(reason);
    };
    let patch = Patch::Merge(json!({ "status": { "conditions": conditions } }));
    let write = Write::Patch {
        at: namespace.seen.clone(),
        part: Part::Status,
        patch,
    };
    Decision::act(Action::Api(write), reason)
}

/// The kinds of which an object might still be in the namespace without having been seen.
fn unseen(object: &Object, sight: &Sight<'_>) -> Vec<Resource> {
    let since = sight.cache.seen_step(object.key()).unwrap_or_default();
    let is_content = |ty: &ResourceType| ty.namespaced && CONTENT.includes(ty);
    observation::unseen(sight.cache, sight.facts, since, is_content)
}

fn release(namespace: &NamespaceView) -> Action {
    let keep: Vec<_> = namespace
        .finalizers
        .iter()
        .filter(|name| *name != KUBERNETES)
        .collect();
    let patch = Patch::Merge(json!({ "spec": { "finalizers": keep } }));
    Action::Api(Write::Patch {
        at: namespace.seen.clone(),
        part: Part::Finalize,
        patch,
    })
}
