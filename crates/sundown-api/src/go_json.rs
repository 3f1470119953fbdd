//! What Go's `encoding/json` says about texts that are no JSON: clients and tests know these words.
//!
//! Values are parsed by `serde_json`; this runs only after it refused one, and only for the message.

use serde_json::Value;

const END: &str = "unexpected end of JSON input";
/// Deeper texts were refused for their depth; the scanner must not run out of stack over them.
const DEPTH_MAX: usize = 128;

/// Why a text is no JSON.
pub(crate) fn syntax_error(text: &[u8]) -> String {
    let mut scanner = Scanner { text, at: 0 };
    let why = scanner.value(0).and_then(|()| match scanner.peek() {
        None => Ok(()),
        Some(_) => Err(scanner.invalid("after top-level value")),
    });
    // Ours refuses more than Go's: a lone surrogate, an overlong number.
    why.err().unwrap_or_else(|| "invalid JSON".into())
}

/// Go's name for what a value is.
pub(crate) fn name_of(value: &Value) -> &'static str {
    match value {
        Value::Object(_) => "object",
        Value::Array(_) => "array",
        Value::String(_) => "string",
        Value::Number(_) => "number",
        Value::Bool(_) => "bool",
        Value::Null => "null",
    }
}

struct Scanner<'a> {
    text: &'a [u8],
    at: usize,
}

type Scanned = Result<(), String>;

impl Scanner<'_> {
    /// The next byte that is no white space.
    fn peek(&mut self) -> Option<u8> {
        while matches!(self.text.get(self.at), Some(b' ' | b'\t' | b'\r' | b'\n')) {
            self.at += 1;
        }
        self.text.get(self.at).copied()
    }

    fn invalid(&self, context: &str) -> String {
        match self.text.get(self.at) {
            None => END.into(),
            Some(byte) => format!("invalid character {} {context}", quoted(*byte)),
        }
    }

    fn value(&mut self, depth: usize) -> Scanned {
        if depth > DEPTH_MAX {
            return Err("exceeded max depth".into());
        }
        match self.peek() {
            None => Err(END.into()),
            Some(b'{') => self.object(depth),
            Some(b'[') => self.array(depth),
            Some(b'"') => self.string(),
            Some(b't') => self.literal("true"),
            Some(b'f') => self.literal("false"),
            Some(b'n') => self.literal("null"),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(_) => Err(self.invalid("looking for beginning of value")),
        }
    }

    fn object(&mut self, depth: usize) -> Scanned {
        self.at += 1;
        if self.peek() == Some(b'}') {
            self.at += 1;
            return Ok(());
        }
        loop {
            if self.peek() != Some(b'"') {
                return Err(self.invalid("looking for beginning of object key string"));
            }
            self.string()?;
            if self.peek() != Some(b':') {
                return Err(self.invalid("after object key"));
            }
            self.at += 1;
            self.value(depth + 1)?;
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b'}') => break,
                _ => return Err(self.invalid("after object key:value pair")),
            }
        }
        self.at += 1;
        Ok(())
    }

    fn array(&mut self, depth: usize) -> Scanned {
        self.at += 1;
        if self.peek() == Some(b']') {
            self.at += 1;
            return Ok(());
        }
        loop {
            self.value(depth + 1)?;
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b']') => break,
                _ => return Err(self.invalid("after array element")),
            }
        }
        self.at += 1;
        Ok(())
    }

    fn string(&mut self) -> Scanned {
        self.at += 1;
        loop {
            match self.text.get(self.at) {
                None => return Err(END.into()),
                Some(b'"') => break,
                Some(b'\\') => self.escape()?,
                Some(0..=0x1f) => return Err(self.invalid("in string literal")),
                Some(_) => self.at += 1,
            }
        }
        self.at += 1;
        Ok(())
    }

    fn escape(&mut self) -> Scanned {
        self.at += 1;
        match self.text.get(self.at) {
            Some(b'b' | b'f' | b'n' | b'r' | b't' | b'\\' | b'/' | b'"') => {
                self.at += 1;
                Ok(())
            }
            Some(b'u') => {
                self.at += 1;
                for _ in 0..4 {
                    if !self.text.get(self.at).is_some_and(u8::is_ascii_hexdigit) {
                        return Err(self.invalid("in \\u hexadecimal character escape"));
                    }
                    self.at += 1;
                }
                Ok(())
            }
            _ => Err(self.invalid("in string escape code")),
        }
    }

    fn literal(&mut self, word: &str) -> Scanned {
        for expected in word.chars() {
            if self.text.get(self.at).copied().map(char::from) != Some(expected) {
                return Err(self.invalid(&format!("in literal {word} (expecting '{expected}')")));
            }
            self.at += 1;
        }
        Ok(())
    }

    fn number(&mut self) -> Scanned {
        if self.text[self.at] == b'-' {
            self.at += 1;
        }
        if self.text.get(self.at) == Some(&b'0') {
            self.at += 1;
        } else {
            self.digits("in numeric literal")?;
        }
        if self.text.get(self.at) == Some(&b'.') {
            self.at += 1;
            self.digits("after decimal point in numeric literal")?;
        }
        if matches!(self.text.get(self.at), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.text.get(self.at), Some(b'+' | b'-')) {
                self.at += 1;
            }
            self.digits("in exponent of numeric literal")?;
        }
        Ok(())
    }

    fn digits(&mut self, context: &str) -> Scanned {
        let start = self.at;
        while self.text.get(self.at).is_some_and(u8::is_ascii_digit) {
            self.at += 1;
        }
        if self.at == start {
            return Err(self.invalid(context));
        }
        Ok(())
    }
}

fn quoted(byte: u8) -> String {
    match byte {
        b'\'' => r"'\''".into(),
        b'"' => "'\"'".into(),
        b'\\' => r"'\\'".into(),
        b'\n' => r"'\n'".into(),
        b'\r' => r"'\r'".into(),
        b'\t' => r"'\t'".into(),
        0..=0x1f | 0x7f => format!(r"'\x{byte:02x}'"),
        0x80..=0x9f | 0xad => format!(r"'\u{byte:04x}'"),
        0x20..=0x7e | 0xa0..=0xff => format!("'{}'", char::from(byte)),
    }
}

/// A value as Go's `%+v` prints it.
pub(crate) fn printed(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".into(),
        Value::Bool(_) | Value::Number(_) => value.to_string(),
        Value::String(text) => text.clone(),
        Value::Array(list) => {
            let items: Vec<String> = list.iter().map(printed).collect();
            format!("[{}]", items.join(" "))
        }
        Value::Object(map) => {
            let mut members: Vec<(&String, &Value)> = map.iter().collect();
            members.sort_by_key(|(name, _)| *name);
            let members: Vec<String> = members
                .into_iter()
                .map(|(name, value)| format!("{name}:{}", printed(value)))
                .collect();
            format!("map[{}]", members.join(" "))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::syntax_error;

    #[test]
    fn speaks_as_go_does() {
        for (text, expected) in [
            ("", "unexpected end of JSON input"),
            ("{\"metadata\":", "unexpected end of JSON input"),
            ("{\"a\" 1}", "invalid character '1' after object key"),
            (
                "{\"a\":1 1}",
                "invalid character '1' after object key:value pair",
            ),
            (
                "{a:1}",
                "invalid character 'a' looking for beginning of object key string",
            ),
            ("[1 2]", "invalid character '2' after array element"),
            (
                "[1,]",
                "invalid character ']' looking for beginning of value",
            ),
            (
                "trux",
                "invalid character 'x' in literal true (expecting 'e')",
            ),
            ("1 2", "invalid character '2' after top-level value"),
            ("\"\u{1}\"", "invalid character '\\x01' in string literal"),
            ("\"\\q\"", "invalid character 'q' in string escape code"),
            (
                "\"\\u00g0\"",
                "invalid character 'g' in \\u hexadecimal character escape",
            ),
            (
                "1.x",
                "invalid character 'x' after decimal point in numeric literal",
            ),
            (
                "1ex",
                "invalid character 'x' in exponent of numeric literal",
            ),
            ("-x", "invalid character 'x' in numeric literal"),
            (
                "'a'",
                r"invalid character '\'' looking for beginning of value",
            ),
        ] {
            assert_eq!(syntax_error(text.as_bytes()), expected, "{text:?}");
        }
        let text = syntax_error(&[0x81, 0xaa]);
        assert_eq!(
            text,
            r"invalid character '\u0081' looking for beginning of value"
        );
    }
}
