//! What is served: one table of types, never a module per kind.
//!
//! Built-in rows come from [`builtin`], the others from the stored definitions. What a
//! kind does beyond the table is in `strategy`.

mod builtin;
mod custom;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use sundown_model::{Catalog, ObjectKey, Resource, ResourceType, Verb};
use sundown_store::Store;

pub(crate) use builtin::crd_resource;

/// One resource in one version.
#[derive(Debug, Clone, PartialEq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "a row of a table: independent yes-or-no columns"
)]
pub(crate) struct Type {
    pub(crate) resource: Resource,
    pub(crate) version: Arc<str>,
    pub(crate) kind: Arc<str>,
    pub(crate) list_kind: Arc<str>,
    pub(crate) singular: Arc<str>,
    pub(crate) short_names: Vec<Arc<str>>,
    pub(crate) categories: Vec<Arc<str>>,
    pub(crate) namespaced: bool,
    /// Whether `/status` is served, and the main endpoint leaves the status alone.
    pub(crate) has_status: bool,
    pub(crate) default_policy: DefaultPolicy,
    /// Whether DELETE waits for a grace period.
    pub(crate) graceful: bool,
    /// Whether a completed DELETE answers with the object, not with a Status.
    pub(crate) returns_object: bool,
    pub(crate) has_generation: bool,
    /// Whether PUT without resourceVersion is allowed.
    pub(crate) unconditional_update: bool,
    /// Whether names are DNS labels; else subdomains.
    pub(crate) label_names: bool,
    pub(crate) has_delete_collection: bool,
    /// Fields beyond metadata.name and metadata.namespace that a field selector may name.
    pub(crate) selectable: &'static [&'static str],
    pub(crate) rules: Rules,
    /// The definition that this type comes from; None for built-ins.
    pub(crate) definition: Option<ObjectKey>,
}

/// What happens to dependents when DELETE does not say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DefaultPolicy {
    Background,
    /// With a warning, as batch/v1 Job has it.
    Orphan,
    /// Never any GC finalizer.
    Unsupported,
}

/// Kinds that do more than the table says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rules {
    Plain,
    Namespace,
    Pod,
    Secret,
    Definition,
}

impl Type {
    /// `group/version`, or the version alone in the core group.
    pub(crate) fn api_version(&self) -> String {
        match self.resource.group() {
            "" => self.version.to_string(),
            group => format!("{group}/{}", self.version),
        }
    }

    /// `Kind.group`, or the kind alone in the core group.
    pub(crate) fn qualified_kind(&self) -> String {
        match self.resource.group() {
            "" => self.kind.to_string(),
            group => format!("{}.{group}", self.kind),
        }
    }

    pub(crate) fn is_custom(&self) -> bool {
        self.definition.is_some()
    }

    pub(crate) fn key(&self, namespace: Option<&str>, name: &str) -> ObjectKey {
        match namespace {
            Some(namespace) => ObjectKey::namespaced(&self.resource, namespace, name),
            None => ObjectKey::cluster(&self.resource, name),
        }
    }

    /// The verbs of discovery, in upstream's order.
    pub(crate) fn verbs(&self) -> Vec<&'static str> {
        let all = [
            "create",
            "delete",
            "deletecollection",
            "get",
            "list",
            "patch",
            "update",
            "watch",
        ];
        let served = all.into_iter();
        served
            .filter(|verb| self.has_delete_collection || *verb != "deletecollection")
            .collect()
    }
}

/// A group and one of its versions.
type GroupVersion = (Arc<str>, Arc<str>);

/// The types of one group and version.
type ByPlural = BTreeMap<Arc<str>, Arc<Type>>;

/// All served types.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Registry {
    types: BTreeMap<GroupVersion, ByPlural>,
}

impl Registry {
    /// The built-in types and those that the store defines.
    pub(crate) fn of(store: &Store) -> Self {
        let mut registry = Self::default();
        let defined = store
            .of(&crd_resource())
            .flat_map(|(key, stored)| custom::types(key, stored));
        // Built-ins come first and win: a definition cannot take over a built-in resource.
        for ty in builtin::types().into_iter().chain(defined) {
            let group = (Arc::from(ty.resource.group()), Arc::clone(&ty.version));
            let types = registry.types.entry(group).or_default();
            types
                .entry(ty.resource.plural().into())
                .or_insert_with(|| Arc::new(ty));
        }
        registry
    }

    pub(crate) fn find(&self, group: &str, version: &str, plural: &str) -> Option<&Arc<Type>> {
        self.group_version(group, version)?.get(plural)
    }

    /// The types of one group and version, by plural; None if it is not served.
    pub(crate) fn group_version(&self, group: &str, version: &str) -> Option<&ByPlural> {
        self.types.get(&(group.into(), version.into()))
    }

    /// Whether exactly this type is still served.
    pub(crate) fn serves(&self, ty: &Type) -> bool {
        self.find(ty.resource.group(), &ty.version, ty.resource.plural())
            .is_some_and(|own| own.kind == ty.kind && own.definition == ty.definition)
    }

    /// The versions of each group, the preferred one first.
    pub(crate) fn groups(&self) -> BTreeMap<Arc<str>, Vec<Arc<str>>> {
        let mut groups: BTreeMap<Arc<str>, Vec<Arc<str>>> = BTreeMap::new();
        for (group, version) in self.types.keys() {
            groups
                .entry(Arc::clone(group))
                .or_default()
                .push(Arc::clone(version));
        }
        for versions in groups.values_mut() {
            versions.sort_by_key(|version| version_rank(version));
        }
        groups
    }

    /// What is served, as the controllers of the same process see it.
    pub(crate) fn catalog(&self) -> Catalog {
        let mut types: BTreeMap<Resource, ResourceType> = BTreeMap::new();
        for (group, versions) in self.groups() {
            for version in &versions {
                for ty in self
                    .group_version(&group, version)
                    .into_iter()
                    .flat_map(BTreeMap::values)
                {
                    let entry = types
                        .entry(ty.resource.clone())
                        .or_insert_with(|| resource_type(ty));
                    entry.served.insert(Arc::clone(version));
                }
            }
        }
        Catalog::new(types.into_values())
    }
}

fn resource_type(ty: &Type) -> ResourceType {
    let verbs = [
        Verb::Get,
        Verb::List,
        Verb::Watch,
        Verb::Create,
        Verb::Patch,
        Verb::Delete,
    ];
    ResourceType {
        resource: ty.resource.clone(),
        version: Arc::clone(&ty.version),
        served: BTreeSet::new(),
        kind: Arc::clone(&ty.kind),
        aliases: ty
            .short_names
            .iter()
            .chain([&ty.singular])
            .cloned()
            .collect(),
        namespaced: ty.namespaced,
        verbs: verbs.into(),
    }
}

/// Upstream's version priority: v2 before v1 before v1beta1 before v1alpha1 before anything else.
fn version_rank(version: &str) -> (u8, std::cmp::Reverse<u32>, std::cmp::Reverse<u32>, String) {
    use std::cmp::Reverse;
    let other = (3, Reverse(0), Reverse(0), version.to_owned());
    let Some(rest) = version.strip_prefix('v') else {
        return other;
    };
    let (major, minor, stage) = if let Some((major, minor)) = rest.split_once("beta") {
        (major, minor, 1)
    } else if let Some((major, minor)) = rest.split_once("alpha") {
        (major, minor, 2)
    } else {
        (rest, "0", 0)
    };
    match (major.parse(), minor.parse()) {
        (Ok(major), Ok(minor)) => (stage, Reverse(major), Reverse(minor), String::new()),
        _ => other,
    }
}
