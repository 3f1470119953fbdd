//! The words of an expression.

/// A word and where it begins.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Token {
    pub(crate) word: Word,
    pub(crate) at: usize,
}

/// A word.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Word {
    Int(i64),
    Uint(u64),
    Double(f64),
    Text(String),
    Bytes(Vec<u8>),
    Name(String),
    Sign(&'static str),
}

const SIGNS: &[&str] = &[
    "==", "!=", "<=", ">=", "&&", "||", "<", ">", "+", "-", "*", "/", "%", "!", "?", ":", "(", ")",
    "[", "]", "{", "}", ",", ".",
];

/// Splits an expression into words. What is none is left out and told, with its place.
pub(crate) fn lex(text: &str) -> (Vec<Token>, Vec<(usize, String)>) {
    let (mut tokens, mut faults, mut at) = (Vec::new(), Vec::new(), 0);
    while let Some(c) = text[at..].chars().next() {
        let rest = &text[at..];
        if c.is_whitespace() {
            at += c.len_utf8();
        } else if rest.starts_with("//") {
            at += rest.find('\n').unwrap_or(rest.len());
        } else {
            match word(rest) {
                Ok((word, length)) => {
                    tokens.push(Token { word, at });
                    at += length;
                }
                Err((length, why)) => {
                    faults.push((at, why));
                    at += length;
                }
            }
        }
    }
    (tokens, faults)
}

/// A word and its length, or the length of what is none and why.
type Found = Result<(Word, usize), (usize, String)>;

fn unknown(text: &str) -> (usize, String) {
    let why = format!("Syntax error: token recognition error at: '{text}'");
    (text.len().max(1), why)
}

fn word(rest: &str) -> Found {
    let first = rest.chars().next().unwrap_or(' ');
    let prefix = rest.find(|c: char| !"rRbB".contains(c)).unwrap_or(0).min(2);
    let quoted = &rest[prefix..];
    if quoted.starts_with(['"', '\'']) {
        let is_raw = rest[..prefix].contains(['r', 'R']);
        let is_bytes = rest[..prefix].contains(['b', 'B']);
        let (text, length) = quoted_text(quoted, is_raw).map_err(|_| unknown(rest))?;
        let word = if is_bytes {
            Word::Bytes(text.into_bytes())
        } else {
            Word::Text(text)
        };
        return Ok((word, prefix + length));
    }
    if first.is_ascii_digit() {
        return number(rest);
    }
    if first.is_ascii_alphabetic() || first == '_' {
        let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let length = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
        return Ok((Word::Name(rest[..length].to_owned()), length));
    }
    let sign = SIGNS.iter().find(|sign| rest.starts_with(**sign));
    sign.map(|sign| (Word::Sign(sign), sign.len()))
        .ok_or_else(|| unknown(&rest[..first.len_utf8()]))
}

fn number(rest: &str) -> Found {
    if let Some(hex) = rest.strip_prefix("0x") {
        let length = hex
            .find(|c: char| !c.is_ascii_hexdigit())
            .unwrap_or(hex.len());
        let value = i64::from_str_radix(&hex[..length], 16);
        let value = value.map_err(|_| (length + 2, "invalid int literal".to_owned()))?;
        return Ok((Word::Int(value), length + 2));
    }
    let bytes = rest.as_bytes();
    let digits = |from: usize| {
        let count = bytes[from..].iter().take_while(|it| it.is_ascii_digit());
        from + count.count()
    };
    let mut end = digits(0);
    let mut is_double = false;
    if bytes.get(end) == Some(&b'.') && bytes.get(end + 1).is_some_and(u8::is_ascii_digit) {
        end = digits(end + 1);
        is_double = true;
    }
    if matches!(bytes.get(end), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
        end = digits(end + 1 + sign);
        is_double = true;
    }
    let text = &rest[..end];
    if is_double {
        let value = text
            .parse()
            .map_err(|_| (end, "invalid double literal".to_owned()))?;
        return Ok((Word::Double(value), end));
    }
    if matches!(bytes.get(end), Some(b'u' | b'U')) {
        let value = text
            .parse()
            .map_err(|_| (end, "invalid uint literal".to_owned()))?;
        return Ok((Word::Uint(value), end + 1));
    }
    let value = text
        .parse()
        .map_err(|_| (end, "invalid int literal".to_owned()))?;
    Ok((Word::Int(value), end))
}

fn quoted_text(rest: &str, is_raw: bool) -> Result<(String, usize), String> {
    let quote = &rest[..1];
    let triple = quote.repeat(3);
    let fence = if rest.starts_with(&triple) {
        triple.as_str()
    } else {
        quote
    };
    let (mut text, mut at) = (String::new(), fence.len());
    loop {
        let rest = &rest[at..];
        if rest.starts_with(fence) {
            return Ok((text, at + fence.len()));
        }
        let mut chars = rest.chars();
        let Some(c) = chars.next() else {
            return Err("Syntax error: unterminated string".to_owned());
        };
        at += c.len_utf8();
        if c != '\\' || is_raw {
            text.push(c);
            continue;
        }
        let Some(escaped) = chars.next() else {
            return Err("Syntax error: unterminated string".to_owned());
        };
        at += escaped.len_utf8();
        let hex_digits = match escaped {
            'x' | 'X' => 2,
            'u' => 4,
            'U' => 8,
            _ => 0,
        };
        if hex_digits > 0 {
            let digits = rest.get(2..2 + hex_digits).unwrap_or("");
            let code = u32::from_str_radix(digits, 16)
                .ok()
                .and_then(char::from_u32);
            text.push(code.ok_or("invalid unicode escape")?);
            at += hex_digits;
            continue;
        }
        text.push(match escaped {
            'n' => '\n',
            't' => '\t',
            'r' => '\r',
            'a' => '\u{7}',
            'b' => '\u{8}',
            'f' => '\u{c}',
            'v' => '\u{b}',
            other => other,
        });
    }
}
