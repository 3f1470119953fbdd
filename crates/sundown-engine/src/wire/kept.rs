//! Reads of JSON only what is asked for: a definition of half a megabyte is looked at for three of its
//! fields, and all of it as a value takes twenty times its length. What the fields mean is left to
//! `answer`.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};
use sundown_model::Form;

/// What is kept of a value.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Keep<'a> {
    All,
    /// Of an object these members. What is no object is kept as it is.
    Only(Vec<(Cow<'a, str>, Keep<'a>)>),
    /// Of a list this part of each entry. What is no list is kept as it is.
    Each(Box<Keep<'a>>),
}

impl<'a> Keep<'a> {
    /// What is read of an object in this form.
    pub(super) fn object(form: &'a Form) -> Self {
        // Of a Status, which may stand in its place: whether it is one, and which.
        let mut keep = Self::only([
            ("metadata", Self::All),
            ("kind", Self::All),
            ("code", Self::All),
        ]);
        for field in form.fields() {
            keep.add(field);
        }
        keep
    }

    /// What is read of a list of such objects.
    pub(super) fn list(form: &'a Form) -> Self {
        let items = Self::Each(Box::new(Self::object(form)));
        Self::only([("metadata", Self::All), ("items", items)])
    }

    /// What is read of one line of a watch.
    pub(super) fn line(form: &'a Form) -> Self {
        Self::only([("type", Self::All), ("object", Self::object(form))])
    }

    /// What is read of anything that is asked for its position.
    pub(super) fn position() -> Self {
        Self::only([("metadata", Self::All)])
    }

    /// Reads a document.
    ///
    /// Errors: it is not JSON. Texts and numbers that are not kept are not judged.
    pub(super) fn read(&self, json: &[u8]) -> serde_json::Result<Value> {
        let mut reader = serde_json::Deserializer::from_slice(json);
        let value = self.deserialize(&mut reader)?;
        reader.end()?;
        Ok(value)
    }

    fn only<const N: usize>(members: [(&'a str, Self); N]) -> Self {
        let members = members.into_iter();
        Self::Only(
            members
                .map(|(name, keep)| (Cow::Borrowed(name), keep))
                .collect(),
        )
    }

    /// Keeps what a JSON pointer leads to as well.
    fn add(&mut self, pointer: &'a str) {
        let mut at = self;
        for part in pointer.split('/').skip(1) {
            let Self::Only(members) = at else {
                return;
            };
            let name = unescaped(part);
            let found = members.iter().position(|(own, _)| *own == name);
            let index = found.unwrap_or(members.len());
            if found.is_none() {
                members.push((name, Self::Only(Vec::new())));
            }
            at = &mut members[index].1;
        }
        *at = Self::All;
    }
}

fn unescaped(part: &str) -> Cow<'_, str> {
    if part.contains('~') {
        return Cow::Owned(part.replace("~1", "/").replace("~0", "~"));
    }
    Cow::Borrowed(part)
}

impl<'de> DeserializeSeed<'de> for &Keep<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<Value, D::Error> {
        match self {
            Keep::All => Value::deserialize(reader),
            Keep::Only(_) | Keep::Each(_) => reader.deserialize_any(self),
        }
    }
}

impl<'de> Visitor<'de> for &Keep<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON value")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let Keep::Only(members) = self else {
            return Value::deserialize(MapAccessDeserializer::new(map));
        };
        let mut kept = Map::new();
        while let Some(name) = map.next_key::<String>()? {
            match members.iter().find(|(own, _)| *own == name) {
                Some((_, keep)) => {
                    let value = map.next_value_seed(keep)?;
                    kept.insert(name, value);
                }
                None => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(Value::Object(kept))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        // A pointer may go on into a list by a number.
        let keep = match self {
            Keep::Each(keep) => keep,
            Keep::All | Keep::Only(_) => &Keep::All,
        };
        let mut kept = Vec::new();
        while let Some(entry) = entries.next_element_seed(keep)? {
            kept.push(entry);
        }
        Ok(Value::Array(kept))
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Value, E> {
        Ok(Value::from(value))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use sundown_model::{Object, Resource};

    use super::*;

    const FIELDS: &[&str] = &["/spec/group", "/spec/names/plural", "/spec/a~1b/0", "/data"];

    fn form(fields: &[&str]) -> Form {
        let mut form = Form::metadata();
        form.add(fields);
        form
    }

    fn object() -> Value {
        json!({
            "apiVersion": "v1", "kind": "Thing",
            "metadata": {"name": "a", "namespace": "n", "uid": "u", "resourceVersion": "7"},
            "spec": {
                "group": "g", "names": {"plural": "ps", "kind": "P"}, "versions": [{"schema": {}}],
                "a/b": [1, 2],
            },
            "data": {"any": [null, true, -1, 1.5, "t\u{e9}\n"]},
            "status": {"conditions": []},
        })
    }

    #[test]
    fn reads_the_same_object_as_from_the_whole() {
        let (resource, json) = (Resource::new("", "things"), object());
        let text = json.to_string();
        for fields in [
            FIELDS,
            &["/spec", "/spec/group"],
            &["/spec/group", "/spec"],
            &[],
        ] {
            let form = form(fields);
            let kept = Keep::object(&form).read(text.as_bytes()).unwrap();
            let whole = Object::read(&resource, &json, &form);
            assert_eq!(Object::read(&resource, &kept, &form), whole, "{fields:?}");
            assert!(kept.get("status").is_none());
        }
    }

    #[test]
    fn keeps_what_is_asked_for_and_nothing_else() {
        let form = form(&["/spec/names/plural"]);
        let list =
            json!({"kind": "List", "metadata": {"resourceVersion": "9"}, "items": [object()]});
        let kept = Keep::list(&form).read(list.to_string().as_bytes()).unwrap();
        let item = json!({
            "kind": "Thing", "metadata": object()["metadata"],
            "spec": {"names": {"plural": "ps"}},
        });
        let expected = json!({"metadata": {"resourceVersion": "9"}, "items": [item]});
        assert_eq!(kept, expected);
    }

    #[test]
    fn what_has_another_type_than_expected_stays_what_it_is() {
        let form = form(&["/spec/group"]);
        for odd in [
            json!({"metadata": 1, "spec": [1, {"x": 2}], "items": {"a": 1}}),
            json!({"metadata": null, "spec": "text", "items": 2.5}),
            json!({"metadata": [], "spec": -3, "items": true}),
            json!([1]),
            json!(null),
        ] {
            let text = odd.to_string();
            let object = Keep::object(&form).read(text.as_bytes()).unwrap();
            let list = Keep::list(&form).read(text.as_bytes()).unwrap();
            assert_eq!(object.get("spec"), odd.get("spec"));
            assert_eq!(list.get("items"), odd.get("items"));
            assert_eq!(object.is_object(), odd.is_object());
        }
    }

    #[test]
    fn refuses_what_is_not_json() {
        let form = form(&[]);
        for text in [
            "",
            "{",
            "{\"metadata\":{}} x",
            "{\"spec\":{]}",
            "{\"metadata\":tru}",
        ] {
            assert!(Keep::object(&form).read(text.as_bytes()).is_err(), "{text}");
        }
    }
}
