//! `$(NAME)` in commands, arguments and variables, as Kubernetes expands it: `$$` is a dollar, a name
//! that nobody knows stays as it was written.
//!
//! The node's shell calls this after it has looked up Secrets; nothing of them passes through here.

use std::collections::BTreeMap;

/// The value of a variable before expansion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Template {
    /// From a manifest: may name earlier variables.
    Text(String),
    /// From a `ConfigMap` or Secret: stays as it is.
    Literal(String),
}

/// The environment that a list of variables makes. Order counts: a value sees only what stands
/// before it, and a name that comes again replaces its value in its first place.
pub fn environment(variables: &[(String, Template)]) -> Vec<(String, String)> {
    let mut known: BTreeMap<String, String> = BTreeMap::new();
    let mut order: Vec<&String> = Vec::new();
    for (name, template) in variables {
        let value = match template {
            Template::Text(text) => expand(text, &known),
            Template::Literal(text) => text.clone(),
        };
        if known.insert(name.clone(), value).is_none() {
            order.push(name);
        }
    }
    let value = |name: &String| known.get(name).cloned().unwrap_or_default();
    let all = order.into_iter();
    all.map(|name| (name.clone(), value(name))).collect()
}

/// A text with its variables put in.
pub fn expand(text: &str, variables: &BTreeMap<String, String>) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        out.push_str(&rest[..at]);
        let tail = &rest[at + 1..];
        if let Some(after) = tail.strip_prefix('$') {
            out.push('$');
            rest = after;
        } else if let Some((name, after)) = tail.strip_prefix('(').and_then(|it| it.split_once(')'))
        {
            if let Some(value) = variables.get(name) {
                out.push_str(value);
            } else {
                out.push_str("$(");
                out.push_str(name);
                out.push(')');
            }
            rest = after;
        } else {
            out.push('$');
            rest = tail;
        }
    }
    out.push_str(rest);
    out
}

/// A text that comes out of [`expand`] as it is now.
pub fn escape(text: &str) -> String {
    text.replace('$', "$$")
}

#[cfg(test)]
mod tests {
    use super::{BTreeMap, Template, environment, escape, expand};

    fn known() -> BTreeMap<String, String> {
        BTreeMap::from([("A".to_owned(), "1".to_owned())])
    }

    #[test]
    fn names_are_replaced_and_unknown_ones_stay() {
        for (text, expect) in [
            ("x$(A)y", "x1y"),
            ("$(B)", "$(B)"),
            ("$$(A)", "$(A)"),
            ("$$$(A)", "$1"),
            ("$A $", "$A $"),
            ("$(A", "$(A"),
            ("$()", "$()"),
        ] {
            assert_eq!(expand(text, &known()), expect, "{text}");
        }
    }

    #[test]
    fn what_is_escaped_comes_out_as_it_was() {
        for text in ["$(A)", "$$", "a$b", ""] {
            assert_eq!(expand(&escape(text), &known()), text);
        }
    }

    #[test]
    fn a_variable_sees_only_what_stands_before_it() {
        let text = |it: &str| Template::Text(it.to_owned());
        let made = environment(&[
            ("FIRST".to_owned(), text("$(SECOND)")),
            (
                "SECOND".to_owned(),
                Template::Literal("$(FIRST)".to_owned()),
            ),
            ("THIRD".to_owned(), text("$(SECOND)!")),
            ("FIRST".to_owned(), text("again")),
        ]);
        let expect = [
            ("FIRST", "again"),
            ("SECOND", "$(FIRST)"),
            ("THIRD", "$(FIRST)!"),
        ];
        let expect: Vec<_> = expect
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect();
        assert_eq!(made, expect);
    }
}
