//! What lies in the cache of environments, as it is listed and counted. What becomes of it is decided
//! elsewhere.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::limits::Held;
use super::lock::is_being_made;
use super::mark::{self, Found};
use super::sources::Sources;

/// An environment in the cache.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[expect(
    clippy::struct_excessive_bools,
    reason = "what scripts read of `env list -o json`, each for itself"
)]
pub struct Entry {
    pub name: String,
    pub path: PathBuf,
    pub requirements: Vec<String>,
    pub python: String,
    /// Where its packages came from; nothing is known of those that an older version made.
    pub sources: Vec<String>,
    /// How much room it takes, where that was noted.
    pub bytes: Option<u64>,
    /// Whether it was made by Sundown; what was not is left alone.
    pub is_ours: bool,
    /// Whether it was made to its end.
    pub is_whole: bool,
    /// Whether a pod of today may get it: not one of an older version, or one that was replaced.
    pub is_current: bool,
    /// Whether somebody makes it now.
    pub is_being_made: bool,
}

impl Entry {
    fn of(path: PathBuf) -> Self {
        let found = Found::at(&path);
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let name = name.into_owned();
        let is_ours = found.is_ours();
        // A Python that was removed takes its environments with it.
        let mark = match found {
            Found::Whole(mark) => Some(mark),
            Found::Nothing
            | Found::Foreign
            | Found::Empty
            | Found::Unfinished
            | Found::WithoutPython(_) => None,
        };
        let of_mark = mark.as_ref();
        Self {
            is_ours,
            is_whole: mark.is_some(),
            is_current: of_mark.is_some_and(|it| it.sources.is_some()) && !mark::is_aside(&name),
            is_being_made: is_being_made(&path),
            python: of_mark.map_or(String::new(), |mark| {
                format!("{}.{}", mark.python.0, mark.python.1)
            }),
            bytes: of_mark.and_then(|mark| mark.bytes),
            sources: of_mark
                .and_then(|mark| mark.sources.clone())
                .unwrap_or_default(),
            requirements: mark.map(|mark| mark.requirements).unwrap_or_default(),
            name,
            path,
        }
    }

    /// Whether its packages came from elsewhere than the index that pip and uv take by themselves.
    pub fn is_of_another_index(&self) -> bool {
        !self.sources.is_empty() && !Sources::is_usual(&self.sources)
    }
}

/// What is in the cache.
pub(super) fn list(directory: &Path) -> io::Result<Vec<Entry>> {
    let entries = match fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut found = Vec::new();
    for entry in entries {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            found.push(Entry::of(entry.path()));
        }
    }
    found.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(found)
}

/// What takes room, the oldest first.
pub(super) fn held(directory: &Path) -> io::Result<Vec<Held>> {
    let entries = list(directory)?.into_iter().filter(|it| it.is_ours);
    let mut held: Vec<_> = entries
        .map(|it| {
            let changed_at = it.path.metadata().and_then(|it| it.modified()).ok();
            let bytes = it.bytes.unwrap_or_else(|| mark::bytes(&it.path));
            (
                changed_at,
                Held {
                    name: it.name,
                    bytes,
                },
            )
        })
        .collect();
    held.sort_by(|one, other| (one.0, &one.1.name).cmp(&(other.0, &other.1.name)));
    Ok(held.into_iter().map(|(_, held)| held).collect())
}
