//! Strategic merge patches of built-in kinds, after upstream's `util/strategicpatch`.
//!
//! How a list is merged depends on its Go type: patch strategies and merge keys are facts. The
//! patched object is read as its type afterwards, by `decode`.

mod budget;
mod order;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use crate::facts::{Fact, Field, Shape, facts};
use crate::failure::Failure;

use budget::Budget;
use order::{Ranks, id, ordered, ranks};

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
    let mut budget = Budget::default();
    match (value, patch) {
        (Value::Object(object), Value::Object(patch)) => {
            merge_map(object, patch, place, &mut budget)
        }
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
    budget: &mut Budget,
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
    let before: BTreeMap<String, Ranks> = directives
        .iter()
        .filter_map(|(directive, _)| directive.strip_prefix(ELEMENT_ORDER))
        .map(|member| (member.to_owned(), ranks_at(object, member, place)))
        .collect();
    for (member, value) in members {
        merge_member(object, &member, value, place, budget)?;
    }
    for (directive, values) in directives {
        apply_list_directive(object, &directive, &values, place, &before)?;
    }
    Ok(())
}

fn ranks_at(object: &Map<String, Value>, member: &str, place: Place) -> Ranks {
    let list = object.get(member).and_then(Value::as_array);
    list.map_or_else(Ranks::new, |list| ranks(list, place.rule(member)))
}

fn merge_member(
    object: &mut Map<String, Value>,
    member: &str,
    patch: Value,
    place: Place,
    budget: &mut Budget,
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
                    let mut merged = Map::new();
                    if let Value::Object(old) = old
                        && !place.is_replaced(member)
                    {
                        merged = old;
                    }
                    merge_map(&mut merged, patch, place.below(member), budget)?;
                    object.insert(member.into(), Value::Object(merged));
                }
            }
        }
        Value::Array(patch) => {
            let had = object.remove(member);
            let was_there = had.is_some();
            let old = match had {
                Some(Value::Array(old)) => old,
                _ => Vec::new(),
            };
            let (rule, below) = (place.rule(member), place.below(member));
            let merged = merge_list(old, patch, rule, below, budget)?;
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
    budget: &mut Budget,
) -> Result<Vec<Value>, Failure> {
    let key = match rule {
        ListRule::Atomic => return Ok(patch),
        ListRule::Set => {
            let (named, server) = (ranks(&patch, rule), ranks(&old, rule));
            let mut known: BTreeSet<String> = old.iter().map(Value::to_string).collect();
            for value in patch {
                if known.insert(value.to_string()) {
                    old.push(value);
                }
            }
            return Ok(ordered(old, &named, &server, rule));
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
    let (named, server) = (ranks(&patch, rule), ranks(&old, rule));
    let mut list = Keyed::new(old, key);
    for element in patch {
        list.merge(element, place, budget)?;
    }
    let merged = list.elements.into_iter().flatten().collect();
    Ok(ordered(merged, &named, &server, rule))
}

/// A list with its elements by their key, so that each is found at once.
struct Keyed {
    key: &'static str,
    /// None: deleted.
    elements: Vec<Option<Value>>,
    by_id: BTreeMap<String, Vec<usize>>,
    /// What the patch named so far.
    named: BTreeSet<String>,
}

impl Keyed {
    fn new(list: Vec<Value>, key: &'static str) -> Self {
        let mut keyed = Self {
            key,
            elements: Vec::new(),
            by_id: BTreeMap::new(),
            named: BTreeSet::new(),
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

    /// Elements of one patch with one key are merged one after the other, as upstream does.
    fn merge(&mut self, element: Value, place: Place, budget: &mut Budget) -> Result<(), Failure> {
        let (key, rule) = (self.key, ListRule::ByKey(self.key));
        let id = id(&element, rule);
        if element.get(key).is_none() {
            let text = format!("map: {element} does not contain declared merge key: {key}");
            return Err(Failure::bad_request(text));
        }
        let Value::Object(patch) = element else {
            unreachable!("only objects have members");
        };
        let places = self.by_id.entry(id.clone()).or_default();
        if patch.get(DIRECTIVE).is_some_and(|it| it == "delete") {
            for index in places.drain(..) {
                self.elements[index] = None;
            }
            return Ok(());
        }
        let is_repeated = !self.named.insert(id);
        let found = places
            .first()
            .and_then(|index| self.elements[*index].as_mut());
        if let Some(own) = found.and_then(Value::as_object_mut) {
            if is_repeated {
                budget.spend(own)?;
            }
            return merge_map(own, patch, place, budget);
        }
        let mut new = Map::new();
        merge_map(&mut new, patch, place, budget)?;
        self.push(Value::Object(new));
        Ok(())
    }
}

fn apply_list_directive(
    object: &mut Map<String, Value>,
    directive: &str,
    values: &Value,
    place: Place,
    before: &BTreeMap<String, Ranks>,
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
        let none = Ranks::new();
        let server = before.get(member).unwrap_or(&none);
        *list = ordered(std::mem::take(list), &ranks(values, rule), server, rule);
    }
    Ok(())
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
        merge_list(old, patch, rule, Place::NOWHERE, &mut Budget::default()).unwrap_or_default()
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
        let done = apply_list_directive(
            &mut object,
            &directive,
            &values,
            Place::NOWHERE,
            &BTreeMap::new(),
        );
        assert!(done.is_ok() && object["l"] == json!([]));
    }

    fn pod_patched(old: &Value, patch: &Value) -> Result<Value, Failure> {
        let fact = facts().kind("", "v1", "Pod").expect("a built-in kind");
        let mut value = old.clone();
        apply(fact, &mut value, patch.to_string().as_bytes()).map(|()| value)
    }

    /// As upstream: `mergeSliceWithoutSpecialElements` merges each into what the ones before it made.
    #[test]
    fn patches_of_one_element_are_merged_one_after_the_other() {
        let containers = |list: Value| json!({ "spec": { "containers": list } });
        let old = containers(json!([{ "name": "a", "image": "1", "env": [{ "name": "x" }] }]));
        let patch = containers(json!([
            { "name": "a", "image": "2", "env": [{ "name": "y", "value": "1" }] },
            { "name": "a", "image": null, "env": [{ "name": "y", "value": "2" }, { "name": "z" }] },
            { "name": "b", "image": "3" },
            { "name": "b", "env": [{ "name": "x", "$patch": "delete" }] },
        ]));
        let found = pod_patched(&old, &patch).ok();
        let expect = containers(json!([
            { "name": "a", "env": [{ "name": "y", "value": "2" }, { "name": "z" }, { "name": "x" }] },
            { "name": "b", "image": "3" },
        ]));
        assert_eq!(found, Some(expect));
    }

    /// Each of them copied and indexed the whole list anew: hours for 3 MiB.
    #[test]
    fn a_patch_that_names_one_element_over_and_over_is_refused_by_name() {
        let env: Vec<Value> = (0..60_000).map(|_| json!({ "name": "v1" })).collect();
        let mut containers = vec![json!({ "name": "a", "env": env })];
        containers.extend((0..50_000).map(|_| json!({ "name": "a", "env": [{ "name": "x" }] })));
        let patch = json!({ "spec": { "containers": containers } });
        let refused = pod_patched(
            &json!({ "spec": { "containers": [{ "name": "a", "env": env }] } }),
            &patch,
        );
        let status = refused.expect_err("it costs too much").status();
        assert_eq!(status["reason"], "RequestEntityTooLarge");
        assert_eq!(
            status["message"],
            "Request entity too large: the patch names the same elements of lists too often: limit \
             is 16777216 bytes of repeated elements"
        );
        let many: Vec<Value> = (0..5_000)
            .map(|it| json!({ "name": "a", "image": it.to_string() }))
            .collect();
        let found = pod_patched(&json!({}), &json!({ "spec": { "containers": many } })).ok();
        let expect = json!({ "spec": { "containers": many } });
        assert_eq!(
            found,
            Some(expect),
            "where there was nothing, the patch is taken as it is"
        );
        let one = json!({ "spec": { "containers": [{ "name": "a" }] } });
        let found = pod_patched(&one, &json!({ "spec": { "containers": many } })).ok();
        let expect = json!({ "spec": { "containers": [{ "name": "a", "image": "4999" }] } });
        assert_eq!(found, Some(expect), "small ones may be many");
    }

    /// Each directive looked for its list among all: an hour for these.
    #[test]
    fn many_orders_of_lists_are_found_at_once() {
        let mut patch = Map::new();
        for number in 0..70_000 {
            patch.insert(format!("l{number}"), json!([1]));
            patch.insert(format!("{ELEMENT_ORDER}l{number}"), json!([]));
        }
        let mut object = Map::new();
        let done = merge_map(&mut object, patch, Place::NOWHERE, &mut Budget::default());
        assert!(done.is_ok() && object.len() == 70_000);
    }
}
