//! What is wrong with one field, in the words of upstream's `validation/field`.

use std::fmt;

use serde_json::Value;

use crate::{ErrorList, Told};

/// What is wrong with one field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The reason of the cause, such as `FieldValueInvalid`.
    pub reason: &'static str,
    /// The path of the field; `<nil>` where upstream names none.
    pub field: String,
    /// Kind of problem, value and explanation.
    pub text: String,
}

/// What is wrong with an object: the first of its problems.
pub type Problems = ErrorList<Problem>;

/// A value as Go writes it, which keeps away from what HTML would read.
pub(crate) fn go_json(value: &Value) -> String {
    let text = value.to_string();
    if !text.contains(['<', '>', '&']) {
        return text;
    }
    let text = text.replace('<', "\\u003c").replace('>', "\\u003e");
    text.replace('&', "\\u0026")
}

impl Problem {
    fn new(reason: &'static str, field: impl Into<String>, text: String) -> Self {
        let field = field.into();
        let field = if field.is_empty() {
            "<nil>".into()
        } else {
            field
        };
        Self {
            reason,
            field,
            text,
        }
    }

    /// A value that is not allowed.
    pub fn invalid(field: impl Into<String>, value: &Value, why: &str) -> Self {
        let text = format!("Invalid value: {}: {why}", go_json(value));
        Self::new("FieldValueInvalid", field, text)
    }

    /// A value that is not allowed, in another form than its own.
    pub fn invalid_as(field: impl Into<String>, shown: &str, why: &str) -> Self {
        let text = format!("Invalid value: {shown}: {why}");
        Self::new("FieldValueInvalid", field, text)
    }

    /// A value that is not allowed and is not shown.
    pub fn invalid_unshown(field: impl Into<String>, why: &str) -> Self {
        Self::new("FieldValueInvalid", field, format!("Invalid value: {why}"))
    }

    /// A value of another type.
    pub fn type_invalid(field: impl Into<String>, value: &Value, why: &str) -> Self {
        let text = format!("Invalid value: {}: {why}", go_json(value));
        Self::new("FieldValueTypeInvalid", field, text)
    }

    /// A value that is missing.
    pub fn required(field: impl Into<String>, why: &str) -> Self {
        let text = if why.is_empty() {
            "Required value".into()
        } else {
            format!("Required value: {why}")
        };
        Self::new("FieldValueRequired", field, text)
    }

    /// A value that must not be there.
    pub fn forbidden(field: impl Into<String>, why: &str) -> Self {
        Self::new("FieldValueForbidden", field, format!("Forbidden: {why}"))
    }

    /// A value that is none of those listed.
    pub fn unsupported<'a>(
        field: impl Into<String>,
        value: &Value,
        supported: impl IntoIterator<Item = &'a Value>,
    ) -> Self {
        let quoted = supported.into_iter().map(|value| match value.as_str() {
            Some(text) => format!("{text:?}"),
            None => format!("{:?}", value.to_string()),
        });
        let quoted: Vec<String> = quoted.collect();
        let text = format!(
            "Unsupported value: {}: supported values: {}",
            go_json(value),
            quoted.join(", ")
        );
        Self::new("FieldValueNotSupported", field, text)
    }

    /// A text that is too long.
    pub fn too_long(field: impl Into<String>, bytes_max: u64) -> Self {
        let text = format!("Too long: may not be more than {bytes_max} bytes");
        Self::new("FieldValueTooLong", field, text)
    }

    /// A list or map with too many members.
    pub fn too_many(field: impl Into<String>, count: usize, count_max: u64) -> Self {
        let text = format!("Too many: {count}: must have at most {count_max} items");
        Self::new("FieldValueTooMany", field, text)
    }

    /// A value that is there twice.
    pub fn duplicate(field: impl Into<String>, value: &Value) -> Self {
        let text = format!("Duplicate value: {}", go_json(value));
        Self::new("FieldValueDuplicate", field, text)
    }

    /// Whether rules could trip over what is wrong here.
    pub(crate) fn blocks_rules(&self) -> bool {
        const BLOCKING: [&str; 5] = [
            "FieldValueNotSupported",
            "FieldValueRequired",
            "FieldValueTooLong",
            "FieldValueTooMany",
            "FieldValueTypeInvalid",
        ];
        BLOCKING.contains(&self.reason)
    }

    /// That rules were not looked at, because of other problems.
    pub(crate) fn unchecked_rules() -> Self {
        let why = "some validation rules were not checked because the object was invalid; correct \
                   the existing errors to complete validation";
        Self::invalid("", &Value::Null, why)
    }
}

impl Told for Problem {
    fn byte_count(&self) -> usize {
        self.field.len() + self.text.len()
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.text)
    }
}
