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
    /// Locked as long as it is open.
    _lock: File,
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
        let mut lock = options.open(path.join("lock")).map_err(failed)?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let mut pid = String::new();
                // Without the pid the refusal stands all the same.
                let _ = lock.read_to_string(&mut pid);
                return Err(OpenError::InUse {
                    path: path.to_owned(),
                    pid: pid.trim().parse().ok(),
                });
            }
            Err(TryLockError::Error(source)) => return Err(failed(source)),
        }
        let pid = format!("{}\n", std::process::id());
        let told = lock
            .set_len(0)
            .and_then(|()| lock.write_all(pid.as_bytes()));
        told.map_err(failed)?;
        Ok(Self {
            path: path.to_owned(),
            _lock: lock,
        })
    }

    /// Whether there is nothing yet, or only what an interrupted first start left.
    ///
    /// Errors: a newer format, or a format file that is missing or says nothing.
    pub(crate) fn is_new(&self) -> Result<bool, OpenError> {
        if self.creating().exists() {
            return Ok(true);
        }
        let text = match fs::read_to_string(self.format()) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                if !self.database().exists() && !self.high_water().exists() {
                    return Ok(true);
                }
                return Err(self.damage("the file `format` is missing").into());
            }
            Err(error) if error.kind() == io::ErrorKind::InvalidData => String::new(),
            Err(error) => return Err(OpenError::io(&self.path, error)),
        };
        let number = text.trim_end().strip_prefix(FORMAT_WORDS);
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

    /// Removes what an interrupted first start left, and notes that another one begins.
    pub(crate) fn begin_creation(&self) -> io::Result<()> {
        File::create(self.creating())?.sync_all()?;
        if self.database().exists() {
            fs::remove_dir_all(self.database())?;
        }
        Ok(())
    }

    /// Notes that everything is in place.
    pub(crate) fn end_creation(&self) -> io::Result<()> {
        let mut file = File::create(self.format())?;
        file.write_all(format!("{FORMAT_WORDS}{FORMAT}\n").as_bytes())?;
        file.sync_all()?;
        self.sync()?;
        fs::remove_file(self.creating())?;
        self.sync()
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

    pub(crate) fn high_water(&self) -> PathBuf {
        self.path.join("high-water")
    }

    pub(crate) fn aside(&self) -> PathBuf {
        self.path.join("aside")
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

    fn creating(&self) -> PathBuf {
        self.path.join("creating")
    }
}
