//! What discovery said: which resources are served, how they are reached, and whether the answer
//! was complete. A kind that is not here is unknown, never absent.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::Resource;

/// What can be done with a resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verb {
    Get,
    List,
    Watch,
    Create,
    Patch,
    Delete,
}

/// One served resource, in the version by which we reach it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResourceType {
    pub resource: Resource,
    /// The version that we speak: the group's preferred one where it has the resource.
    pub version: Arc<str>,
    /// All versions in which the resource is served.
    pub served: BTreeSet<Arc<str>>,
    pub kind: Arc<str>,
    /// What else people call it: `po`, `pod`.
    #[serde(default)]
    pub aliases: BTreeSet<Arc<str>>,
    pub namespaced: bool,
    pub verbs: BTreeSet<Verb>,
}

impl ResourceType {
    /// Whether objects of it can be observed and deleted, so that collection is possible.
    pub fn is_collectable(&self) -> bool {
        [Verb::List, Verb::Watch, Verb::Delete]
            .iter()
            .all(|verb| self.verbs.contains(verb))
    }

    /// The apiVersion as it stands in objects.
    pub fn api_version(&self) -> String {
        match self.resource.group() {
            "" => self.version.to_string(),
            group => format!("{group}/{}", self.version),
        }
    }
}

/// All that is served.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Catalog {
    types: BTreeMap<Resource, Arc<ResourceType>>,
}

/// What a catalog knows of an apiVersion and kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Resolved {
    Known(Arc<ResourceType>),
    /// Not served: removed, not yet installed or misspelt. Nothing may be concluded from it.
    Unknown,
}

impl Catalog {
    /// A catalog of these types.
    pub fn new(types: impl IntoIterator<Item = ResourceType>) -> Self {
        let types = types
            .into_iter()
            .map(|ty| (ty.resource.clone(), Arc::new(ty)))
            .collect();
        Self { types }
    }

    /// How a resource is reached.
    pub fn get(&self, resource: &Resource) -> Option<&Arc<ResourceType>> {
        self.types.get(resource)
    }

    /// All types, in the order of their resources.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<ResourceType>> {
        self.types.values()
    }

    /// Finds the resource that an owner reference names; a version that is not served is unknown.
    pub fn resolve(&self, api_version: &str, kind: &str) -> Resolved {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let found = self.types.values().find(|ty| {
            &*ty.kind == kind && ty.resource.group() == group && ty.served.contains(version)
        });
        found.map_or(Resolved::Unknown, |ty| Resolved::Known(Arc::clone(ty)))
    }

    /// Finds a resource by what a person types: plural, with or without group, singular, short name.
    pub fn find(&self, word: &str) -> Option<&Arc<ResourceType>> {
        let word = word.to_lowercase();
        self.types.values().find(|ty| {
            word == ty.resource.plural()
                || word == ty.resource.to_string()
                || word == ty.kind.to_lowercase()
                || ty.aliases.contains(word.as_str())
        })
    }
}
