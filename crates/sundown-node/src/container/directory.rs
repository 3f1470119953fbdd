//! The working directory of a command. It is opened once and entered by that descriptor, so that whatever
//! other processes of the container do to the path meanwhile leads nowhere else.

use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{Mode, OFlags, PROC_SUPER_MAGIC, ResolveFlags, fstatfs, open, openat2};
use rustix::io::Errno;

/// Makes a directory of the container the calling thread's own, and creates it if it is missing.
///
/// # Errors
/// It cannot be had, or the path leads through `/proc`: there are links to what processes have open, which
/// may lie outside the container.
pub(super) fn enter(directory: &Path) -> io::Result<()> {
    let opened = match find(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            // Runtimes make a working directory that is missing; where they cannot, the start fails.
            std::fs::create_dir_all(directory)?;
            find(directory)?
        }
        found => found?,
    };
    if fstatfs(&opened)?.f_type == PROC_SUPER_MAGIC {
        return Err(through_proc());
    }
    rustix::process::fchdir(&opened)?;
    // The kernel says so where the way up from it does not end at the root of this process.
    let is_inside = std::env::current_dir().is_ok_and(|it| it.is_absolute());
    if is_inside {
        Ok(())
    } else {
        let _ = std::env::set_current_dir("/");
        Err(io::Error::other("it is not inside the container"))
    }
}

fn find(directory: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let root = open("/", flags, Mode::empty())?;
    let resolve = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
    let opened = openat2(root, directory, flags, Mode::empty(), resolve);
    opened.map_err(|error| match error {
        Errno::LOOP => through_proc(),
        error => error.into(),
    })
}

fn through_proc() -> io::Error {
    io::Error::other("it leads through /proc, or in a circle; name a directory of the container")
}
