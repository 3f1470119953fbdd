//! One run of one container, from its namespaces to its record. The record is on disk before the
//! node hears of the end, so no exit code is lost whoever is killed.

use std::fs;
use std::io::{self, BufReader, PipeReader};
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::Path;
use std::process::{Child, Command, ExitStatus};
use std::sync::{Arc, Mutex};
use std::thread;

use jiff::Timestamp;
use nix::sched::{CloneFlags, unshare};
use rustix::fs::{Gid, Uid, fchown};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use super::log::LogFile;
use super::{Event, Pod, Running};
use crate::container::command::NotStarted;
use crate::container::{self, Report, SCRATCH, SCRATCH_VAR};
use crate::record;
use crate::spec::{ContainerSpec, RunAs};
use crate::stage;
use crate::state::{ContainerState, ContainerStatus, Exit, ExitReason};
use crate::wire;

/// A container's init with the ends of what it holds.
struct Started {
    child: Child,
    reports: UnixStream,
    output: PipeReader,
    error: PipeReader,
}

/// Runs a container to its end and reports each step.
pub(super) fn run(pod: &Pod, spec: &ContainerSpec) {
    let (name, attempt) = (spec.name.clone(), spec.attempt);
    let tell = |state: ContainerState| {
        let status = ContainerStatus { attempt, state };
        let name = name.clone();
        pod.tell(&Event::Container { name, status });
    };
    let began_at = Timestamp::now();
    let exit = match prepare(pod, spec).and_then(|()| start(pod, spec)) {
        Ok(started) => follow(pod, spec, started, &tell),
        Err(error) => not_started(&NotStarted::surroundings(&error), began_at),
    };
    // A record that cannot be written is worse than none, but the end itself is true.
    if let Err(error) = record::write_exit(&pod.paths, &name, attempt, &exit) {
        eprintln!("pod init: exit record of {name}: {error}");
    }
    pod.running().remove(&name);
    tell(ContainerState::Exited(exit));
}

/// Records a run for which there was not even a thread.
pub(super) fn give_up(pod: &Pod, name: &str, attempt: u32, error: &io::Error) {
    let exit = not_started(&NotStarted::surroundings(error), Timestamp::now());
    let directory = pod.paths.attempt(name, attempt);
    let written = fs::create_dir_all(directory)
        .and_then(|()| record::write_exit(&pod.paths, name, attempt, &exit));
    if let Err(error) = written {
        eprintln!("pod init: exit record of {name}: {error}");
    }
    let state = ContainerState::Exited(exit);
    let status = ContainerStatus { attempt, state };
    let name = name.to_owned();
    pod.tell(&Event::Container { name, status });
}

/// Fresh directories for this attempt; what older ones left is removed, but for the last one's log.
fn prepare(pod: &Pod, spec: &ContainerSpec) -> io::Result<()> {
    forget_older(pod, spec);
    let scratch = pod.paths.scratch(&spec.name, spec.attempt);
    // The environment may lie in root's home, and whoever runs has to get to it.
    let is_other = spec.run_as.is_some_and(RunAs::is_other);
    for (name, mode) in SCRATCH {
        let mode = if is_other { mode | 0o111 } else { *mode };
        make_directory(&scratch.join(name), mode)?;
    }
    let var = scratch.join("var");
    for (name, mode) in SCRATCH_VAR {
        make_directory(&var.join(name), *mode)?;
    }
    std::os::unix::fs::symlink("/run", var.join("run"))
}

fn forget_older(pod: &Pod, spec: &ContainerSpec) {
    let attempts = pod.paths.containers().join(&spec.name);
    for older in record::names(&attempts) {
        let Ok(number) = older.parse::<u32>() else {
            continue;
        };
        // Nobody waits for these files; what cannot be removed goes with the pod.
        let older = attempts.join(older);
        let _ = sundown_files::remove(&older, "scratch");
        if number + 1 < spec.attempt {
            let log = pod.paths.log(&spec.name, number);
            let _ = fs::remove_file(log.with_extension("log.1"));
            let _ = fs::remove_file(log);
            let _ = sundown_files::remove(&attempts, number.to_string());
        }
    }
}

fn make_directory(path: &Path, mode: u32) -> io::Result<()> {
    fs::create_dir_all(path)?;
    fs::set_permissions(path, fs::Permissions::from_mode(mode))
}

fn start(pod: &Pod, spec: &ContainerSpec) -> io::Result<Started> {
    let (mut reports, theirs) = UnixStream::pair()?;
    let (output, output_end) = io::pipe()?;
    let (error, error_end) = io::pipe()?;
    if let Some(RunAs { user, group }) = spec.run_as {
        // Or another user than root could not open its own /dev/stdout.
        let owner = (Some(Uid::from_raw(user)), Some(Gid::from_raw(group)));
        let _ = fchown(&output_end, owner.0, owner.1);
        let _ = fchown(&error_end, owner.0, owner.1);
    }
    let child = spawn_in_namespaces(move || {
        let mut command = stage::again(stage::CONTAINER);
        command.stdin(OwnedFd::from(theirs));
        command.stdout(output_end).stderr(error_end);
        // A group of its own keeps signals for groups away from the pod's init.
        command.process_group(0);
        command
    })?;
    let plan = container::Plan {
        spec: spec.clone(),
        mount_dir: pod.plan.mount_dir.clone(),
        scratch: pod.paths.scratch(&spec.name, spec.attempt),
        marker: pod.plan.marker.clone(),
        volumes: pod.volumes.clone(),
        of_host: pod.plan.spec.host_paths(),
        closed: pod.plan.spec.closed.clone(),
    };
    wire::send(&mut reports, &plan)?;
    Ok(Started {
        child,
        reports,
        output,
        error,
    })
}

/// Spawns a process that is alone in new mount and pid namespaces. A thread does it and ends: the
/// namespaces of a thread are its own, and nothing else of this process is moved.
fn spawn_in_namespaces(command: impl FnOnce() -> Command + Send + 'static) -> io::Result<Child> {
    let spawner = thread::Builder::new().spawn(move || {
        unshare(CloneFlags::CLONE_NEWNS | CloneFlags::CLONE_NEWPID)?;
        command().spawn()
    })?;
    let panicked = |_| Err(io::Error::other("the spawning thread panicked"));
    spawner.join().unwrap_or_else(panicked)
}

/// Follows a container from the moment that its init exists.
fn follow(
    pod: &Pod,
    spec: &ContainerSpec,
    started: Started,
    tell: &dyn Fn(ContainerState),
) -> Exit {
    let Started {
        mut child,
        reports,
        output,
        error,
    } = started;
    let pid = child.id();
    if let Err(error) = enlist(pod, spec, pid, &reports) {
        eprintln!("pod init: container {}: {error}", spec.name);
    }
    let log = LogFile::open(
        &pod.paths.log(&spec.name, spec.attempt),
        pod.plan.log_bytes_max,
    );
    let log = Arc::new(log);
    let writers = [
        log.clone().follow("stdout", output),
        log.follow("stderr", error),
    ];
    let mut reports = BufReader::new(reports);
    let mut started_at = Timestamp::now();
    let mut last = receive(&mut reports);
    if let Some(Report::Started { started_at: at }) = last {
        started_at = at;
        record::write_started(&pod.paths, &spec.name, spec.attempt, at);
        tell(ContainerState::Running { pid, started_at });
        last = receive(&mut reports);
    }
    let status = child.wait();
    for writer in writers.into_iter().flatten() {
        let _ = writer.join();
    }
    conclude(last, started_at, status)
}

/// Makes the container known to those who signal it and run commands in it. Only a lack of
/// descriptors can fail.
fn enlist(pod: &Pod, spec: &ContainerSpec, pid: u32, reports: &UnixStream) -> io::Result<()> {
    let pid = Pid::from_raw(pid.cast_signed()).expect("a child has a process number");
    let running = Running {
        attempt: spec.attempt,
        spec: spec.clone(),
        // It has not been waited for, so the number is its own.
        init: pidfd_open(pid, PidfdFlags::empty())?,
        orders: Mutex::new(reports.try_clone()?),
    };
    pod.running().insert(spec.name.clone(), Arc::new(running));
    Ok(())
}

fn receive(reports: &mut BufReader<UnixStream>) -> Option<Report> {
    wire::receive(reports).ok().flatten()
}

/// The record of a run from the last thing that its init said and from how the init ended.
fn conclude(last: Option<Report>, started_at: Timestamp, status: io::Result<ExitStatus>) -> Exit {
    match last {
        Some(Report::Ended {
            code,
            signal,
            finished_at,
        }) => ended(code, signal, started_at, finished_at),
        Some(Report::NotStarted { code, message }) => {
            not_started(&NotStarted { code, message }, started_at)
        }
        // The init was killed, and everything below it with it.
        Some(Report::Started { .. }) | None => {
            let signal = status.ok().and_then(|status| status.signal()).unwrap_or(9);
            ended(128 + signal, Some(signal), started_at, Timestamp::now())
        }
    }
}

fn ended(code: i32, signal: Option<i32>, started_at: Timestamp, finished_at: Timestamp) -> Exit {
    let reason = match code {
        0 => ExitReason::Completed,
        _ => ExitReason::Error,
    };
    Exit {
        code,
        signal,
        reason,
        message: String::new(),
        started_at,
        finished_at,
    }
}

fn not_started(why: &NotStarted, at: Timestamp) -> Exit {
    Exit {
        code: why.code,
        signal: None,
        reason: ExitReason::StartError,
        message: why.message.clone(),
        started_at: at,
        finished_at: Timestamp::now(),
    }
}
