//! The merge patch that makes one document of another, and nothing else.

use serde_json::{Map, Value};

/// The patch of RFC 7386 from one document to another; None if they are the same. Lists are replaced
/// as a whole, and what is missing in the second is removed by null.
pub(crate) fn between(old: &Value, new: &Value) -> Option<Value> {
    if old == new {
        return None;
    }
    let (Value::Object(before), Value::Object(after)) = (old, new) else {
        return Some(new.clone());
    };
    let mut patch = Map::new();
    for name in before.keys().filter(|name| !after.contains_key(*name)) {
        patch.insert(name.clone(), Value::Null);
    }
    for (name, value) in after {
        let change = match before.get(name) {
            Some(old) => between(old, value),
            None => Some(value.clone()),
        };
        patch.extend(change.map(|change| (name.clone(), change)));
    }
    Some(Value::Object(patch))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_what_differs_is_patched() {
        let old = json!({"a": 1, "b": {"c": 2, "d": 3}, "e": [1, 2]});
        assert_eq!(between(&old, &old), None);
        let new = json!({"a": 1, "b": {"c": 5}, "e": [1], "f": {"g": 1}});
        let patch = json!({"b": {"c": 5, "d": null}, "e": [1], "f": {"g": 1}});
        assert_eq!(between(&old, &new), Some(patch));
    }
}
