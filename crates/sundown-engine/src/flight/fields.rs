//! Hides the texts of a Kubernetes object, or of a part of one, but for those on the list in `shown`.
//! Names of fields, numbers and truth values stay, so that a replay reads the same form.

use serde_json::{Map, Value};

use super::shown::{
    BEFORE_RAY, BELOW, FIELDS, KEYS, LABELS, NUMBERS, RAY_START_PARAMS, RECREATE_HASH, TEXTS,
    VARIABLES,
};
use super::veil::Veil;

/// Where a value stands: the name of its field and that of the field around it. Lists have no names.
#[derive(Clone, Copy)]
struct Place<'a> {
    around: &'a str,
    name: &'a str,
    /// It is an item of a list.
    is_item: bool,
}

/// Hides what is not on the list.
pub(super) fn hide(veil: &Veil, json: &mut Value) {
    let top = Place {
        around: "",
        name: "",
        is_item: false,
    };
    walk(veil, json, top);
}

fn walk(veil: &Veil, json: &mut Value, at: Place<'_>) {
    match json {
        Value::String(text) if at.name == "runtimeEnvYAML" => *text = veil.hide_yaml(text),
        Value::String(text) => {
            if !is_shown(veil, at) {
                *text = veil.hide(text);
            }
        }
        Value::Array(items) => {
            let at = Place {
                is_item: true,
                ..at
            };
            for item in items {
                walk(veil, item, at);
            }
        }
        Value::Object(map) => object(veil, map, at),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn object(veil: &Veil, map: &mut Map<String, Value>, at: Place<'_>) {
    if !at.is_item && is_map(veil, map, at) {
        return;
    }
    let says = says_what_it_is(map);
    for (name, value) in map.iter_mut() {
        let is_value = matches!(name.as_str(), "value" | "values" | "message");
        if is_value && says {
            continue;
        }
        let below = Place {
            around: at.name,
            name,
            is_item: false,
        };
        walk(veil, value, below);
    }
}

/// Hides the values of a map whose keys are no names of fields; false if it is none.
fn is_map(veil: &Veil, map: &mut Map<String, Value>, at: Place<'_>) -> bool {
    let hide = |text: &str| veil.hide(text);
    match at.name {
        // Of a Job, it is one that has fields.
        name if LABELS.contains(&name) && map.values().all(Value::is_string) => {
            keyed(map, is_shown_key, |text| veil.hide_label(text));
        }
        "rayStartParams" => keyed(map, |key| RAY_START_PARAMS.contains(&key), hide),
        name if NUMBERS.contains(&name) && map.values().all(|it| !it.is_object()) => {}
        name if TEXTS.contains(&name) => keyed(map, |_| false, hide),
        // What a RayJob tells Ray about itself.
        "metadata" if at.around == "spec" => keyed(map, |_| false, hide),
        _ => return false,
    }
    true
}

/// Whether an entry names a label or a variable whose value is shown, or a state of a `RayJob` in which
/// its message is ours.
fn says_what_it_is(map: &Map<String, Value>) -> bool {
    let text = |name: &str| map.get(name).and_then(Value::as_str);
    let is_label = map.contains_key("operator") && text("key").is_some_and(is_shown_key);
    is_label
        || text("name").is_some_and(|name| VARIABLES.contains(&name))
        || text("jobDeploymentStatus").is_some_and(|state| BEFORE_RAY.contains(&state))
}

/// Hides the values of a map whose keys are the user's.
fn keyed(
    map: &mut Map<String, Value>,
    is_shown: impl Fn(&str) -> bool,
    hide: impl Fn(&str) -> String,
) {
    for (key, value) in map.iter_mut() {
        match value {
            Value::String(text) if !is_shown(key) => *text = hide(text),
            // Not what the schema says: nothing of it is known.
            Value::Array(_) | Value::Object(_) => *value = Value::Null,
            Value::String(_) | Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
}

fn is_shown(veil: &Veil, at: Place<'_>) -> bool {
    FIELDS.contains(&at.name)
        || BELOW.contains(&(at.around, at.name))
        || veil.also.contains(&at.name)
}

fn is_shown_key(key: &str) -> bool {
    key != RECREATE_HASH && KEYS.iter().any(|it| key.starts_with(it))
}
