//! What upstream publishes in `OpenAPI` v2 for the kinds whose facts are wanted: ours is held against it
//! by a test of `sundown-api`, and made of other sources.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result};
use serde_json::{Map, Value, json};

use super::openapi::schema_name;

/// What no client goes by: texts for people, and unions, which nobody reads.
const LEFT_OUT: [&str; 2] = ["description", "x-kubernetes-unions"];

/// Makes the file: the definitions of these kinds, of their lists and of all that they are made of, one
/// per line.
pub(super) fn make(document: &Path, roots: &[(&str, &[&str])]) -> Result<String> {
    let text = std::fs::read(document).with_context(|| document.display().to_string())?;
    let document: Value = serde_json::from_slice(&text).context("read the OpenAPI v2 document")?;
    let definitions = document["definitions"].as_object();
    let definitions = definitions.context("the OpenAPI v2 document has no definitions")?;
    let names = roots
        .iter()
        .flat_map(|(package, kinds)| kinds.iter().map(|kind| schema_name(package, kind)));
    let found = closure(definitions, names);
    let line = |(name, schema): (&String, &Value)| format!("{}:{schema}", json!(name));
    let lines: Vec<String> = found.iter().map(line).collect();
    Ok(format!("{{\n{}\n}}\n", lines.join(",\n")))
}

fn closure(
    definitions: &Map<String, Value>,
    roots: impl Iterator<Item = String>,
) -> BTreeMap<String, Value> {
    let mut waiting: Vec<String> = roots
        .flat_map(|name| [format!("{name}List"), name])
        .collect();
    let mut found = BTreeMap::new();
    while let Some(name) = waiting.pop() {
        let Some(own) = definitions
            .get(&name)
            .filter(|_| !found.contains_key(&name))
        else {
            continue;
        };
        let mut schema = own.clone();
        strip(&mut schema);
        references(&schema, &mut waiting);
        found.insert(name, schema);
    }
    found
}

/// Properties may have these names; those are no texts and no lists.
fn strip(value: &mut Value) {
    if let Value::Object(members) = value {
        members.retain(|name, own| !LEFT_OUT.contains(&name.as_str()) || own.is_object());
        members.values_mut().for_each(strip);
    }
}

fn references(value: &Value, found: &mut Vec<String>) {
    let reference = value.get("$ref").and_then(Value::as_str);
    let name = reference.and_then(|it| it.strip_prefix("#/definitions/"));
    found.extend(name.map(str::to_owned));
    for own in value.as_object().into_iter().flat_map(Map::values) {
        references(own, found);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_kind_is_made_of_follows_and_texts_go() {
        let reference = |name: &str| json!({ "$ref": format!("#/definitions/{name}") });
        let definitions = json!({
            "A": { "description": "words", "type": "object", "x-kubernetes-unions": [],
                   "properties": { "b": reference("B"), "description": { "type": "string" } } },
            "AList": { "properties": { "items": { "items": reference("A") } } },
            "B": { "type": "string" },
            "C": { "type": "string" },
        });
        let definitions = definitions.as_object().expect("an object");
        let found = closure(definitions, std::iter::once("A".to_owned()));
        let names: Vec<&String> = found.keys().collect();
        assert_eq!(names, ["A", "AList", "B"]);
        let own = json!({
            "type": "object",
            "properties": { "b": reference("B"), "description": { "type": "string" } },
        });
        assert_eq!(found["A"], own);
    }
}
