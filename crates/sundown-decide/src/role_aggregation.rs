//! Keeps the rules of aggregated `ClusterRoles`: the union of those of the roles that they select.
//!
//! Whoever may label a `ClusterRole` extends `admin`, `edit` and `view` by it; what the API server lets
//! through lies in `sundown-api`. There the writer of such rules needs the verb `escalate`: it gives away
//! what it does not hold.

mod aggregate;
mod reason;
#[cfg(test)]
mod tests;
mod view;

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Value, json};
use sundown_model::{
    Action, Cache, Change, Controller, Decision, Facts, Grant, Interest, Object, ObjectKey, Part,
    Patch, Permit, Scope, Write,
};

use crate::json::same;
use crate::kinds::CLUSTER_ROLE;

pub use aggregate::{RoleView, aggregated};
pub use reason::Reason;

/// The controller; it needs no memory.
#[derive(Debug, Clone, Default)]
pub struct RoleAggregation;

impl Controller for RoleAggregation {
    type Key = ObjectKey;
    type Reason = Reason;

    const NAME: &'static str = "role_aggregation";
    const INTERESTS: &'static [Interest] = &[Interest {
        scope: Scope::One(CLUSTER_ROLE),
        fields: view::FIELDS,
    }];
    const GRANTS: &'static [Grant] = &[Grant {
        group: Some(CLUSTER_ROLE.group),
        plural: Some(CLUSTER_ROLE.plural),
        permits: &[Permit::Patch(Part::Main)],
    }];

    fn observe(&mut self, change: &Change, cache: &Cache, touched: &mut BTreeSet<ObjectKey>) {
        match change {
            Change::Added(object)
            | Change::Updated { new: object, .. }
            | Change::Deleted(object)
            | Change::Forgotten(object)
                if object.key().resource.is(&CLUSTER_ROLE) =>
            {
                touched.insert(object.key().clone());
                touched.extend(aggregated_roles(cache));
            }
            // Until all roles were listed, a union would lack some of them.
            Change::Freshness(resource) if resource.is(&CLUSTER_ROLE) => {
                touched.extend(aggregated_roles(cache));
            }
            Change::Added(_)
            | Change::Updated { .. }
            | Change::Deleted(_)
            | Change::Forgotten(_)
            | Change::Freshness(_)
            | Change::Read(_)
            | Change::Catalog
            | Change::Report(_)
            | Change::Answered(_) => {}
        }
    }

    fn decide(&self, key: &ObjectKey, cache: &Cache, _: &Facts, _: Timestamp) -> Decision<Reason> {
        let Some(role) = cache.get(key) else {
            return Decision::idle(Reason::Gone);
        };
        let Some(aggregation) = view::aggregation(role) else {
            return Decision::idle(Reason::OwnRules);
        };
        if role.is_deleting() {
            return Decision::idle(Reason::Terminating);
        }
        if !cache.is_synced(&key.resource) {
            return Decision::idle(Reason::AwaitsRoles);
        }
        let roles: Vec<RoleView<'_>> = cache.of(&key.resource).map(|it| view::role(it)).collect();
        let wanted = Value::from(aggregated(&key.name, aggregation, &roles));
        if same(&wanted, role.field("/rules").unwrap_or(&Value::Null)) {
            return Decision::idle(Reason::UpToDate);
        }
        let patch = Write::Patch {
            at: role.seen(),
            part: Part::Main,
            patch: Patch::Merge(json!({ "rules": wanted })),
        };
        Decision::act(Action::Api(patch), Reason::Aggregates)
    }

    fn keys_about(&self, object: &Object) -> Vec<ObjectKey> {
        let is_own = object.key().resource.is(&CLUSTER_ROLE);
        is_own.then(|| object.key().clone()).into_iter().collect()
    }
}

fn aggregated_roles(cache: &Cache) -> impl Iterator<Item = ObjectKey> {
    let all: Vec<Arc<Object>> = cache.of(&CLUSTER_ROLE.resource()).map(Arc::clone).collect();
    let all = all.into_iter().filter(|it| view::aggregation(it).is_some());
    all.map(|role| role.key().clone())
}
