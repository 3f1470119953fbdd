//! `ClusterRoles` by their labels, and aggregated ones by a label that they select, followed change by change.
//!
//! A change of one role concerns those that select it, and the union of one role is made of those it selects:
//! neither looks at all roles. A selector that names no pair of labels may mean any role, and is tried on all.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use sundown_model::{Cache, Object, ObjectKey};

use super::view;
use crate::json::list;
use crate::kinds::CLUSTER_ROLE;

/// One label: key and value.
type Pair = (Box<str>, Box<str>);

/// The roles of a cluster.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Index {
    /// Roles by each of their labels.
    labelled: BTreeMap<Pair, BTreeSet<ObjectKey>>,
    /// Aggregated roles by the first label that each of their selectors asks for.
    selecting: BTreeMap<Pair, BTreeSet<ObjectKey>>,
    /// Aggregated roles with a selector that asks for no pair of labels.
    selecting_any: BTreeSet<ObjectKey>,
    /// All aggregated roles.
    aggregated: BTreeSet<ObjectKey>,
}

impl Index {
    /// Takes a role in.
    pub(super) fn enter(&mut self, role: &Object) {
        let key = role.key();
        for pair in labels(role) {
            let roles = self.labelled.entry(pair).or_default();
            roles.insert(key.clone());
        }
        let Some(aggregation) = view::aggregation(role) else {
            return;
        };
        self.aggregated.insert(key.clone());
        for selector in selectors(aggregation) {
            match anchor(selector) {
                Some(pair) => self.selecting.entry(pair).or_default().insert(key.clone()),
                None => self.selecting_any.insert(key.clone()),
            };
        }
    }

    /// Takes a role out, as it was entered.
    pub(super) fn take_out(&mut self, role: &Object) {
        let key = role.key();
        for pair in labels(role) {
            take_from(&mut self.labelled, &pair, key);
        }
        let Some(aggregation) = view::aggregation(role) else {
            return;
        };
        self.aggregated.remove(key);
        self.selecting_any.remove(key);
        for pair in selectors(aggregation).filter_map(anchor) {
            take_from(&mut self.selecting, &pair, key);
        }
    }

    /// Every aggregated role that may select a role with these labels.
    pub(super) fn selecting(&self, role: &Object) -> impl Iterator<Item = &ObjectKey> {
        let by_label = labels(role).filter_map(|pair| self.selecting.get(&pair));
        by_label.flatten().chain(&self.selecting_any)
    }

    /// Every role that a selector may mean, in the order of their names.
    pub(super) fn candidates(&self, selector: &Value, cache: &Cache) -> Vec<ObjectKey> {
        if let Some(pair) = anchor(selector) {
            let labelled = self.labelled.get(&pair).into_iter().flatten();
            return labelled.cloned().collect();
        }
        let resource = CLUSTER_ROLE.resource();
        let all = cache.of(&resource);
        all.map(|role| role.key().clone()).collect()
    }

    /// All aggregated roles.
    pub(super) fn aggregated(&self) -> impl Iterator<Item = &ObjectKey> {
        self.aggregated.iter()
    }
}

/// The selectors of an `aggregationRule`.
pub(super) fn selectors(aggregation: &Value) -> impl Iterator<Item = &Value> {
    list(aggregation, "clusterRoleSelectors").iter()
}

/// A label without which a selector means no role.
fn anchor(selector: &Value) -> Option<Pair> {
    let wanted = selector.get("matchLabels").and_then(Value::as_object)?;
    let (key, value) = wanted.iter().next()?;
    Some((key.as_str().into(), value.as_str().unwrap_or("").into()))
}

fn labels(role: &Object) -> impl Iterator<Item = Pair> {
    let labels = role.field("/metadata/labels").and_then(Value::as_object);
    let labels = labels.into_iter().flatten();
    labels.filter_map(|(key, value)| Some((key.as_str().into(), value.as_str()?.into())))
}

fn take_from(all: &mut BTreeMap<Pair, BTreeSet<ObjectKey>>, pair: &Pair, key: &ObjectKey) {
    if let Some(keys) = all.get_mut(pair) {
        keys.remove(key);
        if keys.is_empty() {
            all.remove(pair);
        }
    }
}
