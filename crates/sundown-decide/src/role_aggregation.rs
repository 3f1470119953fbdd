//! Keeps the rules of aggregated `ClusterRoles`: the union of those of the roles that they select.
//!
//! Whoever may label a `ClusterRole` extends `admin`, `edit` and `view` by it; what the API server lets
//! through lies in `sundown-api`. There the writer of such rules needs the verb `escalate`: it gives away
//! what it does not hold.

mod aggregate;
mod index;
mod reason;
#[cfg(test)]
mod tests;
mod view;

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Value, json};
use sundown_model::{
    Cache, Change, Controller, Decision, Grant, Interest, Object, ObjectKey, Part, Permit, Scope,
    Sight,
};

use crate::actions::patch;
use crate::json::same;
use crate::kinds::CLUSTER_ROLE;

use index::{Index, selectors};

pub use aggregate::{RoleView, aggregated};
pub use reason::Reason;

/// The controller, with the roles by their labels.
#[derive(Debug, Clone, Default)]
pub struct RoleAggregation {
    index: Index,
}

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

    fn observe(&mut self, change: &Change, _: &Cache, touched: &mut BTreeSet<ObjectKey>) {
        // Until all roles were listed, a union would lack some of them.
        if let Change::Freshness(resource) = change
            && resource.is(&CLUSTER_ROLE)
        {
            touched.extend(self.index.aggregated().cloned());
        }
        let is_role = |role: &&Arc<Object>| role.key().resource.is(&CLUSTER_ROLE);
        let (old, new) = change.transition();
        let (old, new) = (old.filter(is_role), new.filter(is_role));
        if let Some(old) = old {
            self.index.take_out(old);
        }
        if let Some(new) = new {
            self.index.enter(new);
        }
        for role in [old, new].into_iter().flatten() {
            touched.insert(role.key().clone());
            touched.extend(self.index.selecting(role).cloned());
        }
    }

    fn decide(&self, key: &ObjectKey, sight: Sight<'_>) -> Decision<Reason> {
        let Some(role) = sight.cache.get(key) else {
            return Decision::idle(Reason::Gone);
        };
        let Some(aggregation) = view::aggregation(role) else {
            return Decision::idle(Reason::OwnRules);
        };
        if role.is_deleting() {
            return Decision::idle(Reason::Terminating);
        }
        if !sight.cache.is_synced(&key.resource) {
            return Decision::idle(Reason::AwaitsRoles);
        }
        let candidates = |selector| {
            let keys = self.index.candidates(selector, sight.cache);
            let roles = keys.into_iter().filter_map(|key| sight.cache.get(&key));
            (selector, roles.map(|it| view::role(it)).collect())
        };
        let selectors = selectors(aggregation).map(candidates);
        let wanted = Value::from(aggregated(&key.name, selectors));
        if same(&wanted, role.field("/rules").unwrap_or(&Value::Null)) {
            return Decision::idle(Reason::UpToDate);
        }
        let write = patch(role, Part::Main, json!({ "rules": wanted }));
        Decision::act(write, Reason::Aggregates)
    }

    fn keys_about(&self, object: &Object) -> Vec<ObjectKey> {
        let is_own = object.key().resource.is(&CLUSTER_ROLE);
        is_own.then(|| object.key().clone()).into_iter().collect()
    }

    fn audit(&self, cache: &Cache) -> Result<(), String> {
        let mut anew = Index::default();
        for role in cache.of(&CLUSTER_ROLE.resource()) {
            anew.enter(role);
        }
        if self.index == anew {
            Ok(())
        } else {
            Err(format!("{:?} instead of {anew:?}", self.index))
        }
    }
}
