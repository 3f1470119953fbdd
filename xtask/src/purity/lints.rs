//! Whether the lints that guard a pure crate still stand. What they forbid, clippy judges.

use crate::source;

const WILDCARD_DENIED: &str = "#![deny(clippy::wildcard_enum_match_arm)]";

/// A pure crate keeps the template as it is.
pub(super) fn clippy_toml(name: &str, text: &str, template: &str) -> Option<String> {
    (text != template).then(|| {
        format!("crates/{name}/clippy.toml: differs from crates/sundown-model/clippy.toml")
    })
}

/// The template repeats the settings of the root file, because it replaces that file.
pub(super) fn template(root: &str, template: &str) -> Vec<String> {
    let is_setting =
        |line: &&str| line.contains(" = ") && !line.starts_with([' ', '#']) && !line.ends_with('[');
    root.lines()
        .filter(is_setting)
        .filter(|setting| !template.lines().any(|line| line == *setting))
        .map(|setting| format!("crates/sundown-model/clippy.toml: lacks the root's `{setting}`"))
        .collect()
}

/// A pure crate lists the variants of its own enums.
pub(super) fn lib_rs(name: &str, text: &str) -> Option<String> {
    let stands = source::code_only(text)
        .lines()
        .any(|line| line.trim() == WILDCARD_DENIED);
    (!stands).then(|| format!("crates/{name}/src/lib.rs: lacks {WILDCARD_DENIED}"))
}
