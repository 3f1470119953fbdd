//! The session keyring: the kernel hands it on from process to process, so that without a new one every
//! container would hold the keys of the session in which Sundown was started. The keyring of the user
//! itself is left to user namespaces.

use std::io;

use keyutils_raw::keyctl_join_session_keyring;
use rustix::io::Errno;

/// Leaves the session of the starter before there are pods: what a container falls back to if it
/// cannot have a keyring of its own.
///
/// # Errors
/// The kernel keeps keys and gives no keyring: pods would have the starter's.
pub(crate) fn leave_session() -> io::Result<()> {
    match judge(join()) {
        Joined::Own | Joined::NoKeys => Ok(()),
        Joined::Full => Err(io::Error::other(
            "this user has no room for another key: raise kernel.keys.maxkeys and kernel.keys.maxbytes, \
             or end programs that hold keys (/proc/key-users)",
        )),
        Joined::Failed(error) => Err(error.into()),
    }
}

/// Gives this thread, and what it starts, an empty keyring without a name: no other process can join it.
///
/// # Errors
/// The kernel failed. That there is no room for another keyring is no error: a pod could fill it on
/// purpose, and the node's own keyring is empty as well.
pub(crate) fn take_own() -> io::Result<()> {
    match judge(join()) {
        Joined::Own | Joined::NoKeys | Joined::Full => Ok(()),
        Joined::Failed(error) => Err(error.into()),
    }
}

fn join() -> Result<(), Errno> {
    let joined = keyctl_join_session_keyring(None).map(drop);
    joined.map_err(|error| Errno::from_raw_os_error(error.0))
}

/// How it went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Joined {
    Own,
    /// The kernel has no keys, or a filter around Sundown forbids them; then it forbids them in pods, too.
    NoKeys,
    /// The user's quota is used up.
    Full,
    Failed(Errno),
}

fn judge(joined: Result<(), Errno>) -> Joined {
    match joined {
        Ok(()) => Joined::Own,
        Err(Errno::NOSYS | Errno::PERM) => Joined::NoKeys,
        Err(Errno::DQUOT) => Joined::Full,
        Err(error) => Joined::Failed(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_without_keys_is_no_failure() {
        for (joined, expect) in [
            (Ok(()), Joined::Own),
            (Err(Errno::NOSYS), Joined::NoKeys),
            (Err(Errno::PERM), Joined::NoKeys),
            (Err(Errno::DQUOT), Joined::Full),
            (Err(Errno::NOMEM), Joined::Failed(Errno::NOMEM)),
        ] {
            assert_eq!(judge(joined), expect);
        }
    }
}
