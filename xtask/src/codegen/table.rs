//! The tables that are written: one line per type and per field, tab-separated, in a fixed order.
//!
//! ```text
//! TYPE   [GROUP/VERSION/KIND] [map-type]
//! <tab>JSON NUMBER TYPE FLAGS LIST MERGE DEFAULT
//! ```
//! Flags: `p` pointer, `o` omitempty, `z` omitzero, `i` inline, `r` required. List: `atomic`, `set`
//! or `map:KEYS`. Merge: patch strategy and key. An empty column is `-`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::go::{Declaration, Field, GoType, Source};
use super::openapi::{Documents, schema_name};

/// Types with a form of their own on the wire.
const SPECIAL: &[(&str, &str, &str)] = &[
    (
        "k8s.io/apimachinery/pkg/api/resource",
        "Quantity",
        "quantity",
    ),
    (
        "k8s.io/apimachinery/pkg/util/intstr",
        "IntOrString",
        "intorstring",
    ),
    ("k8s.io/apimachinery/pkg/apis/meta/v1", "Time", "time"),
    (
        "k8s.io/apimachinery/pkg/apis/meta/v1",
        "MicroTime",
        "microtime",
    ),
    (
        "k8s.io/apimachinery/pkg/apis/meta/v1",
        "Duration",
        "duration",
    ),
    (
        "k8s.io/apimachinery/pkg/apis/meta/v1",
        "FieldsV1",
        "fieldsv1",
    ),
    ("k8s.io/apimachinery/pkg/runtime", "RawExtension", "raw"),
    (
        "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1",
        "JSON",
        "json",
    ),
    (
        "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1",
        "JSONSchemaPropsOrArray",
        "schemaorarray",
    ),
    (
        "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1",
        "JSONSchemaPropsOrBool",
        "schemaorbool",
    ),
    (
        "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1",
        "JSONSchemaPropsOrStringArray",
        "schemaorstrings",
    ),
    ("k8s.io/apimachinery/pkg/types", "UID", "string"),
    ("k8s.io/apimachinery/pkg/types", "NodeName", "string"),
];

/// Makes the tables of these kinds and everything that they are made of.
pub(super) fn make(
    source: &mut Source,
    documents: &Documents,
    roots: &[(&str, &[&str])],
) -> Result<String> {
    let mut waiting: BTreeSet<(String, String)> = roots
        .iter()
        .flat_map(|(package, kinds)| kinds.iter().map(|kind| ((*package).into(), (*kind).into())))
        .collect();
    let mut types: BTreeMap<String, Lines> = BTreeMap::new();
    let mut around: BTreeMap<String, String> = BTreeMap::new();
    while let Some((package, name)) = waiting.pop_first() {
        let key = schema_name(&package, &name);
        if types.contains_key(&key) {
            continue;
        }
        let mut maker = Maker {
            source,
            wanted: Vec::new(),
            is_inline: false,
        };
        // Inlined types have no schema of their own: their fields are those of the type around.
        let schema = documents.schema(around.get(&key).unwrap_or(&key));
        let lines = maker
            .lines(&package, &name, schema)
            .with_context(|| key.clone())?;
        for (package, name, is_inline) in maker.wanted {
            let wanted = schema_name(&package, &name);
            if is_inline && documents.schema(&wanted).is_null() {
                around.entry(wanted).or_insert_with(|| key.clone());
            }
            waiting.insert((package, name));
        }
        types.insert(key, lines);
    }
    let mut facts = String::new();
    for (key, lines) in types {
        let short = short_name(&key);
        writeln!(facts, "{short}{}", lines.head)?;
        for fact in lines.fields {
            writeln!(facts, "\t{fact}")?;
        }
    }
    Ok(facts)
}

struct Lines {
    head: String,
    fields: Vec<String>,
}

struct Maker<'a> {
    source: &'a mut Source,
    wanted: Vec<(String, String, bool)>,
    is_inline: bool,
}

impl Maker<'_> {
    fn lines(&mut self, package: &str, name: &str, schema: &Value) -> Result<Lines> {
        let Declaration::Struct(fields) = self.source.declaration(package, name)? else {
            bail!("not a struct");
        };
        let kind = schema["x-kubernetes-group-version-kind"]
            .as_array()
            .and_then(|list| {
                list.iter()
                    .find(|kind| kind["kind"] == name && list.len() == 1)
            });
        let kind = kind.map_or("-".to_owned(), |kind| {
            let text = |member: &str| kind[member].as_str().unwrap_or("").to_owned();
            format!("{}/{}/{}", text("group"), text("version"), text("kind"))
        });
        let map_type = text_or_dash(&schema["x-kubernetes-map-type"]);
        let fields = fields
            .iter()
            .map(|field| self.field(field, schema))
            .collect::<Result<_>>()?;
        Ok(Lines {
            head: format!("\t{kind}\t{map_type}"),
            fields,
        })
    }

    fn field(&mut self, field: &Field, schema: &Value) -> Result<String> {
        let property = &schema["properties"][&field.json];
        let is_inline = field.json.is_empty();
        self.is_inline = is_inline;
        let mut flags = String::new();
        let go_type = match &field.go_type {
            GoType::Pointer(inner) => {
                flags.push('p');
                inner
            }
            other @ (GoType::List(_) | GoType::Map(_) | GoType::Name(..)) => other,
        };
        let has = |option: &str| field.options.iter().any(|own| own == option);
        let required = schema["required"].as_array();
        let is_required = required.is_some_and(|list| list.iter().any(|own| *own == field.json));
        for (letter, is_set) in [
            ('o', has("omitempty")),
            ('z', has("omitzero")),
            ('i', is_inline),
            ('r', is_required),
        ] {
            if is_set {
                flags.push(letter);
            }
        }
        let columns = [
            dash(&field.json),
            field.number.to_string(),
            self.type_text(go_type)?,
            dash(&flags),
            list_text(property),
            merge_text(property),
            default_text(&property["default"]),
        ];
        Ok(columns.join("\t"))
    }

    fn type_text(&mut self, go_type: &GoType) -> Result<String> {
        Ok(match go_type {
            GoType::Pointer(inner) => self.type_text(inner)?,
            GoType::List(inner) => match &**inner {
                GoType::Name(package, name) if package.is_empty() && name == "byte" => {
                    "bytes".to_owned()
                }
                inner => format!("[]{}", self.type_text(inner)?),
            },
            GoType::Map(value) => format!("map:{}", self.type_text(value)?),
            GoType::Name(package, name) if package.is_empty() => match name.as_str() {
                "string" | "bool" | "int32" | "int64" | "float64" => name.clone(),
                "int" => "int64".to_owned(),
                other => bail!("the predeclared type {other} is not known"),
            },
            GoType::Name(package, name) => self.named(package, name)?,
        })
    }

    fn named(&mut self, package: &str, name: &str) -> Result<String> {
        let special = SPECIAL
            .iter()
            .find(|(own, special, _)| *own == package && *special == name);
        if let Some((_, _, text)) = special {
            return Ok((*text).to_owned());
        }
        match self.source.declaration(package, name)? {
            Declaration::Struct(_) => {
                let wanted = (package.to_owned(), name.to_owned(), self.is_inline);
                self.wanted.push(wanted);
                Ok(format!("@{}", short_name(&schema_name(package, name))))
            }
            // Protobuf has no named lists: they are messages with one repeated field.
            Declaration::Named(target @ GoType::List(_)) if name != "ValidationRules" => {
                Ok(format!("wrapped:{}", self.type_text(&target)?))
            }
            Declaration::Named(target) => self.type_text(&target),
        }
    }
}

/// Names are long and many: the two common prefixes go.
fn short_name(key: &str) -> String {
    key.trim_start_matches("io.k8s.api.").to_owned()
}

fn list_text(property: &Value) -> String {
    let keys = property["x-kubernetes-list-map-keys"].as_array();
    match property["x-kubernetes-list-type"].as_str() {
        Some("map") => {
            let keys: Vec<&str> = keys
                .into_iter()
                .flatten()
                .filter_map(Value::as_str)
                .collect();
            format!("map:{}", keys.join(","))
        }
        Some(other) => other.to_owned(),
        None => text_or_dash(&property["x-kubernetes-map-type"]),
    }
}

fn merge_text(property: &Value) -> String {
    let strategy = property["x-kubernetes-patch-strategy"].as_str();
    let key = property["x-kubernetes-patch-merge-key"].as_str();
    match (strategy, key) {
        (None, _) => "-".to_owned(),
        (Some(strategy), None) => strategy.to_owned(),
        (Some(strategy), Some(key)) => format!("{strategy}:{key}"),
    }
}

/// The empty object and zero values are no facts: every generator writes them.
fn default_text(default: &Value) -> String {
    let is_zero = match default {
        Value::Null => true,
        Value::Object(map) => map.is_empty(),
        Value::String(text) => text.is_empty(),
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::Bool(value) => !value,
        Value::Array(_) => false,
    };
    if is_zero {
        "-".to_owned()
    } else {
        default.to_string()
    }
}

fn text_or_dash(value: &Value) -> String {
    dash(value.as_str().unwrap_or(""))
}

fn dash(text: &str) -> String {
    if text.is_empty() {
        "-".to_owned()
    } else {
        text.to_owned()
    }
}
