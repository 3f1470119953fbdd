//! Reasons: each one that a controller can give appears in a test of that controller.

use std::collections::BTreeSet;

use super::Finding;
use crate::source::{self, Token};
use crate::workspace::TextFile;

const CONTROLLERS: &str = "crates/sundown-decide/src/";
const CRATE_TESTS: &str = "crates/sundown-decide/tests/";

/// Checks every enum of the controllers whose name ends in `Reason`.
pub(super) fn check(files: &[TextFile]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in files.iter().filter(|file| file.is_rust()) {
        let Some(controller) = controller(&file.path) else {
            continue;
        };
        let code = source::code_only(&file.text);
        let variants = variants(&source::tokens(&code));
        if variants.is_empty() {
            continue;
        }
        let tested = tested_words(files, controller);
        for (variant, line) in variants {
            if !tested.contains(&variant) {
                let message = format!("no test of `{controller}` names the reason `{variant}`");
                findings.push(Finding::new(file, line, message));
            }
        }
    }
    findings
}

/// The module that a file belongs to: `ttl` for `ttl.rs` and for all below `ttl/`.
fn controller(path: &str) -> Option<&str> {
    let inside = path.strip_prefix(CONTROLLERS)?;
    let first = inside.split('/').next().unwrap_or(inside);
    Some(first.strip_suffix(".rs").unwrap_or(first))
}

fn tested_words(files: &[TextFile], of: &str) -> BTreeSet<String> {
    let is_test = |file: &&TextFile| {
        let of_controller = controller(&file.path) == Some(of)
            && (file.name() == "tests.rs" || file.path.contains("/tests/"));
        file.is_rust() && (of_controller || file.path.starts_with(CRATE_TESTS))
    };
    let mut words = BTreeSet::new();
    for file in files.iter().filter(is_test) {
        let code = source::code_only(&file.text);
        words.extend(
            source::tokens(&code)
                .into_iter()
                .map(|token| token.text.to_owned()),
        );
    }
    words
}

/// The variants of all reason enums, with their lines.
fn variants(tokens: &[Token<'_>]) -> Vec<(String, usize)> {
    let mut found = Vec::new();
    for (at, pair) in tokens.windows(2).enumerate() {
        if pair[0].text == "enum" && pair[1].text.ends_with("Reason") {
            found.extend(variants_of(&tokens[at + 2..]));
        }
    }
    found
}

/// Reads one enum's body: a variant is the first word after `{` or `,`, attributes skipped.
fn variants_of(tokens: &[Token<'_>]) -> Vec<(String, usize)> {
    let mut found = Vec::new();
    let mut depth = 0_usize;
    let mut expects_variant = false;
    for token in tokens {
        match token.text {
            "{" | "(" | "[" => {
                depth += 1;
                expects_variant |= depth == 1;
            }
            "}" | ")" | "]" => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    break;
                }
            }
            "," if depth == 1 => expects_variant = true,
            word if depth == 1 && expects_variant && word != "#" => {
                found.push((word.to_owned(), token.line));
                expects_variant = false;
            }
            _ => {}
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;

    const REASONS: &str = "
        /// Why.
        #[derive(Debug, Clone)]
        pub enum Reason {
            /// No TTL, StillRunning.
            NoTtl,
            #[serde(rename = \"x\", default)]
            NotDue { due_at: Timestamp, other: Other },
            Blocked(Vec<Blocker>, u8),
        }
        enum Other { Unrelated }
    ";

    fn untested(test_path: &str, tests: &str) -> Vec<String> {
        let files = [
            sample("crates/sundown-decide/src/ttl/decide.rs", REASONS),
            sample(test_path, tests),
        ];
        let message = |finding: Finding| finding.message;
        check(&files).into_iter().map(message).collect()
    }

    #[test]
    fn a_reason_without_a_test_is_found() {
        let tests = "check(Reason::NoTtl); check(Reason::Blocked(..)); // NotDue";
        assert_eq!(
            untested("crates/sundown-decide/src/ttl/tests.rs", tests),
            ["no test of `ttl` names the reason `NotDue`"]
        );
    }

    #[test]
    fn a_test_of_another_controller_does_not_count() {
        let tests = "Reason::NoTtl Reason::NotDue Reason::Blocked";
        assert_eq!(
            untested("crates/sundown-decide/src/owner_gc/tests.rs", tests).len(),
            3
        );
        assert_eq!(
            untested("crates/sundown-decide/src/ttl/view.rs", tests).len(),
            3
        );
    }

    #[test]
    fn tested_reasons_pass() {
        let tests = "Reason::NoTtl Reason::NotDue Reason::Blocked";
        for path in [
            "crates/sundown-decide/src/ttl/tests.rs",
            "crates/sundown-decide/src/ttl/tests/table.rs",
            "crates/sundown-decide/tests/it/ttl.rs",
        ] {
            assert!(untested(path, tests).is_empty(), "{path}");
        }
    }

    #[test]
    fn a_finding_names_the_line_of_the_variant() {
        let files = [sample(
            "crates/sundown-decide/src/ttl.rs",
            "enum Reason {\n  A,\n  B,\n}",
        )];
        let lines: Vec<_> = check(&files).iter().map(|finding| finding.line).collect();
        assert_eq!(lines, [2, 3]);
    }
}
