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
    Name(String),
    Sign(&'static str),
}

const SIGNS: &[&str] = &[
    "==", "!=", "<=", ">=", "&&", "||", "<", ">", "+", "-", "*", "/", "%", "!", "?", ":", "(", ")",
    "[", "]", "{", "}", ",", ".",
];

/// Splits an expression into words.
///
/// Errors: the place of what is no word, and why.
pub(crate) fn lex(text: &str) -> Result<Vec<Token>, (usize, String)> {
    let (mut tokens, mut at) = (Vec::new(), 0);
    while let Some(c) = text[at..].chars().next() {
        let rest = &text[at..];
        if c.is_whitespace() {
            at += c.len_utf8();
        } else if rest.starts_with("//") {
            at += rest.find('\n').unwrap_or(rest.len());
        } else {
            let (word, length) = word(rest).map_err(|why| (at, why))?;
            tokens.push(Token { word, at });
            at += length;
        }
    }
    Ok(tokens)
}

fn word(rest: &str) -> Result<(Word, usize), String> {
    let first = rest.chars().next().unwrap_or(' ');
    let is_raw = first == 'r' || first == 'R';
    if let Some(quoted) = rest.strip_prefix(['r', 'R']).filter(|_| is_raw)
        && quoted.starts_with(['"', '\''])
    {
        let (text, length) = quoted_text(quoted, true)?;
        return Ok((Word::Text(text), length + 1));
    }
    if first == '"' || first == '\'' {
        let (text, length) = quoted_text(rest, false)?;
        return Ok((Word::Text(text), length));
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
        .ok_or_else(|| format!("Syntax error: token recognition error at: '{first}'"))
}

fn number(rest: &str) -> Result<(Word, usize), String> {
    if let Some(hex) = rest.strip_prefix("0x") {
        let length = hex
            .find(|c: char| !c.is_ascii_hexdigit())
            .unwrap_or(hex.len());
        let value = i64::from_str_radix(&hex[..length], 16);
        let value = value.map_err(|_| "invalid int literal".to_owned())?;
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
        let value = text.parse().map_err(|_| "invalid double literal")?;
        return Ok((Word::Double(value), end));
    }
    if matches!(bytes.get(end), Some(b'u' | b'U')) {
        let value = text.parse().map_err(|_| "invalid uint literal")?;
        return Ok((Word::Uint(value), end + 1));
    }
    let value = text.parse().map_err(|_| "invalid int literal")?;
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
        let escaped = chars.next().unwrap_or('\\');
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
