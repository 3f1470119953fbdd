//! The documents of a file, told apart as kubectl does it (`NewYAMLOrJSONDecoder` of apimachinery): by lines
//! that begin with `---`, or as one JSON value after the other.

use std::ops::Range;

use serde_json::{Number, Value};

use crate::decode::Duplicate;
use crate::error::YamlError;
use crate::number;

/// One document of a file.
#[derive(Debug, Clone, PartialEq)]
pub struct Document {
    pub value: Value,
    /// The line of the file that it begins with, counted from one.
    pub line: usize,
    /// The first of the keys that were given twice; the last value counts.
    pub duplicates: Vec<Duplicate>,
}

/// Reads all documents of a file; those that say nothing are left out. Numbers are those of a client: whole
/// ones that fit are integers, all others floats.
///
/// Errors: one of them cannot be read; lines count from the beginning of the file.
pub fn documents(text: &str) -> Result<Vec<Document>, YamlError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut all = Vec::new();
    let mut rest = text;
    let mut line = 1;
    if text.trim_start().starts_with('{') {
        let (values, end) = json(text);
        let is_whole = text[end..].trim().is_empty();
        if values.len() > 1 && !is_whole {
            return Err(no_json(text, end));
        }
        let count = values.len();
        all.extend(values.into_iter().map(|(value, place)| {
            let line = 1 + lines_in(&text[..place.start]);
            Document {
                value,
                line,
                duplicates: duplicates_of_json(&text[place], line),
            }
        }));
        if is_whole && count > 0 {
            return Ok(finished(all));
        }
        rest = &text[end..];
        line += lines_in(&text[..end]);
        // What follows a value on its line is no part of the YAML that comes after.
        if count > 0
            && let Some(next) = rest.find('\n').filter(|at| rest[..*at].trim().is_empty())
        {
            rest = &rest[next + 1..];
            line += 1;
        }
    }
    for (first, document) in split(rest).map_err(|error| error.after_line(line))? {
        let first = line + first;
        let read = crate::read(&document).map_err(|error| error.after_line(first))?;
        all.push(Document {
            value: read.value,
            line: first,
            duplicates: after_line(read.duplicates, first),
        });
    }
    Ok(finished(all))
}

fn finished(all: Vec<Document>) -> Vec<Document> {
    let said = all.into_iter().filter(|it| !it.value.is_null());
    said.map(|it| Document {
        value: of_client(it.value),
        ..it
    })
    .collect()
}

/// The values that a text begins with, each with its place, and the end of the last.
fn json(text: &str) -> (Vec<(Value, Range<usize>)>, usize) {
    let mut values = Vec::new();
    let mut stream = serde_json::Deserializer::from_str(text).into_iter::<Value>();
    let mut end = 0;
    while let Some(Ok(value)) = stream.next() {
        let begin = text[end..].len() - text[end..].trim_start().len();
        let start = end + begin;
        end = stream.byte_offset();
        values.push((value, start..end));
    }
    (values, end)
}

/// The keys that a value of JSON, which begins at this line, gives twice. JSON is read as YAML for it, which tells
/// them with their lines; where YAML differs nothing is told.
fn duplicates_of_json(value: &str, line: usize) -> Vec<Duplicate> {
    let read = crate::read(value);
    read.map_or_else(|_| Vec::new(), |read| after_line(read.duplicates, line))
}

/// Places count from the beginning of a text that begins with this line, counted from one.
fn after_line(all: Vec<Duplicate>, first: usize) -> Vec<Duplicate> {
    let moved = all.into_iter().map(|it| Duplicate {
        line: it.line + first - 1,
        ..it
    });
    moved.collect()
}

fn no_json(text: &str, end: usize) -> YamlError {
    let rest = &text[end..];
    let at = end + rest.len() - rest.trim_start().len();
    let start_of_line = text[..at].rfind('\n').map_or(0, |it| it + 1);
    YamlError {
        line: 1 + lines_in(&text[..at]),
        column: 1 + text[start_of_line..at].chars().count(),
        field: String::new(),
        problem: "expected JSON after a JSON document".to_owned(),
        found: None,
    }
}

fn lines_in(text: &str) -> usize {
    text.matches('\n').count()
}

/// The documents, each with the number of lines before it.
fn split(text: &str) -> Result<Vec<(usize, String)>, YamlError> {
    let mut all = Vec::new();
    let mut document = String::new();
    let mut first = 0;
    for (number, line) in text.lines().enumerate() {
        if let Some(after) = line.strip_prefix("---") {
            let after = after.trim();
            if !after.is_empty() && !after.starts_with('#') {
                return Err(YamlError {
                    line: number + 1,
                    column: 4,
                    field: String::new(),
                    problem: "only a comment may follow `---`".to_owned(),
                    found: Some(after.to_owned()),
                });
            }
            // The first separator stays with what it begins: a document begins at its first line.
            if !document.is_empty() {
                all.push((first, std::mem::take(&mut document)));
                first = number + 1;
                continue;
            }
        }
        if document.is_empty() {
            first = number;
        }
        document.push_str(line);
        document.push('\n');
    }
    if !document.is_empty() {
        all.push((first, document));
    }
    Ok(all)
}

/// Numbers as a client sends them on: an integer, or a float of 64 bits.
fn of_client(value: Value) -> Value {
    match value {
        Value::Number(number) => Value::Number(client_number(number)),
        Value::Array(items) => items.into_iter().map(of_client).collect(),
        Value::Object(members) => {
            let members = members.into_iter();
            members.map(|(name, it)| (name, of_client(it))).collect()
        }
        Value::Null | Value::Bool(_) | Value::String(_) => value,
    }
}

fn client_number(number: Number) -> Number {
    if number.is_i64() {
        return number;
    }
    let Some(float) = number.as_f64() else {
        return number;
    };
    match number::whole(float) {
        Some(whole) => whole.into(),
        None => Number::from_f64(float).unwrap_or(number),
    }
}
