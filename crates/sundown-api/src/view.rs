//! A kind that is stored as another one: the same object under other names.
//!
//! Verbs work on the stored form; what a client sends is turned into it, and what it gets is turned
//! back. Which kinds have a view is in the registry.

use serde_json::{Map, Value};
use sundown_model::Resource;

use crate::facts::{Fact, facts};
use crate::fields;
use crate::registry::Type;

/// What a kind is stored as.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct View {
    pub(crate) resource: Resource,
    pub(crate) version: &'static str,
    pub(crate) kind: &'static str,
    /// Members of the top level: as they are served, and as they are stored.
    pub(crate) names: &'static [(&'static str, &'static str)],
}

impl View {
    /// The apiVersion of what is stored.
    pub(crate) fn api_version(&self) -> String {
        match self.resource.group() {
            "" => self.version.to_owned(),
            group => format!("{group}/{}", self.version),
        }
    }

    /// From the served to the stored form.
    pub(crate) fn stored(&self, object: Map<String, Value>) -> Map<String, Value> {
        let fact = facts().kind(self.resource.group(), self.version, self.kind);
        let names = self.names.iter().copied();
        renamed(object, names, fact)
    }

    /// From the stored to the served form.
    pub(crate) fn served(&self, ty: &Type, object: Map<String, Value>) -> Map<String, Value> {
        let fact = facts().kind(ty.resource.group(), &ty.version, &ty.kind);
        let names = self.names.iter().map(|(served, stored)| (*stored, *served));
        renamed(object, names, fact)
    }

    /// The path of a field selector in the stored form; None if it has no such name here.
    pub(crate) fn stored_field(&self, field: &str) -> Option<String> {
        let (first, rest) = match field.find('.') {
            Some(dot) => field.split_at(dot),
            None => (field, ""),
        };
        for (served, stored) in self.names {
            if first == *served {
                return Some(format!("{stored}{rest}"));
            }
            if first == *stored {
                return None;
            }
        }
        Some(field.to_owned())
    }
}

/// The members under their other names, with the zero values that the other type writes.
fn renamed<'a>(
    mut object: Map<String, Value>,
    names: impl Iterator<Item = (&'a str, &'a str)>,
    fact: Option<&Fact>,
) -> Map<String, Value> {
    let mut moved = Vec::new();
    for (from, to) in names {
        if let Some(value) = object.remove(from) {
            moved.push((to.to_owned(), value));
        }
    }
    object.extend(moved);
    let Some(fact) = fact else { return object };
    // Both types have the same members but for their names, so that nothing can be of a wrong type.
    let fallback = object.clone();
    let mut read = fields::canonical(fact, object).map_or(fallback, |read| read.object);
    // These are not members of the content, whatever their zero values are.
    for member in ["metadata", "apiVersion", "kind"] {
        read.remove(member);
    }
    read
}
