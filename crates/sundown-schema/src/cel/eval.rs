//! Evaluation of expressions, with a budget of steps instead of a clock.
//!
//! Whatever makes something large pays for it before it is made.

use std::borrow::Cow;
use std::cell::Cell;
use std::rc::Rc;

use super::ast::{Expr, Kind, Loop, LoopKind};
use super::escape::unescaped;
use super::functions;
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

pub(crate) const NO_OVERLOAD: &str = "no such overload";

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
        let left = self.budget.get().checked_sub(steps as u64);
        self.budget.set(left.unwrap_or(0));
        left.map(|_| ()).ok_or(Error::Exhausted)
    }

    pub(crate) fn eval(&mut self, expr: &'b Expr) -> Result<'a> {
        self.spend(1)?;
        match &expr.kind {
            Kind::Null => Ok(Val::Null),
            Kind::Bool(value) => Ok(Val::Bool(*value)),
            Kind::Int(value) => Ok(Val::Int(*value)),
            Kind::Uint(value) => Ok(Val::Uint(*value)),
            Kind::Double(value) => Ok(Val::Double(*value)),
            Kind::Text(text) => {
                self.spend(text.len() / 10)?;
                Ok(Val::Text(Cow::Owned(text.to_string())))
            }
            Kind::Bytes(bytes) => {
                self.spend(bytes.len() / 10)?;
                Ok(Val::Bytes(Rc::from(&**bytes)))
            }
            Kind::Name(name) => self.name(name),
            Kind::Select {
                on,
                name,
                is_test,
                is_optional,
            } => self.select(on, name, *is_test, *is_optional),
            Kind::Index {
                on,
                key,
                is_optional,
            } => self.index(on, key, *is_optional),
            Kind::Call {
                on,
                name,
                args,
                pattern,
            } => {
                let on = on.as_deref().map(|on| self.eval(on)).transpose()?;
                let args: std::result::Result<Vec<_>, _> =
                    args.iter().map(|arg| self.eval(arg)).collect();
                functions::call(self, name, on.as_ref(), &args?, pattern.as_ref())
            }
            Kind::List(items) => {
                let items: std::result::Result<Vec<_>, _> =
                    items.iter().map(|item| self.eval(item)).collect();
                Ok(Val::list(items?))
            }
            Kind::Map(entries) => {
                let mut map = Vec::new();
                for (key, value) in entries {
                    map.push((self.eval(key)?, self.eval(value)?));
                }
                Ok(Val::Map(Rc::new(map)))
            }
            Kind::Not(on) => match self.eval(on)? {
                Val::Bool(value) => Ok(Val::Bool(!value)),
                _ => told(NO_OVERLOAD),
            },
            Kind::Negative(on) => match self.eval(on)? {
                Val::Int(value) => value
                    .checked_neg()
                    .map_or_else(|| told("integer overflow"), |value| Ok(Val::Int(value))),
                Val::Double(value) => Ok(Val::Double(-value)),
                Val::Duration(value) => Ok(Val::Duration(-value)),
                _ => told(NO_OVERLOAD),
            },
            Kind::Binary(sign, left, right) => self.binary(sign, left, right),
            Kind::Choice(parts) => match self.eval(&parts[0])? {
                Val::Bool(true) => self.eval(&parts[1]),
                Val::Bool(false) => self.eval(&parts[2]),
                _ => told(NO_OVERLOAD),
            },
            Kind::Loop(it) => self.run(it),
        }
    }

    fn name(&self, name: &str) -> Result<'a> {
        let found = self.names.iter().rev().find(|(own, _)| *own == name);
        if let Some((_, value)) = found {
            return Ok(value.clone());
        }
        let types = [
            "int",
            "uint",
            "double",
            "bool",
            "string",
            "bytes",
            "list",
            "map",
            "null_type",
            "type",
        ];
        let ty = types.into_iter().find(|ty| *ty == name);
        ty.map_or_else(
            || told(format!("no such attribute(s): {name}")),
            |ty| Ok(Val::Type(ty)),
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
            return told(NO_OVERLOAD);
        }
        // A null where null is allowed counts as absent.
        let is_object =
            matches!(&on, Val::JsonMap(_, Some(schema)) if schema.property(&name).is_some());
        let found = on.member(&name);
        let is_null = matches!(found, Some(Val::Null)) && is_object;
        let found = found.filter(|_| !(is_null && (is_test || is_chained)));
        if is_test {
            return Ok(Val::Bool(found.is_some()));
        }
        if is_chained {
            return Ok(Val::Optional(found.map(Rc::new)));
        }
        found.map_or_else(|| told(format!("no such key: {name}")), Ok)
    }

    fn index(&mut self, on: &'b Expr, key: &'b Expr, is_optional: bool) -> Result<'a> {
        let (on, key) = (self.eval(on)?, self.eval(key)?);
        let (on, is_optional) = match on {
            Val::Optional(None) => return Ok(Val::Optional(None)),
            Val::Optional(Some(inner)) => ((*inner).clone(), true),
            other => (other, is_optional),
        };
        let (found, why) = match (&key, on.is_map()) {
            (Val::Text(name), true) => (on.member(name), format!("no such key: {name}")),
            (_, true) => {
                let mut found = None;
                for (own, value) in on.entries().unwrap_or_default() {
                    if functions::equals(self, &own, &key)? {
                        found = Some(value);
                    }
                }
                (found, "no such key".to_owned())
            }
            (Val::Int(index), false) => {
                let found = usize::try_from(*index).ok().and_then(|it| on.item(it));
                (found, format!("index out of bounds: {index}"))
            }
            _ => return told(NO_OVERLOAD),
        };
        if is_optional {
            return Ok(Val::Optional(found.map(Rc::new)));
        }
        found.map_or_else(|| told(why), Ok)
    }

    fn binary(&mut self, sign: &str, left: &'b Expr, right: &'b Expr) -> Result<'a> {
        if sign != "&&" && sign != "||" {
            let (left, right) = (self.eval(left)?, self.eval(right)?);
            return functions::operator(self, sign, &left, &right);
        }
        // An error on one side does not matter when the other side decides.
        let decides = sign == "||";
        let one = self.eval(left);
        if matches!(one, Ok(Val::Bool(value)) if value == decides) {
            return Ok(Val::Bool(decides));
        }
        if matches!(one, Err(Error::Exhausted)) {
            return one;
        }
        match (one, self.eval(right)) {
            (_, Ok(Val::Bool(value))) if value == decides => Ok(Val::Bool(decides)),
            (Ok(Val::Bool(_)), Ok(Val::Bool(_))) => Ok(Val::Bool(!decides)),
            (_, Err(Error::Exhausted)) => Err(Error::Exhausted),
            (Err(error), _) | (_, Err(error)) => Err(error),
            _ => told(NO_OVERLOAD),
        }
    }

    fn run(&mut self, it: &'b Loop) -> Result<'a> {
        let over = self.eval(&it.over)?;
        if matches!(it.kind, LoopKind::OptMap | LoopKind::OptFlatMap) {
            return self.optional(it, over);
        }
        let Some(count) = over.count() else {
            return told(NO_OVERLOAD);
        };
        self.spend(count)?;
        let entries = over.entries().unwrap_or_default();
        let is_map = over.is_map();
        let depth = self.names.len();
        let mut round = Round::new(it.kind);
        for (key, value) in entries {
            self.names.truncate(depth);
            let single = if is_map { key.clone() } else { value.clone() };
            match &it.second {
                Some(second) => {
                    self.names.push((&it.name, key.clone()));
                    self.names.push((second, value.clone()));
                }
                None => self.names.push((&it.name, single.clone())),
            }
            let item = if it.second.is_some() { value } else { single };
            if let Some(filter) = &it.filter
                && !matches!(self.eval(filter)?, Val::Bool(true))
            {
                continue;
            }
            let result = self.eval(&it.body);
            if let Some(end) = round.take(key, item, result)? {
                self.names.truncate(depth);
                return Ok(end);
            }
        }
        self.names.truncate(depth);
        round.end(self)
    }

    fn optional(&mut self, it: &'b Loop, over: Val<'a>) -> Result<'a> {
        let Val::Optional(inner) = over else {
            return told(NO_OVERLOAD);
        };
        let Some(inner) = inner else {
            return Ok(Val::Optional(None));
        };
        self.names.push((&it.name, (*inner).clone()));
        let result = self.eval(&it.body);
        self.names.pop();
        match it.kind {
            LoopKind::OptMap => result.map(Val::some),
            _ => result,
        }
    }
}

/// What a loop has come to so far.
struct Round<'a> {
    kind: LoopKind,
    kept: Vec<Val<'a>>,
    keys: Vec<Val<'a>>,
    count: usize,
    failure: Option<Error>,
}

impl<'a> Round<'a> {
    fn new(kind: LoopKind) -> Self {
        Self {
            kind,
            kept: Vec::new(),
            keys: Vec::new(),
            count: 0,
            failure: None,
        }
    }

    /// Takes the result of one round; the value of the loop if that decides it.
    fn take(
        &mut self,
        key: Val<'a>,
        item: Val<'a>,
        result: Result<'a>,
    ) -> std::result::Result<Option<Val<'a>>, Error> {
        match (self.kind, result) {
            (_, Err(Error::Exhausted)) => return Err(Error::Exhausted),
            (LoopKind::All, Ok(Val::Bool(false))) => return Ok(Some(Val::Bool(false))),
            (LoopKind::Exists, Ok(Val::Bool(true))) => return Ok(Some(Val::Bool(true))),
            (LoopKind::All | LoopKind::Exists, Err(error)) => self.failure = Some(error),
            (LoopKind::ExistsOne, result) => {
                self.count += usize::from(matches!(result?, Val::Bool(true)));
            }
            (LoopKind::Filter, result) => {
                if matches!(result?, Val::Bool(true)) {
                    self.kept.push(item);
                }
            }
            (LoopKind::Map, result) => self.kept.push(result?),
            (LoopKind::SortBy, result) => {
                self.keys.push(result?);
                self.kept.push(item);
            }
            (LoopKind::TransformMap, result) => {
                self.keys.push(key);
                self.kept.push(result?);
            }
            (LoopKind::TransformMapEntry, result) => {
                for (key, value) in result?.entries().unwrap_or_default() {
                    self.keys.push(key);
                    self.kept.push(value);
                }
            }
            (LoopKind::All | LoopKind::Exists, Ok(_))
            | (LoopKind::OptMap | LoopKind::OptFlatMap, _) => {}
        }
        Ok(None)
    }

    fn end(self, scope: &Scope<'a, '_>) -> Result<'a> {
        if let Some(failure) = self.failure {
            return Err(failure);
        }
        Ok(match self.kind {
            LoopKind::All => Val::Bool(true),
            LoopKind::Exists => Val::Bool(false),
            LoopKind::ExistsOne => Val::Bool(self.count == 1),
            LoopKind::Filter | LoopKind::Map => Val::list(self.kept),
            LoopKind::SortBy => return functions::sort_by(scope, self.keys, self.kept),
            LoopKind::TransformMap | LoopKind::TransformMapEntry => {
                Val::Map(Rc::new(self.keys.into_iter().zip(self.kept).collect()))
            }
            LoopKind::OptMap | LoopKind::OptFlatMap => Val::Null,
        })
    }
}
