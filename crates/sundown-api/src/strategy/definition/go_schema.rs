//! A schema as upstream's internal type prints it when it refuses the versions of a definition: every
//! field under its Go name, in the order of its declaration, set or not.

use serde_json::{Map, Value, json};

/// What a field holds, which decides how it is printed.
#[derive(Debug, Clone, Copy)]
enum Form {
    Text,
    Flag,
    /// Whatever is there, or null.
    Any,
    Schema,
    Schemas,
    /// By name.
    Members,
    Items,
    Additional,
    Rules,
}

const FIELDS: &[(&str, &str, Form)] = &[
    ("ID", "id", Form::Text),
    ("Schema", "$schema", Form::Text),
    ("Ref", "$ref", Form::Any),
    ("Description", "description", Form::Text),
    ("Type", "type", Form::Text),
    ("Nullable", "nullable", Form::Flag),
    ("Format", "format", Form::Text),
    ("Title", "title", Form::Text),
    ("Default", "default", Form::Any),
    ("Maximum", "maximum", Form::Any),
    ("ExclusiveMaximum", "exclusiveMaximum", Form::Flag),
    ("Minimum", "minimum", Form::Any),
    ("ExclusiveMinimum", "exclusiveMinimum", Form::Flag),
    ("MaxLength", "maxLength", Form::Any),
    ("MinLength", "minLength", Form::Any),
    ("Pattern", "pattern", Form::Text),
    ("MaxItems", "maxItems", Form::Any),
    ("MinItems", "minItems", Form::Any),
    ("UniqueItems", "uniqueItems", Form::Flag),
    ("MultipleOf", "multipleOf", Form::Any),
    ("Enum", "enum", Form::Any),
    ("MaxProperties", "maxProperties", Form::Any),
    ("MinProperties", "minProperties", Form::Any),
    ("Required", "required", Form::Any),
    ("Items", "items", Form::Items),
    ("AllOf", "allOf", Form::Schemas),
    ("OneOf", "oneOf", Form::Schemas),
    ("AnyOf", "anyOf", Form::Schemas),
    ("Not", "not", Form::Schema),
    ("Properties", "properties", Form::Members),
    (
        "AdditionalProperties",
        "additionalProperties",
        Form::Additional,
    ),
    ("PatternProperties", "patternProperties", Form::Members),
    ("Dependencies", "dependencies", Form::Any),
    ("AdditionalItems", "additionalItems", Form::Additional),
    ("Definitions", "definitions", Form::Members),
    ("ExternalDocs", "externalDocs", Form::Any),
    ("Example", "example", Form::Any),
    (
        "XPreserveUnknownFields",
        "x-kubernetes-preserve-unknown-fields",
        Form::Any,
    ),
    (
        "XEmbeddedResource",
        "x-kubernetes-embedded-resource",
        Form::Flag,
    ),
    ("XIntOrString", "x-kubernetes-int-or-string", Form::Flag),
    ("XListMapKeys", "x-kubernetes-list-map-keys", Form::Any),
    ("XListType", "x-kubernetes-list-type", Form::Any),
    ("XMapType", "x-kubernetes-map-type", Form::Any),
    ("XValidations", "x-kubernetes-validations", Form::Rules),
];

const RULE: &[(&str, &str, Form)] = &[
    ("Rule", "rule", Form::Text),
    ("Message", "message", Form::Text),
    ("MessageExpression", "messageExpression", Form::Text),
    ("Reason", "reason", Form::Any),
    ("FieldPath", "fieldPath", Form::Text),
    ("OptionalOldSelf", "optionalOldSelf", Form::Any),
];

/// A schema as Go prints it.
pub(super) fn shown(schema: &Value) -> String {
    fields(FIELDS, schema)
}

fn fields(table: &[(&str, &str, Form)], object: &Value) -> String {
    let shown = table.iter().map(|(go_name, name, form)| {
        let value = object.get(name).unwrap_or(&Value::Null);
        format!("\"{go_name}\":{}", field(*form, value))
    });
    format!("{{{}}}", shown.collect::<Vec<_>>().join(","))
}

fn field(form: Form, value: &Value) -> String {
    match (form, value) {
        (Form::Text, Value::Null) => "\"\"".to_owned(),
        (Form::Flag, Value::Null) => "false".to_owned(),
        (Form::Schema, Value::Object(_)) => shown(value),
        (Form::Schemas, Value::Array(list)) => array(list, shown),
        (Form::Members, Value::Object(map)) => members(map),
        (Form::Items, Value::Object(_)) => {
            format!("{{\"Schema\":{},\"JSONSchemas\":null}}", shown(value))
        }
        (Form::Additional, Value::Bool(allows)) => {
            format!("{{\"Allows\":{allows},\"Schema\":null}}")
        }
        (Form::Additional, Value::Object(_)) => {
            format!("{{\"Allows\":true,\"Schema\":{}}}", shown(value))
        }
        (Form::Rules, Value::Array(list)) => array(list, |rule| fields(RULE, rule)),
        (
            Form::Text
            | Form::Flag
            | Form::Any
            | Form::Schema
            | Form::Schemas
            | Form::Members
            | Form::Items
            | Form::Additional
            | Form::Rules,
            _,
        ) => value.to_string(),
    }
}

fn array(list: &[Value], shown: impl Fn(&Value) -> String) -> String {
    let shown: Vec<String> = list.iter().map(shown).collect();
    format!("[{}]", shown.join(","))
}

fn members(map: &Map<String, Value>) -> String {
    let shown = map.iter().map(|(name, schema)| {
        let name = json!(name);
        format!("{name}:{}", shown(schema))
    });
    format!("{{{}}}", shown.collect::<Vec<_>>().join(","))
}
