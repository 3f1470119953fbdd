//! Documents: what they point to exists.
//!
//! Only places in the repository are checked; the web is not asked.

use super::Finding;
use crate::workspace::TextFile;

/// Where a back-ticked path of the repository starts.
const PATH_STARTS: &[&str] = &["crates/", "docs/", "xtask/", ".ci/", ".cargo/"];

/// Checks relative links and named paths of one Markdown file.
pub(super) fn check(file: &TextFile, exists: impl Fn(&str) -> bool) -> Vec<Finding> {
    if !file.is_markdown() {
        return Vec::new();
    }
    let mut findings = Vec::new();
    let mut in_fence = false;
    for (index, line) in file.text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            in_fence = !in_fence;
        }
        if in_fence {
            continue;
        }
        let (prose, spans) = split_code(line);
        for target in links(&prose)
            .into_iter()
            .filter_map(|link| resolve(&file.path, link))
        {
            if !exists(&target) {
                findings.push(Finding::new(
                    file,
                    index + 1,
                    format!("no `{target}` to link to"),
                ));
            }
        }
        for path in spans.into_iter().filter(|span| is_path(span)) {
            if !exists(path) {
                findings.push(Finding::new(
                    file,
                    index + 1,
                    format!("there is no `{path}`"),
                ));
            }
        }
    }
    findings
}

/// The line without its code spans, and the code spans.
fn split_code(line: &str) -> (String, Vec<&str>) {
    let mut prose = String::new();
    let mut spans = Vec::new();
    for (index, part) in line.split('`').enumerate() {
        if index % 2 == 0 {
            prose.push_str(part);
        } else {
            spans.push(part);
        }
    }
    (prose, spans)
}

/// The targets of `[text](target)` and `[text](target "title")`.
fn links(prose: &str) -> Vec<&str> {
    prose
        .split("](")
        .skip(1)
        .filter_map(|rest| rest.split([')', ' ']).next())
        .collect()
}

/// The path from the root that a relative link means; nothing for the web and for anchors.
fn resolve(document: &str, link: &str) -> Option<String> {
    let path = link.split('#').next().unwrap_or_default();
    if path.is_empty() || link.contains("://") || link.starts_with("mailto:") {
        return None;
    }
    let mut parts: Vec<&str> = document.split('/').collect();
    parts.pop();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

/// A path of the repository, written out: `crates/x/src/NAME.rs` is a pattern.
fn is_path(span: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '/' | '.' | '_' | '-');
    PATH_STARTS.iter().any(|start| span.starts_with(start))
        && span.chars().all(is_plain)
        && !span.contains("NAME")
}

#[cfg(test)]
mod tests {
    use super::super::{lines, sample};
    use super::*;

    #[track_caller]
    fn expect(text: &str, at: &[usize]) {
        let existing = ["README.md", "docs/here.md", "crates/a/src/b.rs", "crates/a"];
        let file = sample("docs/document.md", text);
        assert_eq!(
            lines(&check(&file, |path| existing.contains(&path))),
            at,
            "{text}"
        );
    }

    #[test]
    fn a_broken_link_is_found() {
        expect("a\nsee [it](gone.md)", &[2]);
        expect("[a](here.md) and [b](../gone.md \"title\")", &[1]);
        expect("[`code` too](gone.md)", &[1]);
    }

    #[test]
    fn a_working_link_passes() {
        expect(
            "[a](here.md), [b](../README.md#status), [c](./here.md), [d](#below)",
            &[],
        );
        expect("[a](https://example.com/gone.md)", &[]);
    }

    #[test]
    fn a_named_path_that_is_gone_is_found() {
        expect("`crates/a/src/gone.rs`", &[1]);
        expect("`docs/gone.md` and `xtask/src/gone.rs`", &[1, 1]);
    }

    #[test]
    fn existing_paths_patterns_and_examples_pass() {
        expect("`crates/a/src/b.rs` in `crates/a`", &[]);
        expect(
            "`crates/a/src/NAME.rs`, `crates/*/src`, `crates/…`, `cargo xtask ci`",
            &[],
        );
        expect("```\n[a](gone.md) `crates/gone`\n```", &[]);
    }
}
