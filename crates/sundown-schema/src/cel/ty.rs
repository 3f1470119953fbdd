//! The types of expressions, what fits where, and what schemas declare.

use std::collections::BTreeMap;
use std::fmt;
use std::rc::Rc;

use serde_json::Value;

use super::estimate::Size;

/// The type of an expression.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Ty {
    Dyn,
    Null,
    Bool,
    Int,
    Uint,
    Double,
    Text,
    Bytes,
    Duration,
    Time,
    List(Rc<Ty>),
    Map(Rc<Ty>, Rc<Ty>),
    Object(Rc<Decl>),
    Optional(Rc<Ty>),
    /// A type as a value.
    Type,
    /// A type of a library, such as `net.IP`.
    Opaque(&'static str),
    /// A parameter of a declaration, such as A in `list<A>`.
    Param(char),
}

/// What a schema declares: a type, and how large its values may be.
#[derive(Debug)]
pub(crate) struct Decl {
    ty: Shape,
    /// As many items, members or bytes as a value may have.
    pub(crate) count_max: u64,
    /// The fewest bytes that a value takes in a request.
    pub(crate) bytes_min: u64,
    pub(crate) fields: BTreeMap<String, Rc<Decl>>,
    /// The items of a list, the values of a map.
    pub(crate) items: Option<Rc<Decl>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shape {
    Dyn,
    Bool,
    Int,
    Double,
    Text,
    Bytes,
    Duration,
    Time,
    List,
    Map,
    Object,
}

/// The largest request that upstream takes.
pub(crate) const REQUEST_BYTES_MAX: u64 = 3 * 1024 * 1024;

impl PartialEq for Decl {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self, other)
    }
}

impl Decl {
    fn plain(ty: Shape, bytes_min: u64, count_max: u64) -> Self {
        Self {
            ty,
            count_max,
            bytes_min,
            fields: BTreeMap::new(),
            items: None,
        }
    }

    /// What a schema declares; None if rules cannot see it.
    pub(crate) fn of(schema: &Value, is_root: bool) -> Option<Rc<Self>> {
        let count = |name: &str| schema.get(name).and_then(Value::as_u64);
        let text = |name: &str| schema.get(name).and_then(Value::as_str).unwrap_or("");
        if schema.get("x-kubernetes-int-or-string") == Some(&Value::Bool(true)) {
            let length =
                count("maxLength").map_or(REQUEST_BYTES_MAX - 2, |it| it.saturating_mul(4));
            return Some(Rc::new(Self::plain(Shape::Dyn, 1, length)));
        }
        Some(Rc::new(match text("type") {
            "array" => {
                let items = below(schema.get("items")?)?;
                let fitting = (REQUEST_BYTES_MAX - 2) / (items.bytes_min + 1);
                Self {
                    items: Some(items),
                    ..Self::plain(Shape::List, 2, count("maxItems").unwrap_or(fitting))
                }
            }
            "object" => match schema
                .get("additionalProperties")
                .filter(|it| it.is_object())
            {
                Some(values) => {
                    let values = below(values)?;
                    let fitting = (REQUEST_BYTES_MAX - 2) / (values.bytes_min + 6);
                    Self {
                        items: Some(values),
                        ..Self::plain(Shape::Map, 2, count("maxProperties").unwrap_or(fitting))
                    }
                }
                None => Self::object(schema, is_root),
            },
            "string" => Self::text(schema, text("format"), count("maxLength")),
            "boolean" => Self::plain(Shape::Bool, 4, 0),
            "number" => Self::plain(Shape::Double, 1, 0),
            "integer" => Self::plain(Shape::Int, 1, 0),
            _ => return None,
        }))
    }

    fn text(schema: &Value, format: &str, length_max: Option<u64>) -> Self {
        match format {
            "byte" => Self::plain(Shape::Bytes, 2, length_max.unwrap_or(REQUEST_BYTES_MAX - 2)),
            "duration" => Self::plain(Shape::Duration, 3, 32),
            "date" => Self::plain(Shape::Time, 12, 12),
            "date-time" => Self::plain(Shape::Time, 21, 32),
            _ => {
                let choices = schema.get("enum").and_then(Value::as_array);
                let longest = choices.map(|choices| {
                    let lengths = choices.iter().filter_map(Value::as_str).map(str::len);
                    lengths.max().unwrap_or(0) as u64
                });
                let length = match (length_max, longest) {
                    (Some(length), _) => length.saturating_mul(4),
                    (None, Some(longest)) => longest,
                    (None, None) => REQUEST_BYTES_MAX - 2,
                };
                Self::plain(Shape::Text, 2, length)
            }
        }
    }

    fn object(schema: &Value, is_root: bool) -> Self {
        let required = schema.get("required").and_then(Value::as_array);
        let is_required = |name: &str| required.is_some_and(|it| it.iter().any(|it| it == name));
        let mut object = Self::plain(Shape::Object, 2, 0);
        let properties = schema.get("properties").and_then(Value::as_object);
        for (name, property) in properties.into_iter().flatten() {
            let Some(field) = below(property) else {
                continue;
            };
            if is_required(name) && property.get("default").is_none() {
                object.bytes_min += name.len() as u64 + field.bytes_min + 4;
            }
            object.fields.insert(name.clone(), field);
        }
        if is_root {
            let text = || Rc::new(Self::plain(Shape::Text, 2, REQUEST_BYTES_MAX - 2));
            let mut metadata = Self::plain(Shape::Object, 2, 0);
            for name in ["name", "generateName"] {
                metadata.fields.insert(name.to_owned(), text());
            }
            object.fields.insert("apiVersion".into(), text());
            object.fields.insert("kind".into(), text());
            object.fields.insert("metadata".into(), Rc::new(metadata));
        }
        object
    }

    /// How large a value may be.
    pub(crate) fn size(&self) -> Size {
        Size {
            min: 0,
            max: self.count_max,
        }
    }

    /// The type of a declaration.
    pub(crate) fn ty(self: &Rc<Self>) -> Ty {
        let inner = || Rc::new(self.items.as_ref().map_or(Ty::Dyn, Decl::ty));
        match self.ty {
            Shape::Dyn => Ty::Dyn,
            Shape::Bool => Ty::Bool,
            Shape::Int => Ty::Int,
            Shape::Double => Ty::Double,
            Shape::Text => Ty::Text,
            Shape::Bytes => Ty::Bytes,
            Shape::Duration => Ty::Duration,
            Shape::Time => Ty::Time,
            Shape::List => Ty::List(inner()),
            Shape::Map => Ty::Map(Rc::new(Ty::Text), inner()),
            Shape::Object => Ty::Object(Rc::clone(self)),
        }
    }
}

fn below(schema: &Value) -> Option<Rc<Decl>> {
    let is_root = schema.get("x-kubernetes-embedded-resource") == Some(&Value::Bool(true));
    Decl::of(schema, is_root)
}

/// The parameters of a declaration and what stands for them.
pub(crate) type Bound = BTreeMap<char, Ty>;

impl Ty {
    pub(crate) fn list(of: Ty) -> Self {
        Self::List(Rc::new(of))
    }

    /// Whether null may stand for a value of the type.
    fn takes_null(&self) -> bool {
        matches!(
            self,
            Self::Null
                | Self::Object(_)
                | Self::Opaque(_)
                | Self::Duration
                | Self::Time
                | Self::Optional(_)
        )
    }

    /// Whether a value of one length or number.
    pub(crate) fn is_scalar(&self) -> bool {
        matches!(
            self,
            Self::Bool
                | Self::Int
                | Self::Uint
                | Self::Double
                | Self::Duration
                | Self::Time
                | Self::Null
                | Self::Type
        )
    }

    /// Whether a value of type `found` can be given where this type is declared.
    pub(crate) fn takes(&self, found: &Ty, bound: &mut Bound) -> bool {
        match (self, found) {
            (Self::Param(name), _) => match bound.get(name).cloned() {
                None => {
                    bound.insert(*name, found.clone());
                    true
                }
                Some(before) => match joined(&before, found) {
                    Some(both) => {
                        bound.insert(*name, both);
                        true
                    }
                    None => false,
                },
            },
            (Self::Dyn, _) | (_, Self::Dyn) => true,
            (_, Self::Null) => self.takes_null(),
            (Self::List(own), Self::List(other)) | (Self::Optional(own), Self::Optional(other)) => {
                own.takes(other, bound)
            }
            (Self::Map(key, value), Self::Map(other_key, other)) => {
                key.takes(other_key, bound) && value.takes(other, bound)
            }
            _ => self == found,
        }
    }

    /// The type with its parameters replaced.
    pub(crate) fn with(&self, bound: &Bound) -> Ty {
        match self {
            Self::Param(name) => bound.get(name).cloned().unwrap_or(Self::Dyn),
            Self::List(of) => Self::list(of.with(bound)),
            Self::Optional(of) => Self::Optional(Rc::new(of.with(bound))),
            Self::Map(key, value) => {
                Self::Map(Rc::new(key.with(bound)), Rc::new(value.with(bound)))
            }
            _ => self.clone(),
        }
    }
}

/// The type of values that are of one of two types; None if they have nothing in common.
pub(crate) fn joined(one: &Ty, two: &Ty) -> Option<Ty> {
    match (one, two) {
        (Ty::Dyn, _) | (_, Ty::Dyn) => Some(Ty::Dyn),
        (Ty::Null, other) | (other, Ty::Null) => other.takes_null().then(|| other.clone()),
        (Ty::List(one), Ty::List(two)) => Some(Ty::list(joined(one, two)?)),
        (Ty::Optional(one), Ty::Optional(two)) => Some(Ty::Optional(Rc::new(joined(one, two)?))),
        (Ty::Map(key, value), Ty::Map(other_key, other)) => Some(Ty::Map(
            Rc::new(joined(key, other_key)?),
            Rc::new(joined(value, other)?),
        )),
        _ => (one == two).then(|| one.clone()),
    }
}

impl fmt::Display for Ty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Dyn => f.write_str("dyn"),
            Self::Null => f.write_str("null"),
            Self::Bool => f.write_str("bool"),
            Self::Int => f.write_str("int"),
            Self::Uint => f.write_str("uint"),
            Self::Double => f.write_str("double"),
            Self::Text => f.write_str("string"),
            Self::Bytes => f.write_str("bytes"),
            Self::Duration => f.write_str("duration"),
            Self::Time => f.write_str("timestamp"),
            Self::List(of) => write!(f, "list({of})"),
            Self::Map(key, value) => write!(f, "map({key}, {value})"),
            Self::Object(_) => f.write_str("object"),
            Self::Optional(of) => write!(f, "optional_type({of})"),
            Self::Type => f.write_str("type"),
            Self::Opaque(name) => f.write_str(name),
            Self::Param(name) => write!(f, "{name}"),
        }
    }
}
