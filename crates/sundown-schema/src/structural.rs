//! Whether a schema is structural and its rules compile, in the words of upstream's
//! `apiserver/schema/validation.go` and `apis/apiextensions/validation`.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use crate::{Compiler, Problem, Problems, pattern, rules};

const TYPES: [&str; 6] = ["array", "boolean", "integer", "number", "object", "string"];

/// What may stand at the root of a schema whose status has its own endpoint.
const AT_ROOT: &[&str] = &[
    "description",
    "type",
    "format",
    "title",
    "maximum",
    "exclusiveMaximum",
    "minimum",
    "exclusiveMinimum",
    "maxLength",
    "minLength",
    "pattern",
    "maxItems",
    "minItems",
    "uniqueItems",
    "multipleOf",
    "required",
    "items",
    "properties",
    "externalDocs",
    "example",
    "x-kubernetes-preserve-unknown-fields",
    "x-kubernetes-validations",
];

/// What keeps a schema from being registered. `has_status`: the status has its own endpoint.
pub fn check(schema: &Value, path: &str, has_status: bool) -> Problems {
    let mut out = root(schema, path, has_status);
    let bad = bad_patterns(schema);
    node(schema, Level::Root, &bad, path, &mut out);
    out.sort_by_key(ToString::to_string);
    let mut others = Problems::default();
    rest(schema, path, &mut others);
    let has_errors = !out.is_empty() || !others.is_empty();
    out.append(others);
    if !has_errors {
        out.append(rules::check(schema, path));
    }
    out
}

/// Patterns that are none, and why. A large definition has the same few hundreds of times.
type Bad = BTreeMap<String, String>;

fn bad_patterns(schema: &Value) -> Bad {
    fn collect<'a>(schema: &'a Value, found: &mut BTreeSet<&'a str>) {
        match schema {
            Value::Object(map) => {
                found.extend(map.get("pattern").and_then(Value::as_str));
                map.values().for_each(|value| collect(value, found));
            }
            Value::Array(list) => list.iter().for_each(|value| collect(value, found)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    let mut found = BTreeSet::new();
    collect(schema, &mut found);
    let wrong = |text: &str| {
        let error = pattern::compile(text).err()?;
        Some((text.to_owned(), error.to_string()))
    };
    found.into_iter().filter_map(wrong).collect()
}

/// What only holds at the root.
fn root(schema: &Value, path: &str, has_status: bool) -> Problems {
    let mut out = Problems::default();
    if has_status {
        let members = schema.as_object().into_iter().flatten();
        let mut set = members.filter(|(_, value)| !value.is_null());
        if set.any(|(name, _)| !AT_ROOT.contains(&name.as_str())) {
            let why = "only [Description Type Format Title Maximum ExclusiveMaximum Minimum \
                       ExclusiveMinimum MaxLength MinLength Pattern MaxItems MinItems UniqueItems \
                       MultipleOf Required Items Properties ExternalDocs Example \
                       XPreserveUnknownFields XValidations] fields are allowed at the root of the \
                       schema if the status subresource is enabled";
            out.push(Problem::invalid(path, schema, why));
        }
    }
    if flag(schema, "nullable") {
        let field = format!("{path}.nullable");
        out.push(Problem::forbidden(
            field,
            "nullable cannot be true at the root",
        ));
    }
    out
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Level {
    Root,
    Item,
    Field,
}

fn text<'a>(schema: &'a Value, name: &str) -> &'a str {
    schema.get(name).and_then(Value::as_str).unwrap_or("")
}

fn flag(schema: &Value, name: &str) -> bool {
    schema.get(name).and_then(Value::as_bool) == Some(true)
}

fn map<'a>(schema: &'a Value, name: &str) -> Option<&'a Map<String, Value>> {
    schema.get(name).and_then(Value::as_object)
}

fn list<'a>(schema: &'a Value, name: &str) -> &'a [Value] {
    schema
        .get(name)
        .and_then(Value::as_array)
        .map_or(&[], Vec::as_slice)
}

fn node(schema: &Value, level: Level, bad: &Bad, path: &str, out: &mut Problems) {
    let kind = text(schema, "type");
    if kind == "array" && schema.get("items").is_none() {
        out.push(Problem::required(
            format!("{path}.items"),
            "must be specified",
        ));
    }
    if let Some(items) = schema.get("items").filter(|it| it.is_object()) {
        node(items, Level::Item, bad, &format!("{path}.items"), out);
    }
    for (name, property) in map(schema, "properties").into_iter().flatten() {
        node(
            property,
            Level::Field,
            bad,
            &format!("{path}.properties[{name}]"),
            out,
        );
    }
    if let Some(additional) = schema.get("additionalProperties") {
        let below = format!("{path}.additionalProperties");
        if level == Level::Root {
            out.push(Problem::forbidden(&*below, "must not be used at the root"));
        }
        if additional.is_object() {
            node(additional, Level::Field, bad, &below, out);
        }
    }
    let is_int_or_string = flag(schema, "x-kubernetes-int-or-string");
    let preserves = flag(schema, "x-kubernetes-preserve-unknown-fields");
    if is_int_or_string && preserves {
        let why = "must be false if x-kubernetes-int-or-string is true";
        let field = format!("{path}.x-kubernetes-preserve-unknown-fields");
        out.push(Problem::invalid(field, &json!(true), why));
    }
    values(schema, is_int_or_string, bad, path, out);
    let at = format!("{path}.type");
    if flag(schema, "x-kubernetes-embedded-resource") && kind != "object" {
        let why = "must be object if x-kubernetes-embedded-resource is true";
        out.push(if kind.is_empty() {
            Problem::required(at, why)
        } else {
            Problem::invalid(at, &json!(kind), why)
        });
    } else if kind.is_empty() && !is_int_or_string && !preserves {
        let why = match level {
            Level::Root => "must not be empty at the root",
            Level::Item => "must not be empty for specified array items",
            Level::Field => "must not be empty for specified object fields",
        };
        out.push(Problem::required(at, why));
    } else if level == Level::Root && !kind.is_empty() && kind != "object" {
        out.push(Problem::invalid(
            at,
            &json!(kind),
            "must be object at the root",
        ));
    }
    if level == Level::Root {
        metadata(schema, path, out);
    }
}

/// At the root metadata may restrict names only.
fn metadata(schema: &Value, path: &str, out: &mut Problems) {
    let Some(metadata) = schema.pointer("/properties/metadata") else {
        return;
    };
    let known = ["name", "generateName"];
    let is_plain = map(metadata, "properties")
        .is_none_or(|it| it.keys().all(|name| known.contains(&name.as_str())));
    if !is_plain {
        let why = "must not specify anything other than name and generateName, but metadata is \
                   implicitly specified";
        out.push(Problem::forbidden(
            format!("{path}.properties[metadata]"),
            why,
        ));
    }
}

/// Value validations, and the schemas below logical junctors.
fn values(schema: &Value, is_int_or_string: bool, bad: &Bad, path: &str, out: &mut Problems) {
    for junctor in ["anyOf", "allOf", "oneOf"] {
        let all = list(schema, junctor);
        if all.is_empty() {
            continue;
        }
        let types = json!([{ "type": "integer" }, { "type": "string" }]);
        let is_exception = is_int_or_string && junctor == "anyOf" && types == json!(all);
        for (index, nested) in all.iter().enumerate().filter(|_| !is_exception) {
            let inner = nested.get("anyOf");
            let is_first = is_int_or_string && junctor == "allOf" && index == 0;
            if !(is_first && inner == Some(&types)) {
                below_junctor(nested, bad, &format!("{path}.{junctor}[{index}]"), out);
            }
        }
    }
    if let Some(not) = schema.get("not") {
        below_junctor(not, bad, &format!("{path}.not"), out);
    }
    let own = text(schema, "pattern");
    if let Some(error) = bad.get(own) {
        let why = format!("must be a valid regular expression, but isn't: {error}");
        out.push(Problem::invalid(
            format!("{path}.pattern"),
            &json!(own),
            &why,
        ));
    }
}

fn below_junctor(schema: &Value, bad: &Bad, path: &str, out: &mut Problems) {
    const FORBIDDEN: &[(&str, &str)] = &[
        ("type", "must be empty to be structural"),
        ("additionalProperties", "must be undefined to be structural"),
        ("default", "must be undefined to be structural"),
        ("title", "must be empty to be structural"),
        ("description", "must be empty to be structural"),
        ("nullable", "must be false to be structural"),
        (
            "x-kubernetes-preserve-unknown-fields",
            "must be false to be structural",
        ),
        (
            "x-kubernetes-embedded-resource",
            "must be false to be structural",
        ),
        (
            "x-kubernetes-int-or-string",
            "must be false to be structural",
        ),
        (
            "x-kubernetes-list-map-keys",
            "must be empty to be structural",
        ),
        (
            "x-kubernetes-list-type",
            "must be undefined to be structural",
        ),
        (
            "x-kubernetes-map-type",
            "must be undefined to be structural",
        ),
        ("x-kubernetes-validations", "must be empty to be structural"),
    ];
    values(schema, false, bad, path, out);
    if let Some(items) = schema.get("items") {
        below_junctor(items, bad, &format!("{path}.items"), out);
    }
    for (name, property) in map(schema, "properties").into_iter().flatten() {
        below_junctor(property, bad, &format!("{path}.properties[{name}]"), out);
    }
    for (name, why) in FORBIDDEN {
        let is_set = schema
            .get(*name)
            .is_some_and(|it| *it != json!(false) && *it != json!(""));
        if is_set {
            out.push(Problem::forbidden(format!("{path}.{name}"), why));
        }
    }
}

/// What is wrong beyond structure: types, lists, defaults.
fn rest(schema: &Value, path: &str, out: &mut Problems) {
    let at = |name: &str| format!("{path}.{name}");
    let kind = text(schema, "type");
    if !kind.is_empty() && !TYPES.contains(&kind) {
        let types = TYPES.map(Value::from);
        out.push(Problem::unsupported(at("type"), &json!(kind), &types));
    }
    for name in [
        "additionalItems",
        "patternProperties",
        "definitions",
        "dependencies",
        "$ref",
    ] {
        if schema.get(name).is_some() {
            out.push(Problem::forbidden(
                at(name),
                &format!("{name} is not supported"),
            ));
        }
    }
    if flag(schema, "uniqueItems") {
        let why =
            "uniqueItems cannot be set to true since the runtime complexity becomes quadratic";
        out.push(Problem::forbidden(at("uniqueItems"), why));
    }
    let has_properties = map(schema, "properties").is_some_and(|it| !it.is_empty());
    if has_properties
        && schema
            .get("additionalProperties")
            .is_some_and(|it| *it != json!(true))
    {
        let why = "additionalProperties and properties are mutual exclusive";
        out.push(Problem::forbidden(at("additionalProperties"), why));
    }
    if schema.get("x-kubernetes-preserve-unknown-fields") == Some(&json!(false)) {
        let field = at("x-kubernetes-preserve-unknown-fields");
        out.push(Problem::invalid(
            field,
            &json!(false),
            "must be true or undefined",
        ));
    }
    lists(schema, path, out);
    if let Some(default) = schema.get("default") {
        let below = at("default");
        let compiled = Compiler::default().compile(schema);
        let mut pruned = default.clone();
        let unknown = compiled.prune(&mut pruned);
        out.append(compiled.validate(&pruned, None).map(|problem| Problem {
            field: match problem.field.as_str() {
                "<nil>" => below.clone(),
                field => format!("{below}.{field}"),
            },
            ..problem
        }));
        if !unknown.is_empty() && kind == "object" {
            let why = format!("must not have unknown fields: {}", unknown.join(", "));
            out.push(Problem::invalid(below, default, &why));
        }
    }
    for (below, child) in children(schema, path) {
        rest(child, &below, out);
    }
}

fn lists(schema: &Value, path: &str, out: &mut Problems) {
    let at = |name: &str| format!("{path}.{name}");
    let own = text(schema, "x-kubernetes-list-type");
    let keys = list(schema, "x-kubernetes-list-map-keys");
    if !own.is_empty() && text(schema, "type") != "array" {
        let why = "must be array if x-kubernetes-list-type is specified";
        out.push(Problem::invalid(
            at("type"),
            &json!(text(schema, "type")),
            why,
        ));
    }
    if !["", "atomic", "set", "map"].contains(&own) {
        let known = ["atomic", "set", "map"].map(Value::from);
        out.push(Problem::unsupported(
            at("x-kubernetes-list-type"),
            &json!(own),
            &known,
        ));
    }
    if !keys.is_empty() && own != "map" {
        let why = "must be map if x-kubernetes-list-map-keys is non-empty";
        out.push(Problem::required(at("x-kubernetes-list-type"), why));
    }
    if own != "map" {
        return;
    }
    if keys.is_empty() {
        let why = "must not be empty if x-kubernetes-list-type is map";
        out.push(Problem::required(at("x-kubernetes-list-map-keys"), why));
    }
    let items = schema.get("items").unwrap_or(&Value::Null);
    for key in keys.iter().filter_map(Value::as_str) {
        let Some(property) = map(items, "properties").and_then(|it| it.get(key)) else {
            let why = "entries must all be names of item properties";
            let field = at("x-kubernetes-list-map-keys");
            out.push(Problem::invalid(field, &json!(keys), why));
            continue;
        };
        let is_required = list(items, "required").contains(&json!(key));
        if !is_required && property.get("default").is_none() {
            let why = "this property is in x-kubernetes-list-map-keys, so it must have a default \
                       or be a required property";
            let field = at(&format!("items.properties[{key}].default"));
            out.push(Problem::required(field, why));
        }
    }
}

pub(crate) fn children<'a>(schema: &'a Value, path: &str) -> Vec<(String, &'a Value)> {
    let properties = map(schema, "properties").into_iter().flatten();
    let properties = properties.map(|(name, child)| (format!("{path}.properties[{name}]"), child));
    let others = ["items", "additionalProperties"]
        .into_iter()
        .filter_map(|name| {
            let child = schema.get(name).filter(|it| it.is_object())?;
            Some((format!("{path}.{name}"), child))
        });
    properties.chain(others).collect()
}
