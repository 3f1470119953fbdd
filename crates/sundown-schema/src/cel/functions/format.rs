//! `format` of texts: clauses are filled in with the items of a list.

use std::fmt::Write;

use super::super::clause::{Clause, Piece, pieces};
use super::super::eval::{Result, Scope, told};
use super::super::text::{duration_text, float_text};
use super::super::value::Val;

/// More digits than this nobody reads, and they would cost.
const DIGITS_MAX: usize = 100;

/// The text with its clauses filled in.
pub(super) fn format<'a>(scope: &Scope<'a, '_>, text: &str, list: &Val<'a>) -> Result<'a> {
    let args = list.items().unwrap_or_default();
    let mut out = String::new();
    let mut used = 0;
    for piece in pieces(text) {
        let clause = match piece {
            Ok(Piece::Char(c)) => {
                out.push(c);
                continue;
            }
            Ok(Piece::Clause(clause)) => clause,
            Err(why) => return told(why),
        };
        let Some(arg) = args.get(used) else {
            return told(format!("index {used} out of range"));
        };
        used += 1;
        let Some(text) = written(clause, arg) else {
            let why = clause.refuses(arg.type_name());
            return told(format!("error during formatting: {why}"));
        };
        scope.spend(text.len() / 10 + 1)?;
        out += &text;
    }
    if used < args.len() {
        let count = args.len();
        return told(format!(
            "too many arguments supplied to string.format (expected {used}, got {count})"
        ));
    }
    Ok(Val::owned(out))
}

/// A value as a clause writes it; None if the clause does not take it.
fn written(clause: Clause, arg: &Val<'_>) -> Option<String> {
    let digits = clause.digits.unwrap_or(6).min(DIGITS_MAX);
    Some(match (clause.verb, arg) {
        ('s', _) => shown(arg),
        ('d', Val::Int(value)) => value.to_string(),
        ('d', Val::Uint(value)) => value.to_string(),
        ('b', Val::Int(value)) => signed(*value, |it| format!("{it:b}")),
        ('b', Val::Uint(value)) => format!("{value:b}"),
        ('b', Val::Bool(value)) => u8::from(*value).to_string(),
        ('o', Val::Int(value)) => signed(*value, |it| format!("{it:o}")),
        ('o', Val::Uint(value)) => format!("{value:o}"),
        ('x', _) => hexadecimal(arg)?,
        ('X', _) => hexadecimal(arg)?.to_uppercase(),
        ('f' | 'e', Val::Text(text)) if ["NaN", "Infinity", "-Infinity"].contains(&&**text) => {
            text.to_string()
        }
        ('f', Val::Double(value)) => format!("{value:.digits$}"),
        ('e', Val::Double(value)) => scientific(*value),
        _ => return None,
    })
}

fn hexadecimal(arg: &Val<'_>) -> Option<String> {
    let bytes = |bytes: &[u8]| {
        bytes.iter().fold(String::new(), |mut hex, byte| {
            write!(hex, "{byte:02x}").expect("text takes all");
            hex
        })
    };
    Some(match arg {
        Val::Int(value) => signed(*value, |it| format!("{it:x}")),
        Val::Uint(value) => format!("{value:x}"),
        Val::Text(text) => bytes(text.as_bytes()),
        Val::Bytes(own) => bytes(own),
        _ => return None,
    })
}

fn signed(value: i64, shown: impl Fn(u64) -> String) -> String {
    let sign = if value < 0 { "-" } else { "" };
    format!("{sign}{}", shown(value.unsigned_abs()))
}

/// Upstream writes powers of ten as people do, and always six digits.
fn scientific(value: f64) -> String {
    const RAISED: [char; 10] = ['⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹'];
    let text = format!("{value:.6e}");
    let Some((digits, exponent)) = text.split_once('e') else {
        return text;
    };
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let sign = if exponent < 0 { "⁻" } else { "" };
    let raised: String = format!("{:02}", exponent.unsigned_abs())
        .bytes()
        .map(|digit| RAISED[usize::from(digit - b'0')])
        .collect();
    format!("{digits}×10{sign}{raised}")
}

fn shown(value: &Val<'_>) -> String {
    match value {
        Val::Null => "null".to_owned(),
        Val::Bool(value) => value.to_string(),
        Val::Int(value) => value.to_string(),
        Val::Uint(value) => value.to_string(),
        Val::Double(value) => float_text(*value),
        Val::Text(text) => text.to_string(),
        Val::Bytes(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        Val::Duration(value) => duration_text(*value),
        Val::Time(at) => at.to_string(),
        Val::Type(name) => (*name).to_owned(),
        Val::Library(it) => it.text().unwrap_or_default(),
        Val::Optional(_) => "optional".to_owned(),
        Val::List(_) | Val::JsonList(..) => {
            let items = value.items().unwrap_or_default();
            let items: Vec<String> = items.iter().map(inner).collect();
            format!("[{}]", items.join(", "))
        }
        Val::Map(_) | Val::JsonMap(..) => {
            let entries = value.entries().unwrap_or_default();
            let entries = entries.iter();
            let entries = entries.map(|(key, item)| format!("{}:{}", inner(key), inner(item)));
            format!("{{{}}}", entries.collect::<Vec<_>>().join(", "))
        }
    }
}

/// Inside of lists and maps values are written as literals.
fn inner(value: &Val<'_>) -> String {
    match value {
        Val::Text(text) => format!("{text:?}"),
        Val::Double(value) => format!("{value:.6}"),
        Val::Bytes(_) => format!("b{:?}", shown(value)),
        Val::Duration(_) => format!("duration({:?})", shown(value)),
        Val::Time(_) => format!("timestamp({:?})", shown(value)),
        _ => shown(value),
    }
}
