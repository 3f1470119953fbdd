//! Rust files: they open with what they own, document what they offer, and stay small.

use super::Finding;
use crate::source;
use crate::workspace::TextFile;

/// Past this a file has more than one reason to change; one that proves otherwise changes our mind.
const LINES_MAX: usize = 500;

/// Layers 4 and 5 of the test ladder need a real API server or real processes: only they may wait.
const LATE_LAYERS: &[&str] = &["conformance", "end_to_end"];

/// All rules for one file.
pub(super) fn check(file: &TextFile) -> Vec<Finding> {
    if !file.is_rust() {
        return Vec::new();
    }
    let code = source::code_only(&file.text);
    let mut findings = Vec::new();
    findings.extend(opening(file));
    findings.extend(size(file));
    findings.extend(undocumented(file, &code));
    findings.extend(ignored_tests(file, &code));
    findings
}

fn opening(file: &TextFile) -> Option<Finding> {
    let opens = file.text.starts_with("//! ");
    (!opens).then(|| Finding::new(file, 1, "open the file with `//!`: what it owns or decides"))
}

fn size(file: &TextFile) -> Option<Finding> {
    let count = file.text.lines().count();
    let is_generated = file.path.contains("generated");
    (count > LINES_MAX && !is_generated).then(|| {
        let message = format!("{count} lines, {LINES_MAX} at most: split it by reason to change");
        Finding::new(file, 0, message)
    })
}

/// Public types, traits and functions without `///`.
fn undocumented(file: &TextFile, code: &str) -> Vec<Finding> {
    if file.path.split('/').any(|part| part == "tests") {
        return Vec::new();
    }
    let code: Vec<&str> = code.lines().collect();
    let text: Vec<&str> = file.text.lines().collect();
    (0..code.len())
        .filter(|at| is_public_item(code[*at]) && !has_docs(&text, &code, *at))
        .map(|at| Finding::new(file, at + 1, "a public item says what it is for: `///`"))
        .collect()
}

fn is_public_item(line: &str) -> bool {
    let mut words = line.split([' ', '<', '(']).filter(|word| !word.is_empty());
    if words.next() != Some("pub") || line.trim_start().starts_with("pub(") {
        return false;
    }
    let is_modifier = |word: &&str| matches!(*word, "const" | "async" | "unsafe" | "extern");
    let item = words.find(|word| !is_modifier(word));
    matches!(item, Some("struct" | "enum" | "trait" | "fn" | "union"))
}

/// Looks upwards over attributes, also over those of several lines.
fn has_docs(text: &[&str], code: &[&str], item: usize) -> bool {
    let mut at = item;
    let mut inside_attribute = false;
    while at > 0 {
        at -= 1;
        let code_line = code[at].trim();
        // `$(#[$doc])*` in a macro: the docs stand where it is called.
        let is_docs = text[at].trim_start().starts_with("///")
            || code_line.starts_with("#[doc")
            || code_line.starts_with("$(#[");
        if is_docs {
            return true;
        }
        let is_comment = code_line.is_empty() && text[at].trim_start().starts_with("//");
        if code_line.starts_with("#[") {
            inside_attribute = false;
        } else if code_line.ends_with(']') {
            inside_attribute = true;
        } else if !inside_attribute && !is_comment {
            return false;
        }
    }
    false
}

fn ignored_tests(file: &TextFile, code: &str) -> Vec<Finding> {
    if LATE_LAYERS.iter().any(|layer| file.path.contains(layer)) {
        return Vec::new();
    }
    let is_ignored = |line: &str| {
        let line = line.replace(' ', "");
        line.contains("#[ignore]") || line.contains("#[ignore=")
    };
    let message = "only tests of layers 4 and 5 (conformance, end_to_end) may be ignored";
    code.lines()
        .enumerate()
        .filter(|(_, line)| is_ignored(line))
        .map(|(index, _)| Finding::new(file, index + 1, message))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::{lines, sample};
    use super::*;

    #[track_caller]
    fn expect(text: &str, at: &[usize]) {
        assert_eq!(
            lines(&check(&sample("crates/a/src/b.rs", text))),
            at,
            "{text}"
        );
    }

    #[test]
    fn a_file_without_an_opening_is_found() {
        expect("use a;\n", &[1]);
        expect("/// Not the file.\nuse a;\n", &[1]);
        expect("//! Owns a.\nuse a;\n", &[]);
    }

    #[test]
    fn a_public_item_without_docs_is_found() {
        expect("//! A.\npub struct A;\n", &[2]);
        expect("//! A.\n#[derive(Debug)]\npub enum A {}\n", &[3]);
        expect("//! A.\npub trait A {}\n\npub fn f() {}\n", &[2, 4]);
        expect("//! A.\nimpl A {\n    pub const fn f() {}\n}\n", &[3]);
        expect(
            "//! A.\n/// Docs of b.\nfn b() {}\npub async fn f() {}\n",
            &[4],
        );
        expect("//! A.\n// No docs.\npub fn f<T>() {}\n", &[3]);
    }

    #[test]
    fn a_documented_item_passes() {
        expect(
            "//! A.\n    $(#[$doc])*\n    #[derive(Debug)]\n    pub struct $name;\n",
            &[],
        );
        expect("//! A.\n/// B.\npub struct B;\n", &[]);
        expect(
            "//! A.\n/// B.\n#[derive(Debug)]\n#[serde(a)]\npub struct B;\n",
            &[],
        );
        expect(
            "//! A.\n/// B.\n#[derive(\n    Debug,\n    Clone,\n)]\npub struct B;\n",
            &[],
        );
    }

    #[test]
    fn what_is_not_public_passes() {
        expect(
            "//! A.\npub(crate) fn f() {}\nfn g() {}\npub mod a;\npub use a::b;\n",
            &[],
        );
        expect("//! A.\nconst TEXT: &str = \"\npub fn f() {}\n\";\n", &[]);
    }

    #[test]
    fn a_file_that_is_too_long_is_found() {
        let long = "//! A.\n".repeat(LINES_MAX + 1);
        assert_eq!(check(&sample("crates/a/src/b.rs", &long)).len(), 1);
        assert!(check(&sample("crates/a/src/generated.rs", &long)).is_empty());
        assert!(check(&sample("crates/a/src/b.rs", &"//! A.\n".repeat(LINES_MAX))).is_empty());
    }

    #[test]
    fn an_ignored_test_is_found_outside_the_late_layers() {
        expect("//! A.\n#[test]\n#[ignore]\nfn f() {}\n", &[3]);
        expect("//! A.\n#[ignore = \"slow\"]\nfn f() {}\n", &[2]);
        expect("//! A.\n// Not #[ignore] itself.\n", &[]);
        let late = sample(
            "crates/a/tests/it/conformance.rs",
            "//! A.\n#[ignore = \"x\"]\n",
        );
        assert!(check(&late).is_empty());
    }
}
