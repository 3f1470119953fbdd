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
use order::{Ranks, id, ordered, ranks, ranks_of};

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
    match patch.remove(DIRECTIVE).as_ref().map(Value::as_str) {
        None => {}
        Some(Some("delete")) => {
            object.clear();
            return Ok(());
        }
        // What it says is taken as it is, without another look.
        Some(Some("replace")) => {
            *object = patch;
            return Ok(());
        }
        Some(other) => return Err(unknown_directive(other)),
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
    let merged = match (object.remove(member), patch) {
        (_, Value::Null) => None,
        (Some(Value::Object(_)), Value::Object(patch)) if place.is_replaced(member) => {
            Some(Value::Object(patch))
        }
        (Some(Value::Object(mut own)), Value::Object(patch)) => {
            merge_map(&mut own, patch, place.below(member), budget)?;
            Some(Value::Object(own))
        }
        (Some(Value::Array(own)), Value::Array(patch)) => {
            let (rule, below) = (place.rule(member), place.below(member));
            Some(merge_list(own, patch, rule, below, budget)?.into())
        }
        (_, mut patch) => {
            remove_nulls(&mut patch);
            without_directives(patch)
        }
    };
    if let Some(merged) = merged {
        object.insert(member.to_owned(), merged);
    }
    Ok(())
}

/// Where there was nothing, or something else, there is nothing to remove: upstream's
/// `discardNullValuesFromPatch`. Without it a null in a map of texts would become an empty text.
fn remove_nulls(patch: &mut Value) {
    match patch {
        Value::Object(map) => {
            map.retain(|_, value| !value.is_null());
            map.values_mut().for_each(remove_nulls);
        }
        Value::Array(list) => list.iter_mut().for_each(remove_nulls),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// What is left of a patch where there was nothing to direct: upstream's `removeDirectives`.
fn without_directives(patch: Value) -> Option<Value> {
    match patch {
        Value::Object(map) if map.contains_key(DIRECTIVE) => None,
        Value::Object(map) => {
            let kept = map.into_iter();
            let kept = kept.filter_map(|(key, value)| Some((key, without_directives(value)?)));
            Some(Value::Object(kept.collect()))
        }
        Value::Array(list) => {
            let kept = list.into_iter().filter_map(without_directives);
            Some(Value::Array(kept.collect()))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Some(patch),
    }
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
    let (directed, plain): (Vec<_>, Vec<_>) = patch
        .into_iter()
        .partition(|element| element.get(DIRECTIVE).is_some());
    let mut list = Keyed::new(old, key);
    let mut is_replaced = false;
    // Deletions come first, wherever they stand.
    for element in directed {
        match element[DIRECTIVE].as_str() {
            Some("delete") => list.delete(&element)?,
            Some("replace") => is_replaced = true,
            Some("merge") => {
                let why = "merging lists cannot yet be specified in the patch";
                return Err(Failure::unnamed(why));
            }
            other => return Err(unknown_directive(other)),
        }
    }
    if is_replaced {
        return Ok(plain);
    }
    let named = ranks(&plain, rule);
    let server = ranks_of(list.left(), rule);
    for element in plain {
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

    /// What is not deleted.
    fn left(&self) -> impl Iterator<Item = &Value> {
        self.elements.iter().flatten()
    }

    fn key_of(&self, element: &Value) -> Result<String, Failure> {
        let key = self.key;
        if element.get(key).is_none() {
            let text = format!("map: {element} does not contain declared merge key: {key}");
            return Err(Failure::bad_request(text));
        }
        Ok(id(element, ListRule::ByKey(key)))
    }

    fn delete(&mut self, element: &Value) -> Result<(), Failure> {
        let id = self.key_of(element)?;
        for index in self.by_id.remove(&id).unwrap_or_default() {
            self.elements[index] = None;
        }
        Ok(())
    }

    /// Elements of one patch with one key are merged one after the other, as upstream does; a new
    /// one is taken as it is, nulls and all.
    fn merge(&mut self, element: Value, place: Place, budget: &mut Budget) -> Result<(), Failure> {
        let id = self.key_of(&element)?;
        let first = self.by_id.get(&id).and_then(|places| places.first());
        let found = first.and_then(|index| self.elements[*index].as_mut());
        let is_repeated = !self.named.insert(id);
        let Some(own) = found.and_then(Value::as_object_mut) else {
            self.push(element);
            return Ok(());
        };
        let Value::Object(patch) = element else {
            unreachable!("only objects have members");
        };
        if is_repeated {
            budget.spend(own)?;
        }
        merge_map(own, patch, place, budget)
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

fn unknown_directive(said: Option<&str>) -> Failure {
    let said = said.unwrap_or("");
    Failure::unnamed(format!("unknown patch type: {said} in map"))
}

#[cfg(test)]
mod tests;
