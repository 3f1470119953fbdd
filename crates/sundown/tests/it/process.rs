//! Calls of the binary, in a home of their own.

use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use anyhow::{Context, Result};
use serde_json::Value;
use sundown_testing::{Lines, TestBound};

/// A call of the binary that sees nothing of the user's own settings.
pub(crate) fn sundown(home: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sundown"));
    command
        .env("HOME", home)
        .env_remove("XDG_STATE_HOME")
        .env_remove("XDG_CACHE_HOME")
        .env_remove("XDG_CONFIG_HOME")
        .env_remove("SUNDOWN_CACHE")
        .env_remove("SUNDOWN_IMAGE_RULES")
        .env_remove("SUNDOWN_DATA")
        .env_remove("SUNDOWN_LOG")
        .env_remove("KUBECONFIG")
        .stdin(Stdio::null())
        .args(arguments);
    command
}

/// Runs a call to its end.
pub(crate) fn call(home: &Path, arguments: &[&str]) -> Result<Output> {
    sundown_testing::output(&mut sundown(home, arguments))
}

pub(crate) fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

pub(crate) fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// A running `sundown up`, killed when dropped.
pub(crate) struct Up {
    child: Child,
    _bound: TestBound,
    /// What it said once it was up.
    pub(crate) started: Value,
}

impl Up {
    /// Starts one in memory and waits for its word.
    pub(crate) fn start(home: &Path, arguments: &[&str]) -> Result<Self> {
        Self::spawn(
            sundown(home, &["up", "--ephemeral", "-o", "json"]),
            arguments,
        )
    }

    /// Starts one that keeps its data, without pods, and waits for its word.
    pub(crate) fn start_durable(home: &Path, arguments: &[&str]) -> Result<Self> {
        Self::spawn(
            sundown(home, &["up", "--node=false", "-o", "json"]),
            arguments,
        )
    }

    /// Starts one by a call of the binary that says the rest, and waits for its word.
    pub(crate) fn spawn(mut command: Command, arguments: &[&str]) -> Result<Self> {
        let mut child = command.args(arguments).stdout(Stdio::piped()).spawn()?;
        let lines = Lines::of(child.stdout.take().context("stdout is piped")?);
        // From here on it is ended with this value, whatever it says.
        let mut up = Self {
            child,
            _bound: TestBound::of_this_test(),
            started: Value::Null,
        };
        let line = lines.next("the first word of `sundown up`")?;
        let line = line.context("`sundown up` ended without a word")?;
        up.started = serde_json::from_str(&line).with_context(|| format!("said {line:?}"))?;
        Ok(up)
    }

    pub(crate) fn kubeconfig(&self) -> &str {
        self.started["kubeconfig"].as_str().unwrap_or_default()
    }

    /// Asks it to end, as a service manager does, and gives its exit code.
    pub(crate) fn terminate(self) -> Result<Option<i32>> {
        let id = self.child.id().to_string();
        Command::new("kill").arg(id).status().context("run kill")?;
        self.end()
    }

    /// Whether its process has ended, without waiting for it.
    pub(crate) fn has_ended(&mut self) -> Result<bool> {
        let ended = self.child.try_wait().context("look at `sundown up`")?;
        Ok(ended.is_some())
    }

    /// Waits until it ends by itself, and gives its exit code.
    pub(crate) fn end(mut self) -> Result<Option<i32>> {
        let ended = sundown_testing::end(&mut self.child, "the end of `sundown up`")?;
        Ok(ended.code())
    }
}

impl Drop for Up {
    fn drop(&mut self) {
        // Already ended: nothing is left either way.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
