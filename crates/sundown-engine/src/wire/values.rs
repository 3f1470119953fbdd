//! Takes the values out of an API server's refusal. What it refuses is named by its field; the value
//! that stood there may be a secret, and the message goes into events, conditions and records.

/// What comes before a value, in the words of Kubernetes' `field.Error`.
const BEFORE: [&str; 3] = [
    "Invalid value: ",
    "Unsupported value: ",
    "Duplicate value: ",
];
const REDACTED: &str = "\"[redacted]\"";

/// The message without the texts, lists and objects that it quotes. Numbers and truth values stay.
pub(super) fn without_values(message: &str) -> String {
    let mut out = String::with_capacity(message.len());
    let mut rest = message;
    while let Some(at) = next(rest) {
        let (before, value) = rest.split_at(at);
        out.push_str(before);
        let length = value_length(value);
        if length > 0 {
            out.push_str(REDACTED);
        }
        rest = &value[length..];
    }
    out + rest
}

/// Where the first value begins.
fn next(text: &str) -> Option<usize> {
    let ends = BEFORE
        .iter()
        .filter_map(|words| text.find(words).map(|at| at + words.len()));
    ends.min()
}

/// How many bytes a quoted text, a list or an object has at the beginning of a text; 0 for others.
/// One without an end goes to the end.
fn value_length(text: &str) -> usize {
    if !text.starts_with(['"', '{', '[']) {
        return 0;
    }
    let (mut depth, mut is_quoted, mut is_escaped) = (0_u32, false, false);
    for (at, letter) in text.char_indices() {
        match letter {
            _ if is_escaped => is_escaped = false,
            '\\' if is_quoted => is_escaped = true,
            '"' => is_quoted = !is_quoted,
            '{' | '[' if !is_quoted => depth += 1,
            '}' | ']' if !is_quoted => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 && !is_quoted {
            return at + letter.len_utf8();
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::without_values;

    #[test]
    fn a_refusal_names_the_field_and_not_its_value() {
        for (message, expect) in [
            ("", ""),
            ("pods is forbidden: quota", "pods is forbidden: quota"),
            (
                r#"spec.x: Invalid value: "hunter2": must be a name"#,
                r#"spec.x: Invalid value: "[redacted]": must be a name"#,
            ),
            (
                r#"[a: Invalid value: "h\"unter2": no, b: Unsupported value: "hunter2": supported values: "a", "b"]"#,
                r#"[a: Invalid value: "[redacted]": no, b: Unsupported value: "[redacted]": supported values: "a", "b"]"#,
            ),
            (
                r#"env: Duplicate value: {"name":"A","value":"}hunter2"}"#,
                r#"env: Duplicate value: "[redacted]""#,
            ),
            (
                "a: Invalid value: [\"hunter2",
                "a: Invalid value: \"[redacted]\"",
            ),
            (
                "a: Invalid value: 70000: too many",
                "a: Invalid value: 70000: too many",
            ),
            ("a: Invalid value: ", "a: Invalid value: "),
        ] {
            assert_eq!(without_values(message), expect);
        }
    }
}
