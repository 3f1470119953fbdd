//! Uniqueness in lists of type set and map, as upstream's `schema/listtype`.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value};

use crate::Problem;
use crate::node::{ListType, Node};

/// What is there twice.
pub(crate) fn validate(root: &Node, object: &Value) -> Vec<Problem> {
    let mut problems = Vec::new();
    walk(root, object, "", &mut problems);
    problems
}

/// The part of an item that tells it apart from others.
pub(crate) fn key_of(item: &Value, keys: &[Arc<str>]) -> Value {
    let present = keys
        .iter()
        .filter_map(|key| Some((key.to_string(), item.get(&**key)?.clone())));
    Value::Object(present.collect::<Map<_, _>>())
}

fn walk(schema: &Node, value: &Value, path: &str, problems: &mut Vec<Problem>) {
    match value {
        Value::Object(map) => {
            for (name, value) in map {
                let Some(member) = schema.member(name) else {
                    continue;
                };
                let below = if schema.property(name).is_none() {
                    format!("{path}[{name}]")
                } else if path.is_empty() {
                    name.clone()
                } else {
                    format!("{path}.{name}")
                };
                walk(member, value, &below, problems);
            }
        }
        Value::Array(list) => {
            match &schema.list {
                ListType::Atomic => {}
                ListType::Set => repeated(list.clone(), path, problems),
                ListType::Map(keys) => {
                    let keyed = list.iter().map(|item| key_of(item, keys)).collect();
                    repeated(keyed, path, problems);
                }
            }
            if let Some(items) = &schema.items {
                for (index, item) in list.iter().enumerate() {
                    walk(items, item, &format!("{path}[{index}]"), problems);
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Each value that is there more than once is told at its second place.
fn repeated(values: Vec<Value>, path: &str, problems: &mut Vec<Problem>) {
    let mut times: BTreeMap<String, usize> = BTreeMap::new();
    for (index, value) in values.into_iter().enumerate() {
        let times = times.entry(value.to_string()).or_default();
        *times += 1;
        if *times == 2 {
            problems.push(Problem::duplicate(format!("{path}[{index}]"), &value));
        }
    }
}
