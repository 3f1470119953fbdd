//! What an API server serves, read from its aggregated discovery documents.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::Deserialize;
use sundown_model::{Catalog, Resource, ResourceType, Verb};

use super::answer::Reply;
use super::{Call, Method};
use crate::effect::Failure;

const AGGREGATED: &str =
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json";

/// The two requests of a discovery.
pub fn discovery_calls() -> [Call; 2] {
    ["/api", "/apis"].map(|path| Call {
        method: Method::Get,
        path: path.to_owned(),
        query: Vec::new(),
        accept: AGGREGATED,
        content_type: None,
        body: Vec::new(),
    })
}

/// Reads the answers to [`discovery_calls`].
///
/// Errors: an answer is missing, or a group's document is stale; then nothing is known for certain.
pub fn discovered(replies: [Reply; 2]) -> Result<Catalog, Failure> {
    let mut types = BTreeMap::new();
    for reply in replies {
        for group in groups(reply)?.items {
            add(&mut types, group)?;
        }
    }
    Ok(Catalog::new(types.into_values()))
}

#[derive(Deserialize)]
struct Groups {
    items: Vec<Group>,
}

#[derive(Deserialize)]
struct Group {
    #[serde(default)]
    metadata: Metadata,
    versions: Vec<Version>,
}

#[derive(Default, Deserialize)]
struct Metadata {
    #[serde(default)]
    name: String,
}

#[derive(Deserialize)]
struct Version {
    #[serde(rename = "version")]
    name: String,
    #[serde(default)]
    freshness: String,
    #[serde(default)]
    resources: Vec<Served>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Served {
    resource: String,
    #[serde(default)]
    response_kind: Kind,
    #[serde(default)]
    singular_resource: String,
    #[serde(default)]
    short_names: Vec<String>,
    scope: String,
    verbs: Vec<String>,
}

impl Served {
    fn aliases(&self) -> BTreeSet<Arc<str>> {
        let names = self.short_names.iter().chain([&self.singular_resource]);
        names
            .filter(|name| !name.is_empty())
            .map(|name| name.as_str().into())
            .collect()
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Kind {
    kind: String,
}

fn groups(reply: Reply) -> Result<Groups, Failure> {
    let failure = |message: String| Failure {
        message,
        expired: false,
    };
    match reply {
        Reply::Answered { code: 200, body } => serde_json::from_slice(&body)
            .map_err(|error| failure(format!("aggregated discovery is not readable: {error}"))),
        Reply::Answered { code, .. } => Err(failure(format!("discovery answered {code}"))),
        Reply::NotSent(message) | Reply::Lost(message) => Err(failure(message)),
    }
}

/// Versions come in the group's order of preference, so the first that has a resource wins.
fn add(types: &mut BTreeMap<Resource, ResourceType>, group: Group) -> Result<(), Failure> {
    for version in group.versions {
        if version.freshness == "Stale" {
            let message = format!(
                "discovery of {} {} is stale",
                group.metadata.name, version.name
            );
            return Err(Failure {
                message,
                expired: false,
            });
        }
        let name: Arc<str> = version.name.into();
        for served in version.resources {
            let resource = Resource::new(&group.metadata.name, &served.resource);
            let entry = types
                .entry(resource.clone())
                .or_insert_with(|| ResourceType {
                    resource,
                    aliases: served.aliases(),
                    version: name.clone(),
                    served: BTreeSet::new(),
                    kind: served.response_kind.kind.into(),
                    namespaced: served.scope == "Namespaced",
                    verbs: served
                        .verbs
                        .iter()
                        .filter_map(|verb| verb_of(verb))
                        .collect(),
                });
            entry.served.insert(name.clone());
        }
    }
    Ok(())
}

fn verb_of(text: &str) -> Option<Verb> {
    match text {
        "get" => Some(Verb::Get),
        "list" => Some(Verb::List),
        "watch" => Some(Verb::Watch),
        "create" => Some(Verb::Create),
        "patch" => Some(Verb::Patch),
        "delete" => Some(Verb::Delete),
        _ => None,
    }
}
