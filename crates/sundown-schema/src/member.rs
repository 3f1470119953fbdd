//! One member of an object, found in its bytes: a large definition is not parsed to look at a part.

/// The bytes of a member of the top level; None if there is none.
///
/// Assumes: the bytes are JSON, and no name of the top level is escaped.
pub fn member<'a>(json: &'a [u8], name: &str) -> Option<&'a [u8]> {
    let mut at = json.iter().position(|byte| *byte == b'{')? + 1;
    loop {
        at += skip(json.get(at..)?, is_between);
        let found = json.get(at..)?;
        if found.first()? == &b'}' {
            return None;
        }
        let key = value(found)?;
        at += key.len();
        at += skip(json.get(at..)?, |byte| is_between(byte) || byte == b':');
        let own = value(json.get(at..)?)?;
        if key.get(1..key.len() - 1) == Some(name.as_bytes()) {
            return Some(own);
        }
        at += own.len();
    }
}

fn is_between(byte: u8) -> bool {
    byte.is_ascii_whitespace() || byte == b','
}

fn skip(json: &[u8], is_it: impl Fn(u8) -> bool) -> usize {
    json.iter().take_while(|byte| is_it(**byte)).count()
}

/// The value that the bytes begin with; None if they end before it does.
///
/// Assumes: the bytes are JSON from here to the end of the value.
pub fn value(json: &[u8]) -> Option<&[u8]> {
    let mut depth = 0_usize;
    let mut at = 0;
    loop {
        match json.get(at)? {
            b'"' => at += 1 + text_length(json.get(at + 1..)?)?,
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.checked_sub(1)?,
            _ if depth == 0 => {
                let is_plain = |byte: u8| !is_between(byte) && !b"]}:".contains(&byte);
                at += skip(&json[at..], is_plain).checked_sub(1)?;
            }
            _ => {}
        }
        at += 1;
        if depth == 0 {
            return json.get(..at);
        }
    }
}

/// How long a text is, up to the quote that ends it.
fn text_length(json: &[u8]) -> Option<usize> {
    let mut at = 0;
    loop {
        let rest = json.get(at..)?;
        at += rest.iter().position(|byte| matches!(byte, b'"' | b'\\'))?;
        if json[at] == b'"' {
            return Some(at);
        }
        at += 2;
    }
}

#[cfg(test)]
mod tests {
    use super::member;

    #[test]
    fn a_text_ends_at_the_first_quote_that_is_not_escaped() {
        let json = br#"{"a":"\\","b":"\\\"","c":"","d":1}"#;
        let found = |name| member(json, name).map(|it| std::str::from_utf8(it).unwrap());
        assert_eq!(found("a"), Some(r#""\\""#));
        assert_eq!(found("b"), Some(r#""\\\"""#));
        assert_eq!(found("c"), Some("\"\""));
        assert_eq!(found("d"), Some("1"));
        assert_eq!(member(br#"{"a":"\"#, "a"), None);
    }

    #[test]
    fn finds_members_of_the_top_level_only() {
        let json = br#"{"a":{"b":[1,"}]\"x"],"c":{}},"b":"t\"},{","n":-1.5e3,"c":null , "d":[] }"#;
        let found = |name| member(json, name).map(|it| std::str::from_utf8(it).unwrap());
        assert_eq!(found("a"), Some(r#"{"b":[1,"}]\"x"],"c":{}}"#));
        assert_eq!(found("b"), Some(r#""t\"},{""#));
        assert_eq!(found("n"), Some("-1.5e3"));
        assert_eq!(found("c"), Some("null"));
        assert_eq!(found("d"), Some("[]"));
        assert_eq!(found("x"), None);
        assert_eq!(member(b"{}", "a"), None);
        assert_eq!(member(b"{\"a\"", "a"), None);
        assert_eq!(member(b"", "a"), None);
    }
}
