//! The union of rules, as upstream's controller makes it (clusterroleaggregation).

use std::collections::BTreeSet;

use serde_json::Value;

use crate::selector::selects;

/// What of a `ClusterRole` matters to those that select it.
#[derive(Debug, Clone, Copy)]
pub struct RoleView<'a> {
    pub name: &'a str,
    pub labels: Option<&'a Value>,
    pub rules: &'a [Value],
}

/// The rules of the role `name`: selector by selector, role by role, each rule once.
///
/// Assumes: with each selector come all roles that it may mean, in the order of their names.
pub fn aggregated<'a>(
    name: &str,
    selectors: impl Iterator<Item = (&'a Value, Vec<RoleView<'a>>)>,
) -> Vec<Value> {
    let mut union: Vec<Value> = Vec::new();
    // By what a rule says: comparing each with all others takes minutes for some ten thousand.
    let mut known = BTreeSet::new();
    for (selector, roles) in selectors {
        let selected = roles.iter().filter(|role| {
            // A role that selects itself would never lose a rule again.
            role.name != name && selects(Some(selector), role.labels)
        });
        for rule in selected.flat_map(|role| role.rules) {
            if known.insert(rule.to_string()) {
                union.push(rule.clone());
            }
        }
    }
    union
}
