//! Which objects a list or watch is about: label and field selectors.

use serde_json::Value;
use sundown_model::ObjectKey;
use sundown_store::Stored;

use crate::failure::Failure;
use crate::registry::Type;
use crate::{Request, dns};

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
        let labels = split_outside_parens(request.param("labelSelector").unwrap_or(""));
        let fields = request.param("fieldSelector").unwrap_or("").split(',');
        Ok(Self {
            labels: labels
                .into_iter()
                .map(label_rule)
                .collect::<Result<_, _>>()?,
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
    match path
        .split('.')
        .try_fold(&json, |value, member| value.get(member))
    {
        Some(Value::String(text)) => text.clone(),
        Some(value @ (Value::Number(_) | Value::Bool(_))) => value.to_string(),
        // As the zero value of a Go field prints.
        None | Some(Value::Null | Value::Array(_) | Value::Object(_)) => {
            if path == "status.successful" {
                "0".into()
            } else {
                String::new()
            }
        }
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
    let is_known = field == "metadata.name"
        || (field == "metadata.namespace" && ty.namespaced)
        || ty.selectable.contains(&field);
    if !is_known {
        return Err(Failure::bad_request(format!(
            "field label not supported: {field}"
        )));
    }
    Ok(FieldRule {
        field: field.into(),
        value: value.into(),
        is_equal,
    })
}

fn label_rule(rule: &str) -> Result<LabelRule, Failure> {
    let (key, test) = split_label_rule(rule).ok_or_else(|| unreadable(rule))?;
    if let Some(why) = dns::qualified_name(&key).first() {
        return Err(Failure::bad_request(format!(
            "unable to parse requirement: <nil>: Invalid value: \"{key}\": {why}"
        )));
    }
    Ok(LabelRule { key, test })
}

fn split_label_rule(rule: &str) -> Option<(String, Test)> {
    let one = |value: &str| vec![value.trim().to_owned()];
    if let Some(key) = rule.strip_prefix('!') {
        return Some((key.trim().into(), Test::Absent));
    }
    if let Some((head, list)) = rule.split_once('(') {
        let values = list.trim_end().strip_suffix(')')?;
        let values = values
            .split(',')
            .map(|value| value.trim().to_owned())
            .collect();
        let mut words = head.split_whitespace();
        let (key, operator) = (words.next()?, words.next()?);
        return match operator {
            "in" => Some((key.into(), Test::In(values))),
            "notin" => Some((key.into(), Test::NotIn(values))),
            _ => None,
        };
    }
    if let Some((key, value)) = rule.split_once("!=") {
        return Some((key.trim().into(), Test::NotIn(one(value))));
    }
    if let Some((key, value)) = rule.split_once("==").or_else(|| rule.split_once('=')) {
        return Some((key.trim().into(), Test::In(one(value))));
    }
    if let Some((key, value)) = rule.split_once('>') {
        return Some((key.trim().into(), Test::Greater(value.trim().parse().ok()?)));
    }
    if let Some((key, value)) = rule.split_once('<') {
        return Some((key.trim().into(), Test::Less(value.trim().parse().ok()?)));
    }
    Some((rule.trim().into(), Test::Exists))
}

fn unreadable(rule: &str) -> Failure {
    Failure::bad_request(format!(
        "unable to parse requirement: couldn't parse '{rule}'"
    ))
}

/// Commas separate rules, but not inside the parentheses of `in (a,b)`.
fn split_outside_parens(text: &str) -> Vec<&str> {
    let (mut rules, mut depth, mut start) = (Vec::new(), 0_u32, 0);
    for (at, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                rules.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    rules.push(&text[start..]);
    rules
        .into_iter()
        .map(str::trim)
        .filter(|rule| !rule.is_empty())
        .collect()
}
