//! Facts about the types of the built-in kinds: the generated table, read once when first asked for.
//!
//! `cargo xtask codegen` writes the table out of the public API packages. What the facts are used
//! for is in `fields`, `protobuf`, `patch/strategic` and `openapi`.

use std::collections::BTreeMap;
use std::sync::LazyLock;

const TABLE: &str = include_str!("generated/facts.txt");

static FACTS: LazyLock<Facts> = LazyLock::new(|| Facts::read(TABLE));

/// All types, in the order of the table.
#[derive(Debug)]
pub(crate) struct Facts {
    types: Vec<Fact>,
    by_name: BTreeMap<&'static str, usize>,
    by_kind: BTreeMap<&'static str, usize>,
}

/// One type that is an object on the wire.
#[derive(Debug)]
pub(crate) struct Fact {
    pub(crate) name: &'static str,
    pub(crate) is_atomic: bool,
    /// The fields of the Go struct: inlined structs are fields here, as they are in protobuf.
    pub(crate) fields: Vec<Field>,
    /// The members in JSON: inlined structs are taken apart.
    pub(crate) members: Vec<Field>,
}

/// One field.
#[derive(Debug, Clone)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "a row of a table: independent yes-or-no columns"
)]
pub(crate) struct Field {
    pub(crate) json: &'static str,
    pub(crate) number: u32,
    pub(crate) shape: Shape,
    pub(crate) is_pointer: bool,
    pub(crate) omits_empty: bool,
    pub(crate) omits_zero: bool,
    pub(crate) is_inline: bool,
    pub(crate) is_required: bool,
    /// `atomic`, `set`, `map:KEYS` or `-`.
    pub(crate) list: &'static str,
    /// Patch strategy, and the merge key after a colon.
    pub(crate) merge: &'static str,
    /// A JSON value or `-`.
    pub(crate) default: &'static str,
}

/// What a field holds.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Shape {
    String,
    Bool,
    Int32,
    Int64,
    Double,
    Bytes,
    Quantity,
    IntOrString,
    Time,
    MicroTime,
    Duration,
    /// Any JSON.
    Raw(Any),
    SchemaOrArray,
    SchemaOrBool,
    SchemaOrStrings,
    List(Box<Shape>),
    /// A map from strings.
    Map(Box<Shape>),
    /// A list that is a message of its own in protobuf.
    Wrapped(Box<Shape>),
    /// The type of this name.
    Object(&'static str),
}

/// Types that are written as the JSON that they hold; they are told under different names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Any {
    /// An object: `runtime.RawExtension`.
    Extension,
    /// An object: `v1.FieldsV1`.
    Fields,
    /// Any value: `v1.JSON` of apiextensions.
    Json,
}

/// The facts.
pub(crate) fn facts() -> &'static Facts {
    &FACTS
}

/// The table as it was generated.
pub(crate) fn table() -> &'static [u8] {
    TABLE.as_bytes()
}

impl Facts {
    /// The type of a kind.
    pub(crate) fn kind(&self, group: &str, version: &str, kind: &str) -> Option<&Fact> {
        let key = format!("{group}/{version}/{kind}");
        self.by_kind
            .get(key.as_str())
            .map(|index| &self.types[*index])
    }

    /// Every kind, as `group/version/kind`.
    #[cfg(test)]
    pub(crate) fn kinds(&self) -> impl Iterator<Item = (&'static str, &Fact)> {
        let kinds = self.by_kind.iter();
        kinds.map(|(key, index)| (*key, &self.types[*index]))
    }

    /// The type of this name.
    pub(crate) fn named(&self, name: &str) -> &Fact {
        let index = self
            .by_name
            .get(name)
            .expect("the table is closed: a test follows every name");
        &self.types[*index]
    }

    fn read(table: &'static str) -> Self {
        let mut types: Vec<Fact> = Vec::new();
        let mut by_kind = BTreeMap::new();
        for text in table.lines() {
            if let Some(field) = text.strip_prefix('\t') {
                let own = types.last_mut().expect("a type comes before its fields");
                own.fields.push(Field::read(field));
                continue;
            }
            let mut columns = text.split('\t');
            let name = columns.next().unwrap_or("");
            let kind = columns.next().unwrap_or("-");
            if kind != "-" {
                by_kind.insert(kind, types.len());
            }
            types.push(Fact {
                name,
                is_atomic: columns.next() == Some("atomic"),
                fields: Vec::new(),
                members: Vec::new(),
            });
        }
        let by_name = types
            .iter()
            .enumerate()
            .map(|(index, fact)| (fact.name, index))
            .collect();
        let mut facts = Self {
            types,
            by_name,
            by_kind,
        };
        let members: Vec<_> = facts.types.iter().map(|fact| facts.flat(fact)).collect();
        for (fact, members) in facts.types.iter_mut().zip(members) {
            fact.members = members;
        }
        facts
    }

    fn flat(&self, fact: &Fact) -> Vec<Field> {
        let mut members = Vec::new();
        for field in &fact.fields {
            if let Shape::Object(name) = &field.shape
                && field.is_inline
            {
                members.extend(self.flat(self.named(name)));
            } else {
                members.push(field.clone());
            }
        }
        members
    }
}

impl Fact {
    /// The member of this name.
    pub(crate) fn member(&self, json: &str) -> Option<&Field> {
        self.members.iter().find(|member| member.json == json)
    }

    /// The Go name: the last part of the name.
    pub(crate) fn go_name(&self) -> &'static str {
        self.name.rsplit('.').next().unwrap_or(self.name)
    }
}

impl Field {
    fn read(text: &'static str) -> Self {
        let mut columns = text.split('\t');
        let mut next = || columns.next().unwrap_or("-");
        let json = next();
        let number = next().parse().unwrap_or(0);
        let shape = Shape::read(next());
        let flags = next();
        Self {
            json,
            number,
            shape,
            is_pointer: flags.contains('p'),
            omits_empty: flags.contains('o'),
            omits_zero: flags.contains('z'),
            is_inline: flags.contains('i'),
            is_required: flags.contains('r'),
            list: next(),
            merge: next(),
            default: next(),
        }
    }
}

impl Shape {
    fn read(text: &'static str) -> Self {
        let inner = |text| Box::new(Self::read(text));
        if let Some(rest) = text.strip_prefix("[]") {
            return Self::List(inner(rest));
        }
        if let Some(rest) = text.strip_prefix("map:") {
            return Self::Map(inner(rest));
        }
        if let Some(rest) = text.strip_prefix("wrapped:") {
            return Self::Wrapped(inner(rest));
        }
        if let Some(name) = text.strip_prefix('@') {
            return Self::Object(name);
        }
        match text {
            "bool" => Self::Bool,
            "int32" => Self::Int32,
            "int64" => Self::Int64,
            "float64" => Self::Double,
            "bytes" => Self::Bytes,
            "quantity" => Self::Quantity,
            "intorstring" => Self::IntOrString,
            "time" => Self::Time,
            "microtime" => Self::MicroTime,
            "duration" => Self::Duration,
            "raw" => Self::Raw(Any::Extension),
            "fieldsv1" => Self::Raw(Any::Fields),
            "json" => Self::Raw(Any::Json),
            "schemaorarray" => Self::SchemaOrArray,
            "schemaorbool" => Self::SchemaOrBool,
            "schemaorstrings" => Self::SchemaOrStrings,
            _ => Self::String,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_in_the_table_leads_to_a_type() {
        fn check(shape: &Shape) {
            if let Shape::List(inner) | Shape::Map(inner) | Shape::Wrapped(inner) = shape {
                check(inner);
            } else if let Shape::Object(name) = shape {
                assert_eq!(facts().named(name).name, *name);
            }
        }
        for fact in &facts().types {
            fact.fields.iter().for_each(|field| check(&field.shape));
        }
    }

    #[test]
    fn inlined_types_are_taken_apart_in_json_and_kept_in_protobuf() {
        let volume = facts().named("core.v1.Volume");
        assert!(volume.member("hostPath").is_some());
        assert!(
            volume
                .fields
                .iter()
                .any(|field| field.is_inline && field.number == 2)
        );
    }
}
