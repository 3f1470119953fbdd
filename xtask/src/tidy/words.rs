//! Words that must not be committed, in any text file: open ends, machine paths, registry hosts.
//!
//! This file names what it bans, so it is the one that is not searched. Lock files are cargo's.

use super::Finding;
use crate::workspace::TextFile;

const EXEMPT: &[&str] = &[
    "xtask/src/tidy/words.rs",
    "Cargo.lock",
    "xtask/peers/election/Cargo.lock",
];

/// Directories of one machine: another machine has others.
const MACHINE_DIRECTORIES: &[&str] = &["/root/", "/work/"];

/// Registries are used by package name; which mirror serves them is a setting of the machine.
const REGISTRY_HOSTS: &[&str] = &[
    "crates.io",
    "pypi.org",
    "pythonhosted.org",
    "proxy.golang.org",
    "sum.golang.org",
    "registry.npmjs.org",
    "maven.org",
    "maven.apache.org",
    "deb.debian.org",
];

/// Searches every line.
pub(super) fn check(file: &TextFile) -> Vec<Finding> {
    if EXEMPT.contains(&file.path.as_str()) {
        return Vec::new();
    }
    let mut findings = Vec::new();
    for (index, line) in file.text.lines().enumerate() {
        let mut found = |message: String| findings.push(Finding::new(file, index + 1, message));
        if line.contains("FIXME") || line.contains("XXX") {
            found("fix it now or write TODO(#N) with an issue".to_owned());
        }
        if has_bare_todo(line) {
            found("a TODO names its issue: TODO(#N)".to_owned());
        }
        for directory in MACHINE_DIRECTORIES
            .iter()
            .filter(|name| has_path(line, name))
        {
            found(format!("`{directory}` is a path of one machine"));
        }
        for host in REGISTRY_HOSTS.iter().filter(|host| line.contains(**host)) {
            found(format!(
                "`{host}` is the host of a registry: name packages, not hosts"
            ));
        }
    }
    findings
}

fn has_bare_todo(line: &str) -> bool {
    line.match_indices("TODO").any(|(at, word)| {
        let number = line[at + word.len()..]
            .strip_prefix("(#")
            .and_then(|rest| rest.split_once(')'));
        number.is_none_or(|(number, _)| number.parse::<u32>().is_err())
    })
}

/// Whether a line holds an absolute path below the directory, not a part of another path.
fn has_path(line: &str, directory: &str) -> bool {
    line.match_indices(directory).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        let after = line[at + directory.len()..].chars().next();
        !before.is_some_and(is_path_char) && after.is_some_and(is_path_char)
    })
}

fn is_path_char(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '/' | '}' | '~')
}

#[cfg(test)]
mod tests {
    use super::super::{lines, sample};
    use super::*;

    #[track_caller]
    fn expect(line: &str, count: usize) {
        assert_eq!(check(&sample("docs/a.md", line)).len(), count, "{line}");
    }

    #[test]
    fn open_ends_are_found() {
        expect("// FIXME: later", 1);
        expect("// XXX", 1);
        expect("// TODO: later", 1);
        expect("// TODO(later)", 1);
        expect("// TODO(#)", 1);
        expect("// TODO(#12): the barrier on a foreign API server", 0);
    }

    #[test]
    fn machine_paths_are_found() {
        expect("see /root/.cache/x", 1);
        expect("\"/work/main/Cargo.toml\"", 1);
        expect("the pod's /root is a tmpfs", 0);
        expect("https://example.com/work/item and a/root/b", 0);
    }

    #[test]
    fn registry_hosts_are_found() {
        expect("index = \"https://index.crates.io/\"", 1);
        expect("pip install --index-url https://pypi.org/simple x", 1);
    }

    #[test]
    fn a_finding_names_its_line() {
        assert_eq!(lines(&check(&sample("a.sh", "fine\n# FIXME\nfine\n"))), [2]);
    }
}
