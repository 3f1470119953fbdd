//! Uniqueness in lists of type set and map, as upstream's `schema/listtype`.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value};

use crate::below::{Step, below};
use crate::node::{ListType, Node};
use crate::{Problem, Problems};

/// What is there twice.
pub(crate) fn validate(root: &Node, object: &Value) -> Problems {
    let mut problems = Problems::default();
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

/// The items of a list by the part that tells them apart; of equal ones the first.
pub(crate) fn by_key<'a>(list: &'a [Value], keys: &[Arc<str>]) -> BTreeMap<String, &'a Value> {
    let mut items = BTreeMap::new();
    for item in list {
        items.entry(key_of(item, keys).to_string()).or_insert(item);
    }
    items
}

/// The old items of a list whose items have keys; none for other lists.
pub(crate) fn old_items<'a>(schema: &Node, old: Option<&'a Value>) -> BTreeMap<String, &'a Value> {
    match (&schema.list, old.and_then(Value::as_array)) {
        (ListType::Map(keys), Some(old)) => by_key(old, keys),
        (ListType::Map(_) | ListType::Atomic | ListType::Set, _) => BTreeMap::new(),
    }
}

/// The old one of these items that an item takes the place of.
pub(crate) fn old_of<'a>(
    schema: &Node,
    old: &BTreeMap<String, &'a Value>,
    item: &Value,
) -> Option<&'a Value> {
    match &schema.list {
        ListType::Map(keys) => old.get(&key_of(item, keys).to_string()).copied(),
        ListType::Atomic | ListType::Set => None,
    }
}

fn walk(schema: &Node, value: &Value, path: &str, problems: &mut Problems) {
    match value {
        Value::Object(map) => {
            for (name, value) in map {
                let Some(member) = schema.member(name) else {
                    continue;
                };
                let step = match schema.property(name) {
                    Some(_) => Step::Member(name),
                    None => Step::Key(name),
                };
                walk(member, value, &below(path, step), problems);
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
                    walk(items, item, &below(path, Step::Index(index)), problems);
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Each value that is there more than once is told at its second place.
fn repeated(values: Vec<Value>, path: &str, problems: &mut Problems) {
    let mut times: BTreeMap<String, usize> = BTreeMap::new();
    for (index, value) in values.into_iter().enumerate() {
        let times = times.entry(value.to_string()).or_default();
        *times += 1;
        if *times == 2 {
            problems.push(Problem::duplicate(below(path, Step::Index(index)), &value));
        }
    }
}
