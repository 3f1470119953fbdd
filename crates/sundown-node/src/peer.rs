//! Who is at the other end of a socket of the data directory. Their modes keep other users out; that the
//! kernel is asked as well holds where a directory is not as private as it should be.
//!
//! The numbers are those of the process that asks: the kernel translates them into its user namespace.

use std::io;
use std::os::fd::OwnedFd;

use rustix::process::{Pid, PidfdFlags, pidfd_open};
use tokio::io::unix::AsyncFd;
use tokio::net::UnixStream;

/// The other end belongs to another user.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "the other end of the socket belongs to user {uid}, and only user {own} and root are trusted"
)]
pub struct ForeignPeer {
    /// The user at the other end.
    pub uid: u32,
    /// The user of this process.
    pub own: u32,
}

/// Whether a user may speak to what belongs to another: the user itself may, and root, who could anyway.
pub(crate) fn is_trusted(uid: u32, own: u32) -> bool {
    uid == own || uid == 0
}

/// The user of this process.
pub(crate) fn own_uid() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// Asks the kernel who connected to this socket or listens at it.
///
/// # Errors
/// Another user, told as a [`ForeignPeer`]; or the kernel does not say.
pub fn check_peer(socket: &UnixStream) -> io::Result<()> {
    // Not `rustix`: a process outside of our pid namespace is number 0, which its type cannot hold.
    let (uid, own) = (socket.peer_cred()?.uid(), own_uid());
    if is_trusted(uid, own) {
        return Ok(());
    }
    Err(io::Error::new(
        io::ErrorKind::PermissionDenied,
        ForeignPeer { uid, own },
    ))
}

/// The process at the other end of a socket, held by a descriptor: its number can be given to another.
#[derive(Debug)]
pub struct PeerProcess {
    held: AsyncFd<OwnedFd>,
}

impl PeerProcess {
    /// Takes hold of it, while it still holds its end.
    ///
    /// # Errors
    /// It lies outside of our pid namespace, or has ended.
    pub fn of(socket: &UnixStream) -> io::Result<Self> {
        let pid = socket.peer_cred()?.pid().and_then(Pid::from_raw);
        let pid = pid.ok_or(io::ErrorKind::NotFound)?;
        let held = pidfd_open(pid, PidfdFlags::NONBLOCK)?;
        #[expect(
            deprecated,
            reason = "its successor is unsafe to call, for the sake of types that give away their \
                      descriptor; this one does not"
        )]
        let held = AsyncFd::new(held)?;
        Ok(Self { held })
    }

    /// Returns when it has ended, whether or not its parent has asked how.
    ///
    /// # Errors
    /// The kernel does not say.
    pub async fn ended(&self) -> io::Result<()> {
        self.held.readable().await?.retain_ready();
        Ok(())
    }
}

/// The foreign user that an error of [`check_peer`] tells of.
pub fn foreign_peer(error: &io::Error) -> Option<ForeignPeer> {
    error.get_ref()?.downcast_ref::<ForeignPeer>().copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_own_user_and_root_are_trusted() {
        for (uid, own, expect) in [
            (1000, 1000, true),
            (0, 1000, true),
            (0, 0, true),
            (1001, 1000, false),
            (65534, 1000, false),
            // Root does not trust an answer of another user either.
            (1000, 0, false),
        ] {
            assert_eq!(is_trusted(uid, own), expect, "{uid} {own}");
        }
    }

    #[test]
    fn a_foreign_peer_is_found_in_the_error_that_tells_it() {
        let peer = ForeignPeer { uid: 7, own: 8 };
        let error = io::Error::new(io::ErrorKind::PermissionDenied, peer);
        assert_eq!(foreign_peer(&error), Some(peer));
        let other = io::Error::from(io::ErrorKind::PermissionDenied);
        assert_eq!(foreign_peer(&other), None);
    }
}
