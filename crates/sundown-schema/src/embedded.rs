//! Where a schema says that a whole resource stands (`x-kubernetes-embedded-resource`).

use serde_json::{Map, Value};

use crate::node::Node;

/// Visits every embedded resource at or below a value.
pub(crate) fn for_each(
    schema: &Node,
    value: &mut Value,
    path: &str,
    visit: &mut dyn FnMut(&str, &mut Map<String, Value>),
) {
    match value {
        Value::Object(map) => {
            if schema.is_embedded {
                visit(path, map);
            }
            for (name, value) in map.iter_mut() {
                if let Some(member) = schema.member(name).filter(|it| it.has_embedded) {
                    let is_top = path.is_empty();
                    let below = if is_top {
                        name.clone()
                    } else {
                        format!("{path}.{name}")
                    };
                    for_each(member, value, &below, visit);
                }
            }
        }
        Value::Array(list) => {
            let items = schema.items.as_ref().filter(|it| it.has_embedded);
            for (index, item) in list.iter_mut().enumerate() {
                if let Some(items) = items {
                    for_each(items, item, &format!("{path}[{index}]"), visit);
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
