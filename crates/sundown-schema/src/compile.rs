//! From `openAPIV3Schema` to the compiled form. Equal schemas become one node, so that the pod
//! template that a large definition repeats for each of its groups costs its memory once.
//!
//! Total: what is not a structural schema is told by `structural`, and compiles to something.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::sync::Arc;

use serde_json::{Map, Value};

use crate::Schema;
use crate::cel::Rule;
use crate::choices::Choices;
use crate::node::{Additional, Checks, Kind, ListType, Node, Ref};
use crate::pattern::Pattern;

/// Compiles the schemas of one definition, which share what is equal.
#[derive(Debug, Default)]
pub struct Compiler {
    nodes: BTreeMap<String, Ref>,
    names: BTreeSet<Arc<str>>,
}

/// Members that change nothing of what a schema means here.
const WORDS: &[&str] = &["description", "title", "example", "externalDocs"];

impl Compiler {
    /// Compiles one schema.
    pub fn compile(&mut self, schema: &Value) -> Schema {
        Schema {
            root: self.node(schema),
        }
    }

    fn node(&mut self, schema: &Value) -> Ref {
        let Some(members) = schema.as_object() else {
            return Arc::default();
        };
        let mut key = String::new();
        let mut node = Node::default();
        let properties = members.get("properties").and_then(Value::as_object);
        let properties = properties.into_iter().flatten().map(|(name, schema)| {
            let schema = self.node(schema);
            (self.name(name), schema)
        });
        node.properties = properties.collect();
        node.items = members.get("items").map(|items| self.node(items));
        node.additional = match members.get("additionalProperties") {
            None => Additional::Unsaid,
            Some(Value::Bool(true)) => Additional::Any,
            Some(Value::Bool(false)) => Additional::Never,
            Some(schema) => Additional::Of(self.node(schema)),
        };
        for (name, schema) in &node.properties {
            write!(key, "{name}@{:p};", Arc::as_ptr(schema)).expect("text takes all");
        }
        if let Some(items) = &node.items {
            write!(key, "[]@{:p};", Arc::as_ptr(items)).expect("text takes all");
        }
        if let Additional::Of(schema) = &node.additional {
            write!(key, "{{}}@{:p};", Arc::as_ptr(schema)).expect("text takes all");
        }
        for (name, value) in members {
            let is_child = ["properties", "items"].contains(&&**name)
                || (name == "additionalProperties" && value.is_object());
            if !is_child && !WORDS.contains(&&**name) {
                write!(key, "{name}={value};").expect("text takes all");
            }
        }
        if let Some(known) = self.nodes.get(&key) {
            return Arc::clone(known);
        }
        self.fill(&mut node, members);
        let node = Arc::new(node);
        self.nodes.insert(key, Arc::clone(&node));
        node
    }

    fn fill(&mut self, node: &mut Node, members: &Map<String, Value>) {
        let flag = |name: &str| members.get(name).and_then(Value::as_bool) == Some(true);
        node.kind = members
            .get("type")
            .and_then(Value::as_str)
            .and_then(Kind::read);
        node.is_nullable = flag("nullable");
        node.is_int_or_string = flag("x-kubernetes-int-or-string");
        node.preserves_unknown = flag("x-kubernetes-preserve-unknown-fields");
        node.is_embedded = flag("x-kubernetes-embedded-resource");
        node.required = self.names_of(members, "required");
        node.default = members.get("default").cloned().map(Box::new);
        node.list = match members
            .get("x-kubernetes-list-type")
            .and_then(Value::as_str)
        {
            Some("set") => ListType::Set,
            Some("map") => ListType::Map(self.names_of(members, "x-kubernetes-list-map-keys")),
            Some(_) | None => ListType::Atomic,
        };
        node.checks = self.checks(members).map(Box::new);
        let rules = members
            .get("x-kubernetes-validations")
            .and_then(Value::as_array);
        node.rules = rules.into_iter().flatten().map(Rule::read).collect();
        let additional = match &node.additional {
            Additional::Of(schema) => Some(schema),
            Additional::Unsaid | Additional::Any | Additional::Never => None,
        };
        let properties = node.properties.iter().map(|(_, schema)| schema);
        let below: Vec<&Ref> = properties.chain(additional).chain(&node.items).collect();
        node.has_defaults = node.default.is_some() || below.iter().any(|it| it.has_defaults);
        node.has_embedded = node.is_embedded || below.iter().any(|it| it.has_embedded);
        node.has_rules = !node.rules.is_empty() || below.iter().any(|it| it.has_rules);
    }

    fn checks(&mut self, members: &Map<String, Value>) -> Option<Checks> {
        const NAMES: &[&str] = &[
            "format",
            "maximum",
            "minimum",
            "multipleOf",
            "maxLength",
            "minLength",
            "maxItems",
            "minItems",
            "maxProperties",
            "minProperties",
            "pattern",
            "enum",
            "allOf",
            "anyOf",
            "oneOf",
            "not",
        ];
        if !NAMES.iter().any(|name| members.contains_key(*name)) {
            return None;
        }
        let flag = |name: &str| members.get(name).and_then(Value::as_bool) == Some(true);
        let float = |name: &str| members.get(name).and_then(Value::as_f64);
        let count = |name: &str| members.get(name).and_then(Value::as_u64);
        let text = |name: &str| members.get(name).and_then(Value::as_str);
        let choices = members.get("enum").and_then(Value::as_array);
        Some(Checks {
            format: text("format").map(Into::into),
            maximum: float("maximum"),
            is_maximum_exclusive: flag("exclusiveMaximum"),
            minimum: float("minimum"),
            is_minimum_exclusive: flag("exclusiveMinimum"),
            multiple_of: float("multipleOf"),
            length_max: count("maxLength"),
            length_min: count("minLength"),
            items_max: count("maxItems"),
            items_min: count("minItems"),
            properties_max: count("maxProperties"),
            properties_min: count("minProperties"),
            pattern: text("pattern").map(Pattern::new),
            choices: choices.map(|it| Choices::new(it)).unwrap_or_default(),
            all_of: self.nodes_of(members, "allOf"),
            any_of: self.nodes_of(members, "anyOf"),
            one_of: self.nodes_of(members, "oneOf"),
            not: members.get("not").map(|schema| self.node(schema)),
        })
    }

    fn nodes_of(&mut self, members: &Map<String, Value>, name: &str) -> Box<[Ref]> {
        let schemas = members.get(name).and_then(Value::as_array);
        let schemas = schemas.into_iter().flatten();
        schemas.map(|schema| self.node(schema)).collect()
    }

    fn names_of(&mut self, members: &Map<String, Value>, name: &str) -> Box<[Arc<str>]> {
        let texts = members.get(name).and_then(Value::as_array);
        let texts = texts.into_iter().flatten().filter_map(Value::as_str);
        texts.map(|text| self.name(text)).collect()
    }

    fn name(&mut self, name: &str) -> Arc<str> {
        if let Some(known) = self.names.get(name) {
            return Arc::clone(known);
        }
        let name: Arc<str> = name.into();
        self.names.insert(Arc::clone(&name));
        name
    }
}
