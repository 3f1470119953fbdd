//! The one opening of a path that must not lead out of a directory. Which way it may take there is for the
//! callers to say.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

/// How often the kernel may give no answer. It asks to try again when anything on the machine was renamed
/// or mounted while it went through a `..`, so that one answer is rare to miss and many in a row are not
/// chance. A machine on which starts fail with EAGAIN would change our mind.
const TRIES_MAX: usize = 128;

/// Opens a path below a directory, within the bounds that `resolve` names.
///
/// Assumes: nothing is to be made.
/// Errors: `AGAIN` if the kernel could not tell in many tries whether the path stays inside.
pub fn open_scoped(
    directory: impl AsFd,
    path: &Path,
    flags: OFlags,
    resolve: ResolveFlags,
) -> rustix::io::Result<OwnedFd> {
    let directory: BorrowedFd<'_> = directory.as_fd();
    again(|| rustix::fs::openat2(directory, path, flags, Mode::empty(), resolve))
}

/// Repeats what the kernel asks to repeat.
fn again<T>(mut call: impl FnMut() -> rustix::io::Result<T>) -> rustix::io::Result<T> {
    for _ in 1..TRIES_MAX {
        match call() {
            Err(Errno::AGAIN) => {}
            done => return done,
        }
    }
    call()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Renames elsewhere on the machine could fail the start of a container.
    #[test]
    fn a_call_is_repeated_until_the_kernel_answers_and_not_for_ever() {
        for (unanswered, expect, calls_expected) in [
            (0, Ok(7), 1),
            (3, Ok(7), 4),
            (TRIES_MAX - 1, Ok(7), TRIES_MAX),
            (TRIES_MAX, Err(Errno::AGAIN), TRIES_MAX),
        ] {
            let mut calls = 0;
            let answer = again(|| {
                calls += 1;
                if calls <= unanswered {
                    Err(Errno::AGAIN)
                } else {
                    Ok(7)
                }
            });
            assert_eq!((answer, calls), (expect, calls_expected), "{unanswered}");
        }
        let mut calls = 0;
        let refused = again(|| {
            calls += 1;
            Err::<(), _>(Errno::XDEV)
        });
        assert_eq!((refused, calls), (Err(Errno::XDEV), 1));
    }
}
