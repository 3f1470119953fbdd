//! The data directory: its format, its lock, and the places in it. What the files hold is left to
//! those who write them.

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use crate::{Damage, OpenError};

/// The format that this version reads and writes.
const FORMAT: u32 = 1;
const FORMAT_WORDS: &str = "sundown data format ";

/// A directory that no other process uses.
#[derive(Debug)]
pub(crate) struct Directory {
    pub(crate) path: PathBuf,
    /// Locked as long as it is open. None: nobody has ever used the directory.
    _lock: Option<File>,
}

/// A data directory that nobody can start on while this lives.
#[derive(Debug)]
pub struct Hold {
    _directory: Directory,
}

impl Hold {
    /// Takes a directory that is proven to be one of ours by its format; None: there is no data in it.
    ///
    /// Guarantees: nothing in it is changed.
    /// Errors: somebody uses it, or its format is not one that this version knows.
    pub fn take(path: &Path) -> Result<Option<Self>, OpenError> {
        let directory = Directory::look_at(path)?;
        let is_new = directory.is_new()?;
        Ok((!is_new).then_some(Self {
            _directory: directory,
        }))
    }
}

impl Directory {
    /// Takes the directory for this process; makes it if need be.
    pub(crate) fn claim(path: &Path) -> Result<Self, OpenError> {
        let failed = |source| OpenError::io(path, source);
        let mut builder = DirBuilder::new();
        let made = builder.recursive(true).mode(0o700).create(path);
        made.map_err(failed)?;
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        let mut file = options.open(path.join("lock")).map_err(failed)?;
        lock(path, &mut file)?;
        let pid = format!("{}\n", std::process::id());
        let told = file
            .set_len(0)
            .and_then(|()| file.write_all(pid.as_bytes()));
        told.map_err(failed)?;
        Ok(Self {
            path: path.to_owned(),
            _lock: Some(file),
        })
    }

    /// Keeps others out while this process looks, and writes nothing.
    pub(crate) fn look_at(path: &Path) -> Result<Self, OpenError> {
        let file = match File::open(path.join("lock")) {
            Ok(mut file) => {
                lock(path, &mut file)?;
                Some(file)
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(OpenError::io(path, error)),
        };
        Ok(Self {
            path: path.to_owned(),
            _lock: file,
        })
    }

    /// Whether there is nothing yet, or only what an interrupted first start left.
    ///
    /// Errors: a newer format, or a format file that is missing or says nothing.
    pub(crate) fn is_new(&self) -> Result<bool, OpenError> {
        let text = match fs::read_to_string(self.format()) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                if !self.database().exists() {
                    return Ok(true);
                }
                return Err(self.damage("the file `format` is missing").into());
            }
            Err(error) if error.kind() == io::ErrorKind::InvalidData => String::new(),
            Err(error) => return Err(OpenError::io(&self.path, error)),
        };
        let number = text.strip_suffix('\n');
        let number = number.and_then(|it| it.strip_prefix(FORMAT_WORDS));
        match number.and_then(|it| it.parse::<u32>().ok()) {
            Some(FORMAT) => Ok(false),
            Some(found) if found > FORMAT => Err(OpenError::Newer {
                path: self.path.clone(),
                found,
                known: FORMAT,
            }),
            Some(_) | None => Err(self.damage("the file `format` cannot be read").into()),
        }
    }

    /// Notes the format, whole or not at all: from now on the directory is not new.
    pub(crate) fn note_format(&self) -> io::Result<()> {
        let temporary = self.path.join("format.new");
        let mut file = File::create(&temporary)?;
        file.write_all(format!("{FORMAT_WORDS}{FORMAT}\n").as_bytes())?;
        file.sync_all()?;
        fs::rename(&temporary, self.format())?;
        self.sync()
    }

    /// Puts a database that was built into its place; `db` must be free.
    pub(crate) fn install(&self) -> io::Result<()> {
        fs::rename(self.ready(), self.database())?;
        self.sync()
    }

    /// Removes what interrupted starts left, and finishes the step that one of them had begun.
    ///
    /// Assumes: the directory is not new.
    pub(crate) fn tidy(&self) -> io::Result<()> {
        remove(&self.scratch())?;
        remove(&self.building())?;
        match (self.database().exists(), self.ready().exists()) {
            (false, true) => self.install(),
            (true, true) => remove(&self.ready()),
            (_, false) => Ok(()),
        }
    }

    pub(crate) fn sync(&self) -> io::Result<()> {
        File::open(&self.path)?.sync_all()
    }

    /// A place for damaged files that holds none yet.
    pub(crate) fn make_damaged(&self) -> io::Result<PathBuf> {
        let mut number = 1;
        loop {
            let place = self.path.join(format!("damaged-{number}"));
            match fs::create_dir(&place) {
                Ok(()) => return Ok(place),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => number += 1,
                Err(error) => return Err(error),
            }
        }
    }

    pub(crate) fn database(&self) -> PathBuf {
        self.path.join("db")
    }

    /// A new database that is not whole yet.
    pub(crate) fn building(&self) -> PathBuf {
        self.path.join("building")
    }

    /// A new database, whole and synced, that waits to take its place.
    pub(crate) fn ready(&self) -> PathBuf {
        self.path.join("ready")
    }

    /// Where the copy lies that a start looks at.
    pub(crate) fn scratch(&self) -> PathBuf {
        self.path.join("scratch")
    }

    pub(crate) fn high_water(&self) -> PathBuf {
        self.path.join("high-water")
    }

    /// The note of a run that shows some writes before they are synced.
    pub(crate) fn relaxed(&self) -> PathBuf {
        self.path.join("relaxed")
    }

    pub(crate) fn damage(&self, what: impl Into<String>) -> Damage {
        Damage {
            path: self.path.clone(),
            what: what.into(),
            last_good: None,
            acknowledged: None,
        }
    }

    fn format(&self) -> PathBuf {
        self.path.join("format")
    }
}

/// Removes a directory and everything in it, if it is there.
pub(crate) fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

fn lock(path: &Path, file: &mut File) -> Result<(), OpenError> {
    match file.try_lock() {
        Ok(()) => Ok(()),
        Err(TryLockError::WouldBlock) => {
            let mut pid = String::new();
            // Without the pid the refusal stands all the same.
            let _ = file.read_to_string(&mut pid);
            Err(OpenError::InUse {
                path: path.to_owned(),
                pid: pid.trim().parse().ok(),
            })
        }
        Err(TryLockError::Error(source)) => Err(OpenError::io(path, source)),
    }
}
