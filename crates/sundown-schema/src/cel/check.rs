//! What is wrong with a rule before it ever runs: syntax, unknown names, and loops within loops
//! over lists without a bound.

use serde_json::Value;

use super::functions::{GLOBAL, METHODS, is_space};
use super::parse::{Expr, Fault, parse};

/// An unbounded loop inside another one may run over the largest request squared.
const UNBOUNDED_DEPTH_MAX: usize = 1;

/// What keeps an expression from being a rule, as the compiler of CEL tells it.
pub(crate) fn check(text: &str) -> Result<(), String> {
    let expr = parse(text).map_err(|fault| told(text, &fault))?;
    let mut names = vec!["self", "oldSelf"];
    known(&expr, &mut names).map_err(|fault| told(text, &fault))
}

/// Whether the loops of an expression are nested too deep for what the schema bounds.
pub(crate) fn is_hostile(text: &str, schema: &Value) -> bool {
    let bounded = schema.to_string().contains("\"maxItems\"");
    let allowed = UNBOUNDED_DEPTH_MAX + if bounded { 2 } else { 0 };
    parse(text).is_ok_and(|expr| loops(&expr) > allowed)
}

fn loops(expr: &Expr) -> usize {
    if let Expr::Loop {
        over, filter, body, ..
    } = expr
    {
        let inner = loops(body).max(filter.as_deref().map_or(0, loops));
        return loops(over).max(inner + 1);
    }
    children(expr).into_iter().map(loops).max().unwrap_or(0)
}

/// Whether an expression uses a name.
pub(crate) fn names(expr: &Expr, name: &str) -> bool {
    matches!(expr, Expr::Name(own, _) if own == name)
        || children(expr).into_iter().any(|it| names(it, name))
}

fn known<'e>(expr: &'e Expr, scope: &mut Vec<&'e str>) -> Result<(), Fault> {
    let undeclared = |name: &str, at: usize| Fault {
        at,
        why: format!("undeclared reference to '{name}' (in container '')"),
    };
    match expr {
        Expr::Name(name, at) if !scope.contains(&name.as_str()) => {
            return Err(undeclared(name, *at));
        }
        Expr::Call { on, name, args, at } => {
            let is_known = match on.as_deref() {
                Some(Expr::Name(space, _)) if is_space(space) => {
                    return args.iter().try_for_each(|arg| known(arg, scope));
                }
                Some(_) => METHODS.contains(&name.as_str()),
                None => GLOBAL.contains(&name.as_str()),
            };
            if !is_known {
                return Err(undeclared(name, *at));
            }
        }
        Expr::Loop { over, name, .. } | Expr::Bind(name, over, _) => {
            known(over, scope)?;
            scope.push(name);
            let mut rest = children(expr).into_iter().filter(|it| *it != &**over);
            let result = rest.try_for_each(|it| known(it, scope));
            scope.pop();
            return result;
        }
        _ => {}
    }
    children(expr)
        .into_iter()
        .try_for_each(|it| known(it, scope))
}

fn children(expr: &Expr) -> Vec<&Expr> {
    match expr {
        Expr::Null
        | Expr::Bool(_)
        | Expr::Int(_)
        | Expr::Uint(_)
        | Expr::Double(_)
        | Expr::Text(_)
        | Expr::Name(..) => Vec::new(),
        Expr::Select { on, .. } | Expr::Not(on) | Expr::Negative(on) => vec![on],
        Expr::Index { on, at, .. } => vec![on, at],
        Expr::Call { on, args, .. } => on.as_deref().into_iter().chain(args).collect(),
        Expr::List(items) => items.iter().collect(),
        Expr::Map(entries) => entries
            .iter()
            .flat_map(|(key, value)| [key, value])
            .collect(),
        Expr::Binary(_, left, right) => vec![left, right],
        Expr::Choice(test, yes, no) => vec![test, yes, no],
        Expr::Loop {
            over, filter, body, ..
        } => [&**over, &**body]
            .into_iter()
            .chain(filter.as_deref())
            .collect(),
        Expr::Bind(_, value, body) => vec![value, body],
    }
}

fn told(text: &str, fault: &Fault) -> String {
    let before = &text[..fault.at.min(text.len())];
    let line = before.matches('\n').count();
    let column = before.rsplit('\n').next().unwrap_or("").chars().count();
    let shown = text.lines().nth(line).unwrap_or("");
    let dots = ".".repeat(column);
    format!(
        "compilation failed: ERROR: <input>:{}:{}: {}\n | {shown}\n | {dots}^",
        line + 1,
        column + 1,
        fault.why
    )
}
