//! Expressions as trees. Macros are nodes of their own, not calls.

use crate::pattern::Pattern;

/// A part of an expression and where messages about it point.
#[derive(Debug)]
pub(crate) struct Expr {
    pub(crate) at: usize,
    pub(crate) kind: Kind,
}

/// What an expression is.
#[derive(Debug)]
pub(crate) enum Kind {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    Text(Box<str>),
    Bytes(Box<[u8]>),
    Name(Box<str>),
    Select {
        on: Box<Expr>,
        name: Box<str>,
        /// `has(…)`.
        is_test: bool,
        is_optional: bool,
    },
    Index {
        on: Box<Expr>,
        key: Box<Expr>,
        is_optional: bool,
    },
    Call {
        on: Option<Box<Expr>>,
        /// With its space, such as `sets.contains`.
        name: Box<str>,
        args: Vec<Expr>,
        /// The regular expression, where it is a literal.
        pattern: Option<Pattern>,
    },
    List(Vec<Expr>),
    Map(Vec<(Expr, Expr)>),
    Not(Box<Expr>),
    Negative(Box<Expr>),
    Binary(&'static str, Box<Expr>, Box<Expr>),
    Choice(Box<[Expr; 3]>),
    Loop(Box<Loop>),
}

/// A macro that goes over a list or a map.
#[derive(Debug)]
pub(crate) struct Loop {
    pub(crate) kind: LoopKind,
    pub(crate) over: Expr,
    pub(crate) name: Box<str>,
    /// The value beside the key or index, in macros of two variables.
    pub(crate) second: Option<Box<str>>,
    pub(crate) filter: Option<Expr>,
    pub(crate) body: Expr,
}

/// Which macro.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LoopKind {
    All,
    Exists,
    ExistsOne,
    Filter,
    /// Also `transformList`.
    Map,
    TransformMap,
    TransformMapEntry,
    SortBy,
    OptMap,
    OptFlatMap,
}

impl Expr {
    pub(crate) fn new(at: usize, kind: Kind) -> Self {
        Self { at, kind }
    }

    /// The text, if the expression is a literal one.
    pub(crate) fn literal(&self) -> Option<&str> {
        match &self.kind {
            Kind::Text(text) => Some(text),
            _ => None,
        }
    }

    /// `a.b.c`, if the expression is such a chain of names.
    pub(crate) fn dotted(&self) -> Option<String> {
        match &self.kind {
            Kind::Name(name) => Some(name.to_string()),
            Kind::Select {
                on,
                name,
                is_test: false,
                is_optional: false,
            } => Some(format!("{}.{name}", on.dotted()?)),
            _ => None,
        }
    }

    /// The parts that the expression is made of.
    pub(crate) fn children(&self) -> Vec<&Expr> {
        match &self.kind {
            Kind::Null
            | Kind::Bool(_)
            | Kind::Int(_)
            | Kind::Uint(_)
            | Kind::Double(_)
            | Kind::Text(_)
            | Kind::Bytes(_)
            | Kind::Name(_) => Vec::new(),
            Kind::Select { on, .. } | Kind::Not(on) | Kind::Negative(on) => vec![on],
            Kind::Index { on, key, .. } => vec![on, key],
            Kind::Call { on, args, .. } => on.as_deref().into_iter().chain(args).collect(),
            Kind::List(items) => items.iter().collect(),
            Kind::Map(entries) => entries
                .iter()
                .flat_map(|(key, value)| [key, value])
                .collect(),
            Kind::Binary(_, left, right) => vec![left, right],
            Kind::Choice(parts) => parts.iter().collect(),
            Kind::Loop(it) => [&it.over, &it.body].into_iter().chain(&it.filter).collect(),
        }
    }

    /// Whether the expression uses a name.
    pub(crate) fn names(&self, name: &str) -> bool {
        matches!(&self.kind, Kind::Name(own) if **own == *name)
            || self.children().into_iter().any(|it| it.names(name))
    }
}
