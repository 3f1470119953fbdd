//! A place in an object: its value and the path that messages name. The checks that many kinds
//! share, in the words of upstream.

use serde_json::Value;

use crate::dns;
use crate::field::{Errors, FieldError};

static NULL: Value = Value::Null;

pub(super) const NOT_NEGATIVE: &str = "must be greater than or equal to 0";
pub(super) const IMMUTABLE: &str = "field is immutable";

/// A value and where it is.
#[derive(Debug, Clone)]
pub(super) struct At<'a> {
    pub(super) value: &'a Value,
    pub(super) path: String,
}

impl<'a> At<'a> {
    /// A value at a path; null if it is missing.
    pub(super) fn new(value: Option<&'a Value>, path: impl Into<String>) -> Self {
        Self {
            value: value.unwrap_or(&NULL),
            path: path.into(),
        }
    }

    /// A member.
    pub(super) fn child(&self, member: &str) -> Self {
        Self::new(self.value.get(member), self.path_of(member))
    }

    /// The path of a member.
    pub(super) fn path_of(&self, member: &str) -> String {
        format!("{}.{member}", self.path)
    }

    /// A member of a member and so on.
    pub(super) fn down(&self, members: &[&str]) -> Self {
        members
            .iter()
            .fold(self.clone(), |at, member| at.child(member))
    }

    /// The elements of a list.
    pub(super) fn items(&self) -> impl Iterator<Item = Self> + use<'a> {
        let path = self.path.clone();
        let list = self.value.as_array().map_or(&[][..], Vec::as_slice);
        list.iter().enumerate().map(move |(index, value)| Self {
            value,
            path: format!("{path}[{index}]"),
        })
    }

    /// The text; empty if there is none.
    pub(super) fn text(&self) -> &'a str {
        self.value.as_str().unwrap_or("")
    }

    /// The text of a member; empty if there is none.
    pub(super) fn text_of(&self, member: &str) -> &'a str {
        self.value.get(member).and_then(Value::as_str).unwrap_or("")
    }

    /// The number, if it is one.
    pub(super) fn number(&self) -> Option<i64> {
        self.value.as_i64()
    }

    /// Whether there is anything.
    pub(super) fn is_set(&self) -> bool {
        !self.value.is_null()
    }

    /// Whether it is `true`.
    pub(super) fn is_true(&self) -> bool {
        self.value == &Value::Bool(true)
    }

    pub(super) fn required(&self, why: &str) -> FieldError {
        FieldError::required(&*self.path, why)
    }

    pub(super) fn invalid(&self, why: &str) -> FieldError {
        FieldError::invalid(&*self.path, self.value.clone(), why)
    }

    pub(super) fn forbidden(&self, why: &str) -> FieldError {
        FieldError::forbidden(&*self.path, why)
    }

    pub(super) fn unsupported(&self, supported: &[&str]) -> FieldError {
        FieldError::unsupported(&*self.path, self.value.clone(), supported)
    }

    pub(super) fn duplicate(&self) -> FieldError {
        let text = format!("Duplicate value: {}", self.value);
        FieldError::raw("FieldValueDuplicate", self.path.clone(), text)
    }

    pub(super) fn not_found(&self) -> FieldError {
        let text = format!("Not found: {}", self.value);
        FieldError::raw("FieldValueNotFound", self.path.clone(), text)
    }

    /// A number that may be missing, but not negative.
    pub(super) fn not_negative(&self, errors: &mut Errors) {
        if self.number().is_some_and(|number| number < 0) {
            errors.push(self.invalid(NOT_NEGATIVE));
        }
    }

    /// The members of this that may be missing, but not negative.
    pub(super) fn none_negative(&self, members: &[&str], errors: &mut Errors) {
        for member in members {
            self.child(member).not_negative(errors);
        }
    }

    /// One of these texts; nothing is an error of its own.
    pub(super) fn one_of(&self, supported: &[&str], errors: &mut Errors) {
        if self.text().is_empty() {
            errors.push(self.required(""));
        } else if !supported.contains(&self.text()) {
            errors.push(self.unsupported(supported));
        }
    }

    /// A text in one of the forms of names.
    pub(super) fn named(&self, form: fn(&str) -> Vec<String>, errors: &mut Errors) {
        for why in form(self.text()) {
            errors.push(FieldError::invalid(&*self.path, self.text(), &why));
        }
    }

    /// A name that must be there, in the form of a DNS label.
    pub(super) fn label_name(&self, errors: &mut Errors) {
        if self.text().is_empty() {
            errors.push(self.required(""));
        } else {
            self.named(dns::label, errors);
        }
    }

    /// The number of a port.
    pub(super) fn port(&self, errors: &mut Errors) {
        let number = self.number().unwrap_or(0);
        if !(1..=65535).contains(&number) {
            let why = "must be between 1 and 65535, inclusive";
            errors.push(FieldError::invalid(&*self.path, number, why));
        }
    }

    /// The number or the name of a port.
    pub(super) fn port_or_name(&self, errors: &mut Errors) {
        if self.value.is_string() {
            self.named(dns::port_name, errors);
        } else {
            self.port(errors);
        }
    }

    /// Labels under this path.
    pub(super) fn labels(&self, errors: &mut Errors) {
        for (key, value) in self.value.as_object().into_iter().flatten() {
            for why in dns::qualified_name(key) {
                errors.push(FieldError::invalid(&*self.path, key.as_str(), &why));
            }
            for why in dns::label_value(value.as_str().unwrap_or("")) {
                errors.push(FieldError::invalid(&*self.path, value.clone(), &why));
            }
        }
    }

    /// A field that has to stay as it was.
    pub(super) fn same_as(&self, old: &At<'_>, errors: &mut Errors) {
        if self.value != old.value {
            errors.push(self.invalid(IMMUTABLE));
        }
    }
}
