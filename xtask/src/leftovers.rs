//! What a control plane and its pods are made of on this machine while they run, and what of it is still
//! there afterwards: processes, namespaces, mounts, network links, files.
//!
//! Only what belongs to one data directory is followed, so that others on the machine do not matter.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};

/// The kinds of namespaces that pods have of their own.
const NAMESPACES: [&str; 6] = ["net", "mnt", "pid", "uts", "ipc", "user"];

/// What was seen of one data directory.
#[derive(Debug)]
pub(crate) struct Trace {
    directory: PathBuf,
    links_before: BTreeSet<String>,
    /// By process id, with the time of its start: ids come again.
    processes: BTreeMap<u32, u64>,
    namespaces: BTreeSet<Namespace>,
    /// By namespace: mounts and links of pods are seen from inside only.
    mounts: BTreeMap<Namespace, usize>,
    links: BTreeMap<Namespace, usize>,
    files: usize,
}

/// A namespace: its kind and its number.
type Namespace = (&'static str, u64);

/// How much there was, or is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Count {
    pub(crate) processes: usize,
    pub(crate) namespaces: usize,
    pub(crate) mounts: usize,
    pub(crate) links: usize,
    pub(crate) files: usize,
}

/// A process as the kernel shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Process {
    id: u32,
    parent: u32,
    started: u64,
    is_root: bool,
}

impl Trace {
    /// Begins before anything runs there.
    pub(crate) fn of(directory: &Path) -> Self {
        Self {
            directory: directory.to_owned(),
            links_before: links(),
            processes: BTreeMap::new(),
            namespaces: BTreeSet::new(),
            mounts: BTreeMap::new(),
            links: BTreeMap::new(),
            files: 0,
        }
    }

    /// Notes what runs now.
    pub(crate) fn look(&mut self) {
        let own: BTreeSet<Namespace> = namespaces_of(std::process::id()).collect();
        for process in descendants(&processes(&self.directory)) {
            self.processes.insert(process.id, process.started);
            let found = namespaces_of(process.id).filter(|it| !own.contains(it));
            for namespace in found {
                self.look_into(process.id, namespace);
            }
        }
        self.files = self.files.max(files(&self.directory));
    }

    /// Notes what there is in a namespace, by one of its processes; the most that was seen counts.
    fn look_into(&mut self, id: u32, namespace: Namespace) {
        self.namespaces.insert(namespace);
        let (counts, found) = match namespace.0 {
            "mnt" => (&mut self.mounts, mounts_in(id, &self.directory)),
            "net" => (&mut self.links, links_in(id)),
            _ => return,
        };
        let count = counts.entry(namespace).or_default();
        *count = found.max(*count);
    }

    /// How much was seen so far.
    pub(crate) fn seen(&self) -> Count {
        Count {
            processes: self.processes.len(),
            namespaces: self.namespaces.len(),
            mounts: self.mounts.values().sum(),
            links: self.links.values().sum(),
            files: self.files,
        }
    }

    /// What of it is there now.
    pub(crate) fn left(&self) -> Count {
        let all = processes(&self.directory);
        let lives = |process: &&Process| {
            process.is_root || self.processes.get(&process.id) == Some(&process.started)
        };
        let held: BTreeSet<Namespace> = all.iter().flat_map(|it| namespaces_of(it.id)).collect();
        Count {
            processes: all.iter().filter(lives).count(),
            namespaces: self.namespaces.intersection(&held).count(),
            mounts: mounts(&self.directory),
            links: links().difference(&self.links_before).count(),
            files: files(&self.directory),
        }
    }

    /// Fails, with the numbers, unless nothing is left.
    pub(crate) fn ensure_nothing_left(&self) -> Result<()> {
        let left = self.left();
        ensure!(
            left == Count::default(),
            "left in {}: {left}",
            self.directory.display()
        );
        Ok(())
    }
}

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            processes,
            namespaces,
            mounts,
            links,
            files,
        } = self;
        write!(
            f,
            "{processes} processes, {namespaces} namespaces, {mounts} mounts, {links} network links, \
             {files} files"
        )
    }
}

/// All processes of the machine; the roots are those that were started with the directory as an argument.
fn processes(directory: &Path) -> Vec<Process> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let ids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    ids.filter_map(|id| process(id, directory)).collect()
}

fn process(id: u32, directory: &Path) -> Option<Process> {
    let (parent, started) =
        parent_and_start(&fs::read_to_string(format!("/proc/{id}/stat")).ok()?)?;
    let arguments = fs::read(format!("/proc/{id}/cmdline")).ok()?;
    let directory = directory.as_os_str().as_encoded_bytes();
    let is_root = id != std::process::id() && holds(&arguments, directory);
    Some(Process {
        id,
        parent,
        started,
        is_root,
    })
}

fn holds(text: &[u8], part: &[u8]) -> bool {
    text.windows(part.len().max(1)).any(|it| it == part)
}

/// The name of a program stands in brackets and may hold anything, brackets too.
fn parent_and_start(stat: &str) -> Option<(u32, u64)> {
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    // A process that has ended and is not yet waited for holds nothing any more.
    if fields.first() == Some(&"Z") {
        return None;
    }
    Some((fields.get(1)?.parse().ok()?, fields.get(19)?.parse().ok()?))
}

/// The roots and all that they started.
fn descendants(all: &[Process]) -> Vec<Process> {
    let mut found: BTreeSet<u32> = all.iter().filter(|it| it.is_root).map(|it| it.id).collect();
    loop {
        let more: Vec<u32> = all
            .iter()
            .filter(|it| found.contains(&it.parent) && !found.contains(&it.id))
            .map(|it| it.id)
            .collect();
        if more.is_empty() {
            break;
        }
        found.extend(more);
    }
    let is_found = |it: &&Process| found.contains(&it.id);
    all.iter().filter(is_found).cloned().collect()
}

fn namespaces_of(id: u32) -> impl Iterator<Item = Namespace> {
    NAMESPACES.into_iter().filter_map(move |kind| {
        let found = fs::metadata(format!("/proc/{id}/ns/{kind}")).ok()?;
        Some((kind, found.ino()))
    })
}

/// Links of a process' network, without the one that every network has.
fn links_in(id: u32) -> usize {
    let text = fs::read_to_string(format!("/proc/{id}/net/dev")).unwrap_or_default();
    let names = text.lines().filter_map(|line| line.split_once(':'));
    names.filter(|(name, _)| name.trim() != "lo").count()
}

fn mounts(directory: &Path) -> usize {
    mounts_in(std::process::id(), directory)
}

/// The mounts that a process sees and that have to do with the directory.
fn mounts_in(id: u32, directory: &Path) -> usize {
    let text = fs::read_to_string(format!("/proc/{id}/mountinfo")).unwrap_or_default();
    let directory = directory.display().to_string();
    text.lines()
        .filter(|line| line.contains(&directory))
        .count()
}

fn links() -> BTreeSet<String> {
    let entries = fs::read_dir("/sys/class/net")
        .into_iter()
        .flatten()
        .flatten();
    entries
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect()
}

/// How many files and directories are inside.
fn files(directory: &Path) -> usize {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let inside = entries.map(|entry| {
        let is_directory = entry.file_type().is_ok_and(|kind| kind.is_dir());
        1 + if is_directory {
            files(&entry.path())
        } else {
            0
        }
    });
    inside.sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    #[test]
    fn a_name_with_brackets_does_not_move_the_fields() {
        let tail = "S 7 1 1 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 4711 1 1";
        let stat = format!("42 (a) b) {tail}");
        assert_eq!(parent_and_start(&stat), Some((7, 4711)));
        assert_eq!(parent_and_start(&stat.replace(") S", ") Z")), None);
    }

    #[test]
    fn children_of_children_belong_to_a_root() {
        let process = |id, parent, is_root| Process {
            id,
            parent,
            started: 0,
            is_root,
        };
        let all = [
            process(4, 3, false),
            process(1, 0, false),
            process(2, 1, true),
            process(3, 2, false),
            process(5, 1, false),
        ];
        let ids: Vec<u32> = descendants(&all).iter().map(|it| it.id).collect();
        assert_eq!(ids, [4, 2, 3]);
    }

    #[test]
    fn what_still_runs_is_counted_and_then_no_longer() {
        let kept = tempfile::tempdir().unwrap();
        let directory = kept.path().join("data");
        let mut trace = Trace::of(&directory);
        // Waits for a line that never comes.
        let mut child = Command::new("sh")
            .args(["-c", "read line", "sh"])
            .arg(&directory)
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        fs::create_dir(&directory).unwrap();
        fs::write(directory.join("file"), "").unwrap();
        trace.look();
        sundown_files::remove(kept.path(), "data").unwrap();
        let (seen, left) = (trace.seen(), trace.left());
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!((seen.processes, left.processes), (1, 1));
        // Files, mounts and links were told as none, because they were never looked at.
        assert_eq!(seen.files, 1);
        trace.ensure_nothing_left().unwrap();
    }
}
