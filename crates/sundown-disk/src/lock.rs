//! Locks between processes. A use takes a lock for itself; a look shares it for a moment, and can be told
//! from a use by that: a start waits for looks, and is refused by a use at once. What a lock stands for is
//! for the callers to say.

use std::io;
use std::os::fd::AsFd;
use std::time::Duration;

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

/// How often a lock is tried that is held for a moment. With the pause it makes two seconds, and those who
/// hold one for a moment need milliseconds, on a busy machine too.
const TRIES_MAX: usize = 200;
const PAUSE: Duration = Duration::from_millis(10);

/// What stands in the way of a lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Obstacle {
    /// It goes by itself.
    Passing,
    Use,
}

/// Takes a lock for this process alone; false: another process uses what it stands for.
pub(crate) fn take(file: impl AsFd) -> io::Result<bool> {
    Ok(retry(pause, || take_once(&file))?.is_ok())
}

/// Whether another process uses what a lock stands for. A start that comes at this very moment waits.
pub(crate) fn is_taken(file: impl AsFd) -> io::Result<bool> {
    match flock(&file, FlockOperation::NonBlockingLockShared) {
        Ok(()) => {
            flock(&file, FlockOperation::Unlock)?;
            Ok(false)
        }
        Err(Errno::WOULDBLOCK) => Ok(true),
        Err(error) => Err(error.into()),
    }
}

/// Tries until it is done or something stays in the way, and not for ever.
pub(crate) fn retry<T>(
    mut pause: impl FnMut(),
    mut once: impl FnMut() -> io::Result<Result<T, Obstacle>>,
) -> io::Result<Result<T, Obstacle>> {
    for _ in 1..TRIES_MAX {
        match once()? {
            Err(Obstacle::Passing) => pause(),
            done @ (Ok(_) | Err(Obstacle::Use)) => return Ok(done),
        }
    }
    once()
}

/// Until an obstacle may have passed.
pub(crate) fn pause() {
    std::thread::sleep(PAUSE);
}

/// Takes a lock unless something stands in the way now.
pub(crate) fn take_once(file: impl AsFd) -> io::Result<Result<(), Obstacle>> {
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(Ok(())),
        Err(Errno::WOULDBLOCK) if is_taken(&file)? => Ok(Err(Obstacle::Use)),
        Err(Errno::WOULDBLOCK) => Ok(Err(Obstacle::Passing)),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;

    fn open(directory: &tempfile::TempDir) -> File {
        File::open(directory.path()).unwrap()
    }

    /// A process that only asked whether a directory is in use could make the start of another one fail.
    #[test]
    fn a_look_is_waited_for_and_a_use_is_not() {
        let home = tempfile::tempdir().unwrap();
        let ours = open(&home);
        let look = open(&home);
        look.lock_shared().unwrap();
        let mut look = Some(look);
        let taken = retry(|| drop(look.take()), || take_once(&ours)).unwrap();
        assert_eq!((taken, look.is_none()), (Ok(()), true));
        let other = open(&home);
        assert!(is_taken(&other).unwrap());
        let mut pause_count = 0;
        let taken = retry(|| pause_count += 1, || take_once(&other)).unwrap();
        assert_eq!((taken, pause_count), (Err(Obstacle::Use), 0));
        drop(ours);
        assert!(!is_taken(&other).unwrap());
        assert!(take(open(&home)).unwrap(), "a look leaves no lock");
    }

    #[test]
    fn a_look_that_never_ends_is_not_waited_for_for_ever() {
        let home = tempfile::tempdir().unwrap();
        let look = open(&home);
        look.lock_shared().unwrap();
        let mut pause_count = 0;
        let ours = open(&home);
        let taken = retry(|| pause_count += 1, || take_once(&ours)).unwrap();
        assert_eq!(
            (taken, pause_count),
            (Err(Obstacle::Passing), TRIES_MAX - 1)
        );
    }
}
