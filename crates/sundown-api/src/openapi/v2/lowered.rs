//! From v3 to v2: what the older form cannot say, or what kubectl misreads in it, is left out as
//! upstream leaves it out (apiextensions-apiserver, `openapi/v2/conversion.go`).

use serde_json::{Map, Value, json};

/// Marks objects whose unknown fields are kept.
pub(super) const KEEPS_UNKNOWN: &str = "x-kubernetes-preserve-unknown-fields";

const PREFIX: &str = "#/definitions/";

/// The keywords of a v2 schema that upstream writes, extensions aside. Defaults are not among them.
pub(super) const KEYWORDS: [&str; 24] = [
    "$ref",
    "additionalProperties",
    "description",
    "enum",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "format",
    "items",
    "maxItems",
    "maxLength",
    "maxProperties",
    "maximum",
    "minItems",
    "minLength",
    "minProperties",
    "minimum",
    "multipleOf",
    "pattern",
    "properties",
    "readOnly",
    "required",
    "title",
    "type",
    "uniqueItems",
];

/// Lowers a schema and all in it.
pub(super) fn schema(schema: &mut Value) {
    let Some(map) = schema.as_object_mut() else {
        return;
    };
    refer(map);
    if map.contains_key("oneOf") && !map.contains_key("type") {
        // Quantities and what is a number or a text: v2 calls them texts, and kubectl takes numbers
        // for texts.
        map.insert("type".into(), "string".into());
    }
    forget_required(map);
    let is = |name: &str| map.get(name) == Some(&json!(true));
    let (is_nullable, keeps_unknown) = (is("nullable"), is(KEEPS_UNKNOWN));
    if is_nullable || keeps_unknown {
        map.remove("items");
        map.remove("properties");
    }
    let is_object = map.get("type") == Some(&json!("object"));
    let is_bare_list = map.get("type") == Some(&json!("array")) && !map.contains_key("items");
    if is_nullable || is_bare_list || (keeps_unknown && is_object) {
        map.remove("type");
    }
    map.retain(|name, value| {
        let is_empty = matches!(name.as_str(), "properties" | "required" if is_empty(value));
        let is_known = KEYWORDS.contains(&name.as_str()) || name.starts_with("x-kubernetes-");
        is_known && !is_empty
    });
    if let Some(properties) = map.get_mut("properties").and_then(Value::as_object_mut) {
        properties.values_mut().for_each(self::schema);
    }
    for member in ["items", "additionalProperties"] {
        map.get_mut(member).into_iter().for_each(self::schema);
    }
}

/// The older form has references with a description, and so no `allOf` around them.
fn refer(map: &mut Map<String, Value>) {
    let own = map
        .get("$ref")
        .or_else(|| map.get("allOf")?.get(0)?.get("$ref"));
    let name = own.and_then(Value::as_str);
    let name = name.and_then(|own| own.strip_prefix(crate::openapi::PREFIX));
    if let Some(reference) = name.map(|name| format!("{PREFIX}{name}")) {
        map.insert("$ref".into(), reference.into());
    }
}

/// What may be null cannot be required.
fn forget_required(map: &mut Map<String, Value>) {
    let is_nullable = |schema: &Value| schema["nullable"] == json!(true);
    if map.get("additionalProperties").is_some_and(is_nullable) {
        map.remove("required");
    }
    let Some(Value::Array(mut required)) = map.remove("required") else {
        return;
    };
    let properties = map.get("properties");
    let own = |name: &Value| properties?.get(name.as_str()?);
    required.retain(|name| !own(name).is_some_and(is_nullable));
    map.insert("required".into(), required.into());
}

fn is_empty(value: &Value) -> bool {
    value.as_object().is_some_and(Map::is_empty) || value.as_array().is_some_and(Vec::is_empty)
}

/// Lowers the operations of one path.
pub(super) fn path_item(path: &str, item: &Value) -> Value {
    let mut lowered: Map<String, Value> = item
        .as_object()
        .into_iter()
        .flatten()
        .map(|(method, own)| (method.clone(), operation(own)))
        .collect();
    let names = path.split('/').filter_map(|segment| {
        let inner = segment.strip_prefix('{')?;
        inner.strip_suffix('}')
    });
    let parameters: Vec<Value> = names
        .map(|name| json!({ "name": name, "in": "path", "required": true, "type": "string" }))
        .collect();
    if !parameters.is_empty() {
        lowered.insert("parameters".into(), parameters.into());
    }
    lowered.into()
}

fn operation(own: &Value) -> Value {
    let mut parameters = Vec::new();
    let mut lowered = json!({ "operationId": own["operationId"], "schemes": ["https"] });
    lowered["consumes"] = json!(["*/*"]);
    if let Some(content) = own["requestBody"]["content"].as_object() {
        lowered["consumes"] = content.keys().cloned().collect();
        let body = content.values().next().map(|it| referred(&it["schema"]));
        parameters.push(json!({ "name": "body", "in": "body", "required": true, "schema": body }));
    }
    for query in own["parameters"].as_array().into_iter().flatten() {
        parameters.push(json!({
            "name": query["name"], "in": query["in"], "type": query["schema"]["type"],
        }));
    }
    if !parameters.is_empty() {
        lowered["parameters"] = parameters.into();
    }
    let shown = &own["responses"]["200"];
    let content = shown["content"].as_object().into_iter().flatten();
    lowered["produces"] = content.clone().map(|(media, _)| media.as_str()).collect();
    let schema = content.map(|(_, it)| referred(&it["schema"])).next();
    lowered["responses"] =
        json!({ "200": { "description": shown["description"], "schema": schema } });
    for name in ["x-kubernetes-action", "x-kubernetes-group-version-kind"] {
        lowered[name] = own[name].clone();
    }
    lowered
}

fn referred(own: &Value) -> Value {
    let mut own = own.clone();
    schema(&mut own);
    own
}
