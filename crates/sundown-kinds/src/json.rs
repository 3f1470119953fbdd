//! Texts as upstream's languages write them: JSON of Go's `encoding/json`, strings of Go's
//! `strconv.Quote`.

use std::fmt::Write;

use serde_json::Value;

/// Compact JSON with sorted keys, and `<`, `>` and `&` escaped.
pub(crate) fn compact(value: &Value) -> String {
    let mut text = String::new();
    for c in value.to_string().chars() {
        match c {
            '<' => text.push_str("\\u003c"),
            '>' => text.push_str("\\u003e"),
            '&' => text.push_str("\\u0026"),
            '\u{2028}' => text.push_str("\\u2028"),
            '\u{2029}' => text.push_str("\\u2029"),
            other => text.push(other),
        }
    }
    text
}

/// A text in double quotes for a shell, in Go's spelling.
///
/// Go leaves `$` and backquotes alone, and the shell would replace them: what a user wrote as data
/// would run as a program, and mean something else than over HTTP. They are escaped here.
pub(crate) fn shell_quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '$' => quoted.push_str("\\$"),
            '`' => quoted.push_str("\\`"),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            c if c.is_control() => {
                // Writing to a string cannot fail.
                let _ = write!(quoted, "\\u{:04x}", u32::from(c));
            }
            other => quoted.push(other),
        }
    }
    quoted.push('"');
    quoted
}

/// A word of a command: as it is where the shell reads it as it is, else in single quotes.
pub(crate) fn shell_word(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:@%+=,".contains(c);
    if !text.is_empty() && text.chars().all(is_plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn json_is_compact_sorted_and_safe_for_html() {
        let value = json!({"b": "<&>", "a": [1, 2.5]});
        assert_eq!(compact(&value), r#"{"a":[1,2.5],"b":"\u003c\u0026\u003e"}"#);
    }

    #[test]
    fn quoted_texts_mean_themselves_to_a_shell() {
        assert_eq!(shell_quoted(r#"{"a":"b\n"}"#), r#""{\"a\":\"b\\n\"}""#);
        // Upstream leaves these to the shell, which runs what a user meant as data.
        assert_eq!(
            shell_quoted("$(id) `id` $HOME"),
            r#""\$(id) \`id\` \$HOME""#
        );
    }

    #[test]
    fn words_are_quoted_only_where_they_must() {
        assert_eq!(shell_word("job-bc9bc"), "job-bc9bc");
        assert_eq!(shell_word("a; rm -rf x"), "'a; rm -rf x'");
        assert_eq!(shell_word("it's"), r"'it'\''s'");
    }
}
