//! Names of fields that are no names of CEL are written with escapes.

use std::borrow::Cow;

const KEYWORDS: &[&str] = &[
    "true",
    "false",
    "null",
    "in",
    "as",
    "break",
    "const",
    "continue",
    "else",
    "for",
    "function",
    "if",
    "import",
    "let",
    "loop",
    "package",
    "namespace",
    "return",
    "var",
    "void",
    "while",
];

/// The name of the field that an escaped name stands for.
pub(crate) fn unescaped(name: &str) -> Cow<'_, str> {
    if !name.contains("__") {
        return Cow::Borrowed(name);
    }
    if let Some(word) = name.strip_prefix("__").and_then(|it| it.strip_suffix("__"))
        && KEYWORDS.contains(&word)
    {
        return Cow::Borrowed(word);
    }
    let text = name.replace("__dot__", ".").replace("__dash__", "-");
    let text = text.replace("__slash__", "/");
    Cow::Owned(text.replace("__underscores__", "__"))
}
