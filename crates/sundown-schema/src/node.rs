//! A schema in its compiled form: small, shared, without descriptions.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::Value;

use crate::cel::Rule;
use crate::choices::Choices;
use crate::pattern::Pattern;

pub(crate) type Ref = Arc<Node>;

/// One schema.
#[derive(Debug, Default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "independent yes-or-no members of the schema"
)]
pub(crate) struct Node {
    pub(crate) kind: Option<Kind>,
    pub(crate) is_nullable: bool,
    pub(crate) is_int_or_string: bool,
    pub(crate) preserves_unknown: bool,
    pub(crate) is_embedded: bool,
    /// Whether this schema or any below it says that a resource stands there.
    pub(crate) has_embedded: bool,
    /// Whether any schema at or below this one has a default.
    pub(crate) has_defaults: bool,
    /// Whether any schema at or below this one has rules.
    pub(crate) has_rules: bool,
    /// In order of their names.
    pub(crate) properties: Box<[(Arc<str>, Ref)]>,
    pub(crate) additional: Additional,
    pub(crate) items: Option<Ref>,
    pub(crate) required: Box<[Arc<str>]>,
    pub(crate) list: ListType,
    pub(crate) default: Option<Box<Value>>,
    pub(crate) checks: Option<Box<Checks>>,
    pub(crate) rules: Box<[Rule]>,
}

/// The type of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Object,
    Array,
    String,
    Integer,
    Number,
    Boolean,
}

/// What members of a map beyond its properties are.
#[derive(Debug, Default)]
pub(crate) enum Additional {
    #[default]
    Unsaid,
    /// `true`.
    Any,
    /// `false`.
    Never,
    Of(Ref),
}

/// How items of a list are told apart.
#[derive(Debug, Default)]
pub(crate) enum ListType {
    #[default]
    Atomic,
    Set,
    Map(Box<[Arc<str>]>),
}

/// The rarer members of a schema.
#[derive(Debug, Default)]
pub(crate) struct Checks {
    pub(crate) format: Option<Box<str>>,
    pub(crate) maximum: Option<f64>,
    pub(crate) is_maximum_exclusive: bool,
    pub(crate) minimum: Option<f64>,
    pub(crate) is_minimum_exclusive: bool,
    pub(crate) multiple_of: Option<f64>,
    pub(crate) length_max: Option<u64>,
    pub(crate) length_min: Option<u64>,
    pub(crate) items_max: Option<u64>,
    pub(crate) items_min: Option<u64>,
    pub(crate) properties_max: Option<u64>,
    pub(crate) properties_min: Option<u64>,
    pub(crate) pattern: Option<Pattern>,
    pub(crate) choices: Choices,
    pub(crate) all_of: Box<[Ref]>,
    pub(crate) any_of: Box<[Ref]>,
    pub(crate) one_of: Box<[Ref]>,
    pub(crate) not: Option<Ref>,
}

impl Node {
    pub(crate) fn property(&self, name: &str) -> Option<&Ref> {
        let found = self
            .properties
            .binary_search_by(|(own, _)| (**own).cmp(name))
            .ok()?;
        Some(&self.properties[found].1)
    }

    /// The schema of a member of a map.
    pub(crate) fn member(&self, name: &str) -> Option<&Ref> {
        self.property(name).or(match &self.additional {
            Additional::Of(schema) => Some(schema),
            Additional::Unsaid | Additional::Any | Additional::Never => None,
        })
    }

    pub(crate) fn visit(self: &Arc<Self>, seen: &mut BTreeSet<usize>) {
        if !seen.insert(Arc::as_ptr(self) as usize) {
            return;
        }
        let additional = match &self.additional {
            Additional::Of(schema) => Some(schema),
            Additional::Unsaid | Additional::Any | Additional::Never => None,
        };
        let properties = self.properties.iter().map(|(_, schema)| schema);
        for schema in properties.chain(additional).chain(&self.items) {
            schema.visit(seen);
        }
    }
}

impl Kind {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Object => "object",
            Self::Array => "array",
            Self::String => "string",
            Self::Integer => "integer",
            Self::Number => "number",
            Self::Boolean => "boolean",
        }
    }

    pub(crate) fn read(name: &str) -> Option<Self> {
        Some(match name {
            "object" => Self::Object,
            "array" => Self::Array,
            "string" => Self::String,
            "integer" => Self::Integer,
            "number" => Self::Number,
            "boolean" => Self::Boolean,
            _ => return None,
        })
    }
}
