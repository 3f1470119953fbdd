//! Strategic merge patches of built-in kinds, after upstream's `util/strategicpatch`.
//!
//! How a list is merged depends on its Go type: patch strategies and merge keys are facts. The
//! patched object is read as its type afterwards, by `decode`.

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
        object.retain(|member, _| kept.iter().any(|kept| kept == member));
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
            for value in &patch {
                if !old.contains(value) {
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
    for element in &patch {
        merge_element(&mut old, element, key, place)?;
    }
    Ok(ordered(old, &patch, &server, rule))
}

fn merge_element(
    list: &mut Vec<Value>,
    element: &Value,
    key: &str,
    place: Place,
) -> Result<(), Failure> {
    let id = element.get(key).cloned();
    let (Value::Object(patch), Some(id)) = (element, id) else {
        let text = format!("map: {element} does not contain declared merge key: {key}");
        return Err(Failure::bad_request(text));
    };
    if element[DIRECTIVE] == "delete" {
        list.retain(|own| own.get(key) != Some(&id));
        return Ok(());
    }
    let found = list.iter_mut().find(|own| own.get(key) == Some(&id));
    if let Some(own) = found.and_then(Value::as_object_mut) {
        return merge_map(own, patch.clone(), place);
    }
    let mut new = Map::new();
    merge_map(&mut new, patch.clone(), place)?;
    list.push(Value::Object(new));
    Ok(())
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
            list.retain(|own| !values.contains(own));
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
    let rank = |own: &Value, order: &[Value]| order.iter().position(|o| is_same(own, o, rule));
    let (mut sent, mut kept): (Vec<_>, Vec<_>) =
        list.into_iter().partition(|own| rank(own, named).is_some());
    sent.sort_by_key(|own| rank(own, named));
    kept.sort_by_key(|own| rank(own, server));
    let (mut sent, mut kept) = (sent.into_iter().peekable(), kept.into_iter().peekable());
    let mut woven = Vec::new();
    loop {
        let is_kept_first = match (kept.peek(), sent.peek()) {
            (None, _) => false,
            (Some(_), None) => true,
            (Some(kept), Some(sent)) => match (rank(kept, server), rank(sent, server)) {
                (Some(kept), Some(sent)) => kept < sent,
                _ => false,
            },
        };
        let next = if is_kept_first {
            kept.next()
        } else {
            sent.next()
        };
        match next {
            Some(next) => woven.push(next),
            None => return woven,
        }
    }
}

fn is_same(own: &Value, named: &Value, rule: ListRule) -> bool {
    match rule {
        ListRule::ByKey(key) => own.get(key) == named.get(key),
        ListRule::Set | ListRule::Atomic => own == named,
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
