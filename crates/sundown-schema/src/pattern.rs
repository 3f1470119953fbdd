//! Regular expressions as Go reads them.
//!
//! Both engines come from RE2; they differ in the classes of Perl, which are ASCII in Go. Compiled
//! at first use: most of the patterns of a large definition are never asked.

use std::fmt::Write;
use std::sync::OnceLock;

use regex::Regex;

/// A pattern and, once asked, its automaton.
#[derive(Debug)]
pub(crate) struct Pattern {
    text: Box<str>,
    compiled: OnceLock<Option<Regex>>,
}

impl Pattern {
    pub(crate) fn new(text: &str) -> Self {
        Self {
            text: text.into(),
            compiled: OnceLock::new(),
        }
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Whether a text matches. A pattern that does not compile was refused at registration.
    pub(crate) fn matches(&self, text: &str) -> bool {
        self.regex().is_none_or(|regex| regex.is_match(text))
    }

    /// The automaton; None if the pattern does not compile.
    pub(crate) fn regex(&self) -> Option<&Regex> {
        let compiled = self.compiled.get_or_init(|| compile(&self.text).ok());
        compiled.as_ref()
    }
}

/// Compiles a pattern with the classes of Go.
pub(crate) fn compile(pattern: &str) -> Result<Regex, regex::Error> {
    regex::RegexBuilder::new(&ascii_classes(pattern))
        .size_limit(1 << 20)
        .dfa_size_limit(1 << 20)
        .build()
}

fn ascii_classes(pattern: &str) -> String {
    let mut out = String::with_capacity(pattern.len());
    let (mut chars, mut in_class) = (pattern.chars(), false);
    while let Some(c) = chars.next() {
        match c {
            '\\' => {
                let Some(escaped) = chars.next() else {
                    out.push('\\');
                    break;
                };
                let class = match escaped {
                    'd' => Some(("", "0-9")),
                    'w' => Some(("", "0-9A-Za-z_")),
                    's' => Some(("", "\\t\\n\\f\\r ")),
                    'D' => Some(("^", "0-9")),
                    'W' => Some(("^", "0-9A-Za-z_")),
                    'S' => Some(("^", "\\t\\n\\f\\r ")),
                    _ => None,
                };
                match class {
                    Some(("", set)) if in_class => out.push_str(set),
                    Some((not, set)) => write!(out, "[{not}{set}]").expect("text takes all"),
                    None if escaped == 'b' && !in_class => out.push_str("(?-u:\\b)"),
                    None => {
                        out.push('\\');
                        out.push(escaped);
                    }
                }
            }
            '[' if in_class && !chars.as_str().starts_with(':') => out.push_str("\\["),
            '[' => {
                in_class = true;
                out.push('[');
                let rest = chars.as_str();
                // A bracket that comes first is a member of the class.
                for lead in ["^]", "]", "^"] {
                    if let Some(after) = rest.strip_prefix(lead) {
                        out.push_str(&lead.replace(']', "\\]"));
                        chars = after.chars();
                        break;
                    }
                }
            }
            ']' if in_class => {
                in_class = false;
                out.push(']');
            }
            '&' | '~' if in_class => {
                out.push('\\');
                out.push(c);
            }
            c => out.push(c),
        }
    }
    out
}
