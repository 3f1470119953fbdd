//! What a scalar stands for, by the rules of go-yaml, which are those of YAML 1.1 with a few of its own
//! (`resolve.go` of `go.yaml.in/yaml/v2`).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::number::{self, Parsed};
use crate::tree::{Scalar, ScalarKind};

/// What a scalar stands for.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Resolved {
    Null,
    Bool(bool),
    Number(Parsed),
    Text(String),
}

impl Resolved {
    fn tag(&self) -> &'static str {
        match self {
            Self::Null => "!!null",
            Self::Bool(_) => "!!bool",
            Self::Number(Parsed::Float(_)) => "!!float",
            Self::Number(Parsed::Integer(_) | Parsed::Unsigned(_)) => "!!int",
            Self::Text(_) => "!!str",
        }
    }
}

/// Resolves a scalar.
///
/// Errors: it is not what its tag says.
pub(crate) fn resolve(scalar: &Scalar) -> Result<Resolved, String> {
    let text = || Resolved::Text(scalar.text.clone());
    let tag = match &scalar.kind {
        ScalarKind::Implicit => return Ok(implicit(&scalar.text)),
        ScalarKind::Text => return Ok(text()),
        ScalarKind::Tagged(tag) => &**tag,
    };
    match tag {
        "!!bool" | "!!int" | "!!float" | "!!null" => {
            let found = implicit(&scalar.text);
            match (tag, found) {
                ("!!float", Resolved::Number(Parsed::Integer(number))) => {
                    Ok(Resolved::Number(Parsed::Float(as_float(number))))
                }
                (_, found) if found.tag() == tag => Ok(found),
                (_, found) => Err(format!("a {} cannot be decoded as a {tag}", found.tag())),
            }
        }
        "!!binary" => {
            // Go's decoder skips line breaks.
            let encoded: String = scalar
                .text
                .chars()
                .filter(|it| !"\r\n".contains(*it))
                .collect();
            let bytes = STANDARD.decode(encoded);
            let bytes =
                bytes.map_err(|_| "a !!binary value contains invalid base64 data".to_owned())?;
            Ok(Resolved::Text(String::from_utf8_lossy(&bytes).into_owned()))
        }
        // Whatever is tagged otherwise is text, timestamps included.
        _ => Ok(text()),
    }
}

#[expect(clippy::cast_precision_loss, reason = "as upstream does")]
fn as_float(number: i64) -> f64 {
    number as f64
}

/// What a plain scalar stands for.
fn implicit(text: &str) -> Resolved {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Resolved::Null,
        "y" | "Y" | "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On" | "ON" => {
            return Resolved::Bool(true);
        }
        "n" | "N" | "no" | "No" | "NO" | "false" | "False" | "FALSE" | "off" | "Off" | "OFF" => {
            return Resolved::Bool(false);
        }
        ".nan" | ".NaN" | ".NAN" => return Resolved::Number(Parsed::Float(f64::NAN)),
        ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" => {
            return Resolved::Number(Parsed::Float(f64::INFINITY));
        }
        "-.inf" | "-.Inf" | "-.INF" => {
            return Resolved::Number(Parsed::Float(f64::NEG_INFINITY));
        }
        _ => {}
    }
    let number = match text.as_bytes()[0] {
        // Here an underscore counts only between digits.
        b'.' if text.ends_with('_') || text.starts_with("._") || text.contains("__") => None,
        b'.' => number::float(&text.replace('_', "")).map(Parsed::Float),
        b'0'..=b'9' | b'+' | b'-' => {
            let plain = text.replace('_', "");
            // `08` is no octal, and so a float.
            number::integer(&plain).or_else(|| number::float(&plain).map(Parsed::Float))
        }
        _ => None,
    };
    number.map_or_else(|| Resolved::Text(text.to_owned()), Resolved::Number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_scalars_are_those_of_yaml_1_1() {
        let whole = |it| Resolved::Number(Parsed::Integer(it));
        let float = |it| Resolved::Number(Parsed::Float(it));
        let words = |it: &str| Resolved::Text(it.to_owned());
        for (text, expect) in [
            ("0777", whole(511)),
            ("0o777", whole(511)),
            ("-0777", whole(-511)),
            ("0x1F", whole(31)),
            ("0b101", whole(5)),
            ("-0b101", whole(-5)),
            ("1_000", whole(1000)),
            ("+12", whole(12)),
            ("08", float(8.0)),
            ("1e3", float(1000.0)),
            (".5", float(0.5)),
            (".5_0", float(0.5)),
            ("1.", float(1.0)),
            ("-9223372036854775808", whole(i64::MIN)),
            (
                "18446744073709551615",
                Resolved::Number(Parsed::Unsigned(u64::MAX)),
            ),
            ("18446744073709551616", float(18_446_744_073_709_551_616.0)),
            ("on", Resolved::Bool(true)),
            ("No", Resolved::Bool(false)),
            ("nO", words("nO")),
            ("~", Resolved::Null),
            ("1:30", words("1:30")),
            ("0o8", words("0o8")),
            ("0x", words("0x")),
            ("1e400", words("1e400")),
            ("2001-01-01", words("2001-01-01")),
            ("-", words("-")),
            ("._5", words("._5")),
            ("1-2", words("1-2")),
            ("0x-1", words("0x-1")),
        ] {
            assert_eq!(implicit(text), expect, "{text}");
        }
    }
}
