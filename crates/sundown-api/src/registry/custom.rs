//! Custom types, read from their stored definitions. Schemaless: any object of the kind is taken.

use std::sync::Arc;

use serde::Deserialize;
use sundown_model::{ObjectKey, Resource};
use sundown_store::Stored;

use super::{DefaultPolicy, Rules, Type};

#[derive(Deserialize)]
struct Definition {
    spec: Spec,
}

#[derive(Deserialize)]
struct Spec {
    group: Box<str>,
    scope: Box<str>,
    names: Names,
    versions: Vec<Version>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
#[expect(clippy::struct_field_names, reason = "the wire's own name")]
struct Names {
    plural: Box<str>,
    kind: Arc<str>,
    singular: Option<Arc<str>>,
    list_kind: Option<Arc<str>>,
    #[serde(default)]
    short_names: Vec<Arc<str>>,
    #[serde(default)]
    categories: Vec<Arc<str>>,
}

#[derive(Deserialize)]
struct Version {
    name: Arc<str>,
    #[serde(default)]
    served: bool,
    #[serde(default)]
    subresources: Option<Subresources>,
}

#[derive(Deserialize)]
struct Subresources {
    status: Option<serde::de::IgnoredAny>,
}

/// The types that a definition brings, one per served version.
pub(super) fn types(key: &ObjectKey, stored: &Stored) -> Vec<Type> {
    // Checked when it was written; a definition that does not read serves nothing.
    let Ok(Definition { spec }) = serde_json::from_slice(stored.json()) else {
        return Vec::new();
    };
    let resource = Resource::new(&spec.group, &spec.names.plural);
    let served = spec.versions.iter().filter(|version| version.served);
    served
        .map(|version| custom_type(key, &resource, &spec, version))
        .collect()
}

fn custom_type(key: &ObjectKey, resource: &Resource, spec: &Spec, version: &Version) -> Type {
    let names = &spec.names;
    let lower = || names.kind.to_lowercase().into();
    let list = || format!("{}List", names.kind).into();
    Type {
        resource: resource.clone(),
        version: Arc::clone(&version.name),
        kind: Arc::clone(&names.kind),
        list_kind: names.list_kind.clone().unwrap_or_else(list),
        singular: names.singular.clone().unwrap_or_else(lower),
        short_names: names.short_names.clone(),
        categories: names.categories.clone(),
        namespaced: &*spec.scope == "Namespaced",
        has_status: version
            .subresources
            .as_ref()
            .is_some_and(|sub| sub.status.is_some()),
        default_policy: DefaultPolicy::Background,
        graceful: false,
        returns_object: false,
        has_generation: true,
        unconditional_update: false,
        label_names: false,
        has_delete_collection: true,
        selectable: &[],
        rules: Rules::Plain,
        definition: Some(key.clone()),
    }
}
