//! The language of label selectors, with the words of upstream's `apimachinery/pkg/labels` for what
//! it does not understand. Whether an object matches is decided in the parent module.

use std::collections::BTreeSet;

use super::{LabelRule, Test};
use crate::dns;
use crate::failure::Failure;

const OPERATORS: &str = "in, notin, =, ==, !=, gt, lt";
const SYMBOLS: [&str; 8] = [")", ",", "!", "==", "=", "!=", ">", "<"];

/// Reads a whole selector.
pub(super) fn parse(text: &str) -> Result<Vec<LabelRule>, Failure> {
    let mut parser = Parser {
        tokens: scan(text),
        position: 0,
    };
    parser.rules().map_err(Failure::bad_request)
}

#[derive(Debug, Clone, PartialEq)]
enum Token {
    Word(String),
    Symbol(&'static str),
    Unknown(String),
    End,
}

struct Parser {
    tokens: Vec<Token>,
    position: usize,
}

impl Token {
    /// As it stands in messages.
    fn text(&self) -> &str {
        match self {
            Self::Word(text) | Self::Unknown(text) => text,
            Self::Symbol(text) => text,
            Self::End => "",
        }
    }
}

impl Parser {
    fn rules(&mut self) -> Result<Vec<LabelRule>, String> {
        let mut rules = Vec::new();
        loop {
            match self.peek() {
                Token::End => return Ok(rules),
                Token::Word(_) | Token::Symbol("!") => {}
                other @ (Token::Symbol(_) | Token::Unknown(_)) => {
                    let found = other.text();
                    return Err(format!(
                        "found '{found}', expected: !, identifier, or 'end of string'"
                    ));
                }
            }
            let rule = self.rule();
            rules.push(rule.map_err(|why| format!("unable to parse requirement: {why}"))?);
            match self.take() {
                Token::End => return Ok(rules),
                Token::Symbol(",") => {
                    let next = self.peek();
                    if !matches!(next, Token::Word(_) | Token::Symbol("!")) {
                        let found = next.text();
                        return Err(format!("found '{found}', expected: identifier after ','"));
                    }
                }
                other @ (Token::Word(_) | Token::Symbol(_) | Token::Unknown(_)) => {
                    let found = other.text();
                    return Err(format!("found '{found}', expected: ',' or 'end of string'"));
                }
            }
        }
    }

    fn rule(&mut self) -> Result<LabelRule, String> {
        let is_absent = *self.peek() == Token::Symbol("!");
        if is_absent {
            self.take();
        }
        let key = match self.take() {
            Token::Word(key) => key,
            other @ (Token::Symbol(_) | Token::Unknown(_) | Token::End) => {
                return Err(format!("found '{}', expected: identifier", other.text()));
            }
        };
        if let Some(why) = dns::qualified_name(&key).first() {
            return Err(format!("<nil>: Invalid value: {key:?}: {why}"));
        }
        if is_absent {
            let test = Test::Absent;
            return Ok(LabelRule { key, test });
        }
        let test = match self.peek() {
            Token::End | Token::Symbol(",") => Test::Exists,
            Token::Word(_) | Token::Symbol(_) | Token::Unknown(_) => self.test()?,
        };
        Ok(LabelRule { key, test })
    }

    fn test(&mut self) -> Result<Test, String> {
        let operator = self.take();
        match operator.text() {
            "in" => Ok(Test::In(self.values()?)),
            "notin" => Ok(Test::NotIn(self.values()?)),
            "=" | "==" => Ok(Test::In(vec![self.value()?])),
            "!=" => Ok(Test::NotIn(vec![self.value()?])),
            ">" => Ok(Test::Greater(self.number()?)),
            "<" => Ok(Test::Less(self.number()?)),
            other => Err(format!("found '{other}', expected: {OPERATORS}")),
        }
    }

    fn values(&mut self) -> Result<Vec<String>, String> {
        let open = self.take();
        if open != Token::Symbol("(") {
            return Err(format!("found '{}' expected: '('", open.text()));
        }
        let mut values = BTreeSet::new();
        let mut value = String::new();
        loop {
            match self.take() {
                Token::Word(word) if value.is_empty() => value = word,
                Token::Symbol(",") => {
                    values.insert(std::mem::take(&mut value));
                }
                Token::Symbol(")") => {
                    values.insert(value);
                    break;
                }
                other @ (Token::Word(_) | Token::Symbol(_) | Token::Unknown(_) | Token::End) => {
                    return Err(format!("found '{}', expected: ',' or ')'", other.text()));
                }
            }
        }
        for (index, value) in values.iter().enumerate() {
            check_value(index, value)?;
        }
        Ok(values.into_iter().collect())
    }

    fn value(&mut self) -> Result<String, String> {
        if matches!(self.peek(), Token::End | Token::Symbol(",")) {
            return Ok(String::new());
        }
        match self.take() {
            Token::Word(value) => {
                check_value(0, &value)?;
                Ok(value)
            }
            other @ (Token::Symbol(_) | Token::Unknown(_) | Token::End) => {
                Err(format!("found '{}', expected: identifier", other.text()))
            }
        }
    }

    fn number(&mut self) -> Result<i64, String> {
        let value = self.value()?;
        value.parse().map_err(|_| {
            format!(
                "values[0]: Invalid value: {value:?}: for 'Gt', 'Lt' operators, the value must be \
                 an integer"
            )
        })
    }

    fn peek(&self) -> &Token {
        self.tokens.get(self.position).unwrap_or(&Token::End)
    }

    fn take(&mut self) -> Token {
        let token = self.peek().clone();
        self.position += 1;
        token
    }
}

fn check_value(index: usize, value: &str) -> Result<(), String> {
    match dns::label_value(value).first() {
        Some(why) => Err(format!("values[{index}]: Invalid value: {value:?}: {why}")),
        None => Ok(()),
    }
}

fn scan(text: &str) -> Vec<Token> {
    let is_special = |letter: char| "=!(),><".contains(letter);
    let mut tokens = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let length = if is_special(first) {
            symbol_length(rest)
        } else {
            let ends = |letter: char| is_special(letter) || letter.is_ascii_whitespace();
            rest.find(ends).unwrap_or(rest.len())
        };
        let (token, after) = rest.split_at(length);
        tokens.push(if is_special(first) {
            symbol(token)
        } else {
            Token::Word(token.to_owned())
        });
        rest = after.trim_start();
    }
    tokens
}

/// Two letters where they are a symbol together, else one.
fn symbol_length(text: &str) -> usize {
    match text.get(..2) {
        Some("==" | "!=") => 2,
        _ => 1,
    }
}

fn symbol(text: &str) -> Token {
    let known = SYMBOLS.iter().chain(&["("]).find(|known| **known == text);
    known.map_or_else(
        || Token::Unknown(text.to_owned()),
        |known| Token::Symbol(known),
    )
}
