//! `sundown __node`: takes the lock of the data directory, then tries ways to separate a node from the
//! host, best first, and says which one worked. It ends when the node is up.

use std::ffi::OsString;
use std::fs;
use std::io::{self, BufReader};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::PathBuf;
use std::process::{ExitCode, Stdio};

use rustix::fs::{FlockOperation, flock};

use super::{Announcement, NAMESPACES, Settings, announce};
use crate::paths::NodePaths;
use crate::state::Isolation;
use crate::wire;

/// What to do where no way is open.
const ADVICE: &str = "pods need namespaces of their own. Allow one of: run as root with CAP_SYS_ADMIN and \
    CAP_NET_ADMIN; or unprivileged user namespaces (sysctl user.max_user_namespaces above 0, \
    kernel.unprivileged_userns_clone=1 where it exists, kernel.apparmor_restrict_unprivileged_userns=0 on \
    Ubuntu). Inside a container: docker run --privileged, or --cap-add SYS_ADMIN --cap-add NET_ADMIN \
    --security-opt seccomp=unconfined --security-opt apparmor=unconfined \
    --security-opt systempaths=unconfined";

pub(super) fn run(arguments: &[OsString]) -> ExitCode {
    let announcement = parse(arguments)
        .and_then(|settings| start(&settings))
        .unwrap_or_else(|message| Announcement::Failed { message });
    announce(&announcement);
    match announcement {
        Announcement::Ready(_) | Announcement::Occupied => ExitCode::SUCCESS,
        Announcement::Failed { message } => {
            eprintln!("sundown __node: {message}");
            ExitCode::FAILURE
        }
    }
}

/// `--data-dir DIR`, or `--settings JSON` from a client.
fn parse(arguments: &[OsString]) -> Result<Settings, String> {
    let usage = || "usage: sundown __node --data-dir DIR".to_owned();
    let [name, value] = arguments else {
        return Err(usage());
    };
    match name.to_str() {
        Some("--data-dir") => Ok(Settings::new(PathBuf::from(value))),
        Some("--settings") => super::argument(arguments, 1),
        _ => Err(usage()),
    }
}

fn start(settings: &Settings) -> Result<Announcement, String> {
    // Signals for the terminal's foreground are for the client, not for the node.
    let _ = rustix::process::setsid();
    let describe = |error: io::Error| format!("{}: {error}", settings.data_dir.display());
    let paths = NodePaths::new(&settings.data_dir).map_err(describe)?;
    let lock = lock(&paths).map_err(describe)?;
    let Some(lock) = lock else {
        return Ok(Announcement::Occupied);
    };
    let settings = Settings {
        data_dir: paths.data_dir().to_owned(),
        ..settings.clone()
    };
    let mut refused = Vec::new();
    for rootless in [false, true] {
        let isolation = describe_way(rootless, &refused);
        match attempt(&settings, &isolation, &lock).map_err(describe)? {
            Announcement::Failed { message } => refused.push(message),
            done => return Ok(done),
        }
    }
    let [rootful, rootless] = refused.as_slice() else {
        unreachable!("both ways were tried");
    };
    Err(format!(
        "as root: {rootful}; in a user namespace: {rootless}; {ADVICE}"
    ))
}

/// The lock is on the node's directory itself and lives as long as the node, which inherits it.
fn lock(paths: &NodePaths) -> io::Result<Option<fs::File>> {
    let mut builder = fs::DirBuilder::new();
    builder
        .recursive(true)
        .mode(0o700)
        .create(paths.node_dir())?;
    let directory = fs::File::open(paths.node_dir())?;
    match flock(&directory, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(Some(directory)),
        Err(rustix::io::Errno::WOULDBLOCK) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

fn describe_way(rootless: bool, refused: &[String]) -> Isolation {
    let reason = match refused.first() {
        Some(why) => format!("in a user namespace, because as root: {why}"),
        None => "as root: namespaces may be made directly".to_owned(),
    };
    Isolation {
        rootless,
        reason,
        user: rustix::process::getuid().as_raw(),
        group: rustix::process::getgid().as_raw(),
    }
}

fn attempt(
    settings: &Settings,
    isolation: &Isolation,
    lock: &fs::File,
) -> io::Result<Announcement> {
    let mut command = super::again(NAMESPACES);
    command.arg(serde_json::to_string(settings)?);
    command.arg(serde_json::to_string(isolation)?);
    command.stdin(lock.try_clone()?).stdout(Stdio::piped());
    let mut child = command.spawn()?;
    drop(command);
    let output = child.stdout.take().expect("standard output was piped");
    let announcement = wire::receive(&mut BufReader::new(output))?;
    child.wait()?;
    Ok(announcement.unwrap_or_else(|| Announcement::Failed {
        message: "the node ended before it was up".to_owned(),
    }))
}
