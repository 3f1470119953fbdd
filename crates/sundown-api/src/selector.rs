//! Which objects a list or watch is about: label and field selectors.

mod labels;

use serde_json::Value;
use sundown_model::ObjectKey;
use sundown_store::Stored;

use crate::Request;
use crate::failure::Failure;
use crate::registry::Type;

/// Label and field requirements; all must hold.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Selector {
    labels: Vec<LabelRule>,
    fields: Vec<FieldRule>,
}

#[derive(Debug, Clone, PartialEq)]
struct LabelRule {
    key: String,
    test: Test,
}

#[derive(Debug, Clone, PartialEq)]
enum Test {
    Exists,
    Absent,
    In(Vec<String>),
    NotIn(Vec<String>),
    Greater(i64),
    Less(i64),
}

#[derive(Debug, Clone, PartialEq)]
struct FieldRule {
    field: String,
    value: String,
    is_equal: bool,
}

impl Selector {
    /// Reads labelSelector and fieldSelector of a request.
    pub(crate) fn read(request: &Request, ty: &Type) -> Result<Self, Failure> {
        let fields = request.param("fieldSelector").unwrap_or("").split(',');
        Ok(Self {
            labels: labels::parse(request.param("labelSelector").unwrap_or(""))?,
            fields: fields
                .map(str::trim)
                .filter(|rule| !rule.is_empty())
                .map(|rule| field_rule(rule, ty))
                .collect::<Result<_, _>>()?,
        })
    }

    /// Narrows the selector to one name.
    pub(crate) fn require_name(&mut self, name: &str) {
        let field = "metadata.name".to_owned();
        self.fields.push(FieldRule {
            field,
            value: name.to_owned(),
            is_equal: true,
        });
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.labels.is_empty() && self.fields.is_empty()
    }

    pub(crate) fn matches(&self, key: &ObjectKey, stored: &Stored) -> bool {
        self.labels
            .iter()
            .all(|rule| rule.test.holds(stored.label(&rule.key)))
            && self.fields.iter().all(|rule| rule.holds(key, stored))
    }
}

impl Test {
    fn holds(&self, label: Option<&str>) -> bool {
        let is_in =
            |values: &[String]| label.is_some_and(|label| values.iter().any(|v| v == label));
        let number = || label.and_then(|label| label.parse::<i64>().ok());
        match self {
            Self::Exists => label.is_some(),
            Self::Absent => label.is_none(),
            Self::In(values) => is_in(values),
            Self::NotIn(values) => !is_in(values),
            Self::Greater(bound) => number().is_some_and(|number| number > *bound),
            Self::Less(bound) => number().is_some_and(|number| number < *bound),
        }
    }
}

impl FieldRule {
    fn holds(&self, key: &ObjectKey, stored: &Stored) -> bool {
        let is_same = match self.field.as_str() {
            "metadata.name" => *key.name == *self.value,
            "metadata.namespace" => key.namespace_str() == self.value,
            // Rare, so that parsing is cheaper than an index on every object.
            path => field_text(path, stored) == self.value,
        };
        is_same == self.is_equal
    }
}

fn field_text(path: &str, stored: &Stored) -> String {
    let json: Value = serde_json::from_slice(stored.json()).expect("stored bytes are our own JSON");
    let text = text_at(path, &json);
    if text.is_empty() && path == "source" {
        return text_at("reportingComponent", &json);
    }
    text
}

fn text_at(path: &str, json: &Value) -> String {
    let (path, zero) = aliased(path);
    match path
        .split('.')
        .try_fold(json, |value, member| value.get(member))
    {
        Some(Value::String(text)) => text.clone(),
        Some(value @ (Value::Number(_) | Value::Bool(_))) => value.to_string(),
        // As the zero value of a Go field prints.
        None | Some(Value::Null | Value::Array(_) | Value::Object(_)) => zero.to_owned(),
    }
}

/// Where a field is that selectors know by another name, and how its zero value prints.
fn aliased(path: &str) -> (&str, &'static str) {
    match path {
        "status.successful" => ("status.succeeded", "0"),
        "status.replicas" => (path, "0"),
        "spec.unschedulable" | "spec.hostNetwork" => (path, "false"),
        "source" => ("source.component", ""),
        "spec.host" => ("spec.nodeName", ""),
        _ => (path, ""),
    }
}

fn field_rule(rule: &str, ty: &Type) -> Result<FieldRule, Failure> {
    let parsed = rule
        .split_once("!=")
        .map(|(field, value)| (field, value, false))
        .or_else(|| {
            rule.split_once("==")
                .map(|(field, value)| (field, value, true))
        })
        .or_else(|| {
            rule.split_once('=')
                .map(|(field, value)| (field, value, true))
        });
    let Some((field, value, is_equal)) = parsed else {
        return Err(Failure::bad_request(format!(
            "invalid selector: '{rule}'; can't understand '{rule}'"
        )));
    };
    let sent = field;
    let stored = match &ty.view {
        Some(view) => view.stored_field(field),
        None => Some(field.to_owned()),
    };
    let field = stored.as_deref().unwrap_or("");
    let is_known = field == "metadata.name"
        || (field == "metadata.namespace" && ty.namespaced)
        || ty.selectable.contains(&field)
        || ty.fields.iter().any(|own| **own == *field);
    if !is_known {
        return Err(unknown_field(ty, sent));
    }
    Ok(FieldRule {
        field: field.to_owned(),
        value: value.into(),
        is_equal,
    })
}

/// Upstream converts the labels of core/v1 Pods and a few others with functions of their own, which
/// say it shorter.
fn unknown_field(ty: &Type, field: &str) -> Failure {
    if ty.is_custom() || !ty.selectable.is_empty() {
        return Failure::bad_request(format!("field label not supported: {field}"));
    }
    Failure::bad_request(format!(
        "{field:?} is not a known field selector: only \"metadata.name\", \"metadata.namespace\""
    ))
}
