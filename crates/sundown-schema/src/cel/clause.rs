//! The clauses of a text that is formatted, as `%.2f` is one.

use std::iter::Peekable;
use std::str::Chars;

/// A part of such a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Piece {
    Char(char),
    Clause(Clause),
}

/// How one value is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Clause {
    pub(crate) verb: char,
    pub(crate) digits: Option<usize>,
}

impl Clause {
    /// Why it does not take a value of this type.
    pub(crate) fn refuses(self, ty: &str) -> String {
        let why = match self.verb {
            'd' => "decimal clause can only be used on integers",
            'f' => "fixed-point clause can only be used on doubles",
            'e' => "scientific clause can only be used on doubles",
            'b' => "only integers and bools can be formatted as binary",
            'o' => "octal clause can only be used on integers",
            _ => "only integers, byte buffers, and strings can be formatted as hex",
        };
        format!("{why}, was given {ty}")
    }

    /// Whether it may take a value of this type.
    pub(crate) fn takes(self, ty: &str) -> bool {
        let takes: &[&str] = match self.verb {
            'd' | 'o' => &["int", "uint"],
            // Texts may say what is not a number.
            'f' | 'e' => &["double", "string"],
            'b' => &["int", "uint", "bool"],
            'x' | 'X' => &["int", "uint", "bytes", "string"],
            _ => return true,
        };
        ty == "dyn" || takes.contains(&ty)
    }
}

/// The pieces of a text, up to the first that is none.
pub(crate) fn pieces(text: &str) -> impl Iterator<Item = Result<Piece, String>> {
    let mut chars = text.chars().peekable();
    let mut is_broken = false;
    std::iter::from_fn(move || {
        let first = chars.next().filter(|_| !is_broken)?;
        let piece = if first == '%' {
            clause(&mut chars)
        } else {
            Ok(Piece::Char(first))
        };
        is_broken = piece.is_err();
        Some(piece)
    })
}

fn clause(chars: &mut Peekable<Chars<'_>>) -> Result<Piece, String> {
    let mut digits = None;
    if chars.next_if_eq(&'.').is_some() {
        let mut text = String::new();
        while let Some(digit) = chars.next_if(char::is_ascii_digit) {
            text.push(digit);
        }
        let Ok(count) = text.parse() else {
            return Err(format!(
                "could not parse formatting clause: error while parsing precision: error while \
                 converting precision to integer: strconv.Atoi: parsing {text:?}: invalid syntax"
            ));
        };
        digits = Some(count);
    }
    match chars.next() {
        None => Err("unexpected end of string".to_owned()),
        Some('%') if digits.is_none() => Ok(Piece::Char('%')),
        Some(verb) if "sdfebxXo".contains(verb) => Ok(Piece::Clause(Clause { verb, digits })),
        Some(verb) => Err(format!(
            "could not parse formatting clause: unrecognized formatting clause \"{verb}\""
        )),
    }
}
