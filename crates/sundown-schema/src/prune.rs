//! Pruning of unknown fields and filling in of defaults, as upstream's `schema/pruning` and
//! `schema/defaulting`.

use serde_json::{Map, Value};

use crate::below::{Step, below};
use crate::node::{Node, Ref};

/// Members that every resource has, whatever its schema says.
const TYPE_META: [&str; 3] = ["apiVersion", "kind", "metadata"];

/// Removes what the schema of a resource does not know; the paths of what went.
pub(crate) fn prune(root: &Ref, object: &mut Value) -> Vec<String> {
    let mut pruned = Vec::new();
    if let Some(map) = object.as_object_mut() {
        prune_map(root, map, true, "", &mut pruned);
    }
    pruned.sort();
    pruned
}

fn prune_value(schema: &Ref, value: &mut Value, path: &str, pruned: &mut Vec<String>) {
    match value {
        Value::Object(map) => prune_map(schema, map, schema.is_embedded, path, pruned),
        Value::Array(list) => {
            for (index, item) in list.iter_mut().enumerate() {
                let path = below(path, Step::Index(index));
                match &schema.items {
                    Some(items) => prune_value(items, item, &path, pruned),
                    None if schema.preserves_unknown => {}
                    None => prune_value(&Ref::default(), item, &path, pruned),
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn prune_map(
    schema: &Ref,
    map: &mut Map<String, Value>,
    is_resource: bool,
    path: &str,
    pruned: &mut Vec<String>,
) {
    let below = |name: &str| below(path, Step::Member(name));
    map.retain(|name, value| {
        if is_resource && TYPE_META.contains(&name.as_str()) {
            return true;
        }
        if let Some(member) = schema.member(name) {
            prune_value(member, value, &below(name), pruned);
            return true;
        }
        let is_kept =
            schema.preserves_unknown || matches!(schema.additional, crate::node::Additional::Any);
        if !is_kept {
            pruned.push(below(name));
        }
        is_kept
    });
}

/// Removes members that are null where the schema takes no null and has no default for it.
pub(crate) fn drop_nulls(schema: &Node, value: &mut Value) {
    match value {
        Value::Object(map) => map.retain(|name, value| {
            let Some(member) = schema.member(name) else {
                return true;
            };
            if value.is_null() {
                return member.is_nullable || member.default.is_some();
            }
            drop_nulls(member, value);
            true
        }),
        Value::Array(list) => {
            if let Some(items) = &schema.items {
                for item in list {
                    drop_nulls(items, item);
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Fills in defaults. A null that the schema does not take makes room for its default.
pub(crate) fn default(schema: &Node, value: &mut Value) {
    if !schema.has_defaults {
        return;
    }
    match value {
        Value::Object(map) => {
            for (name, property) in &schema.properties {
                if let Some(default) = &property.default {
                    let is_open = match map.get(&**name) {
                        None => true,
                        Some(value) => value.is_null() && !property.is_nullable,
                    };
                    if is_open {
                        map.insert(name.to_string(), (**default).clone());
                    }
                }
            }
            for (name, value) in map.iter_mut() {
                if let Some(member) = schema.member(name) {
                    fill(member, value);
                }
            }
        }
        Value::Array(list) => {
            if let Some(items) = &schema.items {
                for item in list.iter_mut() {
                    fill(items, item);
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn fill(schema: &Node, value: &mut Value) {
    if let Some(default) = &schema.default
        && value.is_null()
        && !schema.is_nullable
    {
        *value = (**default).clone();
    }
    self::default(schema, value);
}
