//! The serializer of flight records: a text is hidden unless the type and the field that it stands in
//! are on the list in `shown`. Names of variants, numbers and truth values are always shown.

use serde::ser::{
    Error as _, Serialize, SerializeMap, SerializeSeq, SerializeStruct, SerializeStructVariant,
    SerializeTuple, SerializeTupleStruct, SerializeTupleVariant, Serializer,
};
use serde_json::{Error, Map, Value};

use super::shown;
use super::veil::Veil;

/// What becomes of the texts in one place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rule {
    Hide,
    Show,
    /// JSON of a Kubernetes object: its fields have a list of their own.
    Fields,
    /// Pairs of a name, which is shown, and of something that is not.
    Named,
    /// Hidden with its form.
    Whole,
    /// Nothing is left to hide.
    Done,
}

/// Anything that can be recorded, as JSON without hidden texts.
pub(super) fn value<T: Serialize + ?Sized>(
    veil: &Veil,
    rule: Rule,
    it: &T,
) -> Result<Value, Error> {
    match rule {
        Rule::Hide | Rule::Show | Rule::Named => it.serialize(Hiding { veil, rule }),
        Rule::Done => serde_json::to_value(it),
        Rule::Whole => Ok(veil.hide_whole(&serde_json::to_value(it)?)),
        Rule::Fields => {
            let mut json = serde_json::to_value(it)?;
            veil.over_fields(&mut json);
            Ok(json)
        }
    }
}

/// One value on its way into a record.
#[derive(Clone, Copy)]
struct Hiding<'a> {
    veil: &'a Veil,
    rule: Rule,
}

impl<'a> Hiding<'a> {
    fn text(self, text: &str) -> String {
        match self.rule {
            Rule::Show | Rule::Done => text.to_owned(),
            Rule::Hide | Rule::Named | Rule::Fields | Rule::Whole => self.veil.hide(text),
        }
    }

    /// A list; below a variant it becomes the content of that variant.
    fn items(self, variant: Option<&'static str>) -> Items<'a> {
        Items {
            hiding: self,
            variant,
            is_pair: false,
            made: Vec::new(),
        }
    }

    fn fields(self, ty: &'static str, variant: Option<&'static str>) -> Fields<'a> {
        Fields {
            veil: self.veil,
            ty,
            variant,
            made: Map::new(),
        }
    }
}

/// The content of a variant, with its name.
fn named(variant: Option<&'static str>, content: Value) -> Value {
    match variant {
        None => content,
        Some(name) => Value::Object(Map::from_iter([(name.to_owned(), content)])),
    }
}

/// Anything that is not a text.
macro_rules! as_it_is {
    ($($method:ident: $ty:ty),* $(,)?) => {$(
        fn $method(self, it: $ty) -> Result<Value, Error> {
            serde_json::to_value(it)
        }
    )*};
}

impl<'a> Serializer for Hiding<'a> {
    type Ok = Value;
    type Error = Error;
    type SerializeSeq = Items<'a>;
    type SerializeTuple = Items<'a>;
    type SerializeTupleStruct = Items<'a>;
    type SerializeTupleVariant = Items<'a>;
    type SerializeMap = Entries<'a>;
    type SerializeStruct = Fields<'a>;
    type SerializeStructVariant = Fields<'a>;

    as_it_is! {
        serialize_bool: bool, serialize_i8: i8, serialize_i16: i16, serialize_i32: i32,
        serialize_i64: i64, serialize_u8: u8, serialize_u16: u16, serialize_u32: u32,
        serialize_u64: u64, serialize_f32: f32, serialize_f64: f64,
    }

    fn serialize_char(self, it: char) -> Result<Value, Error> {
        self.serialize_str(&it.to_string())
    }

    fn serialize_str(self, it: &str) -> Result<Value, Error> {
        Ok(self.text(it).into())
    }

    fn serialize_bytes(self, it: &[u8]) -> Result<Value, Error> {
        Ok(self.veil.hide(&String::from_utf8_lossy(it)).into())
    }

    fn serialize_none(self) -> Result<Value, Error> {
        Ok(Value::Null)
    }

    fn serialize_some<T: Serialize + ?Sized>(self, it: &T) -> Result<Value, Error> {
        it.serialize(self)
    }

    fn serialize_unit(self) -> Result<Value, Error> {
        Ok(Value::Null)
    }

    fn serialize_unit_struct(self, _: &'static str) -> Result<Value, Error> {
        Ok(Value::Null)
    }

    fn serialize_unit_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
    ) -> Result<Value, Error> {
        Ok(variant.into())
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        it: &T,
    ) -> Result<Value, Error> {
        it.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        ty: &'static str,
        _: u32,
        variant: &'static str,
        it: &T,
    ) -> Result<Value, Error> {
        let content = value(self.veil, shown::rule(ty, variant), it)?;
        Ok(named(Some(variant), content))
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<Items<'a>, Error> {
        Ok(self.items(None))
    }

    fn serialize_tuple(self, _: usize) -> Result<Items<'a>, Error> {
        let is_pair = self.rule == Rule::Named;
        Ok(Items {
            is_pair,
            ..self.items(None)
        })
    }

    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Items<'a>, Error> {
        Ok(self.items(None))
    }

    fn serialize_tuple_variant(
        self,
        ty: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Items<'a>, Error> {
        let rule = shown::rule(ty, variant);
        Ok(Self { rule, ..self }.items(Some(variant)))
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Entries<'a>, Error> {
        Ok(Entries {
            hiding: self,
            key: String::new(),
            made: Map::new(),
        })
    }

    fn serialize_struct(self, ty: &'static str, _: usize) -> Result<Fields<'a>, Error> {
        Ok(self.fields(ty, None))
    }

    fn serialize_struct_variant(
        self,
        ty: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Fields<'a>, Error> {
        Ok(self.fields(ty, Some(variant)))
    }
}

/// A list in the making.
struct Items<'a> {
    hiding: Hiding<'a>,
    variant: Option<&'static str>,
    /// The first of its items is a name.
    is_pair: bool,
    made: Vec<Value>,
}

impl Items<'_> {
    fn push<T: Serialize + ?Sized>(&mut self, it: &T) -> Result<(), Error> {
        let rule = match self.is_pair {
            true if self.made.is_empty() => Rule::Show,
            true => Rule::Hide,
            false => self.hiding.rule,
        };
        self.made.push(value(self.hiding.veil, rule, it)?);
        Ok(())
    }

    fn done(self) -> Value {
        named(self.variant, Value::Array(self.made))
    }
}

/// The four traits of lists are one and the same.
macro_rules! pushes {
    ($($of:ident::$method:ident),* $(,)?) => {$(
        impl $of for Items<'_> {
            type Ok = Value;
            type Error = Error;

            fn $method<T: Serialize + ?Sized>(&mut self, it: &T) -> Result<(), Error> {
                self.push(it)
            }

            fn end(self) -> Result<Value, Error> {
                Ok(self.done())
            }
        }
    )*};
}

pushes! {
    SerializeSeq::serialize_element,
    SerializeTuple::serialize_element,
    SerializeTupleStruct::serialize_field,
    SerializeTupleVariant::serialize_field,
}

/// A map in the making. Its keys are texts like others.
struct Entries<'a> {
    hiding: Hiding<'a>,
    key: String,
    made: Map<String, Value>,
}

impl SerializeMap for Entries<'_> {
    type Ok = Value;
    type Error = Error;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), Error> {
        self.key = match key.serialize(self.hiding)? {
            Value::String(text) => text,
            Value::Number(number) => number.to_string(),
            Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => {
                return Err(Error::custom("a key is a text or a number"));
            }
        };
        Ok(())
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, it: &T) -> Result<(), Error> {
        let content = value(self.hiding.veil, self.hiding.rule, it)?;
        self.made.insert(std::mem::take(&mut self.key), content);
        Ok(())
    }

    fn end(self) -> Result<Value, Error> {
        Ok(Value::Object(self.made))
    }
}

/// A struct in the making: what its fields show is on the list.
struct Fields<'a> {
    veil: &'a Veil,
    ty: &'static str,
    variant: Option<&'static str>,
    made: Map<String, Value>,
}

impl Fields<'_> {
    fn add<T: Serialize + ?Sized>(&mut self, name: &'static str, it: &T) -> Result<(), Error> {
        let content = value(self.veil, shown::rule(self.ty, name), it)?;
        self.made.insert(name.to_owned(), content);
        Ok(())
    }
}

/// The two traits of structs are one and the same.
macro_rules! adds {
    ($($of:ident),* $(,)?) => {$(
        impl $of for Fields<'_> {
            type Ok = Value;
            type Error = Error;

            fn serialize_field<T: Serialize + ?Sized>(
                &mut self,
                name: &'static str,
                it: &T,
            ) -> Result<(), Error> {
                self.add(name, it)
            }

            fn end(self) -> Result<Value, Error> {
                Ok(named(self.variant, Value::Object(self.made)))
            }
        }
    )*};
}

adds!(SerializeStruct, SerializeStructVariant);
