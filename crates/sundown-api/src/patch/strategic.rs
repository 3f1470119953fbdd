//! Strategic merge patches of built-in kinds, after upstream's `util/strategicpatch`.
//!
//! How a list is merged depends on its Go type: patch strategies and merge keys are facts. The
//! patched object is read as its type afterwards, by `decode`.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use crate::facts::{Fact, Field, Shape, facts};
use crate::failure::Failure;

const DIRECTIVE: &str = "$patch";
const RETAIN_KEYS: &str = "$retainKeys";
const DELETE_FROM: &str = "$deleteFromPrimitiveList/";
const ELEMENT_ORDER: &str = "$setElementOrder/";

/// How the elements of a list are merged.
#[derive(Clone, Copy)]
enum ListRule {
    /// Replaced as a whole.
    Atomic,
    /// A set of plain values.
    Set,
    /// Objects, matched by the value of this member.
    ByKey(&'static str),
}

/// What is known about the place that is being merged.
#[derive(Clone, Copy)]
struct Place {
    fact: Option<&'static Fact>,
    /// Set inside maps, whose members are not named in any fact.
    value: Option<&'static Shape>,
}

/// Applies a patch to an object of a built-in kind.
pub(super) fn apply(fact: &'static Fact, value: &mut Value, body: &[u8]) -> Result<(), Failure> {
    let mut patch = super::read_object(body).map_err(Failure::bad_request)?;
    // The type of the object is known; upstream reads the result as this type, whatever it says.
    for member in ["apiVersion", "kind"] {
        patch.as_object_mut().map(|patch| patch.remove(member));
    }
    let place = Place {
        fact: Some(fact),
        value: None,
    };
    match (value, patch) {
        (Value::Object(object), Value::Object(patch)) => merge_map(object, patch, place),
        _ => unreachable!("both were read as objects"),
    }
}

impl Place {
    fn field(self, member: &str) -> Option<&'static Field> {
        self.fact.and_then(|fact| fact.member(member))
    }

    fn below(self, member: &str) -> Self {
        let shape = self.field(member).map(|field| &field.shape).or(self.value);
        shape.map_or(Self::NOWHERE, Self::of)
    }

    const NOWHERE: Self = Self {
        fact: None,
        value: None,
    };

    fn of(shape: &'static Shape) -> Self {
        if let Shape::Object(name) = shape {
            let fact = Some(facts().named(name));
            return Self { fact, value: None };
        }
        if let Shape::Map(inner) = shape {
            return Self {
                fact: None,
                value: Some(inner),
            };
        }
        if let Shape::List(inner) = shape {
            return Self::of(inner);
        }
        Self::NOWHERE
    }

    /// How a list is merged; lists that no fact names are replaced, as upstream does.
    fn rule(self, member: &str) -> ListRule {
        let Some(field) = self.field(member) else {
            return ListRule::Atomic;
        };
        let (strategy, key) = field.merge.split_once(':').unwrap_or((field.merge, ""));
        match strategy.split(',').any(|own| own == "merge") {
            true if key.is_empty() => ListRule::Set,
            true => ListRule::ByKey(key),
            false => ListRule::Atomic,
        }
    }

    fn is_replaced(self, member: &str) -> bool {
        self.field(member)
            .is_some_and(|field| field.merge.split([',', ':']).any(|own| own == "replace"))
    }
}

fn merge_map(
    object: &mut Map<String, Value>,
    mut patch: Map<String, Value>,
    place: Place,
) -> Result<(), Failure> {
    match take_directive(&mut patch)? {
        Directive::Merge => {}
        Directive::Delete => {
            object.clear();
            return Ok(());
        }
        Directive::Replace => object.clear(),
    }
    if let Some(Value::Array(kept)) = patch.remove(RETAIN_KEYS) {
        let kept: BTreeSet<&str> = kept.iter().filter_map(Value::as_str).collect();
        object.retain(|member, _| kept.contains(member.as_str()));
    }
    let (directives, members): (Vec<_>, Vec<_>) = patch
        .into_iter()
        .partition(|(member, _)| member.starts_with('$'));
    let before: Vec<(String, Vec<Value>)> = directives
        .iter()
        .filter_map(|(directive, _)| directive.strip_prefix(ELEMENT_ORDER))
        .map(|member| (member.to_owned(), list_at(object, member)))
        .collect();
    for (member, value) in members {
        merge_member(object, &member, value, place)?;
    }
    for (directive, values) in directives {
        apply_list_directive(object, &directive, &values, place, &before)?;
    }
    Ok(())
}

fn list_at(object: &Map<String, Value>, member: &str) -> Vec<Value> {
    let list = object.get(member).and_then(Value::as_array);
    list.cloned().unwrap_or_default()
}

fn merge_member(
    object: &mut Map<String, Value>,
    member: &str,
    patch: Value,
    place: Place,
) -> Result<(), Failure> {
    match patch {
        Value::Null => {
            object.remove(member);
        }
        Value::Object(patch) => {
            let directive = patch.get(DIRECTIVE);
            match object.remove(member) {
                // Where there was nothing, the patch is taken as it is, or not at all.
                None if directive.is_some() => {}
                None => {
                    object.insert(member.into(), Value::Object(patch));
                }
                Some(_) if directive.is_some_and(|directive| directive == "delete") => {}
                Some(old) => {
                    let kept = old.as_object().filter(|_| !place.is_replaced(member));
                    let mut merged = kept.cloned().unwrap_or_default();
                    merge_map(&mut merged, patch, place.below(member))?;
                    object.insert(member.into(), Value::Object(merged));
                }
            }
        }
        Value::Array(patch) => {
            let had = object.remove(member);
            let was_there = had.is_some();
            let old = had
                .and_then(|old| old.as_array().cloned())
                .unwrap_or_default();
            let merged = merge_list(old, patch, place.rule(member), place.below(member))?;
            // Taking elements out of a list that is not there makes no list.
            if was_there || !merged.is_empty() {
                object.insert(member.into(), Value::Array(merged));
            }
        }
        plain @ (Value::Bool(_) | Value::Number(_) | Value::String(_)) => {
            object.insert(member.into(), plain);
        }
    }
    Ok(())
}

fn merge_list(
    mut old: Vec<Value>,
    patch: Vec<Value>,
    rule: ListRule,
    place: Place,
) -> Result<Vec<Value>, Failure> {
    let key = match rule {
        ListRule::Atomic => return Ok(patch),
        ListRule::Set => {
            let server = old.clone();
            let mut known: BTreeSet<String> = old.iter().map(Value::to_string).collect();
            for value in &patch {
                if known.insert(value.to_string()) {
                    old.push(value.clone());
                }
            }
            return Ok(ordered(old, &patch, &server, rule));
        }
        ListRule::ByKey(key) => key,
    };
    if patch
        .iter()
        .any(|element| element[DIRECTIVE] == "replace" && element.get(key).is_none())
    {
        return Ok(patch
            .into_iter()
            .filter(|element| element.get(DIRECTIVE).is_none())
            .collect());
    }
    let server = old.clone();
    let mut list = Keyed::new(old, key);
    for element in &patch {
        list.merge(element, place)?;
    }
    let merged = list.elements.into_iter().flatten().collect();
    Ok(ordered(merged, &patch, &server, rule))
}

/// A list with its elements by their key, so that each is found at once.
struct Keyed {
    key: &'static str,
    /// None: deleted.
    elements: Vec<Option<Value>>,
    by_id: BTreeMap<String, Vec<usize>>,
}

impl Keyed {
    fn new(list: Vec<Value>, key: &'static str) -> Self {
        let mut keyed = Self {
            key,
            elements: Vec::new(),
            by_id: BTreeMap::new(),
        };
        for element in list {
            keyed.push(element);
        }
        keyed
    }

    fn push(&mut self, element: Value) {
        let id = id(&element, ListRule::ByKey(self.key));
        self.by_id.entry(id).or_default().push(self.elements.len());
        self.elements.push(Some(element));
    }

    fn merge(&mut self, element: &Value, place: Place) -> Result<(), Failure> {
        let key = self.key;
        let (Value::Object(patch), Some(_)) = (element, element.get(key)) else {
            let text = format!("map: {element} does not contain declared merge key: {key}");
            return Err(Failure::bad_request(text));
        };
        let places = self
            .by_id
            .entry(id(element, ListRule::ByKey(key)))
            .or_default();
        if element[DIRECTIVE] == "delete" {
            for index in places.drain(..) {
                self.elements[index] = None;
            }
            return Ok(());
        }
        let found = places
            .first()
            .and_then(|index| self.elements[*index].as_mut());
        if let Some(own) = found.and_then(Value::as_object_mut) {
            return merge_map(own, patch.clone(), place);
        }
        let mut new = Map::new();
        merge_map(&mut new, patch.clone(), place)?;
        self.push(Value::Object(new));
        Ok(())
    }
}

fn apply_list_directive(
    object: &mut Map<String, Value>,
    directive: &str,
    values: &Value,
    place: Place,
    before: &[(String, Vec<Value>)],
) -> Result<(), Failure> {
    let values = values.as_array().map_or(&[][..], Vec::as_slice);
    if let Some(member) = directive.strip_prefix(DELETE_FROM) {
        if let Some(Value::Array(list)) = object.get_mut(member) {
            let values: BTreeSet<String> = values.iter().map(Value::to_string).collect();
            list.retain(|own| !values.contains(&own.to_string()));
        }
        return Ok(());
    }
    let Some(member) = directive.strip_prefix(ELEMENT_ORDER) else {
        return Err(Failure::bad_request(format!(
            "unknown patch directive: {directive}"
        )));
    };
    let rule = place.rule(member);
    if let Some(Value::Array(list)) = object.get_mut(member) {
        let server = before.iter().find(|(own, _)| own == member);
        let server = server.map_or(&[][..], |(_, list)| list.as_slice());
        *list = ordered(std::mem::take(list), values, server, rule);
    }
    Ok(())
}

/// Upstream's order: the named elements as named, the others woven in where the server had them.
fn ordered(list: Vec<Value>, named: &[Value], server: &[Value], rule: ListRule) -> Vec<Value> {
    let (named, server) = (ranks(named, rule), ranks(server, rule));
    let ranked = list.into_iter().map(|own| {
        let id = id(&own, rule);
        let rank = |order: &BTreeMap<String, usize>| order.get(&id).copied();
        (rank(&named), rank(&server), own)
    });
    let (mut sent, mut kept): (Vec<_>, Vec<_>) = ranked.partition(|(named, ..)| named.is_some());
    sent.sort_by_key(|(named, ..)| *named);
    kept.sort_by_key(|(_, server, _)| *server);
    let (mut sent, mut kept) = (sent.into_iter().peekable(), kept.into_iter().peekable());
    let mut woven = Vec::new();
    loop {
        let is_kept_first = match (kept.peek(), sent.peek()) {
            (Some(_), None) => true,
            (Some((_, Some(kept), _)), Some((_, Some(sent), _))) => kept < sent,
            (None, _) | (Some(_), Some(_)) => false,
        };
        let next = if is_kept_first {
            kept.next()
        } else {
            sent.next()
        };
        match next {
            Some((.., next)) => woven.push(next),
            None => return woven,
        }
    }
}

/// Where each element of a list is; of equal ones the first.
fn ranks(order: &[Value], rule: ListRule) -> BTreeMap<String, usize> {
    let mut ranks = BTreeMap::new();
    for (index, element) in order.iter().enumerate() {
        ranks.entry(id(element, rule)).or_insert(index);
    }
    ranks
}

/// What tells an element apart from others; empty where it has no key.
fn id(element: &Value, rule: ListRule) -> String {
    match rule {
        ListRule::ByKey(key) => element.get(key).map_or(String::new(), Value::to_string),
        ListRule::Set | ListRule::Atomic => element.to_string(),
    }
}

enum Directive {
    Merge,
    Delete,
    Replace,
}

fn take_directive(patch: &mut Map<String, Value>) -> Result<Directive, Failure> {
    match patch.remove(DIRECTIVE).as_ref().map(Value::as_str) {
        None | Some(Some("merge")) => Ok(Directive::Merge),
        Some(Some("delete")) => Ok(Directive::Delete),
        Some(Some("replace")) => Ok(Directive::Replace),
        Some(other) => Err(Failure::bad_request(format!(
            "unknown patch type: {} in map",
            other.unwrap_or("")
        ))),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn merged(old: Vec<Value>, patch: Vec<Value>, rule: ListRule) -> Vec<Value> {
        merge_list(old, patch, rule, Place::NOWHERE).unwrap_or_default()
    }

    #[test]
    fn elements_are_found_by_their_key_also_after_deletions() {
        let by_name = ListRule::ByKey("name");
        let old = vec![
            json!({ "name": "a", "x": 1 }),
            json!({ "name": "b" }),
            json!({ "name": "c" }),
        ];
        let patch = vec![
            json!({ "name": "a", "$patch": "delete" }),
            json!({ "name": "c", "y": 2 }),
            json!({ "name": "d" }),
            json!({ "name": "a", "z": 3 }),
            json!({ "name": "d", "z": 4 }),
        ];
        let expect = [
            json!({ "name": "a", "z": 3 }),
            json!({ "name": "b" }),
            json!({ "name": "c", "y": 2 }),
            json!({ "name": "d", "z": 4 }),
        ];
        assert_eq!(merged(old, patch, by_name), expect);
    }

    /// Each element was looked for among all others, and all ranks once more for each comparison of a
    /// sort: hours for a body of 3 MiB, in the one thread that decides requests.
    #[test]
    fn long_lists_are_merged_in_one_pass() {
        let texts =
            |from: u32| -> Vec<Value> { (from..from + 200_000).map(|it| json!(it)).collect() };
        let found = merged(texts(0), texts(100_000), ListRule::Set);
        assert_eq!(found.len(), 300_000);
        let keyed = |from: u32| -> Vec<Value> {
            (from..from + 100_000)
                .map(|it| json!({ "k": it }))
                .collect()
        };
        let found = merged(keyed(0), keyed(50_000), ListRule::ByKey("k"));
        assert_eq!(found.len(), 150_000);
        let values = json!(texts(0));
        let mut object = Map::from_iter([("l".to_owned(), values.clone())]);
        let directive = format!("{DELETE_FROM}l");
        let done = apply_list_directive(&mut object, &directive, &values, Place::NOWHERE, &[]);
        assert!(done.is_ok() && object["l"] == json!([]));
    }
}
