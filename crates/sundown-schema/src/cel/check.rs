//! Whether an expression is a rule: names, types, and what it may cost, in one walk. Messages and
//! their places are upstream's.

mod format;
mod loops;
mod report;

use std::rc::Rc;

use self::report::told;
use super::ast::{Expr, Kind};
use super::escape::unescaped;
use super::estimate::{self, LIST_COST, MAP_COST, Part, Size};
use super::overloads::{Resolved, resolve};
use super::parse::{Fault, parse};
use super::text;
use super::ty::{Decl, Ty, joined};
use crate::pattern;

/// An expression that was found to be fine.
#[derive(Debug)]
pub(crate) struct Checked {
    pub(crate) ty: Ty,
    /// What it costs at most.
    pub(crate) cost_max: u64,
    pub(crate) uses_old: bool,
}

/// What keeps an expression from being a rule, as the compiler of CEL tells it.
pub(crate) fn check(text: &str, own: &Rc<Decl>, is_old_optional: bool) -> Result<Checked, String> {
    let expr = parse(text).map_err(|faults| told(text, &faults))?;
    let old = if is_old_optional {
        Ty::Optional(Rc::new(own.ty()))
    } else {
        own.ty()
    };
    let variable = |ty: Ty, place: Option<&Rc<Decl>>| Info {
        ..Info::of(ty, 1).at(place.cloned())
    };
    let old_place = Some(own).filter(|_| !is_old_optional);
    let mut checker = Checker {
        names: vec![
            ("self".into(), variable(own.ty(), Some(own))),
            ("oldSelf".into(), variable(old, old_place)),
        ],
        root: own,
        faults: Vec::new(),
        mixed: 0,
    };
    let info = checker.visit(&expr);
    if !checker.faults.is_empty() {
        return Err(told(text, &checker.faults));
    }
    if let Some((name, _)) = unconvertible(&expr) {
        let why = format!("type conversion error from 'string' to '{name}'");
        return Err(format!("program instantiation failed: {why}"));
    }
    Ok(Checked {
        ty: info.ty,
        cost_max: info.cost,
        uses_old: expr.names("oldSelf"),
    })
}

/// What is known of a part.
#[derive(Debug, Clone)]
struct Info {
    ty: Ty,
    cost: u64,
    size: Option<Size>,
    /// The sizes of keys and of values, where the expression itself says them.
    entries: Option<(Size, Size)>,
    /// Where in the schema the value stands.
    place: Option<Rc<Decl>>,
    number: Option<u64>,
}

impl Info {
    fn of(ty: Ty, cost: u64) -> Self {
        let size = ty.is_scalar().then_some(Size::exact(1));
        Self {
            ty,
            cost,
            size,
            entries: None,
            place: None,
            number: None,
        }
    }

    fn sized(self, size: Option<Size>) -> Self {
        Self {
            size: size.or(self.size),
            ..self
        }
    }

    fn part(&self) -> Part<'_> {
        let items = self.place.as_ref().and_then(|decl| decl.items.as_ref());
        Part {
            ty: &self.ty,
            size: self.size,
            items: items.map(|decl| decl.size()),
            number: self.number,
        }
    }

    fn at(self, place: Option<Rc<Decl>>) -> Info {
        let size = place.as_ref().map(|decl| decl.size()).or(self.size);
        Info {
            size,
            place,
            ..self
        }
    }

    /// A key or an item, as `[]` and loops give it.
    fn item(&self, is_value: bool) -> Info {
        let ty = match (&self.ty, is_value) {
            (Ty::List(of), true) => (**of).clone(),
            (Ty::List(_), false) => Ty::Int,
            (Ty::Map(key, _), false) => (**key).clone(),
            (Ty::Map(_, value), true) => (**value).clone(),
            _ => Ty::Dyn,
        };
        let said = self
            .entries
            .map(|(key, value)| if is_value { value } else { key });
        let item = Info::of(ty, 1).sized(said);
        let Some(place) = self.place.as_ref() else {
            return item;
        };
        match (&self.ty, is_value) {
            (_, true) => item.at(place.items.clone()),
            // Upstream gives keys of a declared map no length.
            (Ty::Map(..), false) => item.sized(Some(Size::exact(0))),
            _ => item,
        }
    }
}

struct Checker<'d> {
    names: Vec<(Box<str>, Info)>,
    root: &'d Rc<Decl>,
    faults: Vec<Fault>,
    /// How many calls we are in whose lists may hold whatever.
    mixed: usize,
}

impl Checker<'_> {
    fn fault(&mut self, at: usize, why: String) -> Info {
        self.faults.push(Fault { at, why });
        Info::of(Ty::Dyn, 0)
    }

    fn visit(&mut self, expr: &Expr) -> Info {
        let literal = |ty: Ty, size: u64| Info::of(ty, 0).sized(Some(Size::exact(size)));
        match &expr.kind {
            Kind::Null => literal(Ty::Null, 1),
            Kind::Bool(_) => literal(Ty::Bool, 1),
            Kind::Int(value) => Info {
                number: u64::try_from(*value).ok(),
                ..literal(Ty::Int, 1)
            },
            Kind::Uint(_) => literal(Ty::Uint, 1),
            Kind::Double(_) => literal(Ty::Double, 1),
            Kind::Text(text) => literal(Ty::Text, text.chars().count() as u64),
            Kind::Bytes(bytes) => literal(Ty::Bytes, bytes.len() as u64),
            Kind::Name(name) => self.name(name, expr.at),
            Kind::Select {
                on,
                name,
                is_test,
                is_optional,
            } => self.select(expr.at, on, name, *is_test, *is_optional),
            Kind::Index {
                on,
                key,
                is_optional,
            } => self.index(expr.at, on, key, *is_optional),
            Kind::Call { on, name, args, .. } => self.call(expr.at, on.as_deref(), name, args),
            Kind::List(items) => self.list(items),
            Kind::Map(entries) => self.map(entries),
            Kind::Not(on) => {
                let on = self.visit(on);
                self.apply(expr.at, "!_", &[on])
            }
            Kind::Negative(on) => {
                let on = self.visit(on);
                self.apply(expr.at, "-_", &[on])
            }
            Kind::Binary(sign, left, right) => self.binary(expr.at, sign, left, right),
            Kind::Choice(parts) => self.choice(expr.at, parts),
            Kind::Loop(it) => self.looping(expr.at, it),
        }
    }

    fn name(&mut self, name: &str, at: usize) -> Info {
        if let Some((_, info)) = self.names.iter().rev().find(|(own, _)| **own == *name) {
            return Info {
                cost: 1,
                ..info.clone()
            };
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
        if types.contains(&name) {
            return Info::of(Ty::Type, 1);
        }
        self.fault(
            at,
            format!("undeclared reference to '{name}' (in container '')"),
        )
    }

    fn select(
        &mut self,
        at: usize,
        on: &Expr,
        name: &str,
        is_test: bool,
        is_optional: bool,
    ) -> Info {
        let on = self.visit(on);
        let (inner, is_chained) = match &on.ty {
            Ty::Optional(of) => ((**of).clone(), true),
            other => (other.clone(), is_optional),
        };
        let ty = match &inner {
            Ty::Dyn => Ty::Dyn,
            Ty::Map(_, value) => (**value).clone(),
            Ty::Object(decl) => match decl.fields.get(&*unescaped(name)) {
                Some(field) => field.ty(),
                None => return self.fault(at, format!("undefined field '{name}'")),
            },
            other => {
                let why = format!("type '{other}' does not support field selection");
                let info = self.fault(at, why);
                let ty = if is_chained {
                    Ty::Optional(Rc::new(Ty::Dyn))
                } else {
                    Ty::Dyn
                };
                return Info { ty, ..info };
            }
        };
        if is_test {
            return Info::of(Ty::Bool, on.cost);
        }
        if is_chained {
            // Upstream loses the place here, and with it the bounds.
            let cost = on.cost.saturating_add(1);
            return Info::of(Ty::Optional(Rc::new(ty)), cost);
        }
        let own = u64::from(matches!(inner, Ty::Map(..) | Ty::Object(_)));
        let place = on
            .place
            .as_ref()
            .and_then(|it| it.fields.get(&*unescaped(name)));
        Info::of(ty, on.cost.saturating_add(own)).at(place.cloned())
    }

    fn index(&mut self, at: usize, on: &Expr, key: &Expr, is_optional: bool) -> Info {
        let (on, key) = (self.visit(on), self.visit(key));
        let name = if is_optional { "_[?_]" } else { "_[_]" };
        let mut item = on.item(true);
        if on.place.is_none() {
            item = item.at(Some(Rc::clone(self.root)));
        }
        let mut info = self.apply(at, name, &[on, key]);
        if !matches!(info.ty, Ty::Optional(_)) {
            info.size = item.size.or(info.size);
            info.place = item.place;
        }
        info
    }

    fn call(&mut self, at: usize, on: Option<&Expr>, name: &str, args: &[Expr]) -> Info {
        self.literals(on, name, args);
        if let (
            Some(on),
            "format",
            [
                Expr {
                    kind: Kind::List(items),
                    ..
                },
            ],
        ) = (on, name, args)
        {
            return self.format(at, on, items);
        }
        let args: Vec<Info> = match on {
            // A receiver is looked at first, and so are its faults.
            Some(on) => [on]
                .into_iter()
                .chain(args)
                .map(|it| self.visit(it))
                .collect(),
            None => args.iter().map(|it| self.visit(it)).collect(),
        };
        if let ("dyn", None, [arg]) = (name, on, args.as_slice()) {
            let cost = arg.cost.saturating_add(1);
            return Info {
                ty: Ty::Dyn,
                cost,
                ..arg.clone()
            };
        }
        let (on, args) = match on {
            Some(_) => (args.first(), &args[1..]),
            None => (None, args.as_slice()),
        };
        self.applied(at, name, on, args)
    }

    /// Literals that a function would refuse whenever it runs.
    fn literals(&mut self, on: Option<&Expr>, name: &str, args: &[Expr]) {
        let is_fine: fn(&str) -> bool = match name {
            "matches" => |text| pattern::compile(text).is_ok(),
            "duration" => |text| text::duration(text).is_some(),
            "timestamp" => |text| text.parse::<jiff::Timestamp>().is_ok(),
            _ => return,
        };
        let index = usize::from(name == "matches" && on.is_none());
        if let Some(arg) = args.get(index)
            && arg.literal().is_some_and(|text| !is_fine(text))
        {
            self.fault(arg.at, format!("invalid {name} argument"));
        }
    }

    fn apply(&mut self, at: usize, name: &str, args: &[Info]) -> Info {
        self.applied(at, name, None, args)
    }

    fn applied(&mut self, at: usize, name: &str, on: Option<&Info>, args: &[Info]) -> Info {
        let types: Vec<Ty> = args.iter().map(|it| it.ty.clone()).collect();
        let ty = match resolve(name, on.map(|it| &it.ty), &types) {
            Resolved::Is(ty) => ty,
            Resolved::Unknown => {
                let name = name.rsplit('.').next().unwrap_or(name);
                return self.fault(
                    at,
                    format!("undeclared reference to '{name}' (in container '')"),
                );
            }
            Resolved::Unfit => {
                let shown: Vec<String> = types.iter().map(ToString::to_string).collect();
                let on = on.map(|it| format!("{}.", it.ty)).unwrap_or_default();
                let shown = format!("{on}({})", shown.join(", "));
                let why = format!("found no matching overload for '{name}' applied to '{shown}'");
                return self.fault(at, why);
            }
        };
        let parts: Vec<Part<'_>> = args.iter().map(Info::part).collect();
        let (own, size) = estimate::call(name, on.map(Info::part).as_ref(), &parts);
        let all = args.iter().chain(on).map(|it| it.cost);
        let cost = all.fold(own, u64::saturating_add);
        let mut info = Info::of(ty, cost).sized(size);
        if name == "_+_" {
            info.entries = match (args[0].entries, args[1].entries) {
                (Some(one), Some(two)) => Some((one.0.union(two.0), one.1.union(two.1))),
                _ => None,
            };
        }
        info
    }

    fn list(&mut self, items: &[Expr]) -> Info {
        let mut cost = LIST_COST;
        let (mut ty, mut each): (Option<Ty>, Option<Size>) = (None, None);
        for item in items {
            let found = self.visit(item);
            cost = cost.saturating_add(found.cost);
            let size = found.size.unwrap_or(Size::UNKNOWN);
            each = Some(each.map_or(size, |it| it.union(size)));
            ty = Some(self.same(ty, &found.ty, item.at));
        }
        let list = Info::of(Ty::list(ty.unwrap_or(Ty::Dyn)), cost);
        let entries = Some((Size::exact(1), each.unwrap_or(Size::exact(0))));
        Info { entries, ..list }.sized(Some(Size::exact(items.len() as u64)))
    }

    /// Items of one literal have one type.
    fn same(&mut self, before: Option<Ty>, found: &Ty, at: usize) -> Ty {
        let Some(before) = before else {
            return found.clone();
        };
        if let Some(both) = joined(&before, found) {
            return both;
        }
        if self.mixed > 0 {
            return Ty::Dyn;
        }
        self.fault(at, format!("expected type '{before}' but found '{found}'"));
        before
    }

    fn map(&mut self, entries: &[(Expr, Expr)]) -> Info {
        let mut cost = MAP_COST;
        let (mut key_ty, mut value_ty): (Option<Ty>, Option<Ty>) = (None, None);
        for (key, value) in entries {
            let (own, held) = (self.visit(key), self.visit(value));
            cost = cost.saturating_add(own.cost).saturating_add(held.cost);
            key_ty = Some(self.same(key_ty, &own.ty, key.at));
            value_ty = Some(self.same(value_ty, &held.ty, value.at));
        }
        let ty = Ty::Map(
            Rc::new(key_ty.unwrap_or(Ty::Dyn)),
            Rc::new(value_ty.unwrap_or(Ty::Dyn)),
        );
        Info::of(ty, cost).sized(Some(Size::exact(entries.len() as u64)))
    }

    fn binary(&mut self, at: usize, sign: &str, left: &Expr, right: &Expr) -> Info {
        let (one, two) = (self.visit(left), self.visit(right));
        if sign == "&&" || sign == "||" {
            for (info, expr) in [(&one, left), (&two, right)] {
                self.wants_bool(&info.ty, expr.at);
            }
            return Info::of(Ty::Bool, one.cost.saturating_add(two.cost));
        }
        let name = if sign == "in" {
            "@in".to_owned()
        } else {
            format!("_{sign}_")
        };
        self.apply(at, &name, &[one, two])
    }

    fn wants_bool(&mut self, found: &Ty, at: usize) {
        if !matches!(found, Ty::Bool | Ty::Dyn) {
            self.fault(at, format!("expected type 'bool' but found '{found}'"));
        }
    }

    fn choice(&mut self, at: usize, parts: &[Expr; 3]) -> Info {
        let [test, yes, no] = parts.each_ref().map(|part| self.visit(part));
        let cost = test.cost.saturating_add(yes.cost.max(no.cost));
        let sizes = (
            yes.size.unwrap_or(Size::UNKNOWN),
            no.size.unwrap_or(Size::UNKNOWN),
        );
        let info = self.apply(at, "_?_:_", &[test, yes, no]);
        Info { cost, ..info }.sized(Some(sizes.0.union(sizes.1)))
    }
}

/// A literal that never becomes what it is converted to; upstream finds it when it folds constants.
fn unconvertible(expr: &Expr) -> Option<(&str, usize)> {
    if let Kind::Call {
        on: None,
        name,
        args,
        ..
    } = &expr.kind
        && let [arg] = args.as_slice()
        && let Some(text) = arg.literal()
    {
        let is_fine = match &**name {
            "int" => text.parse::<i64>().is_ok(),
            "uint" => text.parse::<u64>().is_ok(),
            "double" => text.parse::<f64>().is_ok(),
            "bool" => [
                "true", "True", "TRUE", "t", "1", "false", "False", "FALSE", "f", "0",
            ]
            .contains(&text),
            _ => true,
        };
        if !is_fine {
            return Some((name, expr.at));
        }
    }
    expr.children().into_iter().find_map(unconvertible)
}
