//! Paths that a pure crate must not name, found in its source.
//!
//! Imports are expanded (`use std::{fs, io}` names `std::fs`), comments and strings are skipped.

use crate::source::{self, Token};

/// A path, or a part of one, and why it is not pure.
struct Ban {
    path: &'static [&'static str],
    reason: &'static str,
}

const fn ban(path: &'static [&'static str], reason: &'static str) -> Ban {
    Ban { path, reason }
}

const TIME: &str = "time is an argument";
const ORDER: &str = "iteration order must be the same in every run";
const FILES: &str = "no file system";
const NETWORK: &str = "no network; core::net has the plain addresses";
const THREADS: &str = "no threads";
const LOCKS: &str = "plain data, no locks";
const RANDOM: &str = "randomness is seeded by the caller";
const OUTPUT: &str = "no output and no logging: the reason is the report";
const ASYNC: &str = "synchronous machines, no async";
const HIDING: &str = "hides what of std is used";

const BANS: &[Ban] = &[
    ban(&["std", "env"], "no environment"),
    ban(&["std", "fs"], FILES),
    ban(&["std", "path"], FILES),
    ban(&["std", "os"], "no operating system"),
    ban(&["std", "net"], NETWORK),
    ban(&["std", "process"], "no processes"),
    ban(&["std", "thread"], THREADS),
    ban(&["std", "sync", "atomic"], LOCKS),
    ban(&["std", "sync", "mpsc"], THREADS),
    ban(&["std", "*"], HIDING),
    ban(&["std", "collections", "*"], HIDING),
    ban(&["std", "sync", "*"], HIDING),
    ban(&["std", "time", "*"], HIDING),
    ban(&["HashMap"], ORDER),
    ban(&["HashSet"], ORDER),
    ban(&["RandomState"], RANDOM),
    ban(&["DefaultHasher"], RANDOM),
    ban(&["SystemTime"], TIME),
    ban(&["Instant"], TIME),
    ban(&["Timestamp", "now"], TIME),
    ban(&["Zoned", "now"], TIME),
    ban(&["TimeZone", "system"], "no environment"),
    ban(&["Mutex"], LOCKS),
    ban(&["RwLock"], LOCKS),
    ban(&["Condvar"], LOCKS),
    ban(&["thread_local", "!"], THREADS),
    ban(&["thread_rng"], RANDOM),
    ban(&["Rng", "new"], RANDOM),
    ban(&["io", "stdin"], OUTPUT),
    ban(&["io", "stdout"], OUTPUT),
    ban(&["io", "stderr"], OUTPUT),
    ban(&["print", "!"], OUTPUT),
    ban(&["println", "!"], OUTPUT),
    ban(&["eprint", "!"], OUTPUT),
    ban(&["eprintln", "!"], OUTPUT),
    ban(&["async"], ASYNC),
    ban(&["await"], ASYNC),
];

/// The violations in one file, each with its place.
pub(super) fn check(file: &str, text: &str) -> Vec<String> {
    let code = source::code_only(text);
    let mut violations = Vec::new();
    for path in paths(&source::tokens(&code)) {
        if let Some(reason) = judge(&path.segments) {
            let named = path.segments.join("::").replace("::!", "!");
            violations.push(format!(
                "{file}:{}: `{named}` is not pure: {reason}",
                path.line
            ));
        }
    }
    violations
}

fn judge(segments: &[&str]) -> Option<&'static str> {
    if segments == ["std"] {
        return Some(HIDING);
    }
    let names = |ban: &&Ban| {
        segments
            .windows(ban.path.len())
            .any(|window| window == ban.path)
    };
    BANS.iter().find(names).map(|ban| ban.reason)
}

/// A path as the code names it, imports expanded, `!` at the end of a macro's.
struct Named<'a> {
    segments: Vec<&'a str>,
    line: usize,
}

fn paths<'a>(tokens: &[Token<'a>]) -> Vec<Named<'a>> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        let is_import = tokens[at].text == "use" && text_at(tokens, at + 1) != "<";
        if is_import {
            at = import(tokens, at + 1, &[], &mut found);
        } else if is_word(tokens[at].text) {
            at = plain_path(tokens, at, &mut found);
        } else {
            at += 1;
        }
    }
    found
}

fn plain_path<'a>(tokens: &[Token<'a>], start: usize, found: &mut Vec<Named<'a>>) -> usize {
    let mut segments = vec![tokens[start].text];
    let mut at = start + 1;
    while text_at(tokens, at) == "::" && is_word(text_at(tokens, at + 1)) {
        segments.push(tokens[at + 1].text);
        at += 2;
    }
    let is_macro = text_at(tokens, at) == "!" && text_at(tokens, at + 1) != "=";
    if is_macro {
        segments.push("!");
    }
    found.push(Named {
        segments,
        line: tokens[start].line,
    });
    at
}

/// Reads one tree of an import and returns where it ends: at `,`, `}`, `;` or the end.
fn import<'a>(
    tokens: &[Token<'a>],
    start: usize,
    prefix: &[&'a str],
    found: &mut Vec<Named<'a>>,
) -> usize {
    let mut segments = prefix.to_vec();
    let mut at = start;
    let line = tokens.get(start).map_or(0, |token| token.line);
    loop {
        match text_at(tokens, at) {
            "" | "," | "}" | ";" => break,
            "{" => {
                at += 1;
                while !matches!(text_at(tokens, at), "" | "}" | ";") {
                    at = import(tokens, at, &segments, found);
                    at += usize::from(text_at(tokens, at) == ",");
                }
                return at + usize::from(text_at(tokens, at) == "}");
            }
            // The new name does not matter.
            "as" => at += 2,
            "::" | "self" => at += 1,
            segment => {
                segments.push(segment);
                at += 1;
            }
        }
    }
    found.push(Named { segments, line });
    at
}

fn text_at<'a>(tokens: &[Token<'a>], at: usize) -> &'a str {
    tokens.get(at).map_or("", |token| token.text)
}

fn is_word(text: &str) -> bool {
    text.starts_with(|c: char| c.is_alphabetic() || c == '_')
}
