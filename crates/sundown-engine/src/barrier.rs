//! Read-index barriers: wait until our caches show everything that was committed before a moment.
//!
//! One round serves everyone who waits. A resource has passed when its own watch (or a list) has
//! reached the position that was answered; nothing is compared across resources.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use sundown_model::{Cache, Facts, Position, Resource, ResourceType, Step};

use crate::backoff::retry_at;
use crate::effect::{Effect, EffectId, Failure};
use crate::streams::CRDS;

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Barriers {
    tickets: BTreeMap<EffectId, Ticket>,
    asking: Option<Asking>,
    passing: Vec<Passing>,
    failures: u32,
    not_before: Option<Timestamp>,
}

/// Somebody who waits for resources to be fresh.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Ticket {
    since: Step,
    missing: BTreeSet<Resource>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Asking {
    id: EffectId,
    asked: Step,
    resources: BTreeSet<Resource>,
}

/// A position that our watch has not reached yet.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Passing {
    asked: Step,
    target: Position,
}

impl Barriers {
    /// Begins to wait for these resources, under an id that is resolved when all have passed.
    pub(crate) fn want(&mut self, id: EffectId, resources: Vec<Resource>, since: Step) {
        let missing = resources.into_iter().collect();
        self.tickets.insert(id, Ticket { since, missing });
    }

    /// The next round, if somebody waits for a resource that is neither asked nor passing.
    pub(crate) fn next(
        &mut self,
        id: EffectId,
        cache: &Cache,
        facts: &Facts,
        step: Step,
        now: Timestamp,
    ) -> Option<Effect> {
        if self.asking.is_some() || self.not_before.is_some_and(|at| at > now) {
            return None;
        }
        // The pause is over. Kept, it would ask the shell to wake us at an instant that has passed.
        self.not_before = None;
        let mut resources = BTreeSet::new();
        for ticket in self.tickets.values() {
            let open = ticket.missing.iter().filter(|resource| {
                // One that is fresh waits for something else: see `is_seen`.
                !self.is_passing(resource, ticket) && !facts.is_fresh(resource, ticket.since)
            });
            resources.extend(open.cloned());
        }
        // A resource that was never listed becomes fresh by its first list.
        resources.retain(|resource| cache.is_synced(resource));
        let types: Vec<Arc<ResourceType>> = resources
            .iter()
            .filter_map(|resource| cache.catalog().get(resource).cloned())
            .collect();
        if types.is_empty() {
            return None;
        }
        self.asking = Some(Asking {
            id,
            asked: step,
            resources,
        });
        Some(Effect::Barrier { id, types })
    }

    fn is_passing(&self, resource: &Resource, ticket: &Ticket) -> bool {
        self.passing
            .iter()
            .any(|passing| passing.target.resource() == resource && passing.asked > ticket.since)
    }

    /// Takes the positions that a round answered.
    pub(crate) fn answered(
        &mut self,
        id: EffectId,
        result: Result<Vec<Position>, Failure>,
        now: Timestamp,
    ) {
        let Some(asking) = self.asking.take_if(|asking| asking.id == id) else {
            return;
        };
        let positions = result.unwrap_or_default();
        let complete = positions.iter().map(|position| position.resource().clone());
        if complete
            .collect::<BTreeSet<_>>()
            .is_superset(&asking.resources)
        {
            self.failures = 0;
            self.not_before = None;
        } else {
            self.failures += 1;
            self.not_before = Some(retry_at(now, self.failures));
        }
        let passing = positions.into_iter().map(|target| Passing {
            asked: asking.asked,
            target,
        });
        self.passing.extend(passing);
    }

    /// Turns reached positions into freshness; gives the resources that became fresh.
    pub(crate) fn pass(&mut self, cache: &Cache, facts: &mut Facts) -> BTreeSet<Resource> {
        let mut passed = BTreeSet::new();
        self.passing.retain(|passing| {
            let resource = passing.target.resource();
            let reached = cache
                .position(resource)
                .is_some_and(|position| position.reaches(&passing.target) == Some(true));
            if reached {
                facts.set_fresh(resource.clone(), passing.asked);
                passed.insert(resource.clone());
            }
            !reached
        });
        passed
    }

    /// The tickets that have nothing left to wait for.
    pub(crate) fn resolved(&mut self, cache: &Cache, facts: &Facts) -> Vec<EffectId> {
        for ticket in self.tickets.values_mut() {
            // What is no longer served has no objects to be missed.
            ticket.missing.retain(|resource| {
                cache.catalog().get(resource).is_some() && !is_seen(resource, ticket.since, facts)
            });
        }
        let done = self
            .tickets
            .iter()
            .filter(|(_, ticket)| ticket.missing.is_empty());
        let done: Vec<EffectId> = done.map(|(id, _)| *id).collect();
        for id in &done {
            self.tickets.remove(id);
        }
        done
    }

    pub(crate) fn wake_at(&self) -> Option<Timestamp> {
        if self.tickets.is_empty() {
            None
        } else {
            self.not_before
        }
    }

    /// The resources that somebody waits for, for `explain`.
    pub(crate) fn is_waiting(&self) -> bool {
        !self.tickets.is_empty()
    }
}

/// Whether everything of a resource is seen that was committed before a step. Definitions are when the kinds
/// that they define are known, too: who waits for definitions wants to know what is served.
fn is_seen(resource: &Resource, since: Step, facts: &Facts) -> bool {
    let is_followed = !resource.is(&CRDS) || facts.is_catalog_fresh(since);
    facts.is_fresh(resource, since) && is_followed
}
