//! The one removal of directories. What it removes lies in a directory that the caller has proven and that
//! is held open: never behind a link, never in another mount, at any depth, with a few descriptors.
//!
//! A function that calls itself would need stack and a descriptor for each level, and a pod can make
//! more levels in a second than either lasts. Here deep directories are moved up to the top instead.

use std::ffi::{CStr, CString, OsStr};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, RawDir, ResolveFlags, SeekFrom};
use rustix::io::Errno;

use crate::open_scoped;

/// How many levels are open at once, with a descriptor each. Fewer would mean more moves of deep ones.
const DEPTH_MAX: usize = 16;

/// What one call of the kernel lists: a few hundred names.
const LIST_BYTES: usize = 8 * 1024;

/// How often a directory may hold something again after everything in it went. A list that jumps over
/// entries takes a few; more means that a process writes faster than we remove.
const REFILL_COUNT_MAX: usize = 100;

/// How many directories are moved up in one removal. Each stands for as many levels as are open at once,
/// and a pod that makes them faster than they go must not keep us for ever. What is left goes when the
/// removal is repeated.
const LIFT_COUNT_MAX: u64 = 10_000_000;

/// Nothing on the way may be a link or a mount, or lead out of where it began.
const INSIDE: ResolveFlags = ResolveFlags::BENEATH
    .union(ResolveFlags::NO_XDEV)
    .union(ResolveFlags::NO_SYMLINKS)
    .union(ResolveFlags::NO_MAGICLINKS);

const DIRECTORY: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::CLOEXEC);

/// A directory that is held open: whatever becomes of its name, removals stay inside of it.
#[derive(Debug)]
pub struct Root {
    directory: OwnedFd,
    path: PathBuf,
}

impl Root {
    /// Holds a directory.
    ///
    /// Assumes: the caller has proven that what lies in it may be removed.
    pub fn open(path: &Path) -> io::Result<Self> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory = rustix::fs::open(path, flags, Mode::empty())?;
        let path = path.to_owned();
        Ok(Self { directory, path })
    }

    /// A directory that is open already; the path is told in errors only.
    pub fn held(directory: OwnedFd, path: &Path) -> Self {
        let path = path.to_owned();
        Self { directory, path }
    }

    /// Removes what a path inside leads to, with everything in it; not finding it is success.
    ///
    /// Guarantees: nothing outside of the held directory is touched, and nothing in another mount.
    /// Errors: the first that stands in the way, named; what was removed before stays removed.
    pub fn remove(&self, inside: &Path) -> io::Result<()> {
        let is_plain = |part| matches!(part, Component::Normal(_));
        let name = inside
            .file_name()
            .filter(|_| inside.components().all(is_plain));
        let Some(name) = name else {
            let message = format!(
                "{} does not name anything inside of a directory",
                inside.display()
            );
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        };
        let at = self.path.join(inside);
        let parent = inside.parent().filter(|parent| *parent != Path::new(""));
        let parent = match parent.map(|parent| open(self.directory.as_fd(), parent)) {
            None => None,
            Some(Ok(parent)) => Some(parent),
            Some(Err(Errno::NOENT)) => return Ok(()),
            Some(Err(error)) => return Err(named(&at, error)),
        };
        let parent = parent.as_ref().unwrap_or(&self.directory).as_fd();
        remove_entry(parent, &c_string(name)?, &at)
    }
}

/// Removes what has a name in a directory, with everything in it; not finding either is success.
pub fn remove(parent: &Path, name: impl AsRef<Path>) -> io::Result<()> {
    match Root::open(parent) {
        Ok(root) => root.remove(name.as_ref()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

fn open(parent: BorrowedFd<'_>, path: &Path) -> rustix::io::Result<OwnedFd> {
    open_scoped(parent, path, DIRECTORY, INSIDE)
}

fn remove_entry(parent: BorrowedFd<'_>, name: &CStr, at: &Path) -> io::Result<()> {
    match rustix::fs::unlinkat(parent, name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        // Some file systems say the second of a directory.
        Err(Errno::ISDIR | Errno::PERM) => remove_tree(parent, name, at, &remove_directory),
        Err(error) => Err(named(at, error)),
    }
}

/// A directory that is being emptied. The place in its list is kept by its descriptor.
struct Level {
    directory: OwnedFd,
    name: CString,
    /// Directories that were listed and are still to be emptied.
    pending: Vec<CString>,
    refills: Refills,
}

/// How often a directory was not empty after everything in it went, for no reason of ours.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Refills {
    count: usize,
    /// How many directories we had moved there when it was last looked through.
    lifted: u64,
}

impl Refills {
    /// Counts one more; None: it is given up.
    fn next(self, lifted: u64) -> Option<Self> {
        // We put something there ourselves.
        let is_ours = lifted > self.lifted;
        let count = if is_ours { 0 } else { self.count + 1 };
        (count <= REFILL_COUNT_MAX).then_some(Self { count, lifted })
    }
}

fn remove_directory(parent: BorrowedFd<'_>, name: &CStr) -> rustix::io::Result<()> {
    rustix::fs::unlinkat(parent, name, AtFlags::REMOVEDIR)
}

/// Removes a directory with everything in it, each of them by `remove_empty`, once it is empty.
fn remove_tree(
    parent: BorrowedFd<'_>,
    name: &CStr,
    at: &Path,
    remove_empty: &dyn Fn(BorrowedFd<'_>, &CStr) -> rustix::io::Result<()>,
) -> io::Result<()> {
    let Some(top) = Level::open(parent, name).map_err(|error| named(at, error))? else {
        return Ok(());
    };
    let mut stack = vec![top];
    let mut moved = 0_u64;
    while let Some(mut level) = stack.pop() {
        let failed = |stack: &[Level], level: &Level, name: Option<&CStr>, error| {
            named(&place(at, stack, level, name), error)
        };
        let next = level.next();
        let next = next.map_err(|(name, error)| failed(&stack, &level, name.as_deref(), error))?;
        if let Some(child) = next {
            if stack.len() + 1 < DEPTH_MAX {
                let opened = Level::open(level.directory.as_fd(), &child);
                let opened = opened.map_err(|error| failed(&stack, &level, Some(&child), error))?;
                stack.push(level);
                stack.extend(opened);
            } else {
                let top = &stack[0].directory;
                let lifted = lift(&level.directory, &child, top, &mut moved);
                lifted.map_err(|error| failed(&stack, &level, Some(&child), error))?;
                stack.push(level);
            }
            continue;
        }
        let above = stack.last().map_or(parent, |above| above.directory.as_fd());
        match remove_empty(above, &level.name) {
            Ok(()) | Err(Errno::NOENT) => {}
            // Directories were moved here, the list jumped over entries while others went, or a process
            // writes there.
            Err(Errno::NOTEMPTY | Errno::EXIST) => {
                let lifted_here = if stack.is_empty() { moved } else { 0 };
                let refills = level.refills.next(lifted_here);
                let refills = refills.ok_or_else(|| failed(&stack, &level, None, Errno::NOTEMPTY));
                level.refills = refills?;
                let rewound = rustix::fs::seek(&level.directory, SeekFrom::Start(0));
                rewound.map_err(|error| failed(&stack, &level, None, error))?;
                stack.push(level);
            }
            Err(error) => return Err(failed(&stack, &level, None, error)),
        }
    }
    Ok(())
}

impl Level {
    /// None: it is gone.
    fn open(parent: BorrowedFd<'_>, name: &CStr) -> rustix::io::Result<Option<Self>> {
        let path = Path::new(OsStr::from_bytes(name.to_bytes()));
        let opened = match open(parent, path) {
            Err(Errno::ACCESS) => {
                let_owner_in(parent, path)?;
                open(parent, path)
            }
            opened => opened,
        };
        let directory = match opened {
            Ok(directory) => directory,
            Err(Errno::NOENT) => return Ok(None),
            Err(error) => return Err(error),
        };
        let found = rustix::fs::fstat(&directory)?;
        if lacks_rights(&found) {
            rustix::fs::fchmod(&directory, Mode::RWXU)?;
        }
        Ok(Some(Self {
            directory,
            name: name.to_owned(),
            pending: Vec::new(),
            refills: Refills::default(),
        }))
    }

    /// Removes what is no directory, up to the next directory; None: the list is at its end.
    ///
    /// Errors: with the name of the entry that does not go.
    fn next(&mut self) -> Result<Option<CString>, (Option<CString>, Errno)> {
        let mut bytes = [MaybeUninit::uninit(); LIST_BYTES];
        while self.pending.is_empty() {
            let mut list = RawDir::new(&self.directory, &mut bytes);
            let mut is_at_end = true;
            while let Some(entry) = list.next() {
                let entry = match entry {
                    // Another removal of the same was faster.
                    Err(Errno::NOENT) => break,
                    entry => entry.map_err(|error| (None, error))?,
                };
                is_at_end = false;
                let name = entry.file_name();
                if name != c"." && name != c".." {
                    let failed = |error| (Some(name.to_owned()), error);
                    if is_directory(&self.directory, name, entry.file_type()).map_err(failed)? {
                        self.pending.push(name.to_owned());
                    } else {
                        match rustix::fs::unlinkat(&self.directory, name, AtFlags::empty()) {
                            Ok(()) | Err(Errno::NOENT) => {}
                            Err(error) => return Err(failed(error)),
                        }
                    }
                }
                if list.is_buffer_empty() {
                    break;
                }
            }
            if is_at_end {
                return Ok(None);
            }
        }
        Ok(self.pending.pop())
    }
}

/// Not every file system tells what its entries are.
fn is_directory(directory: &OwnedFd, name: &CStr, told: FileType) -> rustix::io::Result<bool> {
    if told != FileType::Unknown {
        return Ok(told == FileType::Directory);
    }
    match rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(found) => Ok(FileType::from_raw_mode(found.st_mode) == FileType::Directory),
        Err(Errno::NOENT) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Moves a directory to the top of what is being removed, where it is found again.
fn lift(from: &OwnedFd, name: &CStr, top: &OwnedFd, moved: &mut u64) -> rustix::io::Result<()> {
    // A directory that moves is written to: it points to where it lies.
    let_owner_in(from.as_fd(), Path::new(OsStr::from_bytes(name.to_bytes())))?;
    while *moved < LIFT_COUNT_MAX {
        *moved += 1;
        // Everything there is to be removed: an empty directory of this name may be replaced.
        match rustix::fs::renameat(from, name, top, format!(".removing-{moved}")) {
            Err(Errno::NOTEMPTY | Errno::EXIST | Errno::NOTDIR) => {}
            Err(Errno::NOENT) | Ok(()) => return Ok(()),
            Err(error) => return Err(error),
        }
    }
    Err(Errno::NOTEMPTY)
}

/// A container can take the rights to a directory from its owner, who takes them back here.
fn let_owner_in(parent: BorrowedFd<'_>, path: &Path) -> rustix::io::Result<()> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let directory = match open_scoped(parent, path, flags, INSIDE) {
        Ok(directory) => directory,
        Err(Errno::NOENT) => return Ok(()),
        Err(error) => return Err(error),
    };
    if !lacks_rights(&rustix::fs::fstat(&directory)?) {
        return Ok(());
    }
    // By descriptor: the kernel changes modes only of files that are open for more than a look.
    let itself = format!("/proc/self/fd/{}", directory.as_raw_fd());
    rustix::fs::chmodat(CWD, itself, Mode::RWXU, AtFlags::empty())
}

fn lacks_rights(found: &rustix::fs::Stat) -> bool {
    let is_ours = found.st_uid == rustix::process::geteuid().as_raw();
    is_ours && !Mode::from_raw_mode(found.st_mode).contains(Mode::RWXU)
}

/// Where the trouble is, for people: what was moved up is told where it lies now.
fn place(at: &Path, stack: &[Level], level: &Level, name: Option<&CStr>) -> PathBuf {
    let levels = stack
        .iter()
        .chain([level])
        .skip(1)
        .map(|it| it.name.as_c_str());
    let names = levels.chain(name);
    let mut path = at.to_owned();
    path.extend(names.map(|name| OsStr::from_bytes(name.to_bytes())));
    path
}

fn named(path: &Path, error: Errno) -> io::Error {
    let path = path.display();
    let message = match error {
        Errno::XDEV | Errno::BUSY => format!("{path} is a mount, which is left alone: unmount it"),
        Errno::LOOP => format!("{path} lies behind a link, which is not followed"),
        Errno::NOTEMPTY => format!(
            "{path} is filled again while it is removed: end the process that writes there, and try again"
        ),
        _ => format!("{path}: {}", io::Error::from(error)),
    };
    io::Error::new(io::Error::from(error).kind(), message)
}

fn c_string(name: &OsStr) -> io::Result<CString> {
    CString::new(name.as_bytes()).map_err(|_| io::ErrorKind::InvalidInput.into())
}

#[cfg(test)]
mod tests;
