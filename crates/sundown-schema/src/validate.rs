//! Validation against a schema, with the messages and in the order of upstream's
//! `kube-openapi/pkg/validation/validate`.
//!
//! On an update, parts that stay as they are are not judged again (ratcheting); under `allOf` and
//! its like everything is.

use serde_json::{Map, Value};

use crate::below::{Step, below};
use crate::formats;
use crate::lists::{old_items, old_of};
use crate::node::{Additional, Checks, Kind, Node, Ref};
use crate::{Problem, Problems};

/// What is wrong with an object.
pub(crate) fn validate(root: &Node, new: &Value, old: Option<&Value>) -> Problems {
    let mut problems = Problems::default();
    node(root, new, old, "", &mut problems);
    problems
}

fn node(schema: &Node, new: &Value, old: Option<&Value>, path: &str, out: &mut Problems) {
    if old == Some(new) {
        return;
    }
    kind(schema, new, path, out);
    let checks = schema.checks.as_deref();
    if new.is_null() {
        choices(checks, new, path, out);
        return;
    }
    if let Some(checks) = checks {
        junctors(checks, new, path, out);
    }
    match new {
        Value::String(value) => text(checks, value, path, out),
        Value::Number(_) => number(schema, checks, new, path, out),
        Value::Array(list) => items(schema, list, old, path, out),
        Value::Null | Value::Bool(_) | Value::Object(_) => {}
    }
    choices(checks, new, path, out);
    if let Value::Object(map) = new {
        members(schema, map, old, path, out);
    }
}

fn kind(schema: &Node, value: &Value, path: &str, out: &mut Problems) {
    let found = match value {
        Value::Null => {
            if schema.is_nullable {
                return;
            }
            "null"
        }
        Value::Bool(_) => "boolean",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
        Value::Number(number) if number.is_i64() => "integer",
        Value::Number(number) if number.as_f64().is_some_and(|it| it.fract() == 0.0) => "integer",
        Value::Number(_) => "number",
    };
    let (wanted, holds) = match schema.kind {
        _ if schema.is_int_or_string => ("integer,string", found == "integer" || found == "string"),
        None => return,
        Some(Kind::Number) => ("number", found == "number" || found == "integer"),
        Some(kind) => (kind.name(), kind.name() == found),
    };
    if holds {
        return;
    }
    // A fraction where an integer of a format is wanted is told by the formats, as upstream does.
    let format = schema.checks.as_deref().and_then(|it| it.format.as_deref());
    let (wanted, found) = match format {
        Some(format @ ("int32" | "int64")) if found == "number" => (format, "float64"),
        Some(_) | None => (wanted, found),
    };
    let why = format!("{path} in body must be of type {wanted}: {found:?}");
    out.push(Problem::type_invalid(path, &Value::from(found), &why));
}

fn junctors(checks: &Checks, value: &Value, path: &str, out: &mut Problems) {
    let unnamed = |why: String| Problem::invalid("", &Value::from(""), &why);
    let alternatives = Alternatives { value, path };
    if !checks.any_of.is_empty() {
        let counts = alternatives.judge(&checks.any_of);
        if !counts.contains(&0) {
            out.push(unnamed(format!(
                "{path:?} must validate at least one schema (anyOf)"
            )));
            alternatives.tell_best(&checks.any_of, &counts, out);
        }
    }
    if !checks.one_of.is_empty() {
        let counts = alternatives.judge(&checks.one_of);
        let valid = counts.iter().filter(|count| **count == 0).count();
        if valid != 1 {
            let found = if valid == 0 {
                "Found none valid".to_owned()
            } else {
                format!("Found {valid} valid alternatives")
            };
            out.push(unnamed(format!(
                "{path:?} must validate one and only one schema (oneOf). {found}"
            )));
        }
        if valid == 0 {
            alternatives.tell_best(&checks.one_of, &counts, out);
        }
    }
    if !checks.all_of.is_empty() {
        let mut valid = 0;
        for schema in &checks.all_of {
            let problems = alternatives.tell(schema, out.part());
            valid += usize::from(problems.is_empty());
            out.append(problems);
        }
        if valid != checks.all_of.len() {
            let none = if valid == 0 { ". None validated" } else { "" };
            out.push(unnamed(format!(
                "{path:?} must validate all the schemas (allOf){none}"
            )));
        }
    }
    if let Some(not) = &checks.not
        && alternatives.count(not) == 0
    {
        out.push(unnamed(format!(
            "{path:?} must not validate the schema (not)"
        )));
    }
}

/// One value under several schemas. Which of them it fits is asked by numbers: what is wrong under those that do not
/// count is never put into words, since one word can list thousands of choices.
struct Alternatives<'a> {
    value: &'a Value,
    path: &'a str,
}

impl Alternatives<'_> {
    /// How much is wrong under each.
    fn judge(&self, schemas: &[Ref]) -> Vec<usize> {
        schemas.iter().map(|schema| self.count(schema)).collect()
    }

    fn count(&self, schema: &Ref) -> usize {
        self.tell(schema, Problems::counting()).len()
    }

    /// Tells what is wrong under the one that came closest, the first of them.
    fn tell_best(&self, schemas: &[Ref], counts: &[usize], out: &mut Problems) {
        let best = counts.iter().zip(schemas).min_by_key(|(count, _)| **count);
        let Some((count, schema)) = best else { return };
        if out.has_room() {
            out.append(self.tell(schema, out.part()));
        } else {
            out.count_more(*count);
        }
    }

    /// Everything is judged, also what stays as it is.
    fn tell(&self, schema: &Ref, mut into: Problems) -> Problems {
        node(schema, self.value, None, self.path, &mut into);
        into
    }
}

fn text(checks: Option<&Checks>, value: &str, path: &str, out: &mut Problems) {
    let Some(checks) = checks else { return };
    let shown = Value::from(value);
    let length = value.chars().count() as u64;
    if let Some(max) = checks.length_max.filter(|max| length > *max) {
        out.push(Problem::too_long(path, max));
    }
    if let Some(min) = checks.length_min.filter(|min| length < *min) {
        let why = format!("{path} in body should be at least {min} chars long");
        out.push(Problem::invalid(path, &shown, &why));
    }
    if let Some(pattern) = checks.pattern.as_ref().filter(|it| !it.matches(value)) {
        let why = format!("{path} in body should match '{}'", pattern.text());
        out.push(Problem::invalid(path, &shown, &why));
    }
    if let Some(format) = checks
        .format
        .as_deref()
        .filter(|it| !formats::holds(it, value))
    {
        let why = format!("{path} in body must be of type {format}: {value:?}");
        out.push(Problem::type_invalid(path, &shown, &why));
    }
}

fn number(schema: &Node, checks: Option<&Checks>, shown: &Value, path: &str, out: &mut Problems) {
    let (Some(checks), Some(value)) = (checks, shown.as_f64()) else {
        return;
    };
    // Upstream compares integers with the integral part of a bound.
    let bound = |bound: f64| {
        if shown.is_i64() || shown.is_u64() {
            bound.trunc()
        } else {
            bound
        }
    };
    let format = checks.format.as_deref();
    let is_small = |value: &Value| value.as_i64().is_some_and(|it| i32::try_from(it).is_ok());
    if schema.kind == Some(Kind::Integer) && format == Some("int32") && !is_small(shown) {
        let why = format!("Checked value must be of type integer with format int32 in {path}");
        out.push(Problem::invalid("", &Value::from(""), &why));
    }
    let mut tell = |why: String| {
        let why = format!("{path} in body should be {why}");
        out.push(Problem::invalid(path, shown, &why));
    };
    if let Some(factor) = checks.multiple_of.map(bound)
        && factor > 0.0
        && (value / factor).fract() != 0.0
    {
        tell(format!("a multiple of {factor}"));
    }
    if let Some(max) = checks.maximum.map(bound) {
        if checks.is_maximum_exclusive && value >= max {
            tell(format!("less than {max}"));
        } else if value > max {
            tell(format!("less than or equal to {max}"));
        }
    }
    if let Some(min) = checks.minimum.map(bound) {
        if checks.is_minimum_exclusive && value <= min {
            tell(format!("greater than {min}"));
        } else if value < min {
            tell(format!("greater than or equal to {min}"));
        }
    }
}

fn items(schema: &Node, list: &[Value], old: Option<&Value>, path: &str, out: &mut Problems) {
    if let Some(items) = &schema.items {
        let old_items = old_items(schema, old);
        for (index, item) in list.iter().enumerate() {
            let old = old_of(schema, &old_items, item);
            node(items, item, old, &below(path, Step::Index(index)), out);
        }
    }
    let Some(checks) = schema.checks.as_deref() else {
        return;
    };
    let count = list.len() as u64;
    if let Some(min) = checks.items_min.filter(|min| count < *min) {
        let why = format!("{path} in body should have at least {min} items");
        out.push(Problem::invalid(path, &Value::from(count), &why));
    }
    if let Some(max) = checks.items_max.filter(|max| count > *max) {
        out.push(Problem::too_many(path, list.len(), max));
    }
}

fn members(
    schema: &Node,
    map: &Map<String, Value>,
    old: Option<&Value>,
    path: &str,
    out: &mut Problems,
) {
    let count = map.len() as u64;
    if let Some(checks) = schema.checks.as_deref() {
        if let Some(min) = checks.properties_min.filter(|min| count < *min) {
            let why = format!("{path} in body should have at least {min} properties");
            out.push(Problem::invalid(path, &Value::from(count), &why));
        }
        if let Some(max) = checks.properties_max.filter(|max| count > *max) {
            out.push(Problem::too_many(path, map.len(), max));
        }
    }
    let below = |name: &str| below(path, Step::Member(name));
    for (name, value) in map {
        let old = old.and_then(|old| old.get(name));
        if let Some(property) = schema.property(name) {
            node(property, value, old, &below(name), out);
            continue;
        }
        match &schema.additional {
            Additional::Of(schema) => node(schema, value, old, &below(name), out),
            Additional::Never => {
                let why = format!("{path}.{name} in body is a forbidden property");
                out.push(Problem::invalid(path, &Value::from(&**name), &why));
            }
            Additional::Unsaid | Additional::Any => {}
        }
    }
    for name in &schema.required {
        if !map.contains_key(&**name) {
            out.push(Problem::required(below(name), ""));
        }
    }
}

fn choices(checks: Option<&Checks>, value: &Value, path: &str, out: &mut Problems) {
    let Some(checks) = checks else { return };
    if !checks.choices.allow(value) {
        out.push_with(|| Problem::unsupported(path, value, checks.choices.listed()));
    }
}
