//! What the controllers declare, as rules of RBAC: the one place where interests and grants become
//! rights. Who gets them (the engine of a control plane of our own, a `ServiceAccount` of a cluster) and
//! how they are stored is left to others.
//!
//! RBAC knows no right to metadata alone: whoever may watch that a Secret changed may read what it
//! holds. The engine asks for metadata where an interest names no field, and keeps nothing else.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use sundown_model::{Controller, Grant, Interest, KnownKind, Part, Permit, Scope};

use crate::Crew;
use crate::kinds::{CLUSTER_ROLE, EVENT};

/// Stands for every group and for every resource with its subresources.
const ALL: &str = "*";

/// What a watch needs: a first list, and live reads of what it shows.
const READ: [&str; 3] = ["get", "list", "watch"];

/// One rule of a `ClusterRole`, in the form in which it is stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PolicyRule {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub api_groups: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub resources: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub resource_names: Vec<String>,
    #[serde(rename = "nonResourceURLs", skip_serializing_if = "Vec::is_empty")]
    pub non_resource_urls: Vec<String>,
    pub verbs: Vec<String>,
}

/// A right that is declared by itself: what a port asks an API server for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Right {
    pub group: &'static str,
    /// Plural, with the subresource if it is about one.
    pub resource: &'static str,
    /// None: every object of the resource.
    pub name: Option<&'static str>,
    pub verbs: &'static [&'static str],
}

impl Right {
    /// A right to every object of a resource.
    pub const fn to(
        group: &'static str,
        resource: &'static str,
        verbs: &'static [&'static str],
    ) -> Self {
        Self {
            group,
            resource,
            name: None,
            verbs,
        }
    }

    /// The same, to one object alone.
    #[must_use]
    pub const fn named(self, name: &'static str) -> Self {
        Self {
            name: Some(name),
            ..self
        }
    }
}

/// The rights of one identity, collected controller by controller and port by port.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rights {
    /// Verbs by group, resource, and name if it is about one object.
    verbs: BTreeMap<(String, String, Option<&'static str>), BTreeSet<&'static str>>,
    /// Whether what is served is asked, as every engine does first.
    discovers: bool,
}

impl Crew for Rights {
    fn take<C: Controller>(&mut self, _: C) {
        self.watch(C::INTERESTS);
        self.write(C::GRANTS);
        for owner in C::OWNERS {
            self.own(owner);
        }
        self.discovers = true;
        // Any decision may tell something.
        self.add(EVENT.group, EVENT.plural, &["create"]);
    }
}

impl Rights {
    /// Adds what a port declares.
    pub fn declare(&mut self, rights: &[Right]) {
        for right in rights {
            let key = (
                right.group.to_owned(),
                right.resource.to_owned(),
                right.name,
            );
            self.verbs.entry(key).or_default().extend(right.verbs);
        }
    }

    /// The rules: groups and resources in order, those with the same verbs together. What a rule for
    /// everything covers is not repeated.
    pub fn rules(&self) -> Vec<PolicyRule> {
        let everything = (ALL.to_owned(), ALL.to_owned(), None);
        let wide = self.verbs.get(&everything).cloned().unwrap_or_default();
        let mut grouped: BTreeMap<_, Vec<&str>> = BTreeMap::new();
        for ((group, resource, name), verbs) in &self.verbs {
            let is_wide = group == ALL && resource == ALL;
            let verbs = verbs.iter().filter(|it| is_wide || !wide.contains(*it));
            let verbs: Vec<&str> = verbs.copied().collect();
            if !verbs.is_empty() {
                let of = grouped.entry((group.as_str(), verbs, *name)).or_default();
                of.push(resource);
            }
        }
        let owned = |all: Vec<&str>| all.into_iter().map(str::to_owned).collect();
        let rules = grouped
            .into_iter()
            .map(|((group, verbs, name), resources)| PolicyRule {
                api_groups: vec![group.to_owned()],
                resources: owned(resources),
                resource_names: owned(name.into_iter().collect()),
                non_resource_urls: Vec::new(),
                verbs: owned(verbs),
            });
        rules.chain(self.discovers.then(discovery)).collect()
    }

    fn watch(&mut self, interests: &[Interest]) {
        for interest in interests {
            match interest.scope {
                Scope::One(kind) => self.add(kind.group, kind.plural, &READ),
                // What is served is known later, and may grow.
                Scope::Collectable { .. } => self.add(ALL, ALL, &READ),
            }
        }
    }

    fn write(&mut self, grants: &[Grant]) {
        for grant in grants {
            let group = grant.group.unwrap_or(ALL);
            let plural = grant.plural.unwrap_or(ALL);
            for permit in grant.permits {
                let (subresource, verb) = request(*permit);
                // A right to all resources is one to all their subresources.
                let resource = match grant.plural {
                    Some(_) => format!("{plural}{subresource}"),
                    None => ALL.to_owned(),
                };
                self.add(group, &resource, &[verb]);
            }
            if group == CLUSTER_ROLE.group && grant.permits.contains(&Permit::Patch(Part::Main)) {
                // Rules that it gathers for others go beyond those of its own.
                self.add(group, plural, &["escalate"]);
            }
        }
    }

    /// A reference that blocks the deletion of its owner needs a right to that owner's finalizers, where
    /// the API server enforces it (`OwnerReferencesPermissionEnforcement`).
    fn own(&mut self, owner: &KnownKind) {
        let finalizers = format!("{}/finalizers", owner.plural);
        self.add(owner.group, &finalizers, &["update"]);
    }

    fn add(&mut self, group: &str, resource: &str, verbs: &[&'static str]) {
        let key = (group.to_owned(), resource.to_owned(), None);
        self.verbs.entry(key).or_default().extend(verbs);
    }
}

/// The subresource and the verb of the request that a write becomes (`sundown_engine::wire`).
fn request(permit: Permit) -> (&'static str, &'static str) {
    match permit {
        Permit::Create => ("", "create"),
        Permit::Delete | Permit::Finish => ("", "delete"),
        Permit::Patch(Part::Main) => ("", "patch"),
        Permit::Patch(Part::Status) => ("/status", "patch"),
        Permit::Patch(Part::Finalize) => ("/finalize", "patch"),
        Permit::Patch(Part::Binding) => ("/binding", "create"),
    }
}

/// What is served is asked first; clusters let every caller with a name do so, usually.
fn discovery() -> PolicyRule {
    PolicyRule {
        api_groups: Vec::new(),
        resources: Vec::new(),
        resource_names: Vec::new(),
        non_resource_urls: vec!["/api".to_owned(), "/apis".to_owned()],
        verbs: vec!["get".to_owned()],
    }
}

#[cfg(test)]
mod tests {
    use super::{PolicyRule, Rights};
    use crate::{Crew as _, RayConfig, Ttl, of_ray, shipped, with_node};

    /// As `kubectl describe clusterrole` shows them: verbs, then what they are for.
    fn printed(rules: &[PolicyRule]) -> String {
        let line = |rule: &PolicyRule| {
            let groups = rule.api_groups.iter().map(|it| match it.as_str() {
                "" => "core",
                group => group,
            });
            let groups: Vec<&str> = groups.collect();
            let of = [&rule.resources[..], &rule.non_resource_urls[..]].concat();
            let parts = [groups.join(","), of.join(","), rule.verbs.join(",")];
            parts.join(" | ")
        };
        rules.iter().map(line).collect::<Vec<_>>().join("\n")
    }

    fn check(rights: &Rights, expect: &[&str]) {
        let printed = printed(&rights.rules());
        assert_eq!(printed.lines().collect::<Vec<_>>(), expect);
    }

    #[test]
    fn one_controller_asks_for_what_it_declares() {
        let mut rights = Rights::default();
        rights.take(Ttl::default());
        check(
            &rights,
            &[
                "core | events | create",
                "batch | jobs | delete,get,list,watch",
                "batch.volcano.sh | jobs | delete,get,list,watch",
                " | /api,/apis | get",
            ],
        );
    }

    /// What an operator needs on a cluster that has its own scheduler and kubelets.
    #[test]
    fn those_for_any_api_server_read_and_delete_everything_and_make_nothing() {
        let mut rights = Rights::default();
        shipped(&mut rights);
        check(
            &rights,
            &[
                "core | events | create",
                "* | * | delete,get,list,patch,watch",
                "rbac.authorization.k8s.io | clusterroles | escalate",
                " | /api,/apis | get",
            ],
        );
    }

    #[test]
    fn those_of_a_control_plane_with_a_node_make_what_they_say() {
        let mut rights = Rights::default();
        shipped(&mut rights);
        with_node(&mut rights);
        of_ray(&mut rights, &RayConfig::default());
        check(
            &rights,
            &[
                "core | events,pods,pods/binding,serviceaccounts,services | create",
                "core | services/finalizers | update",
                "* | * | delete,get,list,patch,watch",
                "batch | jobs | create",
                "batch | jobs/finalizers | update",
                "discovery.k8s.io | endpointslices | create",
                "ray.io | rayclusters | create",
                "ray.io | rayclusters/finalizers,rayjobs/finalizers | update",
                "rbac.authorization.k8s.io | clusterroles | escalate",
                " | /api,/apis | get",
            ],
        );
    }

    /// Without the collector no rule names everything.
    #[test]
    fn those_of_a_node_alone_name_each_resource() {
        let mut rights = Rights::default();
        with_node(&mut rights);
        check(
            &rights,
            &[
                "core | events,pods/binding | create",
                "core | pods | create,delete,get,list,patch,watch",
                "core | serviceaccounts | create,get,list,watch",
                "core | configmaps,namespaces,nodes,secrets,services | get,list,watch",
                "core | pods/status | patch",
                "core | services/finalizers | update",
                "batch | jobs | get,list,watch",
                "batch | jobs/status | patch",
                "batch | jobs/finalizers | update",
                "discovery.k8s.io | endpointslices | create,get,list,patch,watch",
                " | /api,/apis | get",
            ],
        );
    }
}
