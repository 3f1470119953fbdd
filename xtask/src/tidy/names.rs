//! File names: one that says nothing about its content collects everything.

use super::Finding;
use crate::workspace::TextFile;

const EMPTY_NAMES: &[&str] = &[
    "util", "utils", "helper", "helpers", "common", "type", "types", "misc",
];

/// No `mod.rs`, no file or directory with an empty name.
pub(super) fn check(file: &TextFile) -> Vec<Finding> {
    if !file.is_rust() {
        return Vec::new();
    }
    let mut findings = Vec::new();
    if file.name() == "mod.rs" {
        findings.push(Finding::new(
            file,
            0,
            "name it after its directory, beside it: no mod.rs",
        ));
    }
    for part in file.path.split('/') {
        let stem = part.strip_suffix(".rs").unwrap_or(part);
        if EMPTY_NAMES.contains(&stem) {
            findings.push(Finding::new(
                file,
                0,
                format!("`{stem}` says nothing: name the thing"),
            ));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;

    #[test]
    fn names_that_say_nothing_are_found() {
        for path in [
            "crates/a/src/utils.rs",
            "crates/a/src/ttl/helpers.rs",
            "crates/a/src/common/key.rs",
            "crates/a/src/types.rs",
            "crates/a/src/ttl/mod.rs",
        ] {
            assert_eq!(check(&sample(path, "")).len(), 1, "{path}");
        }
    }

    #[test]
    fn names_that_say_something_pass() {
        for path in [
            "crates/a/src/ttl.rs",
            "crates/a/src/ttl/view.rs",
            "docs/types.md",
        ] {
            assert!(check(&sample(path, "")).is_empty(), "{path}");
        }
    }
}
