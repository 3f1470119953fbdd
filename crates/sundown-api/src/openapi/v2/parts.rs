//! The paths and definitions of the document, one after the other, each by the rules of v3 and then
//! lowered.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use crate::custom::published::{self, Embedding};
use crate::facts::{Fact, facts};
use crate::registry::{Registry, Type};
use crate::reviews::{REVIEWS, VERSION};
use crate::{decode, openapi};

use super::lowered;

/// What is done with one part.
type Sink<'a> = dyn FnMut(&str, &Value) + 'a;

/// Every path.
pub(super) fn paths(registry: &Registry, sink: &mut Sink<'_>) {
    for ty in registry.all() {
        let mut paths = Map::new();
        openapi::add_paths(&mut paths, ty);
        for (path, item) in &paths {
            sink(path, &lowered::path_item(path, item));
        }
    }
}

/// Every definition: those of built-in kinds and all that they are made of, then those of custom
/// kinds, then the lists. A name is given once, to the first.
pub(super) fn definitions(registry: &Registry, sink: &mut Sink<'_>) {
    let mut told = BTreeSet::new();
    let mut tell = |name: String, schema: &Value| {
        if !told.contains(&name) {
            sink(&name, schema);
            told.insert(name);
        }
    };
    let kinds = kinds(registry);
    let built_in = registry.all().filter_map(|ty| decode::fact_of(ty));
    let reviews = REVIEWS.iter().filter_map(|it| review(it.group, it.kind));
    let roots = built_in.chain(reviews).chain(openapi::shared());
    for (name, mut schema) in openapi::schemas::closure(roots) {
        lowered::schema(&mut schema);
        if let Some(kinds) = kinds.get(&name) {
            schema[GROUP_VERSION_KIND] = kinds.as_slice().into();
        }
        tell(name, &schema);
    }
    for ty in registry.all() {
        let name = openapi::schema_name(ty);
        if decode::fact_of(ty).is_none() {
            tell(name.clone(), &custom(ty));
        }
        if openapi::has_list(ty) {
            let mut schema = published::list_schema(ty, &name);
            lowered::schema(&mut schema);
            tell(openapi::list_name(ty), &schema);
        }
    }
}

const GROUP_VERSION_KIND: &str = "x-kubernetes-group-version-kind";

/// The kinds that each built-in schema is of.
fn kinds(registry: &Registry) -> BTreeMap<String, Vec<Value>> {
    let mut kinds: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    for ty in registry.all().filter(|ty| decode::fact_of(ty).is_some()) {
        let name = openapi::schema_name(ty);
        kinds.entry(name).or_default().push(openapi::type_meta(ty));
    }
    for it in &REVIEWS {
        if let Some(fact) = review(it.group, it.kind) {
            let kind = json!({ "group": it.group, "version": VERSION, "kind": it.kind });
            let name = openapi::schemas::full_name(fact.name);
            kinds.entry(name).or_default().push(kind);
        }
    }
    kinds
}

fn review(group: &str, kind: &str) -> Option<&'static Fact> {
    facts().kind(group, VERSION, kind)
}

/// A kind that no fact describes. One that takes any field is told as that alone: kubectl takes
/// members that are known for the only ones (apiextensions-apiserver, `openapi/builder`).
fn custom(ty: &Type) -> Value {
    let is_open = |schema: &Value| schema[lowered::KEEPS_UNKNOWN] == json!(true);
    let schema = published::schema(ty).filter(|schema| !is_open(schema));
    let mut schema = schema.map_or_else(
        || json!({ "type": "object" }),
        |mut schema| {
            published::embed(&mut schema, Embedding::UnlessFieldsAreUnknown);
            lowered::schema(&mut schema);
            schema
        },
    );
    schema[GROUP_VERSION_KIND] = json!([openapi::type_meta(ty)]);
    schema
}
