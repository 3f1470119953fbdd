//! Indented JSON, for people with curl or a browser. Works on bytes: what is in the body, and in
//! which order, stays as it is.

use sundown_api::Request;

/// Whether the client reads with its own eyes (apiserver, `endpoints/handlers/negotiation`).
pub(crate) fn is_wanted(request: &Request) -> bool {
    if let Some(asked) = request.param("pretty").filter(|asked| !asked.is_empty()) {
        return matches!(asked, "1" | "t" | "T" | "true" | "TRUE" | "True");
    }
    let agent = request.user_agent.as_deref().unwrap_or("");
    ["curl", "Wget", "Mozilla/5.0"]
        .iter()
        .any(|person| agent.starts_with(person))
}

/// The same JSON with two spaces per level.
pub(crate) fn indented(json: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(json.len() * 2);
    let (mut level, mut is_text, mut is_escaped) = (0_usize, false, false);
    let mut bytes = json.iter().copied().peekable();
    while let Some(byte) = bytes.next() {
        if is_text {
            out.push(byte);
            is_text = is_escaped || byte != b'"';
            is_escaped = !is_escaped && byte == b'\\';
            continue;
        }
        match byte {
            b'"' => {
                is_text = true;
                out.push(byte);
            }
            b'{' | b'[' => {
                out.push(byte);
                if bytes.peek().is_some_and(|next| matches!(next, b'}' | b']')) {
                    out.extend(bytes.next());
                } else {
                    level += 1;
                    new_line(&mut out, level);
                }
            }
            b'}' | b']' => {
                level = level.saturating_sub(1);
                new_line(&mut out, level);
                out.push(byte);
            }
            b',' => {
                out.push(byte);
                new_line(&mut out, level);
            }
            b':' => out.extend_from_slice(b": "),
            _ => out.push(byte),
        }
    }
    out
}

fn new_line(out: &mut Vec<u8>, level: usize) {
    out.push(b'\n');
    out.resize(out.len() + 2 * level, b' ');
}

#[cfg(test)]
mod tests {
    use super::indented;

    #[test]
    fn indents_and_leaves_texts_alone() {
        let json = br#"{"a":[],"b":{},"c":[1,{"d":"x\"{,:}\\"}]}"#;
        let expect = "{\n  \"a\": [],\n  \"b\": {},\n  \"c\": [\n    1,\n    {\n      \"d\": \
                      \"x\\\"{,:}\\\\\"\n    }\n  ]\n}";
        assert_eq!(String::from_utf8(indented(json)).unwrap(), expect);
    }
}
