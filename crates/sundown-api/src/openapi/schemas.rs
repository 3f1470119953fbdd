//! Schemas of the types of built-in kinds, from their facts.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use crate::facts::{Any, Fact, Field, Shape, facts};

const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.";
const MACHINERY: &str = "io.k8s.apimachinery.pkg.";

/// The schemas of these types and of all that they are made of.
pub(super) fn closure(roots: impl Iterator<Item = &'static Fact>) -> Map<String, Value> {
    let mut waiting: Vec<&'static Fact> = roots.collect();
    let (mut seen, mut schemas) = (BTreeSet::new(), Map::new());
    while let Some(fact) = waiting.pop() {
        if !seen.insert(fact.name) {
            continue;
        }
        schemas.insert(full_name(fact.name), schema(fact));
        for member in &fact.members {
            waiting.extend(mentioned(&member.shape));
        }
    }
    schemas.extend(specials());
    schemas
}

/// The name of a schema: upstream's.
pub(super) fn full_name(name: &str) -> String {
    if name.starts_with("io.k8s.") {
        name.to_owned()
    } else {
        format!("io.k8s.api.{name}")
    }
}

fn mentioned(shape: &Shape) -> Option<&'static Fact> {
    if let Shape::List(inner) | Shape::Map(inner) | Shape::Wrapped(inner) = shape {
        return mentioned(inner);
    }
    if let Shape::Object(name) = shape {
        return Some(facts().named(name));
    }
    None
}

fn schema(fact: &Fact) -> Value {
    let properties: Map<String, Value> = fact
        .members
        .iter()
        .map(|member| (member.json.to_owned(), property(member)))
        .collect();
    let required = fact.members.iter().filter(|member| member.is_required);
    let required: Vec<&str> = required.map(|member| member.json).collect();
    let mut schema = json!({ "type": "object" });
    if !properties.is_empty() {
        schema["properties"] = properties.into();
    }
    if !required.is_empty() {
        schema["required"] = required.into();
    }
    if fact.is_atomic {
        schema["x-kubernetes-map-type"] = "atomic".into();
    }
    schema
}

fn property(field: &Field) -> Value {
    let mut property = shape_schema(&field.shape);
    if let Some(reference) = property.get("$ref").cloned() {
        property = json!({ "allOf": [{ "$ref": reference }] });
    }
    if field.default != "-" {
        property["default"] = serde_json::from_str(field.default).unwrap_or_default();
    } else if matches!(field.shape, Shape::Object(_)) && !field.is_pointer {
        property["default"] = json!({});
    }
    match field.list.split_once(':') {
        Some((kind, keys)) => {
            property["x-kubernetes-list-type"] = kind.into();
            property["x-kubernetes-list-map-keys"] = keys.split(',').collect::<Vec<_>>().into();
        }
        None if field.list != "-" => {
            let is_list = matches!(field.shape, Shape::List(_) | Shape::Bytes);
            let name = if is_list { "list" } else { "map" };
            property[format!("x-kubernetes-{name}-type")] = field.list.into();
        }
        None => {}
    }
    if field.merge != "-" {
        let (strategy, key) = field.merge.split_once(':').unwrap_or((field.merge, ""));
        property["x-kubernetes-patch-strategy"] = strategy.into();
        if !key.is_empty() {
            property["x-kubernetes-patch-merge-key"] = key.into();
        }
    }
    property
}

fn shape_schema(shape: &Shape) -> Value {
    let reference = |name: &str| json!({ "$ref": format!("#/components/schemas/{name}") });
    let machinery = |name: &str| reference(&format!("{MACHINERY}{name}"));
    let extension = |name: &str| {
        let package = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.";
        reference(&format!("{package}{name}"))
    };
    match shape {
        Shape::String | Shape::Duration => json!({ "type": "string" }),
        Shape::Bool => json!({ "type": "boolean" }),
        Shape::Int32 => json!({ "type": "integer", "format": "int32" }),
        Shape::Int64 => json!({ "type": "integer", "format": "int64" }),
        Shape::Double => json!({ "type": "number", "format": "double" }),
        Shape::Bytes => json!({ "type": "string", "format": "byte" }),
        Shape::Quantity => machinery("api.resource.Quantity"),
        Shape::IntOrString => machinery("util.intstr.IntOrString"),
        Shape::Time => machinery("apis.meta.v1.Time"),
        Shape::MicroTime => machinery("apis.meta.v1.MicroTime"),
        Shape::Raw(Any::Extension) => machinery("runtime.RawExtension"),
        Shape::Raw(Any::Fields) => machinery("apis.meta.v1.FieldsV1"),
        Shape::Raw(Any::Json) => extension("JSON"),
        Shape::SchemaOrArray => extension("JSONSchemaPropsOrArray"),
        Shape::SchemaOrBool => extension("JSONSchemaPropsOrBool"),
        Shape::SchemaOrStrings => extension("JSONSchemaPropsOrStringArray"),
        Shape::List(inner) => json!({ "type": "array", "items": shape_schema(inner) }),
        Shape::Wrapped(inner) => shape_schema(inner),
        Shape::Map(inner) => {
            json!({ "type": "object", "additionalProperties": shape_schema(inner) })
        }
        Shape::Object(name) => reference(&full_name(name)),
    }
}

/// Types whose JSON no fact describes.
fn specials() -> [(String, Value); 10] {
    let int_or_string = json!({
        "format": "int-or-string", "oneOf": [{ "type": "integer" }, { "type": "string" }],
    });
    let quantity = json!({ "oneOf": [{ "type": "string" }, { "type": "number" }] });
    let time = json!({ "type": "string", "format": "date-time" });
    let object = json!({ "type": "object" });
    let extension =
        |name: &str| format!("io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.{name}");
    [
        (format!("{MACHINERY}util.intstr.IntOrString"), int_or_string),
        (format!("{MACHINERY}api.resource.Quantity"), quantity),
        (format!("{META}Time"), time.clone()),
        (format!("{META}MicroTime"), time),
        (format!("{MACHINERY}runtime.RawExtension"), object.clone()),
        (format!("{META}FieldsV1"), object),
        // Without a type, so that anything fits: `enum` and `default` hold texts and numbers too.
        (extension("JSON"), json!({})),
        (extension("JSONSchemaPropsOrArray"), json!({})),
        (extension("JSONSchemaPropsOrBool"), json!({})),
        (extension("JSONSchemaPropsOrStringArray"), json!({})),
    ]
}
