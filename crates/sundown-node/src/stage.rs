//! The lives of the binary that are not its own: it is executed again as the node, as a pod's init and
//! as a container's init, because namespaces are entered by a process before it has threads, and
//! because the first process of a pid namespace must be a new one.

mod enter;
mod launch;

use std::ffi::OsString;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::descriptors::close_all_but;
use crate::network::Subnet;
use crate::state::Isolation;
use crate::{container, pod, serve};

/// The one stage that people may see: `sundown __node --data-dir DIR`.
pub const NODE: &str = "__node";
const NAMESPACES: &str = "__node-namespaces";
const SERVE: &str = "__node-serve";
pub(crate) const POD: &str = "__node-pod";
pub(crate) const CONTAINER: &str = "__node-container";

/// How a node is to be run; fixed at its start.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settings {
    pub data_dir: PathBuf,
    pub subnet: Subnet,
    /// How long a node without pods waits for a client before it ends.
    pub idle: Duration,
    /// Size of one of the two files of a container's log.
    pub log_bytes_max: u64,
}

impl Settings {
    /// The usual settings for a data directory.
    pub fn new(data_dir: impl Into<PathBuf>) -> Self {
        Self {
            data_dir: data_dir.into(),
            subnet: Subnet::default(),
            idle: Duration::from_mins(1),
            log_bytes_max: 10 << 20,
        }
    }
}

/// What a starting node says on standard output, once.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) enum Announcement {
    Ready(Isolation),
    /// Another node has the data directory.
    Occupied,
    Failed {
        message: String,
    },
}

/// Runs a stage if the arguments name one; `None` for every other command line.
///
/// # Assumes
/// Called first in `main`: no thread exists yet.
pub fn stage(arguments: impl IntoIterator<Item = OsString>) -> Option<ExitCode> {
    let mut arguments = arguments.into_iter().skip(1);
    let name = arguments.next()?;
    let rest: Vec<OsString> = arguments.collect();
    match name.to_str()? {
        NODE => Some(alone(|| launch::run(&rest))),
        NAMESPACES => Some(alone(|| enter::run(&rest))),
        SERVE => Some(alone(|| serve::run(&rest))),
        POD => Some(alone(pod::run)),
        CONTAINER => Some(alone(container::run)),
        _ => None,
    }
}

/// Runs a stage without the descriptors that its starter left open. All that one stage gives the next goes
/// through the standard ones.
fn alone(run: impl FnOnce() -> ExitCode) -> ExitCode {
    match close_all_but(&[]) {
        Ok(()) => run(),
        Err(error) => {
            eprintln!("sundown: descriptors of the starter cannot be closed: {error}");
            ExitCode::FAILURE
        }
    }
}

/// This binary once more, in another life. The link works even if the file has been replaced.
pub(crate) fn again(stage: &str) -> Command {
    again_from(Path::new("/proc/self/exe"), stage)
}

/// The same from another place where the binary is.
pub(crate) fn again_from(binary: &Path, stage: &str) -> Command {
    let mut command = Command::new(binary);
    command.arg0("sundown").arg(stage).env_clear();
    // Threads of these stages live shortly and share one heap: one each would cost more than they use.
    command.env("GLIBC_TUNABLES", "glibc.malloc.arena_max=1");
    command
}

/// Reads an argument that an earlier stage wrote.
pub(crate) fn argument<T: serde::de::DeserializeOwned>(
    arguments: &[OsString],
    index: usize,
) -> Result<T, String> {
    let text = arguments.get(index).and_then(|each| each.to_str());
    let text = text.ok_or_else(|| "an argument is missing".to_owned())?;
    serde_json::from_str(text).map_err(|error| format!("argument {text}: {error}"))
}

/// Says how the start went. Nobody may be listening any more, which changes nothing.
pub(crate) fn announce(announcement: &Announcement) {
    let _ = crate::wire::send(&mut std::io::stdout(), announcement);
}
