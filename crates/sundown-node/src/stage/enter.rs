//! Makes the node's namespaces and starts the node in them. A process of its own, because it cannot
//! go back: what it tried and failed at is tried another way by a fresh one.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::process::ExitCode;

use nix::sched::{CloneFlags, unshare};

use super::{Announcement, SERVE, announce, argument};
use crate::state::Isolation;

pub(super) fn run(arguments: &[OsString]) -> ExitCode {
    match start(arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            announce(&Announcement::Failed { message });
            ExitCode::FAILURE
        }
    }
}

fn start(arguments: &[OsString]) -> Result<(), String> {
    let isolation: Isolation = argument(arguments, 1)?;
    if isolation.rootless {
        enter_user_namespace()?;
    }
    let spaces = CloneFlags::CLONE_NEWNET | CloneFlags::CLONE_NEWNS | CloneFlags::CLONE_NEWPID;
    unshare(spaces).map_err(|error| refused("network, mount and pid namespaces", &error.into()))?;
    // The node inherits the lock as its standard input and announces itself on the same output. It is
    // not waited for: when this process ends, the node belongs to nobody and outlives its starter.
    let mut command = super::again(SERVE);
    command.args(arguments);
    let spawned = command.spawn();
    spawned
        .map(drop)
        .map_err(|error| refused("its first process", &error))
}

/// Becomes root of a user namespace in which only our own user and group exist.
fn enter_user_namespace() -> Result<(), String> {
    let user = rustix::process::geteuid().as_raw();
    let group = rustix::process::getegid().as_raw();
    unshare(CloneFlags::CLONE_NEWUSER)
        .map_err(|error| refused("a user namespace", &error.into()))?;
    let maps = [
        ("/proc/self/setgroups", "deny".to_owned()),
        ("/proc/self/uid_map", format!("0 {user} 1")),
        ("/proc/self/gid_map", format!("0 {group} 1")),
    ];
    for (path, text) in maps {
        fs::write(path, text).map_err(|error| refused(path, &error))?;
    }
    Ok(())
}

fn refused(what: &str, error: &io::Error) -> String {
    format!("{what} refused: {error}")
}
