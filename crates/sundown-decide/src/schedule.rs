//! The scheduler of one node: binds what fits, says why something does not, and lets only so many
//! heavy pods start at once.
//!
//! All pending pods are decided on in one round, so that nobody counts on what another has just taken.
//! Preferences, topology spread and preemption mean nothing on one node and are left out.

mod amounts;
mod decide;
mod fit;
mod lack;
mod offer;
mod reason;
mod taken;
#[cfg(test)]
mod tests;
mod view;

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use sundown_model::{
    Cache, Change, Controller, Decision, Grant, Interest, Object, ObjectKey, Part, Permit, Scope,
    Sight,
};

use crate::kinds::{NODE, POD};
pub use amounts::{Amounts, words};
pub use offer::{Asked, CORES_LABEL, Machine, Offer, parse_cpus, parse_memory};
pub use reason::Reason;
pub use taken::{Taken, asked_by, taken};

/// What is decided on.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Key {
    /// All pending pods.
    Round,
    /// What the round says of one pod; only to be explained, it never acts.
    Pod(ObjectKey),
}

/// The controller; it needs no memory.
#[derive(Debug, Clone, Default)]
pub struct Scheduler;

impl Controller for Scheduler {
    type Key = Key;
    type Reason = Reason;

    const NAME: &'static str = "schedule";
    const TOLD_BY: &'static str = "default-scheduler";
    const INTERESTS: &'static [Interest] = &[
        Interest {
            scope: Scope::One(POD),
            fields: view::POD_FIELDS,
        },
        Interest {
            scope: Scope::One(NODE),
            fields: view::NODE_FIELDS,
        },
    ];
    const GRANTS: &'static [Grant] = &[Grant {
        group: Some(POD.group),
        plural: Some(POD.plural),
        permits: &[Permit::Patch(Part::Binding), Permit::Patch(Part::Status)],
    }];

    fn observe(&mut self, change: &Change, _: &Cache, touched: &mut BTreeSet<Key>) {
        let is_pod = |it: &Object| it.key().resource.is(&POD);
        let is_worth_it = match change.transition() {
            (Some(old), Some(new)) if is_pod(new) => view::is_worth_a_round(old, new),
            (old, new) => {
                let mut objects = old.into_iter().chain(new);
                objects.any(|it| is_pod(it) || it.key().resource.is(&NODE))
            }
        };
        if is_worth_it {
            touched.insert(Key::Round);
        }
    }

    fn decide(&self, key: &Key, sight: Sight<'_>) -> Decision<Reason> {
        match key {
            Key::Round => decide::decide(sight.cache, sight.now),
            Key::Pod(key) => Decision::idle(explain(key, sight.cache, sight.now)),
        }
    }

    fn keys_about(&self, object: &Object) -> Vec<Key> {
        let is_pod = object.key().resource.is(&POD);
        let own = is_pod.then(|| Key::Pod(object.key().clone()));
        own.into_iter().collect()
    }
}

fn explain(key: &ObjectKey, cache: &Cache, now: Timestamp) -> Reason {
    let Some(pod) = cache.get(key) else {
        return Reason::Gone;
    };
    if !view::is_pending(pod) {
        return Reason::NotPending;
    }
    let Some(round) = decide::round(cache, now) else {
        return Reason::NoNode;
    };
    let mut verdicts = round.verdicts.iter();
    let own = verdicts.find(|verdict| verdict.pod.object.key() == key);
    own.map_or(Reason::NotPending, |verdict| round.reason(verdict))
}
