//! Custom types, read from their stored definitions. Their schemas are compiled when they are needed.
//!
//! A definition is served under the names that were accepted, once it is established; who accepts
//! them is `custom::names`.

use std::sync::Arc;

use serde::Deserialize;
use sundown_model::{ObjectKey, Resource};
use sundown_store::Stored;

use super::{DefaultPolicy, Rules, Type, version_rank};
use crate::custom::{LazySchema, Short};
use crate::scale::ScalePaths;

#[derive(Deserialize)]
struct Definition {
    spec: Spec,
    #[serde(default)]
    status: Status,
}

#[derive(Deserialize)]
struct Spec {
    group: Box<str>,
    scope: Box<str>,
    versions: Vec<Version>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Status {
    accepted_names: Names,
    conditions: Option<Vec<Condition>>,
}

#[derive(Deserialize)]
struct Condition {
    r#type: Box<str>,
    status: Box<str>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
#[expect(clippy::struct_field_names, reason = "the wire's own name")]
struct Names {
    plural: Box<str>,
    kind: Arc<str>,
    singular: Arc<str>,
    list_kind: Arc<str>,
    short_names: Vec<Arc<str>>,
    categories: Vec<Arc<str>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Version {
    name: Arc<str>,
    #[serde(default)]
    served: bool,
    #[serde(default)]
    storage: bool,
    #[serde(default)]
    deprecated: bool,
    #[serde(default)]
    deprecation_warning: Option<Arc<str>>,
    #[serde(default)]
    subresources: Option<Subresources>,
    #[serde(default)]
    selectable_fields: Vec<Selectable>,
}

#[derive(Deserialize)]
struct Subresources {
    status: Option<serde::de::IgnoredAny>,
    scale: Option<Scale>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
#[expect(
    clippy::struct_field_names,
    reason = "the names of the fields in a definition"
)]
struct Scale {
    spec_replicas_path: Box<str>,
    status_replicas_path: Box<str>,
    label_selector_path: Option<Box<str>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Selectable {
    json_path: Box<str>,
}

/// The types that a definition brings, one per served version; those from before if they are still
/// the same.
pub(super) fn types(key: &ObjectKey, stored: &Arc<Stored>, before: &[Arc<Type>]) -> Vec<Arc<Type>> {
    let is_from = |ty: &Arc<Type>| ty.schema.as_ref().is_some_and(|it| it.is_from(stored));
    if !before.is_empty() && before.iter().all(is_from) {
        return before.to_vec();
    }
    // Checked when it was written; a definition that does not read serves nothing.
    let Some(Definition { spec, status }) = read(stored) else {
        return Vec::new();
    };
    let is_established = |it: &Condition| &*it.r#type == "Established" && &*it.status == "True";
    if !status.conditions.iter().flatten().any(is_established) {
        return Vec::new();
    }
    let resource = Resource::new(&spec.group, &status.accepted_names.plural);
    let storage = spec.versions.iter().find(|version| version.storage);
    let storage = storage.map(|version| Arc::clone(&version.name));
    let served = spec.versions.iter().filter(|version| version.served);
    let served = served.map(|version| {
        let same = before.iter().find(|ty| ty.version == version.name);
        let schema = LazySchema::new(
            stored,
            &version.name,
            same.and_then(|ty| ty.schema.as_ref()),
        );
        let namespaced = &*spec.scope == "Namespaced";
        Arc::new(Type {
            schema: Some(schema),
            storage_version: storage.clone(),
            deprecation: deprecation(&spec, &status.accepted_names.kind, version),
            ..custom_type(key, &resource, namespaced, &status.accepted_names, version)
        })
    });
    served.collect()
}

/// Without its schemas, which are nearly all of it.
fn read(stored: &Stored) -> Option<Definition> {
    let text = std::str::from_utf8(stored.json()).ok()?;
    serde_json::from_str(&Short::of(text).text).ok()
}

/// What a client of a deprecated version is told; by itself which version to go to.
fn deprecation(spec: &Spec, kind: &str, version: &Version) -> Option<Arc<str>> {
    if !version.deprecated {
        return None;
    }
    if let Some(own) = &version.deprecation_warning {
        return Some(Arc::clone(own));
    }
    let (group, name) = (&spec.group, &version.name);
    let others = spec
        .versions
        .iter()
        .filter(|it| it.served && !it.deprecated);
    let best = others.min_by_key(|it| version_rank(&it.name));
    let advice = best.map_or_else(String::new, |best| {
        format!("; use {group}/{} {kind}", best.name)
    });
    Some(format!("{group}/{name} {kind} is deprecated{advice}").into())
}

fn custom_type(
    key: &ObjectKey,
    resource: &Resource,
    namespaced: bool,
    names: &Names,
    version: &Version,
) -> Type {
    let parts = version.subresources.as_ref();
    let scale = parts.and_then(|parts| parts.scale.as_ref()).map(|scale| {
        let selector = scale.label_selector_path.as_deref();
        let paths = ScalePaths::new(
            &scale.spec_replicas_path,
            &scale.status_replicas_path,
            selector,
        );
        Arc::new(paths)
    });
    let fields = version.selectable_fields.iter();
    let fields = fields.map(|field| field.json_path.trim_start_matches('.').into());
    Type {
        resource: resource.clone(),
        version: Arc::clone(&version.name),
        kind: Arc::clone(&names.kind),
        list_kind: Arc::clone(&names.list_kind),
        singular: Arc::clone(&names.singular),
        short_names: names.short_names.clone(),
        categories: names.categories.clone(),
        namespaced,
        has_status: parts.is_some_and(|parts| parts.status.is_some()),
        default_policy: DefaultPolicy::Background,
        graceful: false,
        returns_object: false,
        has_generation: true,
        unconditional_update: false,
        label_names: false,
        has_delete_collection: true,
        selectable: &[],
        rules: Rules::Plain,
        is_acted_on: true,
        deprecation: None,
        definition: Some(key.clone()),
        schema: None,
        storage_version: None,
        fields: fields.collect(),
        scale,
        view: None,
    }
}
