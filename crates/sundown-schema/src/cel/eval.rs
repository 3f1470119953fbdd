//! Evaluation of expressions, with a budget of steps instead of a clock.

use std::borrow::Cow;
use std::cell::Cell;
use std::rc::Rc;

use super::functions;
use super::parse::{Expr, Loop};
use super::value::Val;

/// Why an evaluation came to nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Error {
    /// The budget is used up.
    Exhausted,
    /// As CEL tells it.
    Told(String),
}

pub(crate) type Result<'a> = std::result::Result<Val<'a>, Error>;

pub(crate) fn told<T>(why: impl Into<String>) -> std::result::Result<T, Error> {
    Err(Error::Told(why.into()))
}

/// Variables, the newest last, and what is left of the budget.
pub(crate) struct Scope<'a, 'b> {
    pub(crate) names: Vec<(&'b str, Val<'a>)>,
    pub(crate) budget: &'b Cell<u64>,
}

impl<'a, 'b> Scope<'a, 'b> {
    /// Takes steps out of the budget.
    pub(crate) fn spend(&self, steps: usize) -> std::result::Result<(), Error> {
        let steps = steps as u64;
        let left = self.budget.get().checked_sub(steps);
        self.budget.set(left.unwrap_or(0));
        left.map(|_| ()).ok_or(Error::Exhausted)
    }

    pub(crate) fn eval(&mut self, expr: &'b Expr) -> Result<'a> {
        self.spend(1)?;
        match expr {
            Expr::Null => Ok(Val::Null),
            Expr::Bool(value) => Ok(Val::Bool(*value)),
            Expr::Int(value) => Ok(Val::Int(*value)),
            Expr::Uint(value) => Ok(Val::Uint(*value)),
            Expr::Double(value) => Ok(Val::Double(*value)),
            Expr::Text(text) => Ok(Val::Text(Cow::Owned(text.clone()))),
            Expr::Name(name, _) => self.name(name),
            Expr::Select {
                on,
                name,
                is_test,
                is_optional,
            } => self.select(on, name, *is_test, *is_optional),
            Expr::Index {
                on,
                at,
                is_optional,
            } => self.index(on, at, *is_optional),
            Expr::Call { on, name, args, .. } => self.call(on.as_deref(), name, args),
            Expr::List(items) => {
                let items: std::result::Result<Vec<_>, _> =
                    items.iter().map(|item| self.eval(item)).collect();
                Ok(Val::list(items?))
            }
            Expr::Map(entries) => {
                let mut map = Vec::new();
                for (key, value) in entries {
                    map.push((self.eval(key)?, self.eval(value)?));
                }
                Ok(Val::Map(Rc::new(map)))
            }
            Expr::Not(on) => match self.eval(on)? {
                Val::Bool(value) => Ok(Val::Bool(!value)),
                _ => told("no such overload"),
            },
            Expr::Negative(on) => match self.eval(on)? {
                Val::Int(value) => value
                    .checked_neg()
                    .map_or_else(|| told("integer overflow"), |value| Ok(Val::Int(value))),
                Val::Double(value) => Ok(Val::Double(-value)),
                Val::Duration(value) => Ok(Val::Duration(-value)),
                _ => told("no such overload"),
            },
            Expr::Binary(sign, left, right) => self.binary(sign, left, right),
            Expr::Choice(test, yes, no) => match self.eval(test)? {
                Val::Bool(true) => self.eval(yes),
                Val::Bool(false) => self.eval(no),
                _ => told("no such overload"),
            },
            Expr::Loop {
                kind,
                over,
                name,
                filter,
                body,
            } => self.run(*kind, over, name, filter.as_deref(), body),
            Expr::Bind(name, value, body) => {
                let value = self.eval(value)?;
                self.within(name, value, body)
            }
        }
    }

    fn within(&mut self, name: &'b str, value: Val<'a>, body: &'b Expr) -> Result<'a> {
        self.names.push((name, value));
        let result = self.eval(body);
        self.names.pop();
        result
    }

    fn name(&self, name: &str) -> Result<'a> {
        let found = self.names.iter().rev().find(|(own, _)| *own == name);
        found.map_or_else(
            || told(format!("no such attribute(s): {name}")),
            |(_, value)| Ok(value.clone()),
        )
    }

    fn select(&mut self, on: &'b Expr, name: &str, is_test: bool, is_optional: bool) -> Result<'a> {
        let on = self.eval(on)?;
        let name = unescaped(name);
        let (on, is_chained) = match on {
            Val::Optional(None) if is_test => return Ok(Val::Bool(false)),
            Val::Optional(None) => return Ok(Val::Optional(None)),
            Val::Optional(Some(inner)) => ((*inner).clone(), true),
            other => (other, is_optional),
        };
        if !on.is_map() {
            return told("no such overload");
        }
        let found = on.member(&name);
        if is_test {
            return Ok(Val::Bool(found.is_some()));
        }
        if is_chained {
            return Ok(Val::Optional(found.map(Rc::new)));
        }
        found.map_or_else(|| told(format!("no such key: {name}")), Ok)
    }

    fn index(&mut self, on: &'b Expr, at: &'b Expr, is_optional: bool) -> Result<'a> {
        let (on, at) = (self.eval(on)?, self.eval(at)?);
        let (on, is_optional) = match on {
            Val::Optional(None) => return Ok(Val::Optional(None)),
            Val::Optional(Some(inner)) => ((*inner).clone(), true),
            other => (other, is_optional),
        };
        let (found, why) = match (&at, on.is_map()) {
            (Val::Text(name), true) => (on.member(name), format!("no such key: {name}")),
            (Val::Int(index), false) => {
                let items = on.items().unwrap_or_default();
                let found = usize::try_from(*index).ok().and_then(|it| items.get(it));
                (found.cloned(), format!("index out of bounds: {index}"))
            }
            _ => return told("no such overload"),
        };
        if is_optional {
            return Ok(Val::Optional(found.map(Rc::new)));
        }
        found.map_or_else(|| told(why), Ok)
    }

    fn call(&mut self, on: Option<&'b Expr>, name: &str, args: &'b [Expr]) -> Result<'a> {
        let mut values = Vec::with_capacity(args.len());
        let space = match on {
            Some(Expr::Name(space, _)) if functions::is_space(space) => Some(space.as_str()),
            _ => None,
        };
        for arg in args {
            values.push(self.eval(arg)?);
        }
        if let Some(space) = space {
            return functions::in_space(self, space, name, &values);
        }
        match on {
            Some(on) => {
                let on = self.eval(on)?;
                functions::method(self, &on, name, &values)
            }
            None => functions::global(self, name, &values),
        }
    }

    fn binary(&mut self, sign: &str, left: &'b Expr, right: &'b Expr) -> Result<'a> {
        if sign == "&&" || sign == "||" {
            // An error on one side does not matter when the other side decides.
            let decides = sign == "||";
            let one = self.eval(left);
            if matches!(one, Ok(Val::Bool(value)) if value == decides) {
                return Ok(Val::Bool(decides));
            }
            let two = self.eval(right);
            return match (one, two) {
                (_, Ok(Val::Bool(value))) if value == decides => Ok(Val::Bool(decides)),
                (Ok(Val::Bool(_)), Ok(Val::Bool(_))) => Ok(Val::Bool(!decides)),
                (Err(error), _) | (_, Err(error)) => Err(error),
                _ => told("no such overload"),
            };
        }
        let (left, right) = (self.eval(left)?, self.eval(right)?);
        functions::operator(self, sign, &left, &right)
    }

    fn run(
        &mut self,
        kind: Loop,
        over: &'b Expr,
        name: &'b str,
        filter: Option<&'b Expr>,
        body: &'b Expr,
    ) -> Result<'a> {
        let over = self.eval(over)?;
        let Some(items) = over.items() else {
            return told("no such overload");
        };
        let (mut kept, mut count, mut failure) = (Vec::new(), 0, None);
        for item in items {
            self.spend(1)?;
            if let Some(filter) = filter
                && !matches!(self.within(name, item.clone(), filter)?, Val::Bool(true))
            {
                continue;
            }
            let result = self.within(name, item.clone(), body);
            match (kind, result) {
                (_, Err(Error::Exhausted)) => return Err(Error::Exhausted),
                (Loop::All, Ok(Val::Bool(false))) => return Ok(Val::Bool(false)),
                (Loop::Exists, Ok(Val::Bool(true))) => return Ok(Val::Bool(true)),
                (Loop::All | Loop::Exists, Err(error)) => failure = Some(error),
                (Loop::All | Loop::Exists, Ok(_)) => {}
                (Loop::ExistsOne, result) => {
                    count += usize::from(matches!(result?, Val::Bool(true)));
                }
                (Loop::Filter, result) => {
                    if matches!(result?, Val::Bool(true)) {
                        kept.push(item);
                    }
                }
                (Loop::Map, result) => kept.push(result?),
            }
        }
        match (kind, failure) {
            (_, Some(failure)) => Err(failure),
            (Loop::All, None) => Ok(Val::Bool(true)),
            (Loop::Exists, None) => Ok(Val::Bool(false)),
            (Loop::ExistsOne, None) => Ok(Val::Bool(count == 1)),
            (Loop::Filter | Loop::Map, None) => Ok(Val::list(kept)),
        }
    }
}

/// Names of fields that are no names of CEL are written with escapes.
fn unescaped(name: &str) -> Cow<'_, str> {
    if !name.contains("__") {
        return Cow::Borrowed(name);
    }
    if let Some(word) = name.strip_prefix("__").and_then(|it| it.strip_suffix("__"))
        && KEYWORDS.contains(&word)
    {
        return Cow::Borrowed(word);
    }
    let text = name.replace("__dot__", ".").replace("__dash__", "-");
    Cow::Owned(
        text.replace("__slash__", "/")
            .replace("__underscores__", "__"),
    )
}

const KEYWORDS: &[&str] = &[
    "true",
    "false",
    "null",
    "in",
    "as",
    "break",
    "const",
    "continue",
    "else",
    "for",
    "function",
    "if",
    "import",
    "let",
    "loop",
    "package",
    "namespace",
    "return",
    "var",
    "void",
    "while",
];
