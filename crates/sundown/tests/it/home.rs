//! A home in which the shipped binary runs jobs, and what a run says there.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Instant;

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::Value;
use sundown_testing::{BOUND, Lines, TestBound};

use crate::process::{stderr, stdout, sundown};

/// A home with a data directory; what still runs there is ended with it.
pub(crate) struct Home {
    directory: tempfile::TempDir,
    _bound: TestBound,
}

impl Home {
    /// None: pods cannot run on this machine.
    pub(crate) fn new() -> Result<Option<Self>> {
        let home = Self {
            directory: tempfile::tempdir()?,
            _bound: TestBound::of_this_test(),
        };
        let script = home.job("probe", "exit 0")?;
        let output = home.run(&[&script])?;
        if output.status.success() {
            ensure!(
                stderr(&output).contains("job/probe succeeded"),
                "{}",
                stderr(&output)
            );
            return Ok(Some(home));
        }
        let said = stderr(&output);
        if said.contains("namespaces") {
            eprintln!("skipped, pods cannot run here: {said}");
            return Ok(None);
        }
        bail!("a first job fails: {said}{}", stdout(&output));
    }

    pub(crate) fn path(&self) -> &Path {
        self.directory.path()
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.path().join(".local/state/sundown")
    }

    pub(crate) fn call(&self, arguments: &[&str]) -> Result<Output> {
        sundown_testing::output(&mut sundown(self.path(), arguments))
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Result<Output> {
        let mut all = vec!["run"];
        all.extend(arguments);
        self.call(&all)
    }

    pub(crate) fn begin(&self, arguments: &[&str]) -> Result<Begun> {
        self.begin_saying(arguments, Stdio::inherit())
    }

    /// As `begin`, with another place for complaints.
    pub(crate) fn begin_saying(&self, arguments: &[&str], complaints: Stdio) -> Result<Begun> {
        let mut command = sundown(self.path(), &["run", "-o", "json"]);
        command.args(arguments).stdout(Stdio::piped());
        let mut child = command.stderr(complaints).spawn()?;
        let lines = Lines::of(child.stdout.take().context("stdout is piped")?);
        let log = Vec::new();
        Ok(Begun { child, lines, log })
    }

    /// Writes a manifest with a `ConfigMap` and a Job that runs a shell script.
    pub(crate) fn job(&self, name: &str, script: &str) -> Result<String> {
        let path = self.path().join(format!("{name}.yaml"));
        let script = serde_json::to_string(script)?;
        let text = format!(
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\n---\n\
             apiVersion: batch/v1\nkind: Job\nmetadata: {{name: {name}}}\nspec:\n  backoffLimit: 0\n  \
             template:\n    spec:\n      restartPolicy: Never\n      \
             terminationGracePeriodSeconds: 1\n      containers:\n      \
             - {{name: main, image: busybox, command: [sh, -c, {script}]}}\n"
        );
        fs::write(&path, text)?;
        Ok(path.display().to_string())
    }

    pub(crate) fn status(&self) -> Result<Value> {
        let output = self.call(&["status", "-o", "json"])?;
        serde_json::from_slice(&output.stdout).context(stderr(&output))
    }

    /// Processes and mounts of the node; files of pods that have ended are none.
    pub(crate) fn alive(&self) -> Result<Vec<String>> {
        let left = sundown_node::leftovers(&self.data().join("state"))?;
        let is_alive = |it: &String| it.starts_with("process ") || it.starts_with("mount");
        Ok(left.into_iter().filter(is_alive).collect())
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        // Already down: nothing is left either way.
        let _ = self.call(&["down"]);
    }
}

/// A run under way.
pub(crate) struct Begun {
    pub(crate) child: Child,
    lines: Lines,
    /// What the job wrote, as far as it was read.
    pub(crate) log: Vec<String>,
}

impl Begun {
    /// Reads on until an event is as wanted.
    pub(crate) fn until(
        &mut self,
        what: &str,
        is_wanted: impl Fn(&Value) -> bool,
    ) -> Result<Value> {
        let begun_at = Instant::now();
        let mut last = String::new();
        while begun_at.elapsed() < BOUND {
            let line = self.lines.next(what)?;
            last = line.with_context(|| format!("the run ended before {what}; last was {last}"))?;
            let event: Value = serde_json::from_str(&last)?;
            if event["event"] == "log" {
                self.log.extend(event["line"].as_str().map(str::to_owned));
            }
            if is_wanted(&event) {
                return Ok(event);
            }
        }
        bail!("waited {BOUND:?} for {what}; last was {last}")
    }

    /// A job is told to run only after what it runs in is told to be there.
    pub(crate) fn until_running(&mut self) -> Result<()> {
        let is_done = |it: &Value| it["stage"] == "environment" && it["state"] == "done";
        let runs = |it: &Value| it["stage"] == "job" && it["text"] == "running";
        let first = self.until("an environment or a job", |it| is_done(it) || runs(it))?;
        ensure!(is_done(&first), "the job runs without an environment");
        self.until("a job that runs", runs)?;
        Ok(())
    }

    pub(crate) fn signal(&self, signal: &str) -> Result<()> {
        kill(signal, &self.child.id().to_string())
    }

    pub(crate) fn code(mut self) -> Result<Option<i32>> {
        while self.lines.next("the end of a run")?.is_some() {}
        let ended = sundown_testing::end(&mut self.child, "the end of a run")?;
        Ok(ended.code())
    }
}

pub(crate) fn kill(signal: &str, pid: &str) -> Result<()> {
    let status = Command::new("kill").args([signal, pid]).status()?;
    ensure!(status.success(), "kill {signal} {pid}");
    Ok(())
}
