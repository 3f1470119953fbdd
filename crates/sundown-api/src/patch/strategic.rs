//! Strategic merge patches of built-in kinds, after upstream's `util/strategicpatch`.
//!
//! How a list is merged depends on its Go type. The lists that this server's kinds are commonly
//! patched in are in one table; any other list is refused by name, since a guess could lose data.

use serde_json::{Map, Value};

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

/// Applies a patch to an object.
pub(super) fn apply(value: &mut Value, body: &[u8]) -> Result<(), Failure> {
    let patch: Value = serde_json::from_slice(body)
        .map_err(|error| Failure::bad_request(format!("error decoding patch: {error}")))?;
    match (value.as_object_mut(), patch) {
        (Some(object), Value::Object(patch)) => merge_map(object, patch, ""),
        _ => Err(Failure::bad_request(
            "a strategic merge patch must be an object",
        )),
    }
}

fn rule_of(at: &str) -> Option<ListRule> {
    let member = at.rsplit('.').next().unwrap_or(at);
    match member {
        _ if at == "metadata.finalizers" => Some(ListRule::Set),
        "ownerReferences" => Some(ListRule::ByKey("uid")),
        "containers"
        | "initContainers"
        | "ephemeralContainers"
        | "env"
        | "volumes"
        | "imagePullSecrets"
        | "secrets" => Some(ListRule::ByKey("name")),
        "volumeMounts" => Some(ListRule::ByKey("mountPath")),
        "volumeDevices" => Some(ListRule::ByKey("devicePath")),
        "ports" if at.contains("ontainers") => Some(ListRule::ByKey("containerPort")),
        "hostAliases" => Some(ListRule::ByKey("ip")),
        "topologySpreadConstraints" => Some(ListRule::ByKey("topologyKey")),
        "conditions" if at.starts_with("status.") => Some(ListRule::ByKey("type")),
        "args" | "command" | "envFrom" | "finalizers" | "items" | "matchExpressions"
        | "tolerations" | "values" => Some(ListRule::Atomic),
        _ => None,
    }
}

fn merge_map(
    object: &mut Map<String, Value>,
    mut patch: Map<String, Value>,
    at: &str,
) -> Result<(), Failure> {
    match take_directive(&mut patch, at)? {
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
    for (member, value) in members {
        merge_member(object, &member, value, &below(at, &member))?;
    }
    for (directive, values) in directives {
        apply_list_directive(object, &directive, &values, at)?;
    }
    Ok(())
}

fn merge_member(
    object: &mut Map<String, Value>,
    member: &str,
    patch: Value,
    at: &str,
) -> Result<(), Failure> {
    match patch {
        Value::Null => {
            object.remove(member);
        }
        Value::Object(patch) => {
            let mut merged = match object.remove(member) {
                Some(Value::Object(old)) => old,
                _ => Map::new(),
            };
            let is_deleted = patch
                .get(DIRECTIVE)
                .is_some_and(|directive| directive == "delete");
            merge_map(&mut merged, patch, at)?;
            if !is_deleted {
                object.insert(member.into(), Value::Object(merged));
            }
        }
        Value::Array(patch) => {
            let had = object.remove(member);
            let was_there = had.is_some();
            let old = had
                .and_then(|old| old.as_array().cloned())
                .unwrap_or_default();
            let merged = merge_list(old, patch, at)?;
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

fn merge_list(mut old: Vec<Value>, patch: Vec<Value>, at: &str) -> Result<Vec<Value>, Failure> {
    let rule = rule_of(at).ok_or_else(|| unsupported(at))?;
    let key = match rule {
        ListRule::Atomic => return Ok(patch),
        ListRule::Set => {
            for value in patch {
                if !old.contains(&value) {
                    old.push(value);
                }
            }
            return Ok(old);
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
    for element in &patch {
        merge_element(&mut old, element, key, at)?;
    }
    Ok(old)
}

fn merge_element(
    list: &mut Vec<Value>,
    element: &Value,
    key: &str,
    at: &str,
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
        return merge_map(own, patch.clone(), at);
    }
    let mut new = Map::new();
    merge_map(&mut new, patch.clone(), at)?;
    list.push(Value::Object(new));
    Ok(())
}

fn apply_list_directive(
    object: &mut Map<String, Value>,
    directive: &str,
    values: &Value,
    at: &str,
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
    let at = below(at, member);
    let rule = rule_of(&at).ok_or_else(|| unsupported(&at))?;
    if let Some(Value::Array(list)) = object.get_mut(member) {
        let rank = |own: &Value| values.iter().position(|value| is_same(own, value, rule));
        // Upstream weaves in elements that only the server knows; here they come last.
        list.sort_by_key(|own| rank(own).unwrap_or(usize::MAX));
    }
    Ok(())
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

fn take_directive(patch: &mut Map<String, Value>, at: &str) -> Result<Directive, Failure> {
    match patch.remove(DIRECTIVE).as_ref().map(Value::as_str) {
        None | Some(Some("merge")) => Ok(Directive::Merge),
        Some(Some("delete")) => Ok(Directive::Delete),
        Some(Some("replace")) => Ok(Directive::Replace),
        Some(_) => Err(Failure::bad_request(format!(
            "unknown patch type at {at:?}"
        ))),
    }
}

fn below(at: &str, member: &str) -> String {
    if at.is_empty() {
        member.to_owned()
    } else {
        format!("{at}.{member}")
    }
}

fn unsupported(at: &str) -> Failure {
    Failure::bad_request(format!(
        "strategic merge patches of the list {at} are not supported: send \
         application/merge-patch+json"
    ))
}
