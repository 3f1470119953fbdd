//! A command run inside a running container: same namespaces, root, environment and user. Bounded in
//! time and output.

use std::io::{self, PipeReader, PipeWriter, Read as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{Child, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use nix::sched::{CloneFlags, unshare};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{OFlags, fcntl_setfl};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open};
use rustix::thread::{ThreadNameSpaceType, move_into_thread_name_spaces};

use super::{Pod, Running};
use crate::container::{capabilities, command, keyring};
use crate::descriptors::close_all_but;
use crate::state::ExecResult;
use crate::wire::{ExecCall, Refusal};

/// After so many reads in a row the clock is looked at again: a command may never stop writing.
const DRAIN_READ_COUNT: usize = 64;

/// Runs a command in a container that runs.
pub(super) fn exec(pod: &Pod, call: &ExecCall) -> Result<ExecResult, Refusal> {
    let running = pod.running().get(&call.container).cloned();
    let running = running.ok_or_else(|| not_running(call))?;
    match spawn_on_a_thread(&running, &call.argv) {
        Ok((child, output)) => Ok(follow(child, output, call)),
        Err(Stopped::Command(why)) => Ok(ExecResult {
            code: Some(why.code),
            output: why.message,
            is_truncated: false,
        }),
        // The container ended meanwhile: its namespaces are gone.
        Err(Stopped::Namespaces(error)) => {
            eprintln!("pod init: exec in {}: {error}", call.container);
            Err(not_running(call))
        }
    }
}

/// The container does not run, or cannot be entered any more.
pub(super) fn not_running(call: &ExecCall) -> Refusal {
    Refusal::NoSuchContainer {
        uid: call.uid.clone(),
        container: call.container.clone(),
    }
}

/// Why there is no process.
enum Stopped {
    Namespaces(io::Error),
    Command(command::NotStarted),
}

fn spawn_on_a_thread(running: &Running, argv: &[String]) -> Result<(Child, PipeReader), Stopped> {
    let (output, end) = io::pipe().map_err(Stopped::Namespaces)?;
    let child = thread::scope(|scope| {
        let spawner = thread::Builder::new().spawn_scoped(scope, || spawn(running, argv, &end));
        let panicked = |_| Err(Stopped::Namespaces(io::Error::other("a thread panicked")));
        let spawner = spawner.map_err(Stopped::Namespaces)?;
        spawner.join().unwrap_or_else(panicked)
    })?;
    Ok((child, output))
}

/// Moves the calling thread into the container and spawns from there.
fn spawn(running: &Running, argv: &[String], end: &PipeWriter) -> Result<Child, Stopped> {
    enter(running, end).map_err(Stopped::Namespaces)?;
    let mut command = command::prepare(&running.spec, argv).map_err(Stopped::Command)?;
    let output = end.try_clone().map_err(Stopped::Namespaces)?;
    let error = end.try_clone().map_err(Stopped::Namespaces)?;
    command.stdin(Stdio::null()).stdout(output).stderr(error);
    command.process_group(0);
    let spawned = command.spawn();
    spawned.map_err(|error| Stopped::Command(command::not_started(argv, &error)))
}

fn enter(running: &Running, end: &PipeWriter) -> io::Result<()> {
    // A thread that shares its root with others may not change it. Descriptors are its own as well, and
    // none but these: until the new program runs, what other threads have open could be reached from inside
    // by the name of that program or through the process table.
    unshare(CloneFlags::CLONE_FS | CloneFlags::CLONE_FILES)?;
    close_all_but(&[running.init.as_fd(), end.as_fd()])?;
    let spaces = ThreadNameSpaceType::MOUNT | ThreadNameSpaceType::PROCESS_ID;
    move_into_thread_name_spaces(running.init.as_fd(), spaces)?;
    // Of this thread alone, as all that it starts inherits it from the thread.
    keyring::take_own()?;
    capabilities::confine(&running.spec.dropped)
}

/// Collects output until the command ends or its time is over.
fn follow(mut child: Child, mut output: PipeReader, call: &ExecCall) -> ExecResult {
    let deadline = Instant::now() + Duration::from_millis(call.timeout_ms);
    let mut collected = Collected::new(call.output_bytes_max);
    let pid = Pid::from_raw(child.id().cast_signed()).expect("a child has a process number");
    let _ = fcntl_setfl(&output, OFlags::NONBLOCK);
    let process = pidfd_open(pid, PidfdFlags::empty());
    let has_ended =
        process.is_ok_and(|process| wait(&process, &mut output, &mut collected, deadline));
    if !has_ended {
        // Not waited for yet, so the number is still its own. It may have left its group.
        let _ = kill_process_group(pid, Signal::KILL);
        let _ = child.kill();
    }
    let status = child.wait();
    collected.drain(&mut output);
    let code = status.ok().map(|status| {
        let signal = status.signal().unwrap_or(0);
        status.code().unwrap_or(128 + signal)
    });
    ExecResult {
        code: code.filter(|_| has_ended),
        output: String::from_utf8_lossy(&collected.bytes).into_owned(),
        is_truncated: collected.is_truncated,
    }
}

/// Whether the process ended before the deadline.
fn wait(
    process: &OwnedFd,
    output: &mut PipeReader,
    collected: &mut Collected,
    deadline: Instant,
) -> bool {
    let mut is_open = true;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let timeout = Timespec::try_from(left).unwrap_or(Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        });
        let mut waited = vec![PollFd::new(process, PollFlags::IN)];
        if is_open {
            waited.push(PollFd::new(output, PollFlags::IN));
        }
        let ready = poll(&mut waited, Some(&timeout));
        let has_ended = !waited[0].revents().is_empty();
        drop(waited);
        if has_ended {
            return true;
        }
        if matches!(ready, Ok(0)) || left.is_zero() {
            return false;
        }
        is_open = is_open && collected.drain(output);
    }
}

/// Output up to a bound; the rest is read and dropped, so that the writer does not block.
struct Collected {
    bytes: Vec<u8>,
    bytes_max: usize,
    is_truncated: bool,
}

impl Collected {
    fn new(bytes_max: usize) -> Self {
        Self {
            bytes: Vec::new(),
            bytes_max,
            is_truncated: false,
        }
    }

    /// Takes what is there now; whether more may come.
    fn drain(&mut self, output: &mut PipeReader) -> bool {
        let mut buffer = [0; 16 << 10];
        for _ in 0..DRAIN_READ_COUNT {
            match output.read(&mut buffer) {
                Ok(0) => return false,
                Ok(length) => {
                    let room = self.bytes_max.saturating_sub(self.bytes.len());
                    self.is_truncated |= length > room;
                    self.bytes.extend_from_slice(&buffer[..length.min(room)]);
                }
                Err(error) => return error.kind() == io::ErrorKind::WouldBlock,
            }
        }
        true
    }
}
