//! Takes the values out of an API server's refusal, and cuts it. What it refuses is named by its field;
//! the value that stood there may be a secret, and the message goes into events, conditions and records.

/// How much of a message is told. A refused pod names each of its fields, and conditions are read by
/// people; a server that tells one fault in more words than these is not known.
const MESSAGE_BYTES_MAX: usize = 16 * 1024;
const MORE: &str = "...";

/// What comes after the path of a field, in the words of Kubernetes' `field.Error`.
const AFTER_PATH: [&str; 6] = [
    "Invalid value",
    "Unsupported value",
    "Duplicate value",
    "Required value",
    "Not found",
    "Forbidden",
];
/// What comes before values that the type of a field has, which are no secret.
const SUPPORTED: &str = "supported values: ";
const REDACTED: &str = "\"[redacted]\"";

/// The message without the texts, lists and objects that it quotes after the path of a field. Numbers
/// and truth values stay.
///
/// Where quotes do not match, the rest is left out: it cannot be told what is a value.
pub(super) fn without_values(message: &str) -> String {
    let cut = &message[..message.floor_char_boundary(MESSAGE_BYTES_MAX)];
    let mut out = String::with_capacity(cut.len());
    let (mut rest, mut is_after_path) = (cut, false);
    loop {
        let next = next(rest);
        let (words, value) = rest.split_at(next.unwrap_or(rest.len()));
        if !is_after_path {
            out.push_str(words);
        } else if push_unquoted(&mut out, words).is_none() {
            break;
        }
        if next.is_none() {
            break;
        }
        is_after_path = true;
        let length = value_length(value);
        if length > 0 {
            out.push_str(REDACTED);
        }
        rest = &value[length..];
    }
    if cut.len() < message.len() {
        out.push_str(MORE);
    }
    out
}

/// Where the first value may begin.
fn next(text: &str) -> Option<usize> {
    const COLON: &str = ": ";
    let ends_path = |at: usize| AFTER_PATH.iter().any(|words| text[..at].ends_with(words));
    let mut colons = text.match_indices(COLON).map(|(at, _)| at);
    colons.find(|at| ends_path(*at)).map(|at| at + COLON.len())
}

/// Appends words without the texts that they quote; None if one has no end.
fn push_unquoted(out: &mut String, words: &str) -> Option<()> {
    let (mut rest, mut is_supported) = (words, false);
    while let Some(at) = rest.find('"') {
        let (before, quoted) = rest.split_at(at);
        is_supported = before.ends_with(SUPPORTED) || (is_supported && before == ", ");
        out.push_str(before);
        let length = value_length(quoted);
        let (quoted, after) = quoted.split_at(length);
        let is_closed = length > 1 && quoted.ends_with('"');
        out.push_str(if is_closed && is_supported {
            quoted
        } else {
            REDACTED
        });
        is_closed.then_some(())?;
        rest = after;
    }
    out.push_str(rest);
    Some(())
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
    use super::{MESSAGE_BYTES_MAX, MORE, REDACTED, without_values};

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

    /// Formats and refused changes say a value once more, behind the first.
    #[test]
    fn a_value_that_is_repeated_is_taken_out_each_time() {
        for (message, expect) in [
            (
                r#"X.g "x" is invalid: a: Invalid value: "hunter2": a in body must be of type date: "hunter2""#,
                r#"X.g "x" is invalid: a: Invalid value: "[redacted]": a in body must be of type date: "[redacted]""#,
            ),
            (
                "spec: Forbidden: may not change `a`\n spec.env[0].value:\n-\"hunter2\"\n+\"hunter3\"\n",
                "spec: Forbidden: may not change `a`\n spec.env[0].value:\n-\"[redacted]\"\n+\"[redacted]\"\n",
            ),
            (
                r#"a.name: Not found: "hunter2""#,
                r#"a.name: Not found: "[redacted]""#,
            ),
            (
                r#"a: Required value: not with "hunter2", b: Unsupported value: 1: supported values: "c", "d", e: Forbidden: "hunter2""#,
                r#"a: Required value: not with "[redacted]", b: Unsupported value: 1: supported values: "c", "d", e: Forbidden: "[redacted]""#,
            ),
            (
                r#"a: Invalid value: 1: should match '^"', b: Invalid value: "hunter2": no"#,
                r#"a: Invalid value: 1: should match '^"[redacted]""#,
            ),
            (
                r#"a: Invalid value: "": must be of type date: "my Invalid value: hunter2""#,
                r#"a: Invalid value: "[redacted]": must be of type date: "[redacted]""#,
            ),
        ] {
            assert_eq!(without_values(message), expect);
        }
    }

    /// A pod with 300,000 faulty tolerations is refused with 43 MB. All three words were searched for
    /// in the whole rest at each of them, and all of it stood in a condition.
    #[test]
    fn a_refusal_of_any_length_is_cut_and_read_once() {
        let one = r#"spec.tolerations[1].operator: Invalid value: "": operator must be Exists, "#;
        let message = one.repeat(300_000);
        let told = without_values(&message);
        assert!(told.len() < 2 * MESSAGE_BYTES_MAX, "{} bytes", told.len());
        assert!(told.starts_with("spec.tolerations[1].operator: Invalid value: \"[redacted]\": "));
        assert!(told.ends_with(MORE));
        let letters = "ä".repeat(MESSAGE_BYTES_MAX);
        let told = without_values(&letters);
        assert_eq!(told.len(), MESSAGE_BYTES_MAX + MORE.len());
        let secret = format!("a: Invalid value: \"{letters}\"");
        assert_eq!(
            without_values(&secret),
            format!("a: Invalid value: {REDACTED}{MORE}")
        );
    }
}
