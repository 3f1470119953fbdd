//! Structural schemas of the shipped custom resources: our own fields out of one table, the types of
//! Kubernetes inside them out of the published `OpenAPI` documents.
//!
//! Written in the form that controller-gen gives to definitions. Types are kept once each and named by
//! `$ref`; `sundown-kinds` puts them in place, and says which versions and columns there are.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, bail};
use serde_json::{Map, Value, json};

use super::go::{Declaration, GoType, Source};
use super::openapi::{Documents, schema_name};

/// What a quantity looks like, as controller-gen writes it.
const QUANTITY: &str = r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$";

/// Members of a published schema that definitions have as well.
const KEPT: &[&str] = &[
    "type",
    "format",
    "required",
    "x-kubernetes-list-type",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-map-type",
];

/// Defaults that are references to Go constants: controller-gen leaves them to the API server.
const WITHOUT_DEFAULT: &[(&str, &str)] = &[
    ("core.v1.AzureDiskVolumeSource", "cachingMode"),
    ("core.v1.AzureDiskVolumeSource", "kind"),
];

/// Makes the file: one type per line.
pub(super) fn make(table: &str, documents: &Documents, source: &mut Source) -> Result<String> {
    let mut types = read(table)?;
    let mut waiting: BTreeSet<String> = BTreeSet::new();
    for schema in types.values() {
        names(schema, &mut waiting);
    }
    while let Some(name) = waiting.pop_first() {
        if types.contains_key(&name) {
            continue;
        }
        let published = documents.schema(&long_name(&name));
        if published.is_null() {
            bail!("there is no type {name}, neither in the table nor in the OpenAPI documents");
        }
        let mut schema = convert(published).with_context(|| name.clone())?;
        if inlines_atomic(&name, documents, source)? {
            schema["x-kubernetes-map-type"] = json!("atomic");
        }
        drop_defaults(&name, &mut schema);
        names(&schema, &mut waiting);
        types.insert(name, schema);
    }
    for (name, schema) in &types {
        lone_references(schema).with_context(|| name.clone())?;
    }
    let lines: Vec<String> = types
        .iter()
        .map(|(name, schema)| format!("{}:{schema}", json!(name)))
        .collect();
    Ok(format!("{{\n{}\n}}\n", lines.join(",\n")))
}

/// Reads the table of our own types.
fn read(table: &str) -> Result<BTreeMap<String, Value>> {
    let mut types: BTreeMap<String, Value> = BTreeMap::new();
    let mut current = String::new();
    for (index, line) in table.lines().enumerate() {
        let place = || format!("line {} of the table", index + 1);
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let mut columns = line.trim_start_matches('\t').split('\t');
        let name = columns.next().unwrap_or("");
        if line.starts_with('\t') {
            let mut schema = shape(columns.next().unwrap_or("")).with_context(place)?;
            merge(&mut schema, columns.next()).with_context(place)?;
            let own = types.get_mut(&current).with_context(place)?;
            let (field, is_required) = match name.strip_suffix('!') {
                Some(field) => (field, true),
                None => (name, false),
            };
            own["properties"][field] = schema;
            if is_required {
                let mut required = own["required"].as_array().cloned().unwrap_or_default();
                required.push(json!(field));
                required.sort_by(|one, two| one.as_str().cmp(&two.as_str()));
                own["required"] = json!(required);
            }
        } else {
            let mut schema = json!({"type": "object", "properties": {}});
            merge(&mut schema, columns.next()).with_context(place)?;
            name.clone_into(&mut current);
            types.insert(current.clone(), schema);
        }
    }
    Ok(types)
}

fn merge(schema: &mut Value, more: Option<&str>) -> Result<()> {
    let Some(more) = more else { return Ok(()) };
    let more: Map<String, Value> = serde_json::from_str(more)?;
    if let Value::Object(members) = schema {
        members.extend(more);
    }
    Ok(())
}

/// The schema of a type as the table writes it.
fn shape(text: &str) -> Result<Value> {
    if let Some(item) = text.strip_prefix("[]") {
        return Ok(json!({"type": "array", "items": shape(item)?}));
    }
    if let Some(value) = text.strip_prefix("map:") {
        return Ok(json!({"type": "object", "additionalProperties": shape(value)?}));
    }
    if let Some(own) = text.strip_prefix('@') {
        return Ok(json!({"$ref": own}));
    }
    Ok(match text {
        "string" | "boolean" | "number" | "object" => json!({"type": text}),
        "int32" | "int64" => json!({"type": "integer", "format": text}),
        "time" => json!({"type": "string", "format": "date-time"}),
        "quantity" => quantity(),
        other if other.contains('.') => json!({"$ref": other}),
        other => bail!("{other:?} is no type"),
    })
}

/// A published schema in the form of definitions.
fn convert(published: &Value) -> Result<Value> {
    if let Some(name) = reference(published) {
        let mut schema = special(name).unwrap_or_else(|| json!({"$ref": short_name(name)}));
        keep(published, &mut schema);
        return Ok(schema);
    }
    let mut schema = json!({});
    keep(published, &mut schema);
    if let Some(items) = published.get("items") {
        schema["items"] = convert(items)?;
    }
    if let Some(values) = published.get("additionalProperties") {
        schema["additionalProperties"] = convert(values)?;
    }
    let required = published["required"].as_array();
    for (name, property) in published["properties"].as_object().into_iter().flatten() {
        let mut member = convert(property).with_context(|| name.clone())?;
        let default = &property["default"];
        let is_required = required.is_some_and(|list| list.contains(&json!(name)));
        // An optional field has a zero default only where its Go type asks for one.
        if !is_required && (*default == json!("") || *default == json!(false)) {
            member["default"] = default.clone();
        }
        schema["properties"][name] = member;
    }
    Ok(schema)
}

/// Whether a Go type takes in another one that is atomic: it becomes so with it.
fn inlines_atomic(name: &str, documents: &Documents, source: &mut Source) -> Result<bool> {
    let Some((package, name)) = name.strip_prefix("core.v1.").map(|name| ("core/v1", name)) else {
        return Ok(false);
    };
    let package = format!("k8s.io/api/{package}");
    let Declaration::Struct(fields) = source.declaration(&package, name)? else {
        return Ok(false);
    };
    let inlined = fields.iter().filter(|field| field.json.is_empty());
    Ok(inlined.into_iter().any(|field| match &field.go_type {
        GoType::Name(package, name) => {
            let schema = documents.schema(&schema_name(package, name));
            schema["x-kubernetes-map-type"] == "atomic"
        }
        GoType::Pointer(_) | GoType::List(_) | GoType::Map(_) => false,
    }))
}

fn drop_defaults(name: &str, schema: &mut Value) {
    for (_, field) in WITHOUT_DEFAULT.iter().filter(|(own, _)| *own == name) {
        if let Value::Object(members) = &mut schema["properties"][field] {
            members.remove("default");
        }
    }
}

fn keep(published: &Value, schema: &mut Value) {
    for member in KEPT {
        if let Some(value) = published.get(member) {
            schema[*member] = value.clone();
        }
    }
    if let Some(required) = schema.get_mut("required").and_then(Value::as_array_mut) {
        required.sort_by(|one, two| one.as_str().cmp(&two.as_str()));
    }
    // The zero value of a Go type is published as its default; only the others are meant.
    let default = &published["default"];
    let is_zero = [json!(null), json!({}), json!(""), json!(0), json!(false)].contains(default);
    if !is_zero {
        schema["default"] = default.clone();
    }
}

fn reference(published: &Value) -> Option<&str> {
    let target = published
        .get("$ref")
        .or_else(|| published.pointer("/allOf/0/$ref"))?;
    target.as_str()?.rsplit('/').next()
}

/// Types that are no objects on the wire.
fn special(name: &str) -> Option<Value> {
    match name.rsplit('.').next()? {
        "Quantity" => Some(quantity()),
        "IntOrString" => Some(int_or_string()),
        "Time" => Some(json!({"type": "string", "format": "date-time"})),
        _ => None,
    }
}

fn int_or_string() -> Value {
    json!({
        "anyOf": [{"type": "integer"}, {"type": "string"}],
        "x-kubernetes-int-or-string": true,
    })
}

fn quantity() -> Value {
    let mut schema = int_or_string();
    schema["pattern"] = json!(QUANTITY);
    schema
}

/// The types that a schema is made of.
fn names(schema: &Value, found: &mut BTreeSet<String>) {
    match schema {
        Value::Object(members) => {
            if let Some(name) = members.get("$ref").and_then(Value::as_str) {
                found.insert(name.to_owned());
            }
            members.values().for_each(|member| names(member, found));
        }
        Value::Array(items) => items.iter().for_each(|item| names(item, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// References are replaced as text: beside one there can be nothing.
fn lone_references(schema: &Value) -> Result<()> {
    match schema {
        Value::Object(members) if members.contains_key("$ref") && members.len() > 1 => {
            bail!("something stands beside a reference: {schema}")
        }
        Value::Object(members) => members.values().try_for_each(lone_references),
        Value::Array(items) => items.iter().try_for_each(lone_references),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Ok(()),
    }
}

const META: &str = "io.k8s.apimachinery.pkg.apis.";

fn short_name(long: &str) -> String {
    let short = long
        .strip_prefix(META)
        .or_else(|| long.strip_prefix("io.k8s.api."));
    short.unwrap_or(long).to_owned()
}

fn long_name(short: &str) -> String {
    let prefix = if short.starts_with("meta.") {
        META
    } else {
        "io.k8s.api."
    };
    format!("{prefix}{short}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_becomes_schemas() {
        let table = "# words\n\nA\t{\"nullable\":true}\n\tb!\tint32\t{\"default\":1}\n\
                     \ta!\t[]map:@A\n\tc\tcore.v1.X\n";
        let types = read(table).expect("the table is well-formed");
        assert_eq!(
            types["A"],
            json!({
                "type": "object",
                "nullable": true,
                "required": ["a", "b"],
                "properties": {
                    "a": {"type": "array", "items":
                          {"type": "object", "additionalProperties": {"$ref": "A"}}},
                    "b": {"type": "integer", "format": "int32", "default": 1},
                    "c": {"$ref": "core.v1.X"},
                },
            })
        );
        assert!(read("A\n\tb\tfloat\n").is_err());
    }

    #[test]
    fn published_schemas_lose_what_definitions_do_not_have() {
        let reference = |name: &str| format!("#/components/schemas/io.k8s.{name}");
        let quantity = reference("apimachinery.pkg.api.resource.Quantity");
        let other = reference("api.core.v1.Other");
        let published = json!({
            "type": "object",
            "description": "words",
            "required": ["b", "a"],
            "properties": {
                "a": {"type": "string", "default": "", "enum": ["x"]},
                "b": {"allOf": [{"$ref": other}], "default": {}},
                "c": {"type": "string", "default": ""},
                "d": {"type": "string", "default": "TCP"},
                "e": {"type": "object", "additionalProperties": {"$ref": quantity}},
            },
        });
        let converted = convert(&published).expect("the schema is well-formed");
        assert_eq!(
            converted,
            json!({
                "type": "object",
                "required": ["a", "b"],
                "properties": {
                    "a": {"type": "string"},
                    "b": {"$ref": "core.v1.Other"},
                    "c": {"type": "string", "default": ""},
                    "d": {"type": "string", "default": "TCP"},
                    "e": {"type": "object", "additionalProperties": super::quantity()},
                },
            })
        );
    }
}
