//! What is served: one table of types, never a module per kind.
//!
//! Built-in rows come from [`builtin`], the others from the stored definitions. What a
//! kind does beyond the table is in `strategy`.

mod builtin;
mod custom;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use sundown_model::{Catalog, ObjectKey, Resource, ResourceType, Verb};
use sundown_store::Store;

use crate::custom::LazySchema;
use crate::scale::ScalePaths;
use crate::view::View;

pub(crate) use builtin::{crd_resource, part_type};

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
    /// Whether somebody in this server acts on the kind, or nobody has to.
    pub(crate) is_acted_on: bool,
    /// What a client is told who uses a version that is to go.
    pub(crate) deprecation: Option<Arc<str>>,
    /// The definition that this type comes from; None for built-ins.
    pub(crate) definition: Option<ObjectKey>,
    /// What objects of a custom type look like.
    pub(crate) schema: Option<LazySchema>,
    /// The version that objects of a custom type are stored in.
    pub(crate) storage_version: Option<Arc<str>>,
    /// Fields of a custom type that a field selector may name besides.
    pub(crate) fields: Vec<Arc<str>>,
    /// Where `/scale` finds its numbers; None if it is not served.
    pub(crate) scale: Option<Arc<ScalePaths>>,
    /// What objects are stored as; None for themselves.
    pub(crate) view: Option<Arc<View>>,
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
    /// Created only, and never stored.
    Binding,
}

impl Type {
    /// `group/version`, or the version alone in the core group.
    pub(crate) fn api_version(&self) -> String {
        match self.resource.group() {
            "" => self.version.to_string(),
            group => format!("{group}/{}", self.version),
        }
    }

    /// The apiVersion under which objects are stored.
    pub(crate) fn stored_api_version(&self) -> String {
        match (&self.view, &self.storage_version) {
            (Some(view), _) => view.api_version(),
            (None, Some(version)) => format!("{}/{version}", self.resource.group()),
            (None, None) => self.api_version(),
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

    /// The resource that objects are stored under.
    pub(crate) fn storage(&self) -> &Resource {
        self.view
            .as_ref()
            .map_or(&self.resource, |view| &view.resource)
    }

    pub(crate) fn key(&self, namespace: Option<&str>, name: &str) -> ObjectKey {
        match namespace {
            Some(namespace) => ObjectKey::namespaced(self.storage(), namespace, name),
            None => ObjectKey::cluster(self.storage(), name),
        }
    }

    /// The verbs of discovery, in upstream's order.
    pub(crate) fn verbs(&self) -> Vec<&'static str> {
        let mut all = [
            "create",
            "delete",
            "deletecollection",
            "get",
            "list",
            "patch",
            "update",
            "watch",
        ];
        if self.is_custom() {
            // In the order in which upstream adds them for custom resources.
            all[..6].rotate_left(1);
        }
        if self.rules == Rules::Binding {
            return vec!["create"];
        }
        let served = all.into_iter();
        served
            .filter(|verb| self.has_delete_collection || *verb != "deletecollection")
            .collect()
    }
}

/// What clients of Endpoints are told, as upstream has it.
const ENDPOINTS: &str =
    "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice";

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
        Self::default().following(store)
    }

    /// The registry after definitions have changed. What has not keeps its types, and with them
    /// the schemas that were compiled.
    pub(crate) fn following(&self, store: &Store) -> Self {
        let mut registry = Self::default();
        let built_in = if self.types.is_empty() {
            builtin::types().into_iter().map(Arc::new).collect()
        } else {
            self.all().filter(|ty| !ty.is_custom()).cloned().collect()
        };
        let before = self.by_definition();
        let defined = store.of(&crd_resource()).flat_map(|(key, stored)| {
            let before = before.get(key).map_or(&[][..], Vec::as_slice);
            custom::types(key, stored, before)
        });
        // Built-ins come first and win: a definition cannot take over a built-in resource.
        let built_in: Vec<Arc<Type>> = built_in;
        for ty in built_in.into_iter().chain(defined) {
            let group = (Arc::from(ty.resource.group()), Arc::clone(&ty.version));
            let types = registry.types.entry(group).or_default();
            types.entry(ty.resource.plural().into()).or_insert(ty);
        }
        registry
    }

    /// Whether a resource is built in, so that no definition can have it.
    pub(crate) fn is_built_in(group: &str, plural: &str) -> bool {
        let resource = Resource::new(group, plural);
        builtin::types().iter().any(|ty| ty.resource == resource)
    }

    /// Every type, by group, version and plural.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Arc<Type>> {
        self.types.values().flat_map(BTreeMap::values)
    }

    fn by_definition(&self) -> BTreeMap<ObjectKey, Vec<Arc<Type>>> {
        let mut types: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for ty in self.all() {
            if let Some(key) = &ty.definition {
                types.entry(key.clone()).or_default().push(Arc::clone(ty));
            }
        }
        types
    }

    pub(crate) fn find(&self, group: &str, version: &str, plural: &str) -> Option<&Arc<Type>> {
        self.group_version(group, version)?.get(plural)
    }

    /// The types of one group and version, by plural; None if it is not served.
    pub(crate) fn group_version(&self, group: &str, version: &str) -> Option<&ByPlural> {
        self.types.get(&(group.into(), version.into()))
    }

    /// Whether a group and version have built-in types.
    pub(crate) fn is_built_in_group(&self, group: &str, version: &str) -> bool {
        let types = self.group_version(group, version);
        types.is_some_and(|types| types.values().any(|ty| !ty.is_custom()))
    }

    /// The resource that objects of a resource are stored under.
    pub(crate) fn storage<'a>(&'a self, resource: &'a Resource) -> &'a Resource {
        let versions = self
            .types
            .iter()
            .filter(|((group, _), _)| **group == *resource.group());
        let mut types = versions.filter_map(|(_, types)| types.get(resource.plural()));
        types.next().map_or(resource, |ty| ty.storage())
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
                    // What is stored as another kind is seen as that one.
                    .filter(|ty| ty.view.is_none() && ty.rules != Rules::Binding)
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
