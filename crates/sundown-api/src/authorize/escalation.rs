//! Nobody gives away what they do not hold: the checks on writes of roles and bindings (registry/rbac, policybased).

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use sundown_model::{ObjectKey, Resource};

use super::rule::{Rule, quoted, uncovered};
use super::{Attributes, Change, GROUP, MISSING_MAX, is_master};
use crate::document::Document;
use crate::failure::Failure;

/// So many single permissions are compared for one write: a body of three megabytes could name billions.
/// The largest default role, `cluster-admin` aside, has about two thousand.
const SINGLE_MAX: usize = 50_000;

/// How many entries of rules are compared at most: a user may hold as many as it can bind to itself, and one
/// rule may have as many as fit a body.
const COMPARISON_MAX: usize = 20_000_000;

impl Change<'_> {
    /// Checks that the user holds what is given away. Whatever is no role and no binding passes.
    pub(super) fn check_grants(&self) -> Result<(), Failure> {
        let resource = &self.target.ty.resource;
        if resource.group() != GROUP || is_master(self.user) || self.server.bindings().is_none() {
            return Ok(());
        }
        match resource.plural() {
            "roles" | "clusterroles" => self.check_role(),
            "rolebindings" | "clusterrolebindings" => self.check_binding(),
            _ => Ok(()),
        }
    }

    fn check_role(&self) -> Result<(), Failure> {
        let escalate = Attributes {
            name: self.target.name.as_deref().unwrap_or(""),
            ..self.asks("escalate", self.target.ty.resource.plural())
        };
        if self.server.may(&escalate).is_allowed() || self.is_for_the_collector() {
            return Ok(());
        }
        self.confirm(&rules(self.new))?;
        // What a selector gathers later is not known now.
        let aggregates = [Some(self.new), self.old].into_iter().flatten();
        if !aggregates.into_iter().any(is_aggregated) || self.confirm(&everything()).is_ok() {
            return Ok(());
        }
        Err(self.forbidden("must have cluster-admin privileges to use the aggregationRule"))
    }

    fn check_binding(&self) -> Result<(), Failure> {
        if self.is_for_the_collector() {
            return Ok(());
        }
        let text = |member: &str| self.new.text_at(&["roleRef", member]);
        let (plural, name) = match text("kind") {
            "ClusterRole" => ("clusterroles", text("name")),
            "Role" => ("roles", text("name")),
            // Refused by validation, too.
            other => return Err(self.forbidden(&format!("{other:?} is no kind of role"))),
        };
        let bind = Attributes {
            group: text("apiGroup"),
            name,
            ..self.asks("bind", plural)
        };
        if self.server.may(&bind).is_allowed() {
            return Ok(());
        }
        let resource = Resource::new(GROUP, plural);
        let role = match plural {
            "roles" => ObjectKey::namespaced(&resource, self.namespace(), name),
            _ => ObjectKey::cluster(&resource, name),
        };
        let bindings = self.server.bindings();
        let rules = bindings.and_then(|it| it.rules(self.server.store(), &role));
        // Upstream names the binding's resource beside the role's name.
        let own = self.target.ty.resource.plural();
        let rules = rules.ok_or_else(|| Failure::not_found_in(GROUP, own, name))?;
        self.confirm(rules)
    }

    /// Whether only owners and finalizers change: a collector that lets an object go gives nothing away.
    fn is_for_the_collector(&self) -> bool {
        self.old.is_some_and(|old| {
            let (before, after) = (&old.metadata, &self.new.metadata);
            old.rest == self.new.rest
                && before.labels == after.labels
                && before.annotations == after.annotations
        })
    }

    /// Checks that the user holds all of these.
    fn confirm(&self, asked: &[Rule]) -> Result<(), Failure> {
        let (held, errors) = self.held();
        check_cost(&held, asked).map_err(|why| self.forbidden(&why))?;
        let missing = uncovered(&held.iter().copied(), asked);
        if missing.is_empty() {
            return Ok(());
        }
        let missing: BTreeSet<String> = compacted(missing).map(|it| it.to_string()).collect();
        let missing: Vec<String> = missing.into_iter().collect();
        let mut why = format!(
            "user {:?} (groups={}) is attempting to grant RBAC permissions not currently held:\n{}",
            self.user.name,
            quoted(&self.user.groups),
            missing.join("\n")
        );
        if !errors.is_empty() {
            why = format!("{why}; resolution errors: [{}]", errors.join(", "));
        }
        Err(self.forbidden(&why))
    }

    /// The rules that the user holds, each role once, and why some may be missing.
    fn held(&self) -> (Vec<&Rule>, Vec<String>) {
        let (mut rules, mut errors) = (Vec::new(), Vec::new());
        let mut seen = BTreeSet::new();
        for (binding, own) in self.server.held(self.user, self.namespace()) {
            if !seen.insert(&binding.role) {
                continue;
            }
            match own {
                Some(own) => rules.extend(own),
                None if errors.len() < MISSING_MAX => errors.push(binding.missing_role()),
                None => {}
            }
        }
        (rules, errors)
    }

    fn asks<'b>(&'b self, verb: &'b str, resource: &'b str) -> Attributes<'b> {
        Attributes {
            namespace: self.namespace(),
            ..Attributes::on(self.user, verb, GROUP, resource)
        }
    }
}

/// Checks that rules can be compared with those that are held, in bounded time.
///
/// Errors: why not.
fn check_cost(held: &[&Rule], asked: &[Rule]) -> Result<(), String> {
    let sum = |counts: &mut dyn Iterator<Item = usize>| counts.fold(0, usize::saturating_add);
    let count = sum(&mut asked.iter().map(Rule::single_count));
    if count > SINGLE_MAX {
        return Err(format!(
            "its rules name {count} combinations of group, resource, name and verb, more than the \
             {SINGLE_MAX} that are compared with what the user holds: use fewer rules or `*`"
        ));
    }
    let entries = sum(&mut held.iter().map(|rule| rule.entry_count()));
    let comparisons = count.saturating_mul(entries);
    if comparisons > COMPARISON_MAX {
        return Err(format!(
            "comparing its rules with those that the user holds takes {comparisons} steps, more than \
             {COMPARISON_MAX}: use fewer rules, or `*`"
        ));
    }
    Ok(())
}

fn rules(role: &Document) -> Vec<Rule> {
    let rules = role.at(&["rules"]).cloned().unwrap_or_default();
    serde_json::from_value::<Option<_>>(rules)
        .unwrap_or_default()
        .unwrap_or_default()
}

fn is_aggregated(role: &Document) -> bool {
    let selectors = role.at(&["aggregationRule", "clusterRoleSelectors"]);
    selectors
        .and_then(Value::as_array)
        .is_some_and(|it| !it.is_empty())
}

fn everything() -> [Rule; 2] {
    let all = || vec!["*".into()];
    [
        Rule {
            api_groups: all(),
            resources: all(),
            verbs: all(),
            ..Rule::default()
        },
        Rule {
            non_resource_urls: all(),
            verbs: all(),
            ..Rule::default()
        },
    ]
}

/// Rules about one thing each, the verbs on the same thing together.
fn compacted(rules: Vec<Rule>) -> impl Iterator<Item = Rule> {
    let mut by_thing: BTreeMap<Rule, Vec<Box<str>>> = BTreeMap::new();
    let mut others = Vec::new();
    for mut rule in rules {
        if rule.non_resource_urls.is_empty() {
            let verbs = std::mem::take(&mut rule.verbs);
            by_thing.entry(rule).or_default().extend(verbs);
        } else {
            others.push(rule);
        }
    }
    let by_thing = by_thing.into_iter();
    let by_thing = by_thing.map(|(rule, verbs)| Rule { verbs, ..rule });
    by_thing.chain(others)
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::{COMPARISON_MAX, Rule, SINGLE_MAX, check_cost, uncovered};

    fn rule(resource_count: usize) -> Rule {
        let resources = (0..resource_count).map(|number| format!("r{number}").into());
        Rule {
            api_groups: vec!["".into()],
            resources: resources.collect(),
            verbs: vec!["get".into()],
            ..Rule::default()
        }
    }

    fn is_taken(held: &[Rule], asked: &[Rule]) -> bool {
        check_cost(&held.iter().collect::<Vec<_>>(), asked).is_ok()
    }

    #[test]
    fn a_grant_names_so_many_permissions_and_no_more() {
        assert!(is_taken(&[], &[rule(SINGLE_MAX)]));
        assert!(!is_taken(&[], &[rule(SINGLE_MAX), rule(1)]));
        let many = || vec!["x".into(); 1 << 20];
        let product = Rule {
            api_groups: many(),
            resource_names: many(),
            resources: many(),
            verbs: many(),
            ..Rule::default()
        };
        assert!(!is_taken(&[], &[product]), "more than a number can say");
    }

    /// Rules were counted, not their entries: one that is held with fifty thousand resources made each of
    /// fifty thousand comparisons as long.
    #[test]
    fn what_is_compared_is_bounded_by_the_entries_of_what_is_held() {
        let asked = [rule(2_000)];
        assert!(is_taken(&vec![rule(1); 2_000], &asked));
        assert!(!is_taken(&vec![rule(1); 10_000], &asked));
        assert!(is_taken(&[rule(4_000)], &asked));
        assert!(!is_taken(&[rule(SINGLE_MAX)], &asked));
    }

    #[test]
    fn no_more_rules_are_looked_at_than_the_bound_counts() {
        let (held, asked) = (vec![rule(1); 100], [rule(200)]);
        let looked_at = Cell::new(0);
        let counted = held.iter().inspect(|_| looked_at.set(looked_at.get() + 1));
        assert_eq!(uncovered(&counted, &asked).len(), 199);
        assert_eq!(
            looked_at.get(),
            199 * 100 + 1,
            "each with all, but the one that is held"
        );
        assert!(looked_at.get() < COMPARISON_MAX);
        assert!(is_taken(&held, &asked));
    }
}
