//! What a reset removes: entries of a proven data directory that have a name and a sort that Sundown
//! gives. Pure, so that what must never go can be tested without a removal.

use std::path::Path;

/// How every data directory begins to tell its format.
const FORMAT_WORDS: &str = "sundown data format ";

/// Files that Sundown makes right in its data directory.
const FILES: &[&str] = &[
    "control.sock",
    "format",
    "format.new",
    "high-water",
    "identity.json",
    "kubeconfig",
    "lock",
    "node.sock",
    "port",
    "relaxed",
    "room",
    "up.log",
    "up.log.1",
];

/// Directories that Sundown makes there.
const DIRECTORIES: &[&str] = &["building", "db", "node", "ready", "scratch"];

/// Removed last, in this order: while the format is there an interrupted reset can be repeated, and
/// while the lock is there nobody starts on what is left.
const LAST: [&str; 2] = ["format", "lock"];

/// What an entry of a directory is, itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Sort {
    /// Sockets as well.
    File,
    Directory,
    Link,
}

/// An entry of the data directory.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Entry {
    pub(super) name: String,
    pub(super) sort: Sort,
}

/// What is removed, in this order, and what stays.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Plan {
    pub(super) remove: Vec<Entry>,
    pub(super) keep: Vec<String>,
}

/// Why nothing is removed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum Refusal {
    #[error("this is no data directory of Sundown: its file `format` says something else")]
    Foreign,
    #[error("something is mounted below it: {0}")]
    Mounted(String),
}

/// Decides what is removed. None: there is no data of ours, so nothing is.
pub(super) fn decide(
    directory: &Path,
    format: Option<&str>,
    entries: &[Entry],
    mounts: &str,
) -> Result<Option<Plan>, Refusal> {
    let Some(format) = format else {
        return Ok(None);
    };
    if !format.starts_with(FORMAT_WORDS) {
        return Err(Refusal::Foreign);
    }
    // A mount would be emptied with the directory that carries it.
    if let Some(mount) = mount_below(directory, mounts) {
        return Err(Refusal::Mounted(mount));
    }
    let (ours, others): (Vec<&Entry>, Vec<&Entry>) = entries.iter().partition(|it| is_ours(it));
    let rank = |entry: &Entry| LAST.iter().position(|name| *name == entry.name);
    let mut remove: Vec<Entry> = ours.into_iter().cloned().collect();
    remove.sort_by_key(|entry| rank(entry).map_or(0, |rank| rank + 1));
    Ok(Some(Plan {
        remove,
        keep: others.into_iter().map(|it| it.name.clone()).collect(),
    }))
}

fn is_ours(entry: &Entry) -> bool {
    match entry.sort {
        Sort::File => FILES.contains(&&*entry.name),
        Sort::Directory => DIRECTORIES.contains(&&*entry.name) || is_damaged(&entry.name),
        // Sundown makes none.
        Sort::Link => false,
    }
}

/// Where damaged files were put: `damaged-1` and so on.
fn is_damaged(name: &str) -> bool {
    let number = name.strip_prefix("damaged-").unwrap_or_default();
    !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
}

/// A mount point inside the directory, by the kernel's table.
fn mount_below(directory: &Path, mounts: &str) -> Option<String> {
    let points = mounts.lines().filter_map(|line| line.split(' ').nth(4));
    // The table writes spaces as octal escapes.
    let mut points = points.map(|point| point.replace("\\040", " "));
    points.find(|point| Path::new(point).starts_with(directory) && Path::new(point) != directory)
}

/// Whether an answer agrees.
pub(super) fn is_yes(answer: &str) -> bool {
    ["y", "yes"].contains(&&*answer.trim().to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    const FORMAT: &str = "sundown data format 1\n";
    const MOUNTS: &str =
        "22 1 0:20 / / rw - ext4 /dev/x rw\n23 22 0:21 / /proc rw - proc proc rw\n";

    fn entry(name: &str, sort: Sort) -> Entry {
        let name = name.to_owned();
        Entry { name, sort }
    }

    fn names(plan: &Plan) -> Vec<&str> {
        plan.remove.iter().map(|it| &*it.name).collect()
    }

    #[test]
    fn only_known_names_of_the_right_sort_go_and_the_proof_goes_last() {
        let entries = [
            entry("damaged-2", Sort::Directory),
            entry("damaged-x", Sort::Directory),
            entry("db", Sort::Directory),
            entry("etc", Sort::Directory),
            entry("format", Sort::File),
            entry("identity.json", Sort::File),
            entry("lock", Sort::File),
            entry("node", Sort::Link),
            entry("port", Sort::Directory),
            entry("thesis.pdf", Sort::File),
        ];
        let plan = decide(Path::new("/d"), Some(FORMAT), &entries, MOUNTS);
        let plan = plan.unwrap().unwrap();
        let expect = ["damaged-2", "db", "identity.json", "format", "lock"];
        assert_eq!(names(&plan), expect);
        assert_eq!(
            plan.keep,
            ["damaged-x", "etc", "node", "port", "thesis.pdf"]
        );
    }

    #[test]
    fn a_directory_without_proof_is_left_alone() {
        let root = [entry("etc", Sort::Directory), entry("db", Sort::Directory)];
        let none = decide(Path::new("/"), None, &root, MOUNTS);
        assert_eq!(none, Ok(None));
        let foreign = decide(Path::new("/d"), Some("ext4\n"), &root, MOUNTS);
        assert_eq!(foreign, Err(Refusal::Foreign));
        let mounts = format!("{MOUNTS}24 22 0:9 / /d/node/a\\040b rw - tmpfs x rw\n");
        let mounted = decide(Path::new("/d"), Some(FORMAT), &root, &mounts);
        assert_eq!(mounted, Err(Refusal::Mounted("/d/node/a b".to_owned())));
    }

    #[test]
    fn only_a_clear_yes_is_one() {
        for answer in ["y\n", "YES\n", " yes "] {
            assert!(is_yes(answer), "{answer}");
        }
        for answer in ["", "\n", "n\n", "yeah\n"] {
            assert!(!is_yes(answer), "{answer}");
        }
    }
}
