//! Whether the rules of a schema may be registered: what they say compiles, and what they may cost
//! stays within upstream's budgets.

use std::rc::Rc;

use serde_json::{Value, json};

use crate::cel::{self, Decl, REQUEST_BYTES_MAX, Ty};
use crate::problem::go_json;
use crate::{Problem, Problems, field_path};

/// What one rule may cost, at all places where it may hold.
const RULE_COST_MAX: u64 = 10_000_000;
/// What all rules of a schema may cost.
const SCHEMA_COST_MAX: u64 = 100_000_000;
/// As many of the dearest rules are named.
const NAMED_MAX: usize = 4;

const REASONS: [&str; 4] = [
    "FieldValueDuplicate",
    "FieldValueForbidden",
    "FieldValueInvalid",
    "FieldValueRequired",
];

/// What is wrong with the rules of a schema that is fine otherwise.
pub(crate) fn check(schema: &Value, path: &str) -> Problems {
    let mut judge = Judge::default();
    judge.texts(schema, path);
    if !judge.problems.is_empty() {
        return judge.problems;
    }
    let root = Place {
        schema,
        path: path.to_owned(),
        decl: None,
        is_root: true,
        count: Some(1),
        uncorrelatable: None,
    };
    judge.walk(&root);
    judge.total(path);
    judge.problems
}

#[derive(Default)]
struct Judge {
    problems: Problems,
    cost: u64,
    dearest: Vec<(u64, String)>,
}

/// A schema inside of another one.
struct Place<'a> {
    schema: &'a Value,
    path: String,
    /// What it declares, once something above has rules.
    decl: Option<Rc<Decl>>,
    is_root: bool,
    /// How many values of it an object may have; None if nothing bounds it.
    count: Option<u64>,
    /// The first schema above whose parts cannot be found again in the old object.
    uncorrelatable: Option<String>,
}

fn list<'a>(schema: &'a Value, name: &str) -> &'a [Value] {
    let list = schema.get(name).and_then(Value::as_array);
    list.map_or(&[], Vec::as_slice)
}

fn text<'a>(schema: &'a Value, name: &str) -> &'a str {
    schema.get(name).and_then(Value::as_str).unwrap_or("")
}

impl Judge {
    /// What is wrong with the texts of rules, before anything is compiled.
    fn texts(&mut self, schema: &Value, path: &str) {
        for (index, rule) in list(schema, "x-kubernetes-validations").iter().enumerate() {
            let at = |member: &str| format!("{path}.x-kubernetes-validations[{index}].{member}");
            self.problems.append(wording(rule, &at));
            let own = text(rule, "fieldPath");
            if !own.is_empty() && field_path(own, schema).is_err() {
                let why = "must be a valid path";
                self.problems
                    .push(Problem::invalid(at("fieldPath"), &json!(own), why));
            }
        }
        for (below, child) in crate::structural::children(schema, path) {
            self.texts(child, &below);
        }
    }

    fn walk(&mut self, place: &Place<'_>) {
        let rules = list(place.schema, "x-kubernetes-validations");
        let own = place.decl.clone().or_else(|| {
            let has_rules = !rules.is_empty();
            has_rules
                .then(|| Decl::of(place.schema, place.is_root))
                .flatten()
        });
        if let Some(own) = own.as_ref().filter(|_| !rules.is_empty()) {
            for (index, rule) in rules.iter().enumerate() {
                self.rule(rule, index, own, place);
            }
        }
        for child in place.children(own.as_ref()) {
            self.walk(&child);
        }
    }

    fn rule(&mut self, rule: &Value, index: usize, own: &Rc<Decl>, place: &Place<'_>) {
        let at =
            |member: &str| format!("{}.x-kubernetes-validations[{index}].{member}", place.path);
        let is_optional = rule.get("optionalOldSelf") == Some(&json!(true));
        let checked = match cel::check(text(rule, "rule"), own, is_optional) {
            Ok(checked) if matches!(checked.ty, Ty::Bool) => checked,
            Ok(_) => {
                let why = "cel expression must evaluate to a bool";
                self.problems
                    .push(Problem::invalid_as(at("rule"), &shown(rule), why));
                return;
            }
            Err(why) => {
                self.problems
                    .push(Problem::invalid_as(at("rule"), &shown(rule), &why));
                return;
            }
        };
        let fitting = REQUEST_BYTES_MAX / (own.bytes_min + 1);
        let cost = checked
            .cost_max
            .saturating_mul(place.count.unwrap_or(fitting));
        self.spend(cost, at("rule"), "estimated rule cost");
        self.message(rule, own, is_optional, &at("messageExpression"));
        match (&place.uncorrelatable, checked.uses_old) {
            (Some(within), true) => {
                let why = format!(
                    "oldSelf cannot be used on the uncorrelatable portion of the schema within {within}"
                );
                let own = json!(text(rule, "rule"));
                self.problems.push(Problem::invalid(at("rule"), &own, &why));
            }
            (_, false) if rule.get("optionalOldSelf").is_some_and(|it| !it.is_null()) => {
                let why = "may not be set if oldSelf is not used in rule";
                let own = &rule["optionalOldSelf"];
                self.problems
                    .push(Problem::invalid(at("optionalOldSelf"), own, why));
            }
            _ => {}
        }
    }

    fn message(&mut self, rule: &Value, own: &Rc<Decl>, is_optional: bool, at: &str) {
        let message = text(rule, "messageExpression");
        if message.trim().is_empty() {
            return;
        }
        let why = match cel::check(message, own, is_optional) {
            Ok(checked) if matches!(checked.ty, Ty::Text) => {
                self.spend(
                    checked.cost_max,
                    at.to_owned(),
                    "estimated messageExpression cost",
                );
                return;
            }
            Ok(_) => "messageExpression must evaluate to a string".to_owned(),
            Err(why) => format!("messageExpression {why}"),
        };
        self.problems
            .push(Problem::invalid_as(at, &shown(rule), &why));
    }

    fn spend(&mut self, cost: u64, at: String, what: &str) {
        if cost > RULE_COST_MAX {
            let why = over_budget(what, cost, RULE_COST_MAX);
            self.problems.push(Problem::forbidden(&*at, &why));
        }
        self.cost = self.cost.saturating_add(cost);
        if cost >= SCHEMA_COST_MAX / 100 {
            self.dearest.push((cost, at));
            self.dearest
                .sort_by_key(|(cost, _)| std::cmp::Reverse(*cost));
            self.dearest.truncate(NAMED_MAX);
        }
    }

    fn total(&mut self, path: &str) {
        if self.cost <= SCHEMA_COST_MAX {
            return;
        }
        for (_, at) in std::mem::take(&mut self.dearest) {
            let why = "contributed to estimated rule cost total exceeding cost limit for entire \
                       OpenAPIv3 schema";
            self.problems.push(Problem::forbidden(at, why));
        }
        let what = "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema";
        let why = over_budget(what, self.cost, SCHEMA_COST_MAX);
        self.problems.push(Problem::forbidden(path, &why));
    }
}

impl<'a> Place<'a> {
    fn children(&self, own: Option<&Rc<Decl>>) -> Vec<Place<'a>> {
        let is_object = text(self.schema, "type") == "object";
        let additional = self
            .schema
            .get("additionalProperties")
            .filter(|it| it.is_object());
        let bound = |name: &str| self.schema.get(name).and_then(Value::as_u64);
        // How many values one value of this schema brings.
        let factor = match text(self.schema, "type") {
            "object" if self.schema.get("additionalProperties").is_some() => bound("maxProperties"),
            "array" => bound("maxItems"),
            _ => Some(1),
        };
        let count = self
            .count
            .zip(factor)
            .map(|(count, factor)| count.saturating_mul(factor));
        let place =
            |schema: &'a Value, step: String, decl: Option<Rc<Decl>>, is_found: bool| Place {
                schema,
                path: format!("{}.{step}", self.path),
                decl,
                is_root: schema.get("x-kubernetes-embedded-resource") == Some(&json!(true)),
                count,
                uncorrelatable: self
                    .uncorrelatable
                    .clone()
                    .or((!is_found).then(|| self.path.clone())),
            };
        let is_granular = text(self.schema, "x-kubernetes-map-type") != "atomic";
        let properties = self.schema.get("properties").and_then(Value::as_object);
        let properties = properties.into_iter().flatten().filter(|_| is_object);
        let mut children: Vec<Place<'a>> = properties
            .map(|(name, schema)| {
                let decl = own.and_then(|own| own.fields.get(name)).cloned();
                place(schema, format!("properties[{name}]"), decl, is_granular)
            })
            .collect();
        let items = || own.and_then(|own| own.items.clone());
        if let Some(schema) = self.schema.get("items").filter(|it| it.is_object()) {
            let is_map = text(self.schema, "x-kubernetes-list-type") == "map";
            children.push(place(schema, "items".to_owned(), items(), is_map));
        }
        if let Some(schema) = additional {
            children.push(place(
                schema,
                "additionalProperties".to_owned(),
                items(),
                true,
            ));
        }
        children
    }
}

fn wording(rule: &Value, at: &dyn Fn(&str) -> String) -> Problems {
    let mut problems = Problems::default();
    let (own, message) = (text(rule, "rule").trim(), text(rule, "message"));
    let has_lines = |text: &str| text.contains(['\n', '\r']);
    if own.is_empty() {
        problems.push(Problem::required(at("rule"), "rule is not specified"));
    } else if !message.is_empty() && message.trim().is_empty() {
        let why = "must be non-empty if specified";
        problems.push(Problem::invalid(at("message"), &json!(message), why));
    } else if has_lines(message.trim()) {
        let why = "must not contain line breaks";
        problems.push(Problem::invalid(at("message"), &json!(message), why));
    } else if has_lines(own) && message.trim().is_empty() {
        let why = "message must be specified if rule contains line breaks";
        problems.push(Problem::required(at("message"), why));
    }
    let expression = text(rule, "messageExpression");
    if !expression.is_empty() && expression.trim().is_empty() {
        let why = "messageExpression must be non-empty if specified";
        problems.push(Problem::required(at("messageExpression"), why));
    }
    let reason = text(rule, "reason");
    if !reason.is_empty() && !REASONS.contains(&reason) {
        let known = REASONS.map(Value::from);
        problems.push(Problem::unsupported(at("reason"), &json!(reason), &known));
    }
    problems
}

fn over_budget(what: &str, cost: u64, cost_max: u64) -> String {
    #[expect(clippy::cast_precision_loss, reason = "shown to one digit")]
    let factor = cost as f64 / cost_max as f64;
    let factor = if factor > 100.0 {
        "more than 100x".to_owned()
    } else if factor < 1.5 {
        format!("{factor:.6}x")
    } else {
        format!("{factor:.1}x")
    };
    format!(
        "{what} exceeds budget by factor of {factor} (try simplifying the rule, or adding maxItems, \
         maxProperties, and maxLength where arrays, maps, and strings are declared)"
    )
}

/// A rule as upstream shows it.
fn shown(rule: &Value) -> String {
    let text = |name: &str| go_json(&json!(text(rule, name)));
    let other = |name: &str| go_json(rule.get(name).unwrap_or(&Value::Null));
    format!(
        "{{\"Rule\":{},\"Message\":{},\"MessageExpression\":{},\"Reason\":{},\"FieldPath\":{},\
         \"OptionalOldSelf\":{}}}",
        text("rule"),
        text("message"),
        text("messageExpression"),
        other("reason"),
        text("fieldPath"),
        other("optionalOldSelf"),
    )
}
