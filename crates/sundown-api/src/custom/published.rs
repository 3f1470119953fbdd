//! What `OpenAPI` tells about a custom resource: its schema as it was written, with the members that
//! every resource has.

use serde_json::{Map, Value, json};

use crate::registry::Type;

const OBJECT_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";
const LIST_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta";

const API_VERSION_TEXT: &str = "APIVersion defines the versioned schema of this representation of an object. Servers should convert recognized schemas to the latest internal value, and may reject unrecognized values. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#resources";
const KIND_TEXT: &str = "Kind is a string value representing the REST resource this object represents. Servers may infer this from the endpoint the client submits requests to. Cannot be updated. In CamelCase. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#types-kinds";
const METADATA_TEXT: &str = "Standard object's metadata. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata";
const LIST_METADATA_TEXT: &str = "Standard list metadata. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#types-kinds";
const EMBEDDED_API_VERSION_TEXT: &str = "apiVersion defines the versioned schema of this representation of an object. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#resources";
const EMBEDDED_KIND_TEXT: &str = "kind is a string value representing the type of this object. In CamelCase. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#types-kinds";

/// The names of the shared schemas that those of custom resources refer to.
pub(crate) const SHARED: [&str; 2] = [OBJECT_META, LIST_META];

/// The schema of a custom resource; None for other types.
pub(crate) fn schema(ty: &Type) -> Option<Value> {
    let mut schema = ty.schema.as_ref()?.source()?;
    let own = members(METADATA_TEXT, OBJECT_META);
    let root = schema.as_object_mut()?;
    let properties = root.entry("properties").or_insert_with(|| json!({}));
    properties.as_object_mut()?.extend(own);
    root.extend(selectable(ty));
    complete(&mut schema);
    Some(schema)
}

/// The schema of a list of them.
pub(crate) fn list_schema(ty: &Type, item: &str) -> Value {
    let mut properties = members(LIST_METADATA_TEXT, LIST_META);
    let text = format!(
        "List of {}. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md",
        ty.resource.plural()
    );
    let reference = json!({ "$ref": format!("#/components/schemas/{item}") });
    let items = json!({ "description": text, "type": "array", "items": reference });
    properties.insert("items".into(), items);
    let mut schema = json!({
        "description": format!("{} is a list of {}", ty.list_kind, ty.kind),
        "type": "object", "required": ["items"], "properties": properties,
        "x-kubernetes-group-version-kind": [{
            "group": ty.resource.group(), "version": &*ty.version, "kind": &*ty.list_kind,
        }],
    });
    if let Some(map) = schema.as_object_mut() {
        map.extend(selectable(ty));
    }
    schema
}

fn selectable(ty: &Type) -> Option<(String, Value)> {
    let path = |path: &std::sync::Arc<str>| json!({ "fieldPath": &**path });
    let fields: Vec<Value> = ty.fields.iter().map(path).collect();
    let name = "x-kubernetes-selectable-fields".to_owned();
    (!fields.is_empty()).then(|| (name, fields.into()))
}

fn members(metadata_text: &str, metadata: &str) -> Map<String, Value> {
    let reference = json!({ "$ref": format!("#/components/schemas/{metadata}") });
    let members = [
        (
            "apiVersion",
            json!({ "description": API_VERSION_TEXT, "type": "string" }),
        ),
        (
            "kind",
            json!({ "description": KIND_TEXT, "type": "string" }),
        ),
        (
            "metadata",
            json!({ "description": metadata_text, "allOf": [reference] }),
        ),
    ];
    members
        .map(|(name, schema)| (name.to_owned(), schema))
        .into_iter()
        .collect()
}

/// Which embedded resources show the members that every resource has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Embedding {
    Everywhere,
    /// In v2 kubectl takes known members for the only ones.
    UnlessFieldsAreUnknown,
}

/// Adds the members of embedded resources (apiextensions-apiserver, `openapi/builder`).
pub(crate) fn embed(schema: &mut Value, embedding: Embedding) {
    each_inner(schema, |inner| embed(inner, embedding));
    let is = |name: &str| schema[name] == json!(true);
    let keeps_unknown = is("x-kubernetes-preserve-unknown-fields");
    if !is("x-kubernetes-embedded-resource")
        || (keeps_unknown && embedding == Embedding::UnlessFieldsAreUnknown)
    {
        return;
    }
    let Some(map) = schema.as_object_mut() else {
        return;
    };
    let mut own = members(METADATA_TEXT, OBJECT_META);
    own["apiVersion"]["description"] = EMBEDDED_API_VERSION_TEXT.into();
    own["kind"]["description"] = EMBEDDED_KIND_TEXT.into();
    let properties = map.entry("properties").or_insert_with(|| json!({}));
    if let Some(properties) = properties.as_object_mut() {
        properties.extend(own);
    }
    let required = map.entry("required").or_insert_with(|| json!([]));
    let Some(required) = required.as_array_mut() else {
        return;
    };
    for name in ["kind", "apiVersion"] {
        if !required.iter().any(|own| own == name) {
            required.push(name.into());
        }
    }
}

/// What the structure of a schema implies.
fn complete(schema: &mut Value) {
    let Some(map) = schema.as_object_mut() else {
        return;
    };
    let is_either = map.get("x-kubernetes-int-or-string") == Some(&json!(true));
    if is_either && !map.contains_key("anyOf") && !map.contains_key("allOf") {
        map.insert(
            "anyOf".into(),
            json!([{ "type": "integer" }, { "type": "string" }]),
        );
    }
    each_inner(schema, complete);
}

fn each_inner(schema: &mut Value, mut act: impl FnMut(&mut Value)) {
    let Some(map) = schema.as_object_mut() else {
        return;
    };
    if let Some(properties) = map.get_mut("properties").and_then(Value::as_object_mut) {
        properties.values_mut().for_each(&mut act);
    }
    for member in ["items", "additionalProperties"] {
        map.get_mut(member).into_iter().for_each(&mut act);
    }
}
