//! Errors about one field, in the words of upstream's `validation/field`.

use std::fmt;

use serde_json::Value;
use sundown_schema::{ErrorList, Told};

use crate::failure::Cause;

/// What is wrong with one field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FieldError {
    reason: &'static str,
    field: String,
    text: String,
}

/// What is wrong with an object: the first of its errors.
pub(crate) type Errors = ErrorList<FieldError>;

impl FieldError {
    fn new(reason: &'static str, field: impl Into<String>, text: String) -> Self {
        Self {
            reason,
            field: field.into(),
            text,
        }
    }

    /// An error that others put into words.
    pub(crate) fn raw(reason: &'static str, field: String, text: String) -> Self {
        Self::new(reason, field, text)
    }

    /// The same, for a field of an object that stands somewhere in another one.
    pub(crate) fn below(self, path: &str) -> Self {
        let field = format!("{path}.{}", self.field);
        Self { field, ..self }
    }

    pub(crate) fn required(field: impl Into<String>, why: &str) -> Self {
        let text = if why.is_empty() {
            "Required value".into()
        } else {
            format!("Required value: {why}")
        };
        Self::new("FieldValueRequired", field, text)
    }

    pub(crate) fn invalid(field: impl Into<String>, value: impl Into<Value>, why: &str) -> Self {
        let text = format!("Invalid value: {}: {why}", value.into());
        Self::new("FieldValueInvalid", field, text)
    }

    /// A value that is shown in this very form.
    pub(crate) fn invalid_as(field: impl Into<String>, shown: &str, why: &str) -> Self {
        let text = format!("Invalid value: {shown}: {why}");
        Self::new("FieldValueInvalid", field, text)
    }

    pub(crate) fn forbidden(field: impl Into<String>, why: &str) -> Self {
        Self::new("FieldValueForbidden", field, format!("Forbidden: {why}"))
    }

    pub(crate) fn unsupported(
        field: impl Into<String>,
        value: impl Into<Value>,
        supported: &[&str],
    ) -> Self {
        let supported: Vec<String> = supported.iter().map(|value| format!("{value:?}")).collect();
        let text = format!(
            "Unsupported value: {}: supported values: {}",
            value.into(),
            supported.join(", ")
        );
        Self::new("FieldValueNotSupported", field, text)
    }

    pub(crate) fn too_long(field: impl Into<String>, bytes_max: usize) -> Self {
        let text = format!("Too long: may not be more than {bytes_max} bytes");
        Self::new("FieldValueTooLong", field, text)
    }

    pub(crate) fn cause(&self) -> Cause {
        Cause {
            reason: self.reason,
            message: self.text.clone(),
            field: self.field.clone(),
        }
    }
}

impl Told for FieldError {
    fn byte_count(&self) -> usize {
        self.field.len() + self.text.len()
    }
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.text)
    }
}
