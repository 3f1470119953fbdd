//! Descriptors that must not be passed on. What a starter left open (a shell, an IDE, a build) would
//! otherwise be open in every container, and through a directory among them leads a way out.

use std::fs;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};

/// Standard input, output and error are handed over on purpose.
const STANDARD_LAST: RawFd = 2;

/// Closes all descriptors of the calling thread's table but the standard ones and those to keep.
///
/// # Assumes
/// Whatever owns one of the others never uses or closes it again: nothing of this process was made yet, or
/// the table is a copy that belongs to the calling thread alone.
pub(crate) fn close_all_but(kept: &[BorrowedFd<'_>]) -> io::Result<()> {
    let kept: Vec<RawFd> = kept.iter().map(AsRawFd::as_raw_fd).collect();
    for number in open_numbers()? {
        if number > STANDARD_LAST && !kept.contains(&number) {
            // The list itself was read through one that is closed already.
            let _ = nix::unistd::close(number);
        }
    }
    Ok(())
}

fn open_numbers() -> io::Result<Vec<RawFd>> {
    let mut numbers = Vec::new();
    for entry in fs::read_dir("/proc/thread-self/fd")? {
        let name = entry?.file_name();
        numbers.extend(name.to_str().and_then(|name| name.parse::<RawFd>().ok()));
    }
    Ok(numbers)
}
