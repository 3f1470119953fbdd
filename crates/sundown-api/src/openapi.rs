//! `OpenAPI` v3: which kinds take which patches, and the schemas of built-in kinds from their facts.
//!
//! Those of custom kinds come from their definitions (`custom::published`). `v2` says the same in the
//! older form.

mod schemas;
mod v2;

use serde_json::{Map, Value, json};

use crate::Response;
use crate::custom::LazySchema;
use crate::custom::published::{self, Embedding};
use crate::discovery::page_not_found;
use crate::registry::{Registry, Rules, Type};
use crate::render::response;
use crate::{decode, facts};

pub(crate) use v2::document as document_v2;

/// The version of the API that documents are of.
const VERSION: &str = "v1.37.0+sundown";

/// What stands before the name of a schema in a reference.
const PREFIX: &str = "#/components/schemas/";

/// `/openapi/v3`.
pub(crate) fn index(registry: &Registry) -> Response {
    let mut paths = Map::new();
    for (group, versions) in registry.groups() {
        for version in versions {
            let path = group_version_path(&group, &version);
            let hash = hash(registry, &group, &version);
            let url = format!("/openapi/v3/{path}?hash={hash:016X}");
            paths.insert(path, json!({ "serverRelativeURL": url }));
        }
    }
    response(200, json!({ "paths": paths }).to_string().into_bytes())
}

/// `/openapi/v3/api/v1`, `/openapi/v3/apis/GROUP/VERSION`.
pub(crate) fn document(registry: &Registry, group: &str, version: &str) -> Response {
    match body(registry, group, version) {
        Some(body) => response(200, body),
        None => page_not_found(),
    }
}

fn body(registry: &Registry, group: &str, version: &str) -> Option<Vec<u8>> {
    let types = registry.group_version(group, version)?;
    let (mut paths, mut schemas) = (Map::new(), Map::new());
    for ty in types.values() {
        add_paths(&mut paths, ty);
    }
    let built_in = types.values().filter_map(|ty| decode::fact_of(ty));
    schemas.append(&mut schemas::closure(built_in.chain(shared())));
    for ty in types.values() {
        let name = schema_name(ty);
        if has_list(ty) {
            schemas.insert(list_name(ty), published::list_schema(ty, &name));
        }
        let own = schemas.entry(name).or_insert_with(|| custom_schema(ty));
        own["x-kubernetes-group-version-kind"] = json!([type_meta(ty)]);
    }
    let document = json!({
        "openapi": "3.0.0",
        "info": { "title": "Kubernetes", "version": VERSION },
        "paths": paths,
        "components": { "schemas": schemas },
    });
    Some(document.to_string().into_bytes())
}

fn add_paths(paths: &mut Map<String, Value>, ty: &Type) {
    let root = group_version_path(ty.resource.group(), &ty.version);
    let scope = if ty.namespaced {
        "namespaces/{namespace}/"
    } else {
        ""
    };
    let collection = format!("/{root}/{scope}{}", ty.resource.plural());
    let post = operation(ty, "post", Some(json!(["application/json"])));
    if !has_list(ty) {
        paths.insert(collection, json!({ "post": post }));
        return;
    }
    let list = operation(ty, "list", None);
    paths.insert(collection.clone(), json!({ "get": list, "post": post }));
    let mut patches = json!([
        "application/json-patch+json",
        "application/merge-patch+json"
    ]);
    if let (Some(_), Some(list)) = (decode::fact_of(ty), patches.as_array_mut()) {
        list.push("application/strategic-merge-patch+json".into());
    }
    let object = json!({
        "delete": operation(ty, "delete", None),
        "get": operation(ty, "get", None),
        "patch": operation(ty, "patch", Some(patches)),
        "put": operation(ty, "put", Some(json!(["application/json"]))),
    });
    paths.insert(format!("{collection}/{{name}}"), object);
}

fn operation(ty: &Type, action: &str, takes: Option<Value>) -> Value {
    let shown = if action == "list" {
        list_name(ty)
    } else {
        schema_name(ty)
    };
    let reference = json!({ "$ref": format!("{PREFIX}{shown}") });
    let mut operation = json!({
        "operationId": operation_id(ty, action),
        "responses": {
            "200": {
                "description": "OK",
                "content": { "application/json": { "schema": reference.clone() } },
            },
        },
        "x-kubernetes-action": action,
        "x-kubernetes-group-version-kind": type_meta(ty),
    });
    let Some(takes) = takes else {
        return operation;
    };
    let query = |name: &str| json!({ "name": name, "in": "query", "schema": { "type": "string" } });
    operation["parameters"] = json!([
        query("dryRun"),
        query("fieldManager"),
        query("fieldValidation")
    ]);
    let media = takes
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str);
    let content: Map<String, Value> = media
        .map(|media| (media.to_owned(), json!({ "schema": reference.clone() })))
        .collect();
    operation["requestBody"] = json!({ "content": content });
    operation
}

/// The schemas that every document refers to.
fn shared() -> impl Iterator<Item = &'static facts::Fact> {
    published::SHARED
        .map(|name| facts::facts().named(name))
        .into_iter()
}

/// What is created only cannot be listed.
fn has_list(ty: &Type) -> bool {
    ty.rules != Rules::Binding
}

/// Unique in a document of all groups too.
fn operation_id(ty: &Type, action: &str) -> String {
    let capital = |word: &str| {
        let (first, rest) = word.split_at_checked(1).unwrap_or(("", word));
        format!("{}{rest}", first.to_ascii_uppercase())
    };
    let group: String = match ty.resource.group() {
        "" => "Core".to_owned(),
        group => group.split('.').rev().map(capital).collect(),
    };
    format!("{action}{group}{}{}", capital(&ty.version), ty.kind)
}

/// The schema of a type that no fact describes.
fn custom_schema(ty: &Type) -> Value {
    let Some(mut schema) = published::schema(ty) else {
        return permissive(ty);
    };
    published::embed(&mut schema, Embedding::Everywhere);
    schema
}

fn permissive(ty: &Type) -> Value {
    json!({
        "type": "object",
        "properties": {
            "apiVersion": { "type": "string" },
            "kind": { "type": "string" },
            "metadata": { "type": "object", "x-kubernetes-preserve-unknown-fields": true },
        },
        "x-kubernetes-group-version-kind": [type_meta(ty)],
        "x-kubernetes-preserve-unknown-fields": true,
    })
}

fn type_meta(ty: &Type) -> Value {
    json!({ "group": ty.resource.group(), "version": &*ty.version, "kind": &*ty.kind })
}

fn schema_name(ty: &Type) -> String {
    if let Some(fact) = decode::fact_of(ty) {
        return schemas::full_name(fact.name);
    }
    let mut parts: Vec<&str> = ty.resource.group().split('.').rev().collect();
    parts.retain(|part| !part.is_empty());
    parts.extend([&*ty.version, &*ty.kind]);
    parts.join(".")
}

fn list_name(ty: &Type) -> String {
    let name = schema_name(ty);
    let package = name.strip_suffix(&*ty.kind).unwrap_or(&name);
    format!("{package}{}", ty.list_kind)
}

fn group_version_path(group: &str, version: &str) -> String {
    if group.is_empty() {
        format!("api/{version}")
    } else {
        format!("apis/{group}/{version}")
    }
}

/// Tells two documents apart. They are not made for it: they are long, and follow from the table of
/// facts and from the definitions.
fn hash(registry: &Registry, group: &str, version: &str) -> u64 {
    let types = registry.group_version(group, version);
    let types = types
        .into_iter()
        .flat_map(std::collections::BTreeMap::values);
    let program = env!("CARGO_PKG_VERSION");
    let facts = fingerprint(facts::table());
    let mut text = format!("{program}/{group}/{version}/{facts:x}");
    for ty in types.filter(|ty| ty.is_custom()) {
        text.push_str(&mark(ty));
    }
    fingerprint(text.as_bytes())
}

/// Tells two states of a custom kind apart. The accepted names are in the status of its definition: they
/// change without its spec.
fn mark(ty: &Type) -> String {
    let (resource, version, kind, list) = (&ty.resource, &ty.version, &ty.kind, &ty.list_kind);
    let schema = ty.schema.as_ref().map(LazySchema::mark);
    let schema = schema.unwrap_or_default();
    format!("/{resource:?}/{version}/{kind}/{list}/{schema}")
}

/// FNV-1a: clients only ask whether two documents are the same, nobody attacks it.
fn fingerprint(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}
