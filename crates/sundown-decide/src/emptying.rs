//! What the end of a namespace and the end of a definition share: what is in them goes object by object,
//! and what stays is named.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Value, json};
use sundown_model::{Action, Blocker, Facts, Object, ObjectKey, Propagation, RefusalFact};

use crate::actions::delete;
use crate::json::written;

/// What is left once all that may be deleted is on its way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Left {
    /// What waits for these finalizers of others.
    pub held: Vec<(ObjectKey, Vec<String>)>,
    /// What the API server refuses to delete.
    pub refused: Vec<ObjectKey>,
}

impl Left {
    pub(crate) fn of(left: &[&Arc<Object>], facts: &Facts) -> Self {
        let is_refused = |it: &&&Arc<Object>| refusal(it, facts).is_some();
        let (refused, held): (Vec<&Arc<Object>>, Vec<&Arc<Object>>) =
            left.iter().partition(is_refused);
        let finalizers = |object: &Object| {
            let names = object.finalizers().iter();
            names.map(ToString::to_string).collect()
        };
        let held = held.iter().map(|it| (it.key().clone(), finalizers(it)));
        Self {
            held: held.collect(),
            refused: refused.iter().map(|it| it.key().clone()).collect(),
        }
    }

    /// What has to go away before the rest does.
    pub(crate) fn blockers(&self) -> Vec<Blocker> {
        let held = self.held.iter().flat_map(|(on, finalizers)| {
            finalizers.iter().map(|finalizer| Blocker::Finalizer {
                on: on.clone(),
                finalizer: finalizer.clone(),
            })
        });
        let refused = self.refused.iter().cloned();
        held.chain(refused.map(|object| Blocker::Refused { object }))
            .collect()
    }
}

/// Why the API server refused to delete an object that is not on its way out.
pub(crate) fn refusal<'a>(object: &Object, facts: &'a Facts) -> Option<&'a RefusalFact> {
    let refusal = facts.refused_delete(object.key(), object.uid());
    refusal.filter(|_| !object.is_deleting())
}

/// Deletes what is in something that ends. In the background, as upstream: what depends on it is in there
/// too, or the collector's.
pub(crate) fn goes_along(object: &Object) -> Action {
    delete(object, Propagation::Background)
}

/// The conditions with these among them; None when all of them stand there already.
pub(crate) fn conditions(wanted: &[Value], present: &[Value], now: Timestamp) -> Option<Value> {
    if wanted
        .iter()
        .all(|it| present.iter().any(|old| says(old, it)))
    {
        return None;
    }
    let is_other = |it: &&Value| wanted.iter().all(|own| own["type"] != it["type"]);
    let others = present.iter().filter(is_other).cloned();
    Some(
        others
            .chain(wanted.iter().map(|it| dated(it, present, now)))
            .collect(),
    )
}

/// Whether a condition says the same, whenever it began to.
pub(crate) fn says(condition: &Value, wanted: &Value) -> bool {
    let fields = ["type", "status", "reason", "message"];
    fields.iter().all(|name| condition[name] == wanted[name])
}

/// The time is that of the transition, so it stays while the status does.
fn dated(wanted: &Value, present: &[Value], now: Timestamp) -> Value {
    let is_since = |it: &&Value| it["type"] == wanted["type"] && it["status"] == wanted["status"];
    let since = present.iter().find(is_since);
    let since = since.and_then(|it| it.get("lastTransitionTime")).cloned();
    let mut dated = wanted.clone();
    dated["lastTransitionTime"] = since.unwrap_or_else(|| json!(written(now)));
    dated
}
