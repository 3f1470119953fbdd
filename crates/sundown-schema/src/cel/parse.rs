//! Expressions as trees. Macros become loops here, so that evaluation knows no macros.

use super::lex::{Token, Word, lex};

/// Nested deeper, an expression is refused.
const DEPTH_MAX: usize = 100;

/// An expression.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Expr {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    Text(String),
    Name(String, usize),
    Select {
        on: Box<Expr>,
        name: String,
        /// `has(on.name)`.
        is_test: bool,
        /// `on.?name`.
        is_optional: bool,
    },
    Index {
        on: Box<Expr>,
        at: Box<Expr>,
        is_optional: bool,
    },
    Call {
        on: Option<Box<Expr>>,
        name: String,
        args: Vec<Expr>,
        at: usize,
    },
    List(Vec<Expr>),
    Map(Vec<(Expr, Expr)>),
    Not(Box<Expr>),
    Negative(Box<Expr>),
    Binary(&'static str, Box<Expr>, Box<Expr>),
    Choice(Box<Expr>, Box<Expr>, Box<Expr>),
    Loop {
        kind: Loop,
        over: Box<Expr>,
        name: String,
        /// Of `map(x, filter, expression)`.
        filter: Option<Box<Expr>>,
        body: Box<Expr>,
    },
    Bind(String, Box<Expr>, Box<Expr>),
}

/// What a loop is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Loop {
    All,
    Exists,
    ExistsOne,
    Filter,
    Map,
}

/// Why an expression is not one, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) at: usize,
    pub(crate) why: String,
}

/// Reads an expression.
pub(crate) fn parse(text: &str) -> Result<Expr, Fault> {
    let tokens = lex(text).map_err(|(at, why)| Fault { at, why })?;
    let mut parser = Parser {
        tokens,
        next: 0,
        end: text.len(),
        depth: 0,
    };
    let expr = parser.choice()?;
    if parser.next < parser.tokens.len() {
        return Err(parser.unexpected());
    }
    Ok(expr)
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
    fn choice(&mut self) -> Result<Expr, Fault> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(self.fault("expression recursion limit exceeded: 100".to_owned()));
        }
        let test = self.binary(0)?;
        let expr = if self.takes("?") {
            let yes = self.binary(0)?;
            self.expect(":")?;
            let no = self.choice()?;
            Expr::Choice(Box::new(test), Box::new(yes), Box::new(no))
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
        let mut left = self.binary(level + 1)?;
        while let Some(sign) = signs.iter().find(|sign| self.is_at(sign)) {
            self.next += 1;
            let right = self.binary(level + 1)?;
            left = Expr::Binary(sign, Box::new(left), Box::new(right));
        }
        Ok(left)
    }

    fn unary(&mut self) -> Result<Expr, Fault> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(self.fault("expression recursion limit exceeded: 100".to_owned()));
        }
        let expr = if self.takes("!") {
            Expr::Not(Box::new(self.unary()?))
        } else if self.takes("-") {
            Expr::Negative(Box::new(self.unary()?))
        } else {
            self.postfix()?
        };
        self.depth -= 1;
        Ok(expr)
    }

    fn postfix(&mut self) -> Result<Expr, Fault> {
        let mut expr = self.primary()?;
        loop {
            if self.takes(".") {
                let is_optional = self.takes("?");
                let at = self.at();
                let name = self.name()?;
                if !is_optional && self.takes("(") {
                    let args = self.list(")")?;
                    expr = call(Some(expr), name, args, at)?;
                } else {
                    let on = Box::new(expr);
                    expr = Expr::Select {
                        on,
                        name,
                        is_test: false,
                        is_optional,
                    };
                }
            } else if self.takes("[") {
                let is_optional = self.takes("?");
                let at = Box::new(self.choice()?);
                self.expect("]")?;
                expr = Expr::Index {
                    on: Box::new(expr),
                    at,
                    is_optional,
                };
            } else {
                return Ok(expr);
            }
        }
    }

    fn primary(&mut self) -> Result<Expr, Fault> {
        let Some(Token { word, at }) = self.tokens.get(self.next).cloned() else {
            return Err(self.unexpected());
        };
        self.next += 1;
        Ok(match word {
            Word::Int(value) => Expr::Int(value),
            Word::Uint(value) => Expr::Uint(value),
            Word::Double(value) => Expr::Double(value),
            Word::Text(text) => Expr::Text(text),
            Word::Name(name) => match name.as_str() {
                "true" => Expr::Bool(true),
                "false" => Expr::Bool(false),
                "null" => Expr::Null,
                _ if self.takes("(") => {
                    let args = self.list(")")?;
                    call(None, name, args, at)?
                }
                _ => Expr::Name(name, at),
            },
            Word::Sign("(") => {
                let expr = self.choice()?;
                self.expect(")")?;
                expr
            }
            Word::Sign("[") => Expr::List(self.list("]")?),
            Word::Sign("{") => Expr::Map(self.entries()?),
            Word::Sign(_) => {
                self.next -= 1;
                return Err(self.unexpected());
            }
        })
    }

    fn list(&mut self, end: &str) -> Result<Vec<Expr>, Fault> {
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
            Ok(())
        } else {
            Err(self.unexpected())
        }
    }

    fn name(&mut self) -> Result<String, Fault> {
        match self.tokens.get(self.next).map(|token| &token.word) {
            Some(Word::Name(name)) => {
                let name = name.clone();
                self.next += 1;
                Ok(name)
            }
            _ => Err(self.unexpected()),
        }
    }

    fn at(&self) -> usize {
        self.tokens.get(self.next).map_or(self.end, |it| it.at)
    }

    fn fault(&self, why: String) -> Fault {
        Fault { at: self.at(), why }
    }

    fn unexpected(&self) -> Fault {
        let found = match self.tokens.get(self.next).map(|token| &token.word) {
            None => "<EOF>".to_owned(),
            Some(Word::Sign(sign)) => (*sign).to_owned(),
            Some(Word::Name(text) | Word::Text(text)) => text.clone(),
            Some(Word::Int(value)) => value.to_string(),
            Some(Word::Uint(value)) => value.to_string(),
            Some(Word::Double(value)) => value.to_string(),
        };
        self.fault(format!("Syntax error: mismatched input '{found}'"))
    }
}

fn call(on: Option<Expr>, name: String, args: Vec<Expr>, at: usize) -> Result<Expr, Fault> {
    let fault = |why: &str| Fault {
        at,
        why: why.to_owned(),
    };
    if on.is_none() && name == "has" {
        return match <[Expr; 1]>::try_from(args) {
            Ok([Expr::Select { on, name, .. }]) => Ok(Expr::Select {
                on,
                name,
                is_test: true,
                is_optional: false,
            }),
            _ => Err(fault("invalid argument to has() macro")),
        };
    }
    let Some(on) = on else {
        return Ok(Expr::Call {
            on: None,
            name,
            args,
            at,
        });
    };
    if name == "bind" && on == Expr::Name("cel".into(), at.saturating_sub(4)) {
        return match <[Expr; 3]>::try_from(args) {
            Ok([Expr::Name(variable, _), value, body]) => {
                Ok(Expr::Bind(variable, Box::new(value), Box::new(body)))
            }
            _ => Err(fault(
                "cel.bind() variable names must be simple identifiers",
            )),
        };
    }
    let kind = match (name.as_str(), args.len()) {
        ("all", 2) => Loop::All,
        ("exists", 2) => Loop::Exists,
        ("exists_one" | "existsOne", 2) => Loop::ExistsOne,
        ("filter", 2) => Loop::Filter,
        ("map", 2 | 3) => Loop::Map,
        _ => {
            return Ok(Expr::Call {
                on: Some(Box::new(on)),
                name,
                args,
                at,
            });
        }
    };
    let mut args = args.into_iter();
    let Some(Expr::Name(variable, _)) = args.next() else {
        return Err(fault("argument is not an identifier"));
    };
    let mut steps: Vec<Box<Expr>> = args.map(Box::new).collect();
    let body = steps.pop().ok_or_else(|| fault("argument is missing"))?;
    Ok(Expr::Loop {
        kind,
        over: Box::new(on),
        name: variable,
        filter: steps.pop(),
        body,
    })
}
