//! What a strict reader finds in the body of a built-in kind: fields that its type does not know, and
//! fields that are there twice.
//!
//! Told in the order of the bytes, as sigs.k8s.io/json comes across them, so that the first finding is
//! the first in the user's file. Types that read their own JSON, such as the `items` of a schema, are not
//! looked into: upstream reads those without being strict.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Write as _};

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use sundown_schema::{FINDINGS_MAX, Step, below};

use crate::facts::{Fact, Shape, facts};

/// The findings in a body, each once, as far as upstream's bound goes.
///
/// Assumes: the body is JSON; what follows the first fault is not looked at.
pub(super) fn findings(fact: &Fact, body: &[u8]) -> Vec<String> {
    let mut notes = Notes::default();
    let mut json = serde_json::Deserializer::from_slice(body);
    let walk = Walk {
        holds: Holds::Object(fact),
        notes: &mut notes,
    };
    // Faults are told by the reader that makes the object.
    let _ = json.deserialize_any(walk);
    notes.found
}

/// Where the walk is, and what was found on the way.
#[derive(Debug, Default)]
struct Notes {
    path: String,
    /// By what was wrong and where: most of what is found is found again, and only what is new is put into words.
    told: BTreeMap<Finding, BTreeSet<String>>,
    found: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Finding {
    Unknown,
    Duplicate,
}

impl Notes {
    /// Goes one step down; gives the way back.
    fn enter(&mut self, name: &str) -> usize {
        let before = self.path.len();
        if before > 0 {
            self.path.push('.');
        }
        self.path.push_str(name);
        before
    }

    fn tell(&mut self, finding: Finding) {
        if self.found.len() >= FINDINGS_MAX {
            return;
        }
        let path = below("", Step::Member(&self.path));
        let told = self.told.entry(finding).or_default();
        if told.contains(&path) {
            return;
        }
        let what = match finding {
            Finding::Unknown => "unknown",
            Finding::Duplicate => "duplicate",
        };
        self.found.push(format!("{what} field {path:?}"));
        told.insert(path);
    }
}

/// What a value is read as.
#[derive(Clone, Copy)]
enum Holds<'a> {
    /// An object of this type.
    Object(&'a Fact),
    /// A map with values of this shape.
    Map(&'a Shape),
    /// A list with elements of this shape.
    List(&'a Shape),
    /// Nothing that has fields.
    Other,
}

impl<'a> Holds<'a> {
    fn of(shape: &'a Shape) -> Self {
        match shape {
            Shape::Object(name) => Self::Object(facts().named(name)),
            Shape::Map(inner) => Self::Map(inner),
            Shape::List(inner) => Self::List(inner),
            Shape::Wrapped(inner) => Self::of(inner),
            Shape::String
            | Shape::Bool
            | Shape::Int32
            | Shape::Int64
            | Shape::Double
            | Shape::Bytes
            | Shape::Quantity
            | Shape::IntOrString
            | Shape::Time
            | Shape::MicroTime
            | Shape::Duration
            | Shape::Raw(_)
            | Shape::SchemaOrArray
            | Shape::SchemaOrBool
            | Shape::SchemaOrStrings => Self::Other,
        }
    }

    /// What a member is read as; none if the type does not know it.
    fn member(self, name: &str) -> Option<Self> {
        match self {
            Self::Object(fact) => fact.member(name).map(|member| Self::of(&member.shape)),
            Self::Map(inner) => Some(Self::of(inner)),
            Self::List(_) | Self::Other => Some(Self::Other),
        }
    }
}

/// One value on the walk.
struct Walk<'a> {
    holds: Holds<'a>,
    notes: &'a mut Notes,
}

impl<'de> DeserializeSeed<'de> for Walk<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<(), D::Error> {
        match self.holds {
            Holds::Other => json.deserialize_ignored_any(IgnoredAny).map(|_| ()),
            Holds::Object(_) | Holds::Map(_) | Holds::List(_) => json.deserialize_any(self),
        }
    }
}

impl<'de> Visitor<'de> for Walk<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let mut seen = BTreeSet::new();
        while let Some(name) = map.next_key::<String>()? {
            let before = self.notes.enter(&name);
            if let Some(holds) = self.holds.member(&name) {
                if !seen.insert(name) {
                    self.notes.tell(Finding::Duplicate);
                }
                let notes = &mut *self.notes;
                map.next_value_seed(Walk { holds, notes })?;
            } else {
                self.notes.tell(Finding::Unknown);
                map.next_value::<IgnoredAny>()?;
            }
            self.notes.path.truncate(before);
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        let holds = match self.holds {
            Holds::List(inner) => Holds::of(inner),
            Holds::Object(_) | Holds::Map(_) | Holds::Other => Holds::Other,
        };
        let before = self.notes.path.len();
        for index in 0_usize.. {
            let _ = write!(self.notes.path, "[{index}]");
            let notes = &mut *self.notes;
            let next = list.next_element_seed(Walk { holds, notes })?;
            self.notes.path.truncate(before);
            if next.is_none() {
                break;
            }
        }
        Ok(())
    }

    // What is no object and no list has no fields; whether it fits is not asked here.

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(kind: &str, body: &str) -> Vec<String> {
        let fact = facts().named(kind);
        findings(fact, body.as_bytes())
    }

    #[test]
    fn findings_are_told_in_the_order_of_the_bytes() {
        let body = r#"{"zebra":1,"data":{"a":"1","b":"2","a":"3"},"metadata":{"name":"c","other":1},
                       "data":{},"apple":{"x":1,"x":2},"zebra":2,"metadata":{"labels":{"l":"","l":""}}}"#;
        assert_eq!(
            found("core.v1.ConfigMap", body),
            [
                "unknown field \"zebra\"",
                "duplicate field \"data.a\"",
                "unknown field \"metadata.other\"",
                "duplicate field \"data\"",
                "unknown field \"apple\"",
                "duplicate field \"metadata\"",
                "duplicate field \"metadata.labels.l\"",
            ],
            "what is unknown is neither told twice nor looked into"
        );
    }

    #[test]
    fn elements_are_numbered_and_other_types_are_left_to_the_reader() {
        let body = r#"{"spec":{"containers":[{"name":"a"},{"nane":"b","ports":"many"},7,null]}}"#;
        let expect = ["unknown field \"spec.containers[1].nane\""];
        assert_eq!(found("core.v1.Pod", body), expect);
        assert!(found("core.v1.Pod", "{\"spec\":").is_empty());
        assert!(found("core.v1.Pod", "[1]").is_empty());
    }

    /// Each repetition was put into words before it was known to be one: most of a minute for a body of 3 MB.
    #[test]
    fn what_is_found_again_costs_no_words() {
        let name = "\u{1}".repeat(4_096);
        let again = r#""x":1,"#.repeat(500_000);
        let name = serde_json::to_string(&name).unwrap();
        let body = format!(
            r#"{{"spec":{{"versions":[{{"schema":{{"openAPIV3Schema":{{"properties":{{{name}:{{{again}"x":1}}}}}}}}}}]}}}}"#
        );
        let kind =
            "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinition";
        assert_eq!(found(kind, &body).len(), 1);
    }

    #[test]
    fn no_more_is_told_than_upstream_tells() {
        let names: Vec<String> = (0..300).map(|it| format!("\"x{it}\":1")).collect();
        let body = format!("{{{}}}", names.join(","));
        assert_eq!(found("core.v1.Pod", &body).len(), FINDINGS_MAX);
    }
}
