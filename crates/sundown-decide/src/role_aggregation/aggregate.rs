//! The union of rules, as upstream's controller makes it (clusterroleaggregation).

use serde_json::Value;

use crate::json::list;
use crate::selector::selects;

/// What of a `ClusterRole` matters to those that select it.
#[derive(Debug, Clone, Copy)]
pub struct RoleView<'a> {
    pub name: &'a str,
    pub labels: Option<&'a Value>,
    pub rules: &'a [Value],
}

/// The rules of the role `name` with this `aggregationRule`: selector by selector, role by role in the
/// order of their names, each rule once.
///
/// Assumes: `roles` are in the order of their names.
pub fn aggregated(name: &str, aggregation: &Value, roles: &[RoleView<'_>]) -> Vec<Value> {
    let mut union: Vec<Value> = Vec::new();
    for selector in list(aggregation, "clusterRoleSelectors") {
        let selected = roles.iter().filter(|role| {
            // A role that selects itself would never lose a rule again.
            role.name != name && selects(Some(selector), role.labels)
        });
        for rule in selected.flat_map(|role| role.rules) {
            if !union.contains(rule) {
                union.push(rule.clone());
            }
        }
    }
    union
}
