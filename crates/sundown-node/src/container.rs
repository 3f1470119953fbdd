//! The init of a container: the first process of a pid namespace of its own, inside the pod's. It
//! builds the root, starts the command, forwards signals, reaps, and tells the pod's init how the
//! command ended. Its own end takes every process of the container with it, double-forked or not.

pub(crate) mod capabilities;
pub(crate) mod command;
mod directory;
pub(crate) mod keyring;
mod masks;
mod place;
mod root;
pub(crate) mod system;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{ExitCode, Stdio};
use std::thread;

use jiff::Timestamp;
use rustix::process::{Pid, PidfdFlags, Signal, WaitOptions, pidfd_open, pidfd_send_signal};
use serde::{Deserialize, Serialize};

use crate::host_path::ClosedPaths;
use crate::spec::ContainerSpec;
use crate::wire;
pub use capabilities::CAPABILITIES;
use command::NotStarted;
pub(crate) use root::{SCRATCH, SCRATCH_VAR};
pub use system::is_shown;

/// Everything that the container's init needs to know.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Plan {
    pub(crate) spec: ContainerSpec,
    pub(crate) mount_dir: PathBuf,
    pub(crate) scratch: PathBuf,
    pub(crate) marker: String,
    /// Where the content of each volume is, in the pod's mount namespace.
    pub(crate) volumes: BTreeMap<String, PathBuf>,
    /// Those of them that are paths of the host.
    pub(crate) of_host: BTreeSet<String>,
    pub(crate) closed: ClosedPaths,
}

/// What the container's init tells: either that nothing started, or the start and then the end.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Report {
    NotStarted {
        code: i32,
        message: String,
    },
    Started {
        started_at: Timestamp,
    },
    Ended {
        code: i32,
        signal: Option<i32>,
        finished_at: Timestamp,
    },
}

/// Runs as the container's init: the plan comes through standard input, reports go back through it,
/// output and error are those of the container.
pub(crate) fn run() -> ExitCode {
    match serve() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("container init: {error}");
            ExitCode::FAILURE
        }
    }
}

fn serve() -> io::Result<()> {
    let mut pod = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    let mut orders = io::BufReader::new(pod.try_clone()?);
    let plan: Plan = wire::receive(&mut orders)?.ok_or(io::ErrorKind::UnexpectedEof)?;
    let main = match start(&plan) {
        Ok(main) => main,
        Err(NotStarted { code, message }) => {
            return wire::send(&mut pod, &Report::NotStarted { code, message });
        }
    };
    let started_at = Timestamp::now();
    wire::send(&mut pod, &Report::Started { started_at })?;
    // It has not been waited for, so the number is its own.
    let command = pidfd_open(main, PidfdFlags::empty())?;
    thread::Builder::new().spawn(move || forward(&mut orders, &command))?;
    let (code, signal) = wait_for(main)?;
    let finished_at = Timestamp::now();
    let report = Report::Ended {
        code,
        signal,
        finished_at,
    };
    wire::send(&mut pod, &report)
}

fn start(plan: &Plan) -> Result<Pid, NotStarted> {
    root::enter(plan).map_err(|error| NotStarted::surroundings(&error))?;
    let confined = keyring::take_own().and_then(|()| capabilities::confine(&plan.spec.dropped));
    confined.map_err(|error| NotStarted::surroundings(&error))?;
    let mut command = command::prepare(&plan.spec, &plan.spec.argv)?;
    command.stdin(Stdio::null());
    let spawned = command.spawn();
    let child = spawned.map_err(|error| command::not_started(&plan.spec.argv, &error))?;
    // Nothing of a volume is held in use by this process.
    std::env::set_current_dir("/").map_err(|error| NotStarted::surroundings(&error))?;
    // The child is waited for below, together with all that is left to us by others.
    Ok(Pid::from_raw(child.id().cast_signed()).expect("a child has a process number"))
}

/// Passes signals on. They come as words and not as signals: those could be lost before the command
/// is there, and a first process gets only what it has asked for.
fn forward(orders: &mut impl io::BufRead, command: &OwnedFd) {
    while let Ok(Some(number)) = wire::receive::<i32>(orders) {
        if let Some(signal) = Signal::from_named_raw(number) {
            // A command that has ended needs no signal.
            let _ = pidfd_send_signal(command, signal);
        }
    }
}

/// Reaps everything that is left to the first process, until the command itself has ended.
fn wait_for(main: Pid) -> io::Result<(i32, Option<i32>)> {
    loop {
        let waited = rustix::io::retry_on_intr(|| rustix::process::wait(WaitOptions::empty()))?;
        if let Some((pid, status)) = waited
            && pid == main
        {
            let signal = status.terminating_signal();
            let code = status.exit_status();
            return Ok((code.unwrap_or(128 + signal.unwrap_or(0)), signal));
        }
    }
}
