//! A directory that is held open and locked: what is seen of it, and the few things that are done at its
//! top. All by descriptor: no name of it is resolved twice, and no link in it is followed.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::{
    AtFlags, Dir, FileType, Mode, OFlags, RenameFlags, fstat, openat, renameat, renameat_with,
    statat, unlinkat,
};
use rustix::io::Errno;
use sundown_files::{Sort, Us};

use crate::claim::{Entry, FORMAT_FILE, Place, STARTING, STATE, Seen, mark};
use crate::lock;

/// No proof and no mark is longer.
const TEXT_BYTES_MAX: u64 = 256;

const LOOK: OFlags = OFlags::RDONLY
    .union(OFlags::NOFOLLOW)
    .union(OFlags::NONBLOCK)
    .union(OFlags::CLOEXEC);

/// Looks at a path. Nothing is changed.
pub(crate) fn look(path: &Path) -> io::Result<Seen> {
    let path = normal(path)?;
    let place = match open(&path) {
        Ok(directory) => Some(look_inside(&directory)?),
        Err(Errno::NOENT) => None,
        // A link, a file, or a directory that we may not even list.
        Err(_) => Some(look_outside(&path)?),
    };
    seen(&path, place)
}

/// The path as it is held: absolute, without a last part that only says "here".
pub(crate) fn normal(path: &Path) -> io::Result<PathBuf> {
    // A slash at the end would follow a link; the parts have none.
    let path: PathBuf = std::path::absolute(path)?.components().collect();
    match path.file_name() {
        Some(_) => Ok(path),
        None => path.canonicalize(),
    }
}

fn open(path: &Path) -> rustix::io::Result<OwnedFd> {
    rustix::fs::open(path, LOOK | OFlags::DIRECTORY, Mode::empty())
}

fn seen(path: &Path, place: Option<Place>) -> io::Result<Seen> {
    let identity = |path: &Path| path.metadata().ok().map(|it| (it.dev(), it.ino()));
    let is_same = |other: &Path| {
        let other = identity(other);
        other.is_some() && identity(path) == other
    };
    let home = std::env::var_os("HOME").filter(|home| !home.is_empty());
    Ok(Seen {
        us: Us::now(),
        is_root: is_same(Path::new("/")),
        is_home: home.is_some_and(|home| is_same(Path::new(&home))),
        way: match path.parent() {
            Some(parent) => sundown_files::way(parent)?,
            None => Vec::new(),
        },
        place,
    })
}

fn look_outside(path: &Path) -> io::Result<Place> {
    let found = path.symlink_metadata()?;
    Ok(Place {
        sort: sort(FileType::from_raw_mode(found.mode())),
        owner: found.uid(),
        mode: found.mode(),
        entries: Vec::new(),
        format: None,
        starting: None,
        inside: Vec::new(),
    })
}

fn look_inside(directory: &OwnedFd) -> io::Result<Place> {
    let found = fstat(directory)?;
    let entries = list(directory)?;
    let inside = match openat(directory, STATE, LOOK | OFlags::DIRECTORY, Mode::empty()) {
        Ok(state) => list(&state)?,
        // Missing, or something else, as the entries tell.
        Err(_) => Vec::new(),
    };
    Ok(Place {
        sort: Sort::Directory,
        owner: found.st_uid,
        mode: found.st_mode,
        entries,
        format: text(directory, FORMAT_FILE)?,
        starting: text(directory, STARTING)?,
        inside,
    })
}

fn list(directory: &OwnedFd) -> io::Result<Vec<Entry>> {
    let mut found = Vec::new();
    for entry in Dir::read_from(directory)? {
        let entry = entry?;
        let name = entry.file_name();
        if name == c"." || name == c".." {
            continue;
        }
        let metadata = match statat(directory, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(metadata) => metadata,
            // Gone meanwhile.
            Err(Errno::NOENT) => continue,
            Err(error) => return Err(error.into()),
        };
        found.push(Entry {
            name: name.to_string_lossy().into_owned(),
            sort: sort(FileType::from_raw_mode(metadata.st_mode)),
            owner: metadata.st_uid,
            mode: metadata.st_mode,
        });
    }
    found.sort();
    Ok(found)
}

fn sort(kind: FileType) -> Sort {
    match kind {
        FileType::Directory => Sort::Directory,
        FileType::Symlink => Sort::Link,
        _ => Sort::File,
    }
}

/// What a small file says; None: there is none, it is a link or no file, or no text.
fn text(directory: &OwnedFd, name: &str) -> io::Result<Option<String>> {
    let file = match openat(directory, name, LOOK, Mode::empty()) {
        Ok(file) => File::from(file),
        Err(Errno::NOENT | Errno::LOOP | Errno::NXIO) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    if !file.metadata()?.is_file() {
        return Ok(None);
    }
    let mut bytes = Vec::new();
    file.take(TEXT_BYTES_MAX).read_to_end(&mut bytes)?;
    Ok(Some(String::from_utf8_lossy(&bytes).into_owned()))
}

/// A directory that no other process of this machine claims.
#[derive(Debug)]
pub(crate) struct Held {
    pub(crate) path: PathBuf,
    directory: OwnedFd,
}

impl Held {
    /// Makes a directory and those above it, for its owner only.
    pub(crate) fn make(path: &Path) -> io::Result<()> {
        let mut builder = std::fs::DirBuilder::new();
        builder.recursive(true).mode(0o700).create(normal(path)?)
    }

    /// Holds and locks a directory; None: another process has it, or looks at it. Nothing in it is changed.
    pub(crate) fn take(path: &Path) -> io::Result<Option<Self>> {
        let path = normal(path)?;
        let directory = open(&path)?;
        let is_ours = lock::take_once(&directory)?.is_ok();
        Ok(is_ours.then_some(Self { path, directory }))
    }

    /// Whether another process has a directory.
    pub(crate) fn is_taken(path: &Path) -> io::Result<bool> {
        lock::is_taken(open(&normal(path)?)?)
    }

    /// What is held, whatever has become of its name.
    pub(crate) fn look(&self) -> io::Result<Seen> {
        seen(&self.path, Some(look_inside(&self.directory)?))
    }

    /// Closes it to all others.
    pub(crate) fn close(&self) -> io::Result<()> {
        if fstat(&self.directory)?.st_mode & 0o077 != 0 {
            rustix::fs::fchmod(&self.directory, Mode::RWXU)?;
        }
        Ok(())
    }

    /// Writes the mark, which must not be there.
    pub(crate) fn mark(&self) -> io::Result<()> {
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mode = Mode::RUSR | Mode::WUSR;
        let mut file = File::from(openat(&self.directory, STARTING, flags, mode)?);
        let written = file
            .write_all(mark().as_bytes())
            .and_then(|()| file.sync_all());
        if written.is_err() {
            // Half a mark proves nothing, and would keep everybody out: ours was just made.
            let _ = rustix::fs::unlinkat(&self.directory, STARTING, AtFlags::empty());
        }
        written?;
        self.sync()
    }

    /// Makes the place of the state, unless it is there.
    pub(crate) fn make_state(&self) -> io::Result<()> {
        match rustix::fs::mkdirat(&self.directory, STATE, Mode::RWXU) {
            Ok(()) => self.sync(),
            Err(Errno::EXIST) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// The mark becomes the proof.
    pub(crate) fn prove(&self) -> io::Result<()> {
        renameat(&self.directory, STARTING, &self.directory, FORMAT_FILE)?;
        self.sync()
    }

    /// The proof becomes a mark: nothing in the state is needed any more.
    pub(crate) fn disprove(&self) -> io::Result<()> {
        renameat(&self.directory, FORMAT_FILE, &self.directory, STARTING)?;
        self.sync()
    }

    /// Renames an entry into the state, where its name must be free.
    pub(crate) fn take_in(&self, name: &str) -> io::Result<()> {
        let state = self.state()?;
        let moved = renameat_with(&self.directory, name, &state, name, RenameFlags::NOREPLACE);
        match moved {
            // Not every file system knows the flag.
            Err(Errno::INVAL) => match statat(&state, name, AtFlags::SYMLINK_NOFOLLOW) {
                Err(Errno::NOENT) => Ok(renameat(&self.directory, name, &state, name)?),
                Ok(_) => Err(io::ErrorKind::AlreadyExists.into()),
                Err(error) => Err(error.into()),
            },
            moved => Ok(moved?),
        }
    }

    fn state(&self) -> io::Result<OwnedFd> {
        Ok(openat(
            &self.directory,
            STATE,
            LOOK | OFlags::DIRECTORY,
            Mode::empty(),
        )?)
    }

    /// Removes the state, then the mark, then the directory itself if nothing else is in it.
    ///
    /// Assumes: the directory is disproved.
    pub(crate) fn clear(&self) -> io::Result<()> {
        sundown_files::Root::held(self.directory.try_clone()?, &self.path)
            .remove(Path::new(STATE))?;
        match unlinkat(&self.directory, STARTING, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(error) => return Err(error.into()),
        }
        self.sync()?;
        // Not empty: something of the user's stays, and the directory with it.
        let _ = std::fs::remove_dir(&self.path);
        Ok(())
    }

    pub(crate) fn sync(&self) -> io::Result<()> {
        Ok(rustix::fs::fsync(&self.directory)?)
    }
}
