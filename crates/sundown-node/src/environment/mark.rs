//! What lies where an environment belongs, and the proof that it is ours. A directory without that proof
//! belongs to the user: it is neither used nor removed.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::lock::lock_file;
use super::recipe::PythonVersion;
use super::sources::Sources;

/// Written last: without it an environment is not whole.
pub(super) const MARK: &str = "sundown.json";

/// Made first and removed last: proves that a directory without a mark is ours.
pub(super) const PROOF: &str = "sundown.made";

/// Follows the name of an environment that another one has taken the place of.
const ASIDE: &str = ".old";

/// How many may be set aside under one name.
const ASIDE_MAX: usize = 100;

/// What an environment was made of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Mark {
    pub(super) requirements: Vec<String>,
    pub(super) python: PythonVersion,
    pub(super) prefix: PathBuf,
    /// Where its packages came from. None: of a version that did not note it, so that it may have come
    /// from anywhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) sources: Option<Vec<String>>,
    /// How much room it took when it was made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) bytes: Option<u64>,
}

impl Mark {
    /// Whether it holds what is wanted.
    pub(super) fn fits(&self, requirements: &[String], sources: &Sources) -> bool {
        self.requirements == requirements && self.sources.as_deref() == Some(sources.list())
    }
}

/// What lies where an environment belongs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Found {
    Nothing,
    /// Not made by us.
    Foreign,
    /// Empty, beside a lock of ours, which is made before the directory and stays: a making or a removal
    /// was interrupted where no proof is inside.
    Empty,
    /// Ours, and not made to its end.
    Unfinished,
    /// Made to its end, but its Python was removed since.
    WithoutPython(Mark),
    Whole(Mark),
}

/// What has to happen with what was found before an environment is made in its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    /// It is there already.
    Take,
    Make,
    /// By a call that fails if it is not empty any more: whose it is was not proven inside of it.
    RemoveEmptyFirst,
    /// Nothing can run in what lies there.
    RemoveFirst,
    /// Pods may still run in it.
    SetAsideFirst,
    Refuse,
}

impl Found {
    /// Looks; does not follow a link.
    pub(super) fn at(path: &Path) -> Self {
        match fs::symlink_metadata(path) {
            Ok(it) if it.is_dir() => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Self::Nothing,
            Ok(_) | Err(_) => return Self::Foreign,
        }
        let text = read_own(&path.join(MARK));
        let mark = text.and_then(|text| serde_json::from_slice::<Mark>(&text).ok());
        match mark {
            Some(mark) if mark.prefix.is_dir() => Self::Whole(mark),
            Some(mark) => Self::WithoutPython(mark),
            None if read_own(&path.join(PROOF)).is_some() => Self::Unfinished,
            None if is_empty(path) && lock_file(path).is_file() => Self::Empty,
            None => Self::Foreign,
        }
    }

    /// Decides for an environment that is wanted there.
    pub(super) fn way(&self, fits: impl Fn(&Mark) -> bool) -> Way {
        match self {
            Self::Nothing => Way::Make,
            Self::Foreign => Way::Refuse,
            Self::Empty => Way::RemoveEmptyFirst,
            Self::Unfinished | Self::WithoutPython(_) => Way::RemoveFirst,
            Self::Whole(mark) if fits(mark) => Way::Take,
            Self::Whole(_) => Way::SetAsideFirst,
        }
    }

    /// Whether we made it.
    pub(super) fn is_ours(&self) -> bool {
        match self {
            Self::Nothing | Self::Foreign => false,
            Self::Empty | Self::Unfinished | Self::WithoutPython(_) | Self::Whole(_) => true,
        }
    }
}

fn is_empty(path: &Path) -> bool {
    fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_none())
}

/// The content of a file that is no link.
fn read_own(path: &Path) -> Option<Vec<u8>> {
    let is_file = fs::symlink_metadata(path).is_ok_and(|it| it.is_file());
    is_file.then(|| fs::read(path).ok()).flatten()
}

/// Makes the directory of an environment, with the proof that it is ours.
pub(super) fn begin(path: &Path) -> io::Result<()> {
    fs::create_dir(path)?;
    prove(path)
}

fn prove(path: &Path) -> io::Result<()> {
    let mut options = OpenOptions::new();
    let made = options.write(true).create_new(true).open(path.join(PROOF));
    match made {
        Ok(mut file) => file.write_all(b"made by sundown env\n"),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(error),
    }
}

/// Says that an environment is whole.
pub(super) fn finish(path: &Path, mark: &Mark) -> io::Result<()> {
    let text = serde_json::to_vec(mark).expect("a mark is plain data");
    let new = path.join(format!("{MARK}.new"));
    fs::write(&new, text)?;
    fs::rename(new, path.join(MARK))
}

/// Removes an environment. The proof goes last, so that the rest of an interrupted removal is ours still;
/// of what is empty the lock tells.
///
/// Assumes: it is ours, and its lock is held.
pub(super) fn remove(path: &Path) -> io::Result<()> {
    prove(path)?;
    // Without its mark it is no environment any more, should the rest be interrupted.
    match fs::remove_file(path.join(MARK)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        Ok(()) | Err(_) => {}
    }
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        if entry.file_name() == PROOF {
            continue;
        }
        sundown_files::remove(path, entry.file_name())?;
    }
    fs::remove_file(path.join(PROOF))?;
    fs::remove_dir(path)
}

/// Removes what an interrupted making or removal left empty.
///
/// Errors: something is in it by now.
pub(super) fn remove_empty(path: &Path) -> io::Result<()> {
    fs::remove_dir(path)
}

/// Moves an environment out of the way of another one. Pods that run in it go on: what is mounted moves
/// along. Before the other one is made, because its scripts hold the path that it is made at: it cannot be
/// made elsewhere and moved.
pub(super) fn set_aside(path: &Path) -> io::Result<PathBuf> {
    let mut names = (1..=ASIDE_MAX).map(|count| {
        let mut name = path.as_os_str().to_owned();
        name.push(ASIDE);
        if count > 1 {
            name.push(count.to_string());
        }
        PathBuf::from(name)
    });
    let free = names.find(|it| {
        let found = fs::symlink_metadata(it);
        found.is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
    });
    let free = free.ok_or_else(|| io::Error::other("too many were set aside already"))?;
    fs::rename(path, &free)?;
    Ok(free)
}

/// Removes what was begun and not finished: nothing can run in it.
///
/// Assumes: its lock is held.
pub(super) fn discard(path: &Path) -> io::Result<()> {
    match Found::at(path) {
        Found::Unfinished => remove(path),
        Found::Empty => remove_empty(path),
        Found::Nothing | Found::Foreign | Found::WithoutPython(_) | Found::Whole(_) => Ok(()),
    }
}

/// Moves what was set aside back to its place, over what was begun there and not finished; unless something
/// else is there by now.
///
/// Assumes: the lock of the place is held.
pub(super) fn put_back(aside: &Path, path: &Path) -> io::Result<()> {
    discard(path)?;
    match Found::at(path) {
        Found::Nothing => fs::rename(aside, path),
        Found::Foreign
        | Found::Empty
        | Found::Unfinished
        | Found::WithoutPython(_)
        | Found::Whole(_) => Ok(()),
    }
}

/// Whether this is the name of one that was set aside.
pub(super) fn is_aside(name: &str) -> bool {
    let count = name.rsplit_once(ASIDE).map(|(_, count)| count);
    count.is_some_and(|it| it.chars().all(|c| c.is_ascii_digit()))
}

/// How much room a directory takes; what cannot be looked at counts for nothing.
pub(super) fn bytes(path: &Path) -> u64 {
    let mut sum = 0;
    let mut left = vec![path.to_owned()];
    while let Some(directory) = left.pop() {
        for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
            match entry.metadata() {
                Ok(it) if it.is_dir() => left.push(entry.path()),
                Ok(it) => sum += it.len(),
                Err(_) => {}
            }
        }
    }
    sum
}

#[cfg(test)]
mod tests;
