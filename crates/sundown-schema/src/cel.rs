//! Rules of schemas (`x-kubernetes-validations`): where they hold and what they say, as upstream's
//! `schema/cel/validation.go`.
//!
//! An own evaluator and not `kube-cel`: its tree reaches a clock, locks and libc, and it has no
//! budget. Ours counts steps, so that no clock is needed.

mod ast;
mod check;
mod clause;
mod escape;
mod estimate;
mod eval;
mod functions;
mod lex;
mod library;
mod overloads;
mod parse;
mod text;
mod ty;
mod value;

use std::cell::Cell;
use std::rc::Rc;

use serde_json::Value;

use crate::below::{Step, below};
use crate::lists::{old_items, old_of};
use crate::node::{Kind, Node};
use crate::{Problem, Problems};
use ast::Expr;
use eval::{Error, Scope};
use parse::parse;
use value::Val;

pub(crate) use check::check;
pub(crate) use ty::{Decl, REQUEST_BYTES_MAX, Ty};

/// What all rules of one object may cost, in steps; upstream's budget is of the same size.
const BUDGET_MAX: u64 = 10_000_000;
/// What one rule may cost at one place.
const CALL_BUDGET_MAX: u64 = 1_000_000;
const MESSAGE_BYTES_MAX: usize = 5 * 1024;

/// One rule.
#[derive(Debug)]
pub(crate) struct Rule {
    text: Box<str>,
    message: Box<str>,
    expr: Option<Expr>,
    message_expr: Option<Expr>,
    field_path: Box<str>,
    reason: Box<str>,
    is_optional_old: bool,
    uses_old: bool,
}

impl Rule {
    /// Reads a rule; one that does not parse was refused at registration and says nothing.
    pub(crate) fn read(value: &Value) -> Self {
        let text = |name: &str| value.get(name).and_then(Value::as_str).unwrap_or("").trim();
        let expr = parse(text("rule")).ok();
        let message = text("messageExpression");
        Self {
            text: text("rule").into(),
            message: text("message").into(),
            uses_old: expr.as_ref().is_some_and(|it| it.names("oldSelf")),
            expr,
            message_expr: parse(message).ok().filter(|_| !message.is_empty()),
            field_path: text("fieldPath").into(),
            reason: text("reason").into(),
            is_optional_old: value.get("optionalOldSelf") == Some(&Value::Bool(true)),
        }
    }

    fn name(&self) -> &str {
        if self.message.is_empty() {
            &self.text
        } else {
            &self.message
        }
    }

    fn problem(
        &self,
        schema: &Node,
        value: &Value,
        field: &str,
        message: Option<String>,
    ) -> Problem {
        let message = message.unwrap_or_else(|| {
            if self.message.is_empty() {
                format!("failed rule: {}", self.text)
            } else {
                self.message.to_string()
            }
        });
        let field = format!("{field}{}", self.field_path);
        let field = field.trim_start_matches('.');
        match &*self.reason {
            "FieldValueForbidden" => Problem::forbidden(field, &message),
            "FieldValueRequired" => Problem::required(field, &message),
            "FieldValueDuplicate" => Problem::duplicate(field, value),
            _ if matches!(schema.kind, Some(Kind::Object | Kind::Array)) => {
                Problem::invalid_unshown(field, &message)
            }
            _ => Problem::invalid(field, value, &message),
        }
    }
}

/// What the rules say about an object.
pub(crate) fn validate(root: &Node, new: &Value, old: Option<&Value>) -> Problems {
    let mut judge = Judge {
        budget: BUDGET_MAX,
        problems: Problems::default(),
    };
    // Out of budget is told in the problems; the rest is not judged.
    let _done = judge.node(root, new, old, "");
    judge.problems
}

struct Judge {
    /// What is left for all rules.
    budget: u64,
    problems: Problems,
}

impl Judge {
    /// None once the budget is used up.
    fn node(&mut self, schema: &Node, new: &Value, old: Option<&Value>, path: &str) -> Option<()> {
        if !schema.has_rules || new.is_null() {
            return Some(());
        }
        let old = old.filter(|old| !old.is_null());
        for rule in &schema.rules {
            self.rule(rule, schema, new, old, path)?;
        }
        match new {
            Value::Object(map) => {
                for (name, value) in map {
                    let Some(member) = schema.member(name) else {
                        continue;
                    };
                    let step = match schema.property(name) {
                        None => Step::Key(name),
                        Some(_) => Step::Member(name),
                    };
                    let old = old.and_then(|old| old.get(name));
                    self.node(member, value, old, &below(path, step))?;
                }
            }
            Value::Array(list) => {
                let Some(items) = &schema.items else {
                    return Some(());
                };
                let old_items = old_items(schema, old);
                for (index, item) in list.iter().enumerate() {
                    let old = old_of(schema, &old_items, item);
                    self.node(items, item, old, &below(path, Step::Index(index)))?;
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
        Some(())
    }

    /// Takes a cost from the budget of all rules; None if it is more than is left.
    fn charge(&mut self, what: &str, cost: u64, path: &str, kind: &Value) -> Option<()> {
        if let Some(left) = self.budget.checked_sub(cost) {
            self.budget = left;
            return Some(());
        }
        let why = format!(
            "{what} failed due to running out of cost budget, no further validation rules will be run"
        );
        self.problems.push(Problem::invalid(path, kind, &why));
        None
    }

    fn rule(
        &mut self,
        rule: &Rule,
        schema: &Node,
        new: &Value,
        old: Option<&Value>,
        path: &str,
    ) -> Option<()> {
        let Some(expr) = &rule.expr else {
            return Some(());
        };
        if rule.uses_old && old.is_none() && !rule.is_optional_old {
            return Some(());
        }
        // An unchanged part is not judged again by rules that look at it alone.
        if !rule.uses_old && old == Some(new) {
            return Some(());
        }
        let mut names = vec![("self", Val::of(new, Some(schema)))];
        let old = old.map(|old| Val::of(old, Some(schema)));
        if rule.is_optional_old {
            names.push(("oldSelf", Val::Optional(old.map(Rc::new))));
        } else {
            names.extend(old.map(|old| ("oldSelf", old)));
        }
        let budget = Cell::new(CALL_BUDGET_MAX);
        let mut scope = Scope {
            names,
            budget: &budget,
        };
        let kind = Value::from(schema.kind.map_or("", Kind::name));
        let result = scope.eval(expr);
        let spent = CALL_BUDGET_MAX - budget.get();
        self.charge("validation", spent, path, &kind)?;
        match result {
            Ok(Val::Bool(true)) => {}
            Ok(_) => {
                let message = rule.message_expr.as_ref().map(|it| scope.eval(it));
                let spent = CALL_BUDGET_MAX - budget.get() - spent;
                self.charge("messageExpression evaluation", spent, path, &kind)?;
                let message = match message {
                    Some(Ok(Val::Text(text))) => Some(text.trim().to_owned()),
                    _ => None,
                };
                let message = message.filter(|text| {
                    !text.is_empty() && text.len() <= MESSAGE_BYTES_MAX && !text.contains('\n')
                });
                self.problems.push(rule.problem(schema, new, path, message));
            }
            Err(Error::Exhausted) => {
                let why = format!(
                    "'operation cancelled: actual cost limit exceeded': no further validation rules \
                     will be run due to call cost exceeds limit for rule: {}",
                    rule.name()
                );
                self.problems.push(Problem::invalid(path, &kind, &why));
                return None;
            }
            Err(Error::Told(why)) if why.starts_with("no such overload") => {
                let why = format!(
                    "'{why}': call arguments did not match a supported operator, function or \
                     macro signature for rule: {}",
                    rule.name()
                );
                self.problems.push(Problem::invalid(path, &kind, &why));
            }
            Err(Error::Told(why)) => {
                let why = format!("{why} evaluating rule: {}", rule.name());
                self.problems.push(Problem::invalid(path, &kind, &why));
            }
        }
        Some(())
    }
}
