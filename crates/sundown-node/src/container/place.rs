//! Places to mount on, inside a root that is still being built. Links are followed as the container
//! would follow them, never out of the root. Whatever is missing is made; where it cannot be made,
//! because a read-only bind is in the way, the directory is rebuilt entry by entry.

use std::fs;
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{
    AtFlags, Mode, OFlags, ResolveFlags, mkdirat, openat, openat2, readlinkat, statat,
};
use rustix::io::Errno;

use crate::mounts::{self, MountError, Tmpfs};

/// Each step makes or follows one name; a path that needs more has links in a circle.
const STEP_COUNT_MAX: usize = 256;

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
    /// Directories that were rebuilt and must become read-only again.
    pub(super) rebuilt: Vec<PathBuf>,
}

/// A place to mount on.
#[derive(Debug)]
pub(super) struct Place {
    descriptor: OwnedFd,
}

impl Place {
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
                Ok(()) => {}
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
        openat2(root, path, flags, Mode::empty(), resolve)
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

    /// Puts a tmpfs over a read-only directory and binds its entries into it one by one.
    fn rebuild(&mut self, directory: &OwnedFd) -> Result<(), MountError> {
        let below = descriptor_path(directory);
        let real = fs::read_link(&below).map_err(MountError::at("find", &below))?;
        let failed = || MountError::at::<io::Error>("rebuild", &real);
        let entries: Vec<_> = fs::read_dir(&below)
            .and_then(Iterator::collect)
            .map_err(failed())?;
        let mode = rustix::fs::fstat(directory).map_or(0o755, |stat| stat.st_mode & 0o7777);
        let tmpfs = Tmpfs {
            marker: self.marker,
            mode,
            bytes_max: None,
        };
        tmpfs.mount(&below)?;
        for entry in entries {
            let (old, new) = (below.join(entry.file_name()), real.join(entry.file_name()));
            let kind = entry.file_type().map_err(failed())?;
            if kind.is_symlink() {
                let target = fs::read_link(&old).map_err(failed())?;
                std::os::unix::fs::symlink(target, new).map_err(failed())?;
                continue;
            }
            if kind.is_dir() {
                fs::create_dir(&new).map_err(failed())?;
            } else {
                fs::File::create(&new).map_err(failed())?;
            }
            mounts::bind(&old, &new)?;
        }
        self.rebuilt.push(real);
        Ok(())
    }
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

pub(super) fn descriptor_path(descriptor: &OwnedFd) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", descriptor.as_raw_fd()))
}
