//! Ends a node that another version of Sundown started. It may not understand what it is asked, so it is
//! killed, and the kernel kills its pods with it. Whether a process is such a node is decided by a pure
//! function of what was seen; a process of which there is a doubt is left alone.

use std::fs;
use std::io;
use std::path::Path;
use std::time::Duration;

use rustix::process::{Pid, PidfdFlags, Signal, getpid, pidfd_open, pidfd_send_signal};
use tokio::io::BufReader;
use tokio::time::timeout;

use super::{ANSWER_TIMEOUT, NodeError, open, read_reply};
use crate::paths::NodePaths;
use crate::peer::{is_trusted, own_uid};
use crate::wire::{Answer, Call, PROTOCOL};

/// What is known of the process that listens at the socket of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Seen {
    /// By the kernel, before the process was taken hold of; 0: outside of our pid namespace.
    process: i32,
    /// The same, of an answer that came after that.
    answering: i32,
    uid: u32,
    /// What it says that it speaks.
    protocol: u32,
    /// Whether its mounts are those of the node of this data directory.
    has_mounts: bool,
}

/// The process that asks.
#[derive(Debug, Clone, Copy)]
struct Own {
    process: i32,
    uid: u32,
}

/// Why a process is left alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
enum Doubt {
    #[error("it belongs to user {uid}")]
    User { uid: u32 },
    #[error("its process cannot be seen from here")]
    Hidden,
    #[error("another process answered at its socket meanwhile")]
    Replaced,
    #[error("it is of this version: ask it to end")]
    SameVersion,
    #[error("it has none of the mounts of a node of this data directory")]
    NoNode,
}

/// Whether a process is the node of the data directory and of another version.
fn judge(seen: Seen, own: Own) -> Result<(), Doubt> {
    if !is_trusted(seen.uid, own.uid) {
        return Err(Doubt::User { uid: seen.uid });
    }
    // Number 1 is the first process of the machine, or of the container that we are in.
    if seen.process <= 1 || seen.process == own.process {
        return Err(Doubt::Hidden);
    }
    if seen.answering != seen.process {
        return Err(Doubt::Replaced);
    }
    if seen.protocol == PROTOCOL {
        return Err(Doubt::SameVersion);
    }
    if !seen.has_mounts {
        return Err(Doubt::NoNode);
    }
    Ok(())
}

/// Kills the node of a data directory if another version of Sundown started it. Gives its process.
pub(super) async fn end(data_dir: &Path) -> Result<i32, NodeError> {
    let failed = |process: i32, message: String| NodeError::NotEnded {
        data_dir: data_dir.to_owned(),
        process,
        message,
    };
    let paths = NodePaths::new(data_dir).map_err(|error| failed(0, error.to_string()))?;
    let first = ask(&paths).await;
    let first = first.map_err(|error| failed(0, error.to_string()))?;
    let process = first.process;
    // Taken hold of before it is looked at: a number can be given to another process, this cannot.
    let held = Pid::from_raw(process).ok_or(rustix::io::Errno::SRCH);
    let held = held.and_then(|pid| pidfd_open(pid, PidfdFlags::empty()));
    let held = held.map_err(|error| failed(process, io::Error::from(error).to_string()))?;
    let again = ask(&paths).await;
    let again = again.map_err(|error| failed(process, error.to_string()))?;
    let seen = Seen {
        process,
        answering: again.process,
        uid: again.uid,
        protocol: again.protocol,
        has_mounts: has_mounts(process, &paths.marker()),
    };
    let own = Own {
        process: getpid().as_raw_nonzero().get(),
        uid: own_uid(),
    };
    judge(seen, own).map_err(|doubt| failed(process, doubt.to_string()))?;
    match pidfd_send_signal(&held, Signal::KILL) {
        Ok(()) | Err(rustix::io::Errno::SRCH) => Ok(process),
        Err(error) => Err(failed(process, io::Error::from(error).to_string())),
    }
}

/// Who listens, and what it speaks.
struct Listener {
    process: i32,
    uid: u32,
    protocol: u32,
}

async fn ask(paths: &NodePaths) -> io::Result<Listener> {
    let stream = open(paths, &Call::Hello).await?;
    let peer = stream.peer_cred()?;
    let mut reader = BufReader::new(stream);
    let waited: Duration = ANSWER_TIMEOUT;
    let Answer::Hello(hello) = timeout(waited, read_reply(&mut reader))
        .await??
        .map_err(io::Error::other)?
    else {
        return Err(io::Error::other("it does not say which version it is"));
    };
    Ok(Listener {
        process: peer.pid().unwrap_or(0),
        uid: peer.uid(),
        protocol: hello.protocol,
    })
}

fn has_mounts(process: i32, marker: &str) -> bool {
    let table = fs::read(format!("/proc/{process}/mountinfo")).unwrap_or_default();
    String::from_utf8_lossy(&table).contains(marker)
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWN: Own = Own {
        process: 50,
        uid: 1000,
    };

    const OLDER: Seen = Seen {
        process: 70,
        answering: 70,
        uid: 1000,
        protocol: PROTOCOL - 1,
        has_mounts: true,
    };

    #[test]
    fn a_node_of_another_version_may_be_ended() {
        assert_eq!(judge(OLDER, OWN), Ok(()));
        let protocol = PROTOCOL + 1;
        assert_eq!(judge(Seen { protocol, ..OLDER }, OWN), Ok(()));
    }

    #[test]
    fn a_process_of_which_there_is_a_doubt_is_left_alone() {
        for (seen, doubt) in [
            (Seen { uid: 1001, ..OLDER }, Doubt::User { uid: 1001 }),
            (
                Seen {
                    process: 0,
                    answering: 0,
                    ..OLDER
                },
                Doubt::Hidden,
            ),
            (
                Seen {
                    process: 1,
                    answering: 1,
                    ..OLDER
                },
                Doubt::Hidden,
            ),
            (
                Seen {
                    process: 50,
                    answering: 50,
                    ..OLDER
                },
                Doubt::Hidden,
            ),
            (
                Seen {
                    answering: 71,
                    ..OLDER
                },
                Doubt::Replaced,
            ),
            (
                Seen {
                    protocol: PROTOCOL,
                    ..OLDER
                },
                Doubt::SameVersion,
            ),
            (
                Seen {
                    has_mounts: false,
                    ..OLDER
                },
                Doubt::NoNode,
            ),
        ] {
            assert_eq!(judge(seen, OWN), Err(doubt), "{seen:?}");
        }
    }
}
