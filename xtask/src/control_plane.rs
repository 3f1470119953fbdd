//! A running `sundown up --ephemeral` for scripts, in a temporary directory, and kubectl for it.
//!
//! It ends with its owner; what is asked of it is left to the scripts.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use tempfile::TempDir;

use crate::process;

/// Start-up takes milliseconds; a busy machine may take much longer.
const START_DURATION_MAX: Duration = Duration::from_mins(2);

/// How long a state may take to be reached. Generous: it bounds a hang, it measures nothing.
const AWAIT_DURATION_MAX: Duration = Duration::from_mins(3);

/// How long one call of kubectl may take, what it waits for by itself included.
pub(crate) const CALL_DURATION_MAX: Duration = Duration::from_mins(5);

const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// The process, stopped when dropped.
pub(crate) struct ControlPlane {
    child: Child,
    directory: TempDir,
}

impl ControlPlane {
    /// Starts it on a free port and waits until it answers.
    pub(crate) fn start(binary: &Path) -> Result<Self> {
        Self::start_with(binary, &[])
    }

    /// The same with further arguments of `sundown up`.
    pub(crate) fn start_with(binary: &Path, arguments: &[&str]) -> Result<Self> {
        let directory = tempfile::tempdir().context("make a temporary directory")?;
        let child = Command::new(binary)
            .args(["up", "--ephemeral", "--port", "0", "--kubeconfig"])
            .arg(directory.path().join("kubeconfig"))
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .context("start sundown up")?;
        let mut plane = Self { child, directory };
        plane.await_answer()?;
        Ok(plane)
    }

    /// Where clients find the way in.
    pub(crate) fn kubeconfig(&self) -> PathBuf {
        self.directory.path().join("kubeconfig")
    }

    /// A file in its temporary directory.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// A call of kubectl against it.
    pub(crate) fn kubectl(&self, arguments: &[&str]) -> Command {
        let mut kubectl = Command::new("kubectl");
        kubectl
            .env("KUBECONFIG", self.directory.path().join("kubeconfig"))
            .arg("--cache-dir")
            .arg(self.directory.path().join("kubectl-cache"))
            .args(arguments)
            .stdin(Stdio::null());
        kubectl
    }

    /// Runs kubectl and returns what it printed, without the last line break.
    pub(crate) fn ask(&self, arguments: &[&str]) -> Result<String> {
        let mut kubectl = self.kubectl(arguments);
        let said = process::output_within(&mut kubectl, CALL_DURATION_MAX)?;
        Ok(said.trim_end().to_owned())
    }

    /// Writes a manifest to be named on kubectl's command line.
    pub(crate) fn manifest(&self, name: &str, text: &str) -> Result<String> {
        let path = self.directory.path().join(format!("{name}.yaml"));
        fs::write(&path, text).with_context(|| format!("write {}", path.display()))?;
        Ok(path.display().to_string())
    }

    fn await_answer(&mut self) -> Result<()> {
        let started_at = Instant::now();
        let is_up = |plane: &Self| {
            plane.directory.path().join("kubeconfig").exists()
                && plane.ask(&["get", "--raw", "/api/v1/namespaces"]).is_ok()
        };
        while !is_up(self) {
            if let Some(status) = self.child.try_wait().context("look at sundown up")? {
                anyhow::bail!("sundown up ended with {status} before it answered");
            }
            ensure!(
                started_at.elapsed() < START_DURATION_MAX,
                "sundown up does not answer"
            );
            sleep(POLL_INTERVAL);
        }
        Ok(())
    }
}

impl Drop for ControlPlane {
    fn drop(&mut self) {
        // Already ended: either way nothing is left.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Waits until a state is reached, with a bound.
pub(crate) fn await_state(what: &str, mut is_reached: impl FnMut() -> Result<bool>) -> Result<()> {
    let started_at = Instant::now();
    while !is_reached()? {
        ensure!(
            started_at.elapsed() < AWAIT_DURATION_MAX,
            "not reached in time: {what}"
        );
        sleep(POLL_INTERVAL);
    }
    Ok(())
}
