//! The control plane of a run: joined if one is up, else started, away from this terminal, and started
//! again should it be lost.

use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use kube::Client;
use tokio::sync::watch;
use tokio::time::{Instant, sleep};

use crate::arguments::Offers;
use crate::complaint::Complaint;
use crate::control::{self, ControlError, Gone, Held, Hello};
use crate::data;
use crate::kubectl::Kubectl;

/// How often a start may fail for a reason of its own before it is told.
const START_FAILURES_MAX: u32 = 3;
/// A start takes milliseconds; reading a large data directory on a busy machine may take longer.
const START_TIME_MAX: Duration = Duration::from_mins(2);
/// Between two looks: doubled each time.
const PAUSE_FIRST: Duration = Duration::from_millis(10);
const PAUSE_MAX: Duration = Duration::from_millis(500);
/// How much of what a control plane said is told when it did not start.
const LINES_TOLD_MAX: usize = 12;

/// Where and how a control plane is started.
#[derive(Debug, Clone)]
pub(super) struct Start {
    pub(super) directory: PathBuf,
    pub(super) image_rules: Option<PathBuf>,
    pub(super) offers: Offers,
}

/// A control plane that is up.
pub(super) struct Plane {
    start: Start,
    /// Where its sockets lie.
    state: PathBuf,
    held: Held,
    client: watch::Sender<Client>,
    kubectl: Kubectl,
    /// Which directory its state is, whatever lies at that path later.
    ground: Option<Ground>,
    /// The one that this process started last.
    child: Option<Child>,
    /// Whether this process started it, and when.
    pub(super) was_started: bool,
}

impl Plane {
    /// Joins or starts one.
    pub(super) async fn join(start: Start) -> Result<Self, Complaint> {
        let mut child = None;
        let (held, state) = join_or_start(&start, &mut child).await?;
        let client = watch::Sender::new(client(&held).await?);
        Ok(Self {
            kubectl: Kubectl::of_data(&start.directory),
            ground: ground(&state),
            start,
            state,
            held,
            client,
            was_started: child.is_some(),
            child,
        })
    }

    /// Joins or starts one after the last was lost. Its address may be another. Cancel-safe: the next
    /// call goes on with one that is on its way.
    pub(super) async fn join_again(&mut self) -> Result<(), Complaint> {
        let (held, state) = join_or_start(&self.start, &mut self.child).await?;
        self.ground = ground(&state);
        self.state = state;
        self.client.send_replace(client(&held).await?);
        self.held = held;
        Ok(())
    }

    pub(super) fn hello(&self) -> &Hello {
        &self.held.hello
    }

    pub(super) fn directory(&self) -> &Path {
        &self.start.directory
    }

    /// Makes the commands for it.
    pub(super) fn kubectl(&self) -> &Kubectl {
        &self.kubectl
    }

    /// Whether its data directory was removed, moved or replaced since it was joined.
    pub(super) fn has_lost_its_data(&self) -> bool {
        self.ground.is_some() && self.ground != ground(&self.state)
    }

    /// Where its control socket lies.
    pub(super) fn state(&self) -> &Path {
        &self.state
    }

    /// The client as it is now.
    pub(super) fn client(&self) -> Client {
        self.client.borrow().clone()
    }

    /// The client, whatever it becomes.
    pub(super) fn clients(&self) -> watch::Receiver<Client> {
        self.client.subscribe()
    }

    /// Returns when the control plane has ended. Cancel-safe.
    pub(super) async fn gone(&mut self) -> Gone {
        self.held.gone().await
    }
}

/// What is told when a control plane was ended on purpose, or with its data.
pub(super) fn ended(has_lost_its_data: bool) -> Complaint {
    Complaint::new(if has_lost_its_data {
        "the data directory was removed, and the control plane ended"
    } else {
        "the control plane was stopped"
    })
}

/// What a directory is known by: device and inode.
type Ground = (u64, u64);

fn ground(state: &Path) -> Option<Ground> {
    let found = fs::metadata(state).ok()?;
    Some((found.dev(), found.ino()))
}

async fn client(held: &Held) -> Result<Client, Complaint> {
    let connection = sundown_driver::connect(Some(&held.kubeconfig)).await;
    let connection = connection.map_err(|error| Complaint::of(&error))?;
    Ok(connection.client)
}

async fn join_or_start(
    start: &Start,
    child: &mut Option<Child>,
) -> Result<(Held, PathBuf), Complaint> {
    let mut failures = 0;
    let begun_at = Instant::now();
    let mut pause = PAUSE_FIRST;
    loop {
        // Looked for each time: it may be made, or taken over from a version of before, meanwhile.
        let state = data::find(&start.directory)?;
        let state = state.unwrap_or_else(|| sundown_disk::state(&start.directory));
        match control::connect(&start.directory, &state).await {
            Ok(held) => return Ok((held, state)),
            // One that is about to end answers nothing; the next one will.
            Err(ControlError::NotUp | ControlError::Silent(_) | ControlError::StillThere(_)) => {}
            Err(error @ (ControlError::Refused(_) | ControlError::Foreign { .. })) => {
                return Err(error.complaint(&start.directory));
            }
        }
        let next = match child {
            None => Next::Start,
            Some(child) => match child.try_wait() {
                Ok(None) => Next::Wait,
                Ok(Some(status)) => {
                    let is_in_use = sundown_disk::is_in_use(&start.directory);
                    failures += u32::from(!status.success() && !is_in_use);
                    after_end(status.code(), is_in_use, failures)
                }
                Err(_) => Next::GiveUp,
            },
        };
        if next == Next::GiveUp {
            return Err(not_started(start, begun_at));
        }
        if next == Next::Start {
            match sundown_disk::prepare(&start.directory) {
                Ok(state) => *child = Some(launch_on(start, &state)?),
                // Another one was faster, and will answer.
                Err(sundown_disk::OpenError::InUse { .. }) => {}
                Err(error) => return Err(data::refused(&error)),
            }
        }
        if begun_at.elapsed() > START_TIME_MAX {
            return Err(not_started(start, begun_at));
        }
        sleep(pause).await;
        pause = (pause * 2).min(PAUSE_MAX);
    }
}

/// What follows when the control plane that was started does not run any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    Wait,
    Start,
    GiveUp,
}

/// Decides by how it ended; no code: it was killed.
fn after_end(code: Option<i32>, is_in_use: bool, failures: u32) -> Next {
    match code {
        Some(0) | None => Next::Start,
        // Another one was faster, and will answer.
        Some(_) if is_in_use => Next::Wait,
        // The one before may have held the directory until its very end.
        Some(_) if failures < START_FAILURES_MAX => Next::Start,
        Some(_) => Next::GiveUp,
    }
}

/// The one that was started has ended: its log tells why.
fn not_started(start: &Start, begun_at: Instant) -> Complaint {
    let log = log_of(&sundown_disk::state(&start.directory));
    let said = fs::read_to_string(&log).unwrap_or_default();
    let seconds = begun_at.elapsed().as_secs();
    let complaint = Complaint::new(format!("control plane did not start within {seconds}s"));
    let lines: Vec<&str> = said.lines().collect();
    let first = lines.len().saturating_sub(LINES_TOLD_MAX);
    let told = lines[first..].iter();
    let told = told.map(|line| line.trim_start().trim_start_matches("= "));
    told.fold(
        complaint.at(log.display().to_string()),
        |complaint, line| complaint.help(line.to_owned()),
    )
}

fn log_of(state: &Path) -> PathBuf {
    state.join("up.log")
}

fn launch_on(start: &Start, state: &Path) -> Result<Child, Complaint> {
    launch(start, state).map_err(|error| {
        Complaint::new("cannot start the control plane")
            .at(start.directory.display().to_string())
            .because(&error)
    })
}

/// Starts a control plane that outlives this process. It leaves our session itself.
fn launch(start: &Start, state: &Path) -> io::Result<Child> {
    let directory = &start.directory;
    let log = log_of(state);
    // Why the last one ended may be wanted still.
    match fs::rename(&log, state.join("up.log.1")) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        Ok(()) | Err(_) => {}
    }
    let mut options = OpenOptions::new();
    let options = options.create(true).append(true).mode(0o600);
    let (out, err) = (options.open(&log)?, options.open(&log)?);
    let mut command = Command::new(std::env::current_exe()?);
    command
        .args(["up", "--while-used", "--data-dir"])
        .arg(directory);
    if let Some(rules) = &start.image_rules {
        command.arg("--image-rules").arg(rules);
    }
    command.args(start.offers.arguments());
    command.stdin(Stdio::null()).stdout(out).stderr(err);
    command.spawn()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_that_was_killed_is_started_again_and_one_that_fails_is_told() {
        for (code, is_in_use, failures, expect) in [
            (None, false, 9, Next::Start),
            (Some(0), false, 0, Next::Start),
            (Some(1), true, 1, Next::Wait),
            (Some(1), false, 1, Next::Start),
            (Some(1), false, 3, Next::GiveUp),
        ] {
            let next = after_end(code, is_in_use, failures);
            assert_eq!(next, expect, "{code:?} {is_in_use} {failures}");
        }
    }
}
