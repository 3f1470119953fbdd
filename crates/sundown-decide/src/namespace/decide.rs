//! The end of a namespace, and of what is in it.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use sundown_model::{Action, Decision, Need, Object, Part, Resource, ResourceType, Sight};

use super::content::{Count, Counts};
use super::lapse::Lapse;
use super::reason::Reason;
use super::view::{KUBERNETES, NamespaceView};
use super::{CONTENT, conditions};
use crate::actions::{patch, set_status};
use crate::emptying::{Left, goes_along, refusal};
use crate::kinds::{CRD, POD};
use crate::observation;

/// How far apart two status writes of a namespace are at least. Their messages hold counts, which
/// change with every object that goes.
const STATUS_EVERY: SignedDuration = SignedDuration::from_secs(1);

/// All that a decision on a namespace looks at.
#[derive(Debug, Clone, Copy)]
pub(super) struct View<'a> {
    pub(super) sight: Sight<'a>,
    pub(super) lapse: Option<Lapse>,
}

impl View<'_> {
    /// Whether a rule that is wrong is back.
    fn lapses(&self, lapse: Lapse) -> bool {
        self.lapse == Some(lapse)
    }

    /// Whether pods have to go first.
    fn is_ordered(&self) -> bool {
        self.sight.cache.catalog().get(&POD.resource()).is_some() && !self.lapses(Lapse::AnyOrder)
    }

    /// Whether something in front of an object may not go, and so neither does the object; a lapse.
    fn is_held_up(&self, object: &Object) -> bool {
        let around = object.key().namespace.as_ref();
        let mut others = around
            .into_iter()
            .flat_map(|it| self.sight.cache.within(it));
        self.lapses(Lapse::HeadOfLine)
            && others.any(|it| it.key() < object.key() && self.is_refused(it))
    }

    /// Whether no pod can be in the namespace any more: none is known, and all were seen that there
    /// were when it was deleted.
    fn is_without_pods(&self, namespace: &Object, counts: Counts) -> bool {
        let since = self
            .sight
            .cache
            .seen_step(namespace.key())
            .unwrap_or_default();
        let are_seen = || self.sight.facts.is_fresh(&POD.resource(), since);
        !self.is_ordered() || counts.pods.left == 0 && are_seen()
    }

    fn is_refused(&self, object: &Object) -> bool {
        refusal(object, self.sight.facts).is_some()
    }
}

/// Decides what a namespace needs in order to go.
pub(super) fn namespace(object: &Object, counts: Counts, view: &View<'_>) -> Decision<Reason> {
    let namespace = NamespaceView::of(object);
    if let Some(reason) = at_peace(&namespace) {
        return Decision::idle(reason);
    }
    if view.is_ordered() && counts.pods.left > 0 {
        let pods = POD.resource();
        let pods = || view.sight.cache.of_within(&pods, &namespace.name);
        return wait_for(pods, counts.pods, &namespace, view);
    }
    if !view.is_without_pods(object, counts) {
        return observe(vec![POD.resource()], view);
    }
    if counts.all.left > 0 {
        let all = || view.sight.cache.within(&namespace.name);
        return wait_for(all, counts.all, &namespace, view);
    }
    let unseen = unseen(object, view);
    if !unseen.is_empty() {
        return observe(unseen, view);
    }
    let told = if namespace.outlives_us() {
        conditions::of(&[], view.sight.facts, &namespace.conditions, view.sight.now)
    } else {
        None
    };
    match told {
        Some(conditions) => tell(&namespace, &conditions, Reason::Emptied, view),
        None => Decision::act(release(&namespace), Reason::Empty),
    }
}

/// Decides whether an object goes with its namespace.
pub(super) fn content(
    object: &Object,
    namespace: &Object,
    counts: Counts,
    view: &View<'_>,
) -> Decision<Reason> {
    if let Some(reason) = at_peace(&NamespaceView::of(namespace)) {
        return Decision::idle(reason);
    }
    if object.is_deleting() {
        return Decision::idle(Reason::Terminating);
    }
    let is_pod = object.key().resource.is(&POD);
    if !is_pod && !view.is_without_pods(namespace, counts) || view.is_held_up(object) {
        let pods = counts.pods.left;
        return Decision::idle(Reason::AwaitsPods { pods });
    }
    Decision::act(goes_along(object), Reason::GoesAlong)
}

/// Why nothing is to be done for a namespace, if so.
fn at_peace(namespace: &NamespaceView<'_>) -> Option<Reason> {
    if namespace.deletion.is_none() {
        return Some(Reason::Active);
    }
    (!namespace.is_held()).then_some(Reason::Released)
}

/// Something is left. While some of it is still to be deleted nothing is said; after that, what keeps
/// the rest.
fn wait_for<'a, I: Iterator<Item = &'a Arc<Object>>>(
    left: impl Fn() -> I,
    count: Count,
    namespace: &NamespaceView<'_>,
    view: &View<'_>,
) -> Decision<Reason> {
    // More were refused than are remembered: it is told what is known.
    let is_vague = view.sight.facts.forgets_refused_deletes();
    // Only so many can have been refused: the rest is still to be deleted, without a look at each.
    if count.open > view.sight.facts.refused_deletes() && !is_vague {
        return Decision::idle(Reason::Empties { count: count.open });
    }
    // What is left may be much, and each of it that goes or is refused again comes by here.
    if let Some(at) = next_word_at(namespace, view) {
        return Decision::wake_at(at, Reason::Told { left: count.left });
    }
    let is_open = |it: &&Arc<Object>| !it.is_deleting() && !view.is_refused(it);
    let open = match count.open {
        0 => 0,
        _ => left().filter(is_open).count(),
    };
    if open > 0 && !is_vague {
        return Decision::idle(Reason::Empties { count: open });
    }
    report(&left().collect::<Vec<_>>(), namespace, view)
}

/// Everything left is on its way out and held by somebody else, or must not go: say so.
fn report(
    left: &[&Arc<Object>],
    namespace: &NamespaceView<'_>,
    view: &View<'_>,
) -> Decision<Reason> {
    let reason = Reason::Blocked(Left::of(left, view.sight.facts));
    match conditions::of(
        left,
        view.sight.facts,
        &namespace.conditions,
        view.sight.now,
    ) {
        Some(conditions) => tell(namespace, &conditions, reason, view),
        None => Decision::idle(reason),
    }
}

/// Writes the conditions, unless some were written a moment ago.
fn tell(
    namespace: &NamespaceView<'_>,
    conditions: &Value,
    reason: Reason,
    view: &View<'_>,
) -> Decision<Reason> {
    if let Some(at) = next_word_at(namespace, view) {
        return Decision::wake_at(at, reason);
    }
    let fields = json!({ "conditions": conditions });
    Decision::act(set_status(namespace.object, &fields), reason)
}

/// When the conditions may be written again, if they were written a moment ago.
fn next_word_at(namespace: &NamespaceView<'_>, view: &View<'_>) -> Option<Timestamp> {
    let written_at = view.sight.facts.written_at(namespace.object.key());
    let again_at = written_at.and_then(|at| at.checked_add(STATUS_EVERY).ok());
    again_at.filter(|at| view.sight.now < *at && !view.lapses(Lapse::TellsAtOnce))
}

fn observe(unseen: Vec<Resource>, view: &View<'_>) -> Decision<Reason> {
    let blind = unseen.iter().filter(|it| !view.sight.cache.is_synced(it));
    let reason = Reason::AwaitsObservation {
        blind: blind.cloned().collect(),
    };
    Decision::need(vec![Need::Barrier(unseen)], reason)
}

/// The kinds of which an object might still be in the namespace without having been seen.
fn unseen(object: &Object, view: &View<'_>) -> Vec<Resource> {
    let since = view.sight.cache.seen_step(object.key()).unwrap_or_default();
    let is_content = |ty: &ResourceType| ty.namespaced && CONTENT.includes(ty);
    let mut unseen = observation::unseen(view.sight.cache, view.sight.facts, since, is_content);
    if view.lapses(Lapse::TrustsCatalog) {
        unseen.retain(|it| !it.is(&CRD));
    }
    unseen
}

fn release(namespace: &NamespaceView<'_>) -> Action {
    let keep: Vec<_> = namespace
        .finalizers
        .iter()
        .filter(|name| *name != KUBERNETES)
        .collect();
    let fields = json!({ "spec": { "finalizers": keep } });
    patch(namespace.object, Part::Finalize, fields)
}
