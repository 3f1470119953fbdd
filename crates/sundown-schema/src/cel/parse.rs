//! From text to a tree, with the macros that Kubernetes has. Messages are those of upstream's
//! grammar, as far as rules in the wild run into them.

use super::ast::{Expr, Kind, Loop, LoopKind};
use super::functions::is_spaced;
use super::lex::{Token, Word, lex};
use crate::pattern::Pattern;

/// As deep as expressions may be nested.
const DEPTH_MAX: usize = 100;
/// What may begin an operand.
const OPERAND: &str = "{'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, \
                       NUM_UINT, STRING, BYTES, IDENTIFIER}";

/// What is wrong with an expression, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) at: usize,
    pub(crate) why: String,
}

/// Reads an expression.
pub(crate) fn parse(text: &str) -> Result<Expr, Vec<Fault>> {
    let (tokens, unknown) = lex(text);
    let fault = |(at, why): (usize, String)| Fault { at, why };
    let mut faults: Vec<Fault> = unknown.into_iter().map(fault).collect();
    let mut parser = Parser {
        tokens,
        next: 0,
        end: text.len(),
        depth: 0,
    };
    let parsed = parser.choice().and_then(|expr| {
        if parser.next == parser.tokens.len() {
            return Ok(expr);
        }
        let is_last = parser.next + 1 == parser.tokens.len();
        let what = if is_last { "extraneous" } else { "mismatched" };
        Err(parser.syntax(&format!(
            "{what} input '{}' expecting <EOF>",
            parser.found()
        )))
    });
    match parsed {
        Ok(expr) if faults.is_empty() => Ok(expr),
        Ok(_) => Err(faults),
        Err(fault) => {
            faults.push(fault);
            Err(faults)
        }
    }
}

struct Parser {
    tokens: Vec<Token>,
    next: usize,
    end: usize,
    depth: usize,
}

/// Binary operators, the loosest first.
const LEVELS: &[&[&str]] = &[
    &["||"],
    &["&&"],
    &["==", "!=", "<=", ">=", "<", ">", "in"],
    &["+", "-"],
    &["*", "/", "%"],
];

impl Parser {
    fn deeper(&mut self) -> Result<(), Fault> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(self.fault("expression recursion limit exceeded: 100".to_owned()));
        }
        Ok(())
    }

    fn choice(&mut self) -> Result<Expr, Fault> {
        self.deeper()?;
        let test = self.binary(0)?;
        let at = self.at();
        let expr = if self.takes("?") {
            let yes = self.binary(0)?;
            self.expect(":")?;
            let no = self.choice()?;
            Expr::new(at, Kind::Choice(Box::new([test, yes, no])))
        } else {
            test
        };
        self.depth -= 1;
        Ok(expr)
    }

    fn binary(&mut self, level: usize) -> Result<Expr, Fault> {
        let Some(signs) = LEVELS.get(level) else {
            return self.unary();
        };
        let mut operands = vec![self.binary(level + 1)?];
        let mut places = Vec::new();
        while let Some(sign) = signs.iter().find(|sign| self.is_at(sign)) {
            places.push((*sign, self.at()));
            self.next += 1;
            operands.push(self.binary(level + 1)?);
            if level > 1 && places.len() > DEPTH_MAX {
                return Err(self.fault("expression recursion limit exceeded: 100".to_owned()));
            }
        }
        // Long chains of `&&` and `||` become flat trees, as upstream's; others go to the left.
        Ok(if level > 1 {
            joined_left(operands, places)
        } else {
            balanced(operands, &places)
        })
    }

    fn unary(&mut self) -> Result<Expr, Fault> {
        self.deeper()?;
        let at = self.at();
        let expr = if self.takes("!") {
            Expr::new(at, Kind::Not(Box::new(self.unary()?)))
        } else if self.is_at("-") && self.is_number(self.next + 1) {
            self.next += 1;
            self.negative_number(at)?
        } else if self.takes("-") {
            Expr::new(at, Kind::Negative(Box::new(self.unary()?)))
        } else {
            self.postfix()?
        };
        self.depth -= 1;
        Ok(expr)
    }

    fn is_number(&self, index: usize) -> bool {
        let word = self.tokens.get(index).map(|token| &token.word);
        matches!(word, Some(Word::Int(_) | Word::Double(_)))
    }

    fn negative_number(&mut self, at: usize) -> Result<Expr, Fault> {
        let mut number = self.postfix()?;
        match &mut number.kind {
            Kind::Int(value) => *value = -*value,
            Kind::Double(value) => *value = -*value,
            _ => return Ok(Expr::new(at, Kind::Negative(Box::new(number)))),
        }
        number.at = at;
        Ok(number)
    }

    fn postfix(&mut self) -> Result<Expr, Fault> {
        let mut expr = self.primary()?;
        let mut count = 0;
        loop {
            let at = self.at();
            if self.takes(".") {
                let is_optional = self.takes("?");
                if self.is_at(".") {
                    return Err(self.syntax("no viable alternative at input '..'"));
                }
                let name = self.name()?;
                let open = self.at();
                if !is_optional && self.takes("(") {
                    let args = self.list(")")?;
                    expr = call(Some(expr), name, args, open)?;
                } else {
                    let kind = Kind::Select {
                        on: Box::new(expr),
                        name: name.into(),
                        is_test: false,
                        is_optional,
                    };
                    expr = Expr::new(at, kind);
                }
            } else if self.takes("[") {
                let is_optional = self.takes("?");
                let key = Box::new(self.choice()?);
                self.expect("]")?;
                let kind = Kind::Index {
                    on: Box::new(expr),
                    key,
                    is_optional,
                };
                expr = Expr::new(at, kind);
            } else {
                self.depth -= count;
                return Ok(expr);
            }
            count += 1;
            self.deeper()?;
        }
    }

    fn primary(&mut self) -> Result<Expr, Fault> {
        let Some(Token { word, at }) = self.tokens.get(self.next).cloned() else {
            return Err(self.no_operand());
        };
        self.next += 1;
        let kind = match word {
            Word::Int(value) => Kind::Int(value),
            Word::Uint(value) => Kind::Uint(value),
            Word::Double(value) => Kind::Double(value),
            Word::Text(text) => Kind::Text(text.into()),
            Word::Bytes(bytes) => Kind::Bytes(bytes.into()),
            Word::Name(name) => match name.as_str() {
                "true" => Kind::Bool(true),
                "false" => Kind::Bool(false),
                "null" => Kind::Null,
                _ if self.is_at("(") => {
                    let open = self.at();
                    self.next += 1;
                    let args = self.list(")")?;
                    return call(None, name, args, open);
                }
                _ => Kind::Name(name.into()),
            },
            Word::Sign("(") => {
                let expr = self.choice()?;
                self.expect(")")?;
                return Ok(expr);
            }
            Word::Sign("[") => Kind::List(self.list("]")?),
            Word::Sign("{") => Kind::Map(self.entries()?),
            Word::Sign(_) => {
                self.next -= 1;
                return Err(self.no_operand());
            }
        };
        Ok(Expr::new(at, kind))
    }

    fn list(&mut self, end: &'static str) -> Result<Vec<Expr>, Fault> {
        let mut list = Vec::new();
        while !self.takes(end) {
            list.push(self.choice()?);
            if !self.takes(",") {
                self.expect(end)?;
                break;
            }
        }
        Ok(list)
    }

    fn entries(&mut self) -> Result<Vec<(Expr, Expr)>, Fault> {
        let mut entries = Vec::new();
        while !self.takes("}") {
            let key = self.choice()?;
            self.expect(":")?;
            entries.push((key, self.choice()?));
            if !self.takes(",") {
                self.expect("}")?;
                break;
            }
        }
        Ok(entries)
    }

    fn is_at(&self, sign: &str) -> bool {
        match self.tokens.get(self.next).map(|token| &token.word) {
            Some(Word::Sign(own)) => *own == sign,
            Some(Word::Name(own)) => own == "in" && sign == "in",
            _ => false,
        }
    }

    fn takes(&mut self, sign: &str) -> bool {
        let is_there = self.is_at(sign);
        self.next += usize::from(is_there);
        is_there
    }

    fn expect(&mut self, sign: &str) -> Result<(), Fault> {
        if self.takes(sign) {
            return Ok(());
        }
        Err(self.syntax(&format!("missing '{sign}' at '{}'", self.found())))
    }

    fn name(&mut self) -> Result<String, Fault> {
        match self.tokens.get(self.next).map(|token| &token.word) {
            Some(Word::Name(name)) => {
                let name = name.clone();
                self.next += 1;
                Ok(name)
            }
            _ => Err(self.syntax(&format!(
                "no viable alternative at input '.{}'",
                self.found()
            ))),
        }
    }

    fn at(&self) -> usize {
        self.tokens.get(self.next).map_or(self.end, |it| it.at)
    }

    fn fault(&self, why: String) -> Fault {
        Fault { at: self.at(), why }
    }

    fn syntax(&self, why: &str) -> Fault {
        self.fault(format!("Syntax error: {why}"))
    }

    /// The grammar skips one word if what follows it would fit.
    fn no_operand(&self) -> Fault {
        let begins = |token: &Token| match &token.word {
            Word::Sign(sign) => ["[", "{", "(", ".", "-", "!"].contains(sign),
            _ => true,
        };
        let would_fit = self.tokens.get(self.next + 1).is_some_and(begins);
        let what = if would_fit {
            "extraneous"
        } else {
            "mismatched"
        };
        self.syntax(&format!(
            "{what} input '{}' expecting {OPERAND}",
            self.found()
        ))
    }

    fn found(&self) -> String {
        match self.tokens.get(self.next).map(|token| &token.word) {
            None => "<EOF>".to_owned(),
            Some(Word::Sign(sign)) => (*sign).to_owned(),
            Some(Word::Name(text)) => text.clone(),
            Some(Word::Text(text)) => format!("'{text}'"),
            Some(Word::Bytes(_)) => "b''".to_owned(),
            Some(Word::Int(value)) => value.to_string(),
            Some(Word::Uint(value)) => format!("{value}u"),
            Some(Word::Double(value)) => value.to_string(),
        }
    }
}

fn joined_left(operands: Vec<Expr>, places: Vec<(&'static str, usize)>) -> Expr {
    let mut operands = operands.into_iter();
    let first = operands.next().expect("a chain has a first operand");
    operands
        .zip(places)
        .fold(first, |left, (right, (sign, at))| {
            Expr::new(at, Kind::Binary(sign, Box::new(left), Box::new(right)))
        })
}

fn balanced(mut operands: Vec<Expr>, places: &[(&'static str, usize)]) -> Expr {
    if operands.len() == 1 {
        return operands.pop().expect("there is one");
    }
    let middle = operands.len() / 2;
    let right = operands.split_off(middle);
    let (sign, at) = places[middle - 1];
    let left = balanced(operands, &places[..middle - 1]);
    let right = balanced(right, &places[middle..]);
    Expr::new(at, Kind::Binary(sign, Box::new(left), Box::new(right)))
}

fn fault(at: usize, why: &str) -> Fault {
    Fault {
        at,
        why: why.to_owned(),
    }
}

fn call(on: Option<Expr>, name: String, args: Vec<Expr>, at: usize) -> Result<Expr, Fault> {
    let Some(on) = on else {
        if name == "has" {
            return has(args, at);
        }
        return Ok(plain_call(None, name, args, at));
    };
    if let Some(space) = on.dotted() {
        let spaced = format!("{space}.{name}");
        if is_spaced(&spaced) {
            return Ok(plain_call(None, spaced, args, at));
        }
    }
    match (macro_of(&name, args.len()), args) {
        (Some((kind, is_double)), args) => looping(kind, is_double, on, args, at),
        (None, args) => Ok(plain_call(Some(on), name, args, at)),
    }
}

fn plain_call(on: Option<Expr>, name: String, args: Vec<Expr>, at: usize) -> Expr {
    let takes_pattern = ["matches", "find", "findAll"].contains(&name.as_str());
    let index = usize::from(on.is_none());
    let pattern = args
        .get(index)
        .and_then(Expr::literal)
        .filter(|_| takes_pattern);
    let kind = Kind::Call {
        pattern: pattern.map(Pattern::new),
        on: on.map(Box::new),
        name: name.into(),
        args,
    };
    Expr::new(at, kind)
}

fn has(args: Vec<Expr>, at: usize) -> Result<Expr, Fault> {
    let place = args.first().map_or(at, |arg| arg.at);
    match <[Expr; 1]>::try_from(args).map(|[arg]| arg.kind) {
        Ok(Kind::Select {
            on,
            name,
            is_optional: false,
            ..
        }) => {
            let kind = Kind::Select {
                on,
                name,
                is_test: true,
                is_optional: false,
            };
            Ok(Expr::new(at, kind))
        }
        _ => Err(fault(place, "invalid argument to has() macro")),
    }
}

/// The macro of a name and a number of arguments, and whether it has two variables.
fn macro_of(name: &str, count: usize) -> Option<(LoopKind, bool)> {
    Some(match (name, count) {
        ("all", 2) => (LoopKind::All, false),
        ("all", 3) => (LoopKind::All, true),
        ("exists", 2) => (LoopKind::Exists, false),
        ("exists", 3) => (LoopKind::Exists, true),
        ("exists_one" | "existsOne", 2) => (LoopKind::ExistsOne, false),
        ("exists_one" | "existsOne", 3) => (LoopKind::ExistsOne, true),
        ("filter", 2) => (LoopKind::Filter, false),
        ("map", 2 | 3) => (LoopKind::Map, false),
        ("transformList", 3 | 4) => (LoopKind::Map, true),
        ("transformMap", 3 | 4) => (LoopKind::TransformMap, true),
        ("transformMapEntry", 3 | 4) => (LoopKind::TransformMapEntry, true),
        ("sortBy", 2) => (LoopKind::SortBy, false),
        ("optMap", 2) => (LoopKind::OptMap, false),
        ("optFlatMap", 2) => (LoopKind::OptFlatMap, false),
        _ => return None,
    })
}

fn looping(
    kind: LoopKind,
    is_double: bool,
    over: Expr,
    args: Vec<Expr>,
    at: usize,
) -> Result<Expr, Fault> {
    let mut args = args.into_iter();
    let mut variable = || match args.next() {
        Some(Expr {
            kind: Kind::Name(name),
            ..
        }) => Ok(name),
        other => {
            let place = other.map_or(at, |it| it.at);
            Err(fault(place, "argument is not an identifier"))
        }
    };
    let name = variable()?;
    let second = if is_double { Some(variable()?) } else { None };
    let mut steps: Vec<Expr> = args.collect();
    let body = steps
        .pop()
        .ok_or_else(|| fault(at, "argument is missing"))?;
    let it = Loop {
        kind,
        over,
        name,
        second,
        filter: steps.pop(),
        body,
    };
    Ok(Expr::new(at, Kind::Loop(Box::new(it))))
}
