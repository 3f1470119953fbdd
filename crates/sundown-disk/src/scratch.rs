//! A copy of a database to look at: fjall cuts off what it cannot decode and removes what it does
//! not know, so it opens the original only when the copy has proven sound.
//!
//! What the copy holds is judged by the recovery.

use std::fs::{self, DirBuilder, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use memchr::memmem;
use rustix::fs::SeekFrom as Extent;
use rustix::io::Errno;
use sundown_store::Revision;

use crate::directory::remove;
use crate::record::{Entry, LOG_MAGIC};

/// How tables get into the copy: they are never changed in place, so no byte of them is copied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tables {
    /// By a second name; on the same file system only.
    Linked,
    /// By a pointer: nothing of the original is touched, not even its count of names.
    Pointed,
}

/// The copy, removed when dropped.
#[derive(Debug)]
pub(crate) struct Scratch {
    pub(crate) path: PathBuf,
    /// The newest revision that must have been synced, as the raw journals tell: the one before the
    /// group of any whole record.
    pub(crate) proven: Revision,
}

impl Scratch {
    /// Copies a database to a place that is free.
    pub(crate) fn make(database: &Path, path: &Path, tables: Tables) -> io::Result<Self> {
        let mut scratch = Self {
            path: path.to_owned(),
            proven: Revision::ZERO,
        };
        scratch.copy(database, path, tables)?;
        Ok(scratch)
    }

    fn copy(&mut self, from: &Path, to: &Path, tables: Tables) -> io::Result<()> {
        // Secrets are among the objects, and the copy may lie where others can look.
        DirBuilder::new().mode(0o700).create(to)?;
        let is_tables = from.file_name().is_some_and(|name| name == "tables");
        for entry in fs::read_dir(from)? {
            let entry = entry?;
            let (source, target) = (entry.path(), to.join(entry.file_name()));
            if entry.file_type()?.is_dir() {
                self.copy(&source, &target, tables)?;
            } else if is_tables {
                match tables {
                    Tables::Linked => {
                        // Not every file system knows second names.
                        fs::hard_link(&source, &target)
                            .or_else(|_| fs::copy(&source, &target).map(|_| ()))?;
                    }
                    Tables::Pointed => {
                        std::os::unix::fs::symlink(fs::canonicalize(&source)?, &target)?;
                    }
                }
            } else if source.extension().is_some_and(|it| it == "jnl") {
                self.copy_journal(&source, &target)?;
            } else {
                fs::copy(&source, &target)?;
            }
        }
        Ok(())
    }

    /// Nothing of the format is assumed but that our log records stand in it as they are.
    fn copy_journal(&mut self, from: &Path, to: &Path) -> io::Result<()> {
        let bytes = read_extents(from)?;
        File::create_new(to)?.write_all(&bytes)?;
        for at in memmem::find_iter(&bytes, LOG_MAGIC) {
            if let Some(group) = Entry::group_at(&bytes[at..]) {
                let before = Revision::new(group.number().saturating_sub(1));
                self.proven = self.proven.max(before);
            }
        }
        Ok(())
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if let Err(error) = remove(&self.path) {
            tracing::warn!(%error, path = %self.path.display(), "remove the copy of the database");
        }
    }
}

/// What a file holds up to its last byte that was ever written: fjall makes its journals 64 MiB long
/// in advance.
fn read_extents(path: &Path) -> io::Result<Vec<u8>> {
    let mut file = File::open(path)?;
    let mut bytes = Vec::new();
    let mut at = 0;
    loop {
        let begin = match rustix::fs::seek(&file, Extent::Data(at)) {
            Ok(begin) => begin,
            Err(Errno::NXIO) => return Ok(bytes),
            Err(error) => return Err(error.into()),
        };
        let end = rustix::fs::seek(&file, Extent::Hole(begin))?;
        let too_long = |_| io::Error::from(io::ErrorKind::FileTooLarge);
        bytes.resize(usize::try_from(begin).map_err(too_long)?, 0);
        file.seek(SeekFrom::Start(begin))?;
        (&file).take(end - begin).read_to_end(&mut bytes)?;
        at = end;
    }
}
