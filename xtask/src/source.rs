//! Rust source without its comments and strings, for checks that must not trip over prose.
//!
//! A lexer of a few cases, not a parser: who needs syntax works on the tokens.

use std::iter::Peekable;
use std::str::CharIndices;

/// Blanks comments, strings and character literals; every line keeps its number and width.
pub(crate) fn code_only(text: &str) -> String {
    let mut code = String::with_capacity(text.len());
    let mut rest = text;
    let mut after_word = false;
    while let Some(first) = rest.chars().next() {
        let prose = if after_word { 0 } else { literal_len(rest) }.max(comment_len(rest));
        let (taken, left) = rest.split_at(if prose > 0 { prose } else { first.len_utf8() });
        if prose > 0 {
            code.extend(taken.chars().map(|c| if c == '\n' { '\n' } else { ' ' }));
        } else {
            code.push_str(taken);
        }
        // The r of `var"` is the end of a word, not the start of a raw string.
        after_word = prose == 0 && is_word(first) && !starts_literal_after_word(left);
        rest = left;
    }
    code
}

/// A word or a punctuation mark of code, with its line (from 1).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Token<'a> {
    pub(crate) text: &'a str,
    pub(crate) line: usize,
}

/// The tokens of code that went through [`code_only`]; `::` is one token.
pub(crate) fn tokens(code: &str) -> Vec<Token<'_>> {
    let mut tokens = Vec::new();
    let mut line = 1;
    let mut chars = code.char_indices().peekable();
    while let Some((start, c)) = chars.next() {
        if c == '\n' {
            line += 1;
        }
        if c.is_whitespace() {
            continue;
        }
        let end = if is_word(c) {
            word_end(&mut chars, code.len())
        } else if code[start..].starts_with("::") {
            chars.next();
            start + 2
        } else {
            start + c.len_utf8()
        };
        tokens.push(Token {
            text: &code[start..end],
            line,
        });
    }
    tokens
}

fn word_end(chars: &mut Peekable<CharIndices<'_>>, code_len: usize) -> usize {
    while chars.next_if(|(_, c)| is_word(*c)).is_some() {}
    chars.peek().map_or(code_len, |(at, _)| *at)
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// After a word only a plain string can start at once, as in `b"`; a quote as in `'a` cannot.
fn starts_literal_after_word(rest: &str) -> bool {
    rest.starts_with('"')
}

fn comment_len(rest: &str) -> usize {
    if rest.starts_with("//") {
        return rest.find('\n').unwrap_or(rest.len());
    }
    if !rest.starts_with("/*") {
        return 0;
    }
    let mut depth = 0_usize;
    let mut at = 0;
    while at < rest.len() {
        if rest[at..].starts_with("/*") {
            depth += 1;
            at += 2;
        } else if rest[at..].starts_with("*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += rest[at..].chars().next().map_or(1, char::len_utf8);
        }
    }
    rest.len()
}

/// The length of the string or character literal at the start, with its prefix; 0 if there is none.
fn literal_len(rest: &str) -> usize {
    let prefix = rest
        .find(|c: char| !matches!(c, 'b' | 'c' | 'r'))
        .unwrap_or(rest.len());
    let (before, body) = rest.split_at(prefix);
    let len = match before {
        "" | "b" | "c" if body.starts_with('"') => string_len(body),
        "" | "b" if body.starts_with('\'') => char_len(body),
        "r" | "br" | "cr" => raw_string_len(body),
        _ => 0,
    };
    if len == 0 { 0 } else { prefix + len }
}

fn string_len(body: &str) -> usize {
    let mut escaped = false;
    for (at, c) in body.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return at + 1,
            _ => {}
        }
    }
    body.len()
}

fn raw_string_len(body: &str) -> usize {
    let hashes = body.len() - body.trim_start_matches('#').len();
    if !body[hashes..].starts_with('"') {
        return 0;
    }
    let end = format!("\"{}", &body[..hashes]);
    body[hashes + 1..]
        .find(&end)
        .map_or(body.len(), |at| hashes + 1 + at + end.len())
}

/// `'x'` and `'\n'` are literals, `'a` is a lifetime.
fn char_len(body: &str) -> usize {
    let mut chars = body.char_indices().skip(1);
    match chars.next() {
        Some((_, '\\')) => {
            chars.next();
            chars.find(|(_, c)| *c == '\'').map_or(0, |(at, _)| at + 1)
        }
        Some(_) => match chars.next() {
            Some((at, '\'')) => at + 1,
            _ => 0,
        },
        None => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expect: &str) {
        let code = code_only(text);
        assert_eq!(
            code.split_whitespace().collect::<Vec<_>>().join(" "),
            expect
        );
        assert_eq!(
            code.chars().count(),
            text.chars().count(),
            "places must not move"
        );
    }

    #[test]
    fn comments_go() {
        check("a // std::fs\nb", "a b");
        check("a /* x /* nested */ y */ b", "a b");
        check("/// doc\nfn f() {}", "fn f() {}");
    }

    #[test]
    fn strings_go() {
        check(r#"f("std::fs \" // no comment", b)"#, "f( , b)");
        check(
            r##"f(r#"raw " std::fs"#, b"bytes", br"raw", c"c")"##,
            "f( , , , )",
        );
        check("f(\"two\nlines\")", "f( )");
    }

    #[test]
    fn character_literals_go_and_lifetimes_stay() {
        check(
            r"f('a', '\'', '\n', '\u{1F600}', b'x', '\\')",
            "f( , , , , , )",
        );
        check(
            "fn f<'a>(x: &'a str) -> &'static str",
            "fn f<'a>(x: &'a str) -> &'static str",
        );
        check(r#"m('"', x, '"')"#, "m( , x, )");
    }

    #[test]
    fn words_that_end_like_a_prefix_stay() {
        check(r#"attr = "x""#, "attr =");
        check("number'a", "number'a");
        check("let bar = r; crab", "let bar = r; crab");
    }

    #[test]
    fn tokens_know_their_line() {
        let words: Vec<_> = tokens("use std::\n  fs;")
            .into_iter()
            .map(|token| (token.text, token.line))
            .collect();
        assert_eq!(
            words,
            [("use", 1), ("std", 1), ("::", 1), ("fs", 2), (";", 2)]
        );
    }
}
