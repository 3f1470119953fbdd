//! Places to mount on, inside a root that is still being built. Links are followed as the container
//! would follow them, never out of the root. Whatever is missing is made; where it cannot be made,
//! because a read-only bind is in the way, the directory is rebuilt entry by entry.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{
    AtFlags, FileType, Mode, OFlags, ResolveFlags, mkdirat, openat, readlinkat, statat, symlinkat,
};
use rustix::io::Errno;

use crate::mounts::{self, MountError, Tmpfs, descriptor_path};

/// Each step makes or follows one name; a path that needs more has links in a circle.
const STEP_COUNT_MAX: usize = 256;

/// A rebuilt directory holds names only, and nothing is written to it.
const REBUILT_BYTES_MAX: u64 = 1 << 20;

/// What a place must be to carry a mount.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Directory,
    File,
}

/// A root that is being built.
#[derive(Debug)]
pub(super) struct Root<'a> {
    pub(super) path: &'a Path,
    pub(super) marker: &'a str,
    /// What stands for directories that were rebuilt, and must become read-only again.
    pub(super) rebuilt: Vec<OwnedFd>,
}

/// A place to mount on.
#[derive(Debug)]
pub(super) struct Place {
    descriptor: OwnedFd,
}

impl Place {
    /// The place itself.
    pub(super) fn descriptor(&self) -> &OwnedFd {
        &self.descriptor
    }

    /// A name of the place for mount calls, valid as long as `self` is.
    pub(super) fn path(&self) -> PathBuf {
        descriptor_path(&self.descriptor)
    }

    /// Where it is in the present mount namespace.
    pub(super) fn real_path(&self) -> io::Result<PathBuf> {
        fs::read_link(self.path())
    }
}

/// The first name on a path that does not exist.
struct Gap {
    directory: OwnedFd,
    name: PathBuf,
    rest: PathBuf,
}

impl Root<'_> {
    /// The place that `path` names inside the root, made if it is missing.
    pub(super) fn place(&mut self, path: &Path, kind: Kind) -> Result<Place, MountError> {
        let mut path = path.to_owned();
        for _ in 0..STEP_COUNT_MAX {
            match self.open(&path) {
                Ok(descriptor) => return Ok(Place { descriptor }),
                Err(Errno::NOENT) => {}
                Err(error) => return Err(MountError::at("find", &path)(error)),
            }
            let gap = self.gap(&path).map_err(MountError::at("find", &path))?;
            if let Some(target) = self.dangling(&gap) {
                path = target;
                continue;
            }
            match gap.fill(kind) {
                // Another container of the pod may have made it meanwhile, in a volume of both.
                Ok(()) | Err(Errno::EXIST) => {}
                Err(Errno::ROFS) => self.rebuild(&gap.directory)?,
                Err(error) => return Err(MountError::at("make", &path)(error)),
            }
        }
        Err(MountError::at("find", &path)(Errno::LOOP))
    }

    fn open(&self, path: &Path) -> Result<OwnedFd, Errno> {
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        let root = rustix::fs::open(self.path, flags | OFlags::DIRECTORY, Mode::empty())?;
        let resolve = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
        sundown_files::open_scoped(root, path, flags, resolve)
    }

    fn gap(&self, path: &Path) -> Result<Gap, Errno> {
        for ancestor in path.ancestors().skip(1) {
            match self.open(ancestor) {
                Ok(directory) => {
                    let below = path.strip_prefix(ancestor).map_err(|_| Errno::INVAL)?;
                    let mut names = below.components();
                    let name = names.next().ok_or(Errno::INVAL)?;
                    return Ok(Gap {
                        directory,
                        name: PathBuf::from(name.as_os_str()),
                        rest: names.as_path().to_owned(),
                    });
                }
                Err(Errno::NOENT) => {}
                Err(error) => return Err(error),
            }
        }
        Err(Errno::NOENT)
    }

    /// Where a link leads whose target is missing, as a path inside the root.
    fn dangling(&self, gap: &Gap) -> Option<PathBuf> {
        let target = readlinkat(&gap.directory, &gap.name, Vec::new()).ok()?;
        let target = PathBuf::from(target.to_str().ok()?);
        let directory = fs::read_link(descriptor_path(&gap.directory)).ok()?;
        let directory = directory.strip_prefix(self.path).ok()?;
        let whole = Path::new("/").join(directory).join(target).join(&gap.rest);
        // An empty rest leaves a trailing slash, which would ask for a directory.
        Some(whole.components().collect())
    }

    /// Puts a tmpfs over a read-only directory and binds its entries into it one by one. The directory may
    /// be a volume in which another container moves things, so that no name is looked up twice: each entry
    /// is what its descriptor stands for.
    fn rebuild(&mut self, directory: &OwnedFd) -> Result<(), MountError> {
        // What was rebuilt before may lie in this directory: its copy would stay writable, as only the
        // original is known at the end.
        self.seal_rebuilt()?;
        let below = descriptor_path(directory);
        let failed = || MountError::at::<io::Error>("rebuild", &below);
        let entries: Vec<_> = fs::read_dir(&below)
            .and_then(Iterator::collect)
            .map_err(failed())?;
        let mode = rustix::fs::fstat(directory).map_or(0o755, |stat| stat.st_mode & 0o7777);
        let tmpfs = Tmpfs::new(self.marker, mode, REBUILT_BYTES_MAX).with_room_for(entries.len());
        let rebuilt = tmpfs.make().map_err(failed())?;
        mounts::attach(&rebuilt, directory).map_err(failed())?;
        for entry in entries {
            show_entry(directory, &rebuilt, &entry.file_name()).map_err(failed())?;
        }
        self.rebuilt.push(rebuilt);
        Ok(())
    }

    /// Makes what was rebuilt read-only.
    pub(super) fn seal_rebuilt(&self) -> Result<(), MountError> {
        let mut rebuilt = self.rebuilt.iter();
        rebuilt.try_for_each(|each| mounts::seal_alone(&descriptor_path(each)))
    }
}

/// Shows one entry of a directory in another one. An entry that has gone is left out.
fn show_entry(from: &OwnedFd, to: &OwnedFd, name: &OsStr) -> io::Result<()> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    // One name of a listing: there is nothing on the way that could be a link.
    let entry = match openat(from, name, flags, Mode::empty()) {
        Err(Errno::NOENT) => return Ok(()),
        opened => opened?,
    };
    let kind = FileType::from_raw_mode(rustix::fs::fstat(&entry)?.st_mode);
    if kind == FileType::Symlink {
        let target = readlinkat(&entry, "", Vec::new())?;
        return Ok(symlinkat(target, to, name)?);
    }
    if kind == FileType::Directory {
        mkdirat(to, name, Mode::from_raw_mode(0o755))?;
    } else {
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
        openat(to, name, flags, Mode::from_raw_mode(0o644))?;
    }
    let tree = mounts::copy_tree(&entry)?;
    mounts::attach(&tree, openat(to, name, flags, Mode::empty())?)
}

impl Gap {
    fn fill(&self, kind: Kind) -> Result<(), Errno> {
        if kind == Kind::Directory || !self.rest.as_os_str().is_empty() {
            return mkdirat(&self.directory, &self.name, Mode::from_raw_mode(0o755));
        }
        // Asked first, because opening a file on a read-only mount may say that it is missing.
        let exists = statat(&self.directory, &self.name, AtFlags::SYMLINK_NOFOLLOW).is_ok();
        let flags = OFlags::CREATE | OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        if exists {
            return Err(Errno::EXIST);
        }
        openat(
            &self.directory,
            &self.name,
            flags,
            Mode::from_raw_mode(0o644),
        )
        .map(drop)
    }
}
