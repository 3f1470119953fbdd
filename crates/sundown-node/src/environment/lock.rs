//! The lock of an environment: held by the process that makes or removes it.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

/// Beside the environment, so that it stays when that goes.
pub(super) fn lock_file(path: &Path) -> PathBuf {
    // Not `with_extension`: that would take a part of the version away.
    let mut file = path.as_os_str().to_owned();
    file.push(".lock");
    PathBuf::from(file)
}

pub(super) fn open_lock(path: &Path) -> io::Result<File> {
    let file = lock_file(path);
    // For this user; pods get the environments themselves, which others may read, at places of their own.
    let mut private = fs::DirBuilder::new();
    private.recursive(true).mode(0o700);
    private.create(file.parent().unwrap_or(Path::new("/")))?;
    let mut options = OpenOptions::new();
    options.create(true).write(true).truncate(false).open(file)
}

/// Takes the lock of an environment without waiting; None: somebody has it.
pub(super) fn try_lock(path: &Path) -> io::Result<Option<File>> {
    let file = open_lock(path)?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(Some(file)),
        Err(Errno::WOULDBLOCK) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Whether somebody makes an environment now. Whoever only looks does not disturb others who do.
pub(super) fn is_being_made(path: &Path) -> bool {
    let Ok(file) = File::open(lock_file(path)) else {
        return false;
    };
    matches!(
        flock(&file, FlockOperation::NonBlockingLockShared),
        Err(Errno::WOULDBLOCK)
    )
}
