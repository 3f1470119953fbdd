//! A data directory of its own, what runs on it, and its end with nothing left.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use tempfile::TempDir;

use crate::leftovers::Trace;
use crate::process;

/// A job on real Ray takes half a minute, several at once on two cores some minutes. It bounds a hang.
const RUN_TIME_MAX: Duration = Duration::from_mins(15);
/// How long a state may take to be reached: a Ray head takes ten seconds on an idle machine.
const STATE_TIME_MAX: Duration = Duration::from_mins(4);
const LOOK_INTERVAL: Duration = Duration::from_millis(300);

/// A place for a control plane.
pub(crate) struct Home {
    binary: PathBuf,
    /// Holds the two below; removed when dropped.
    scratch: TempDir,
    data: PathBuf,
    files: PathBuf,
    trace: Trace,
    /// Under whose id everything runs; None: the caller's.
    user: Option<u32>,
    /// What the commands get beside the caller's variables.
    variables: Vec<(String, PathBuf)>,
    count: usize,
}

/// A command that goes on.
pub(crate) struct Going {
    pub(crate) child: Child,
    said: PathBuf,
    what: String,
}

/// How a command ended.
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    pub(crate) said: String,
    what: String,
}

impl Home {
    /// In a new directory.
    pub(crate) fn new(binary: &Path) -> Result<Self> {
        let scratch = tempfile::tempdir().context("make a temporary directory")?;
        let (data, files) = (scratch.path().join("data"), scratch.path().join("files"));
        fs::create_dir(&files).context("make a directory for files")?;
        Ok(Self {
            binary: binary.to_owned(),
            trace: Trace::of(&data),
            scratch,
            data,
            files,
            user: None,
            variables: Vec::new(),
            count: 0,
        })
    }

    /// The same under another id and with further variables.
    pub(crate) fn under(mut self, user: u32, variables: Vec<(String, PathBuf)>) -> Result<Self> {
        for directory in [self.scratch.path(), &self.files] {
            std::os::unix::fs::chown(directory, Some(user), Some(user))?;
        }
        self.user = Some(user);
        self.variables = variables;
        Ok(self)
    }

    /// The same with a copy of the binary.
    pub(crate) fn with_binary(mut self, binary: &Path) -> Self {
        binary.clone_into(&mut self.binary);
        self
    }

    /// Where a test may keep files of its own.
    pub(crate) fn files(&self) -> &Path {
        &self.files
    }

    pub(crate) fn data(&self) -> &Path {
        &self.data
    }

    /// The binary with a command on this data directory.
    pub(crate) fn command(&self, words: &[&str]) -> Command {
        let mut command = self.bare(words);
        command.arg("--data-dir").arg(&self.data);
        command
    }

    /// The binary with a command that needs no data directory.
    pub(crate) fn bare(&self, words: &[&str]) -> Command {
        let mut command = Command::new(&self.binary);
        command.args(words).stdin(Stdio::null());
        for (name, value) in &self.variables {
            command.env(name, value);
        }
        if let Some(user) = self.user {
            use std::os::unix::process::CommandExt as _;
            command.uid(user).gid(user).current_dir(&self.files);
        }
        command
    }

    /// Begins `sundown run FILE --rm`.
    pub(crate) fn run(&mut self, file: &Path) -> Result<Going> {
        self.count += 1;
        let said = self.files.join(format!("run-{}.log", self.count));
        let output = File::create(&said).with_context(|| format!("make {}", said.display()))?;
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        let file = file.display().to_string();
        let child = self
            .command(&["run", &file, "--rm"])
            .stdout(output.try_clone().context("share the log")?)
            .stderr(output)
            .spawn()
            .context("start sundown run")?;
        Ok(Going {
            child,
            said,
            what: format!("sundown run {name}"),
        })
    }

    /// Waits for its end, and notes meanwhile what runs.
    pub(crate) fn wait(&mut self, mut going: Going) -> Result<Ended> {
        let status = self.wait_for(&mut going.child, &going.what)?;
        let said = fs::read_to_string(&going.said).context("read what it said")?;
        Ok(Ended {
            code: status.code(),
            said,
            what: going.what,
        })
    }

    /// Runs a file with our own terminal.
    pub(crate) fn watch_run(&mut self, file: &Path) -> Result<()> {
        let file = file.display().to_string();
        let mut command = self.command(&["run", &file, "--rm"]);
        let mut child = command.spawn().context("start sundown run")?;
        let status = self.wait_for(&mut child, "sundown run")?;
        ensure!(status.success(), "sundown run ended with {status}");
        Ok(())
    }

    /// Notes what runs.
    pub(crate) fn look(&mut self) {
        self.trace.look();
    }

    fn wait_for(&mut self, child: &mut Child, what: &str) -> Result<ExitStatus> {
        let started_at = Instant::now();
        loop {
            if let Some(status) = child.try_wait().with_context(|| format!("await {what}"))? {
                return Ok(status);
            }
            self.trace.look();
            if started_at.elapsed() > RUN_TIME_MAX {
                child.kill().with_context(|| format!("stop {what}"))?;
                child.wait().with_context(|| format!("await {what}"))?;
                anyhow::bail!("{what} does not end");
            }
            sleep(LOOK_INTERVAL);
        }
    }

    /// What `sundown status` tells.
    pub(crate) fn status(&self) -> Result<Value> {
        let mut command = self.command(&["status", "-o", "json"]);
        let told = process::output_of(&mut command, b"")?;
        serde_json::from_str(&told.said).with_context(|| format!("read {:?}", told.said))
    }

    /// A call of kubectl.
    pub(crate) fn kubectl(&self, words: &[&str]) -> Result<String> {
        let mut command = Command::new("kubectl");
        command
            .env("KUBECONFIG", self.data.join("kubeconfig"))
            .arg("--cache-dir")
            .arg(self.files.join("kubectl-cache"))
            .args(["--request-timeout", "20s"])
            .args(words)
            .stdin(Stdio::null());
        Ok(process::output(&mut command)?.trim_end().to_owned())
    }

    /// Does something while a control plane is up; whatever comes of it, the control plane ends before its
    /// directory goes.
    pub(crate) fn while_up(&mut self, act: impl FnOnce(&mut Self) -> Result<()>) -> Result<()> {
        let log = File::create(self.files.join("up.log")).context("make a log")?;
        let mut plane = self.command(&["up"]);
        let mut plane = plane.stdout(Stdio::null()).stderr(log).spawn()?;
        let is_up =
            |it: &Self| Ok(it.data.join("kubeconfig").exists() && it.status()?["up"] == true);
        let done = until("the control plane is up", || is_up(self)).and_then(|()| act(self));
        let downed = self.command(&["down"]).output();
        plane.wait().context("await sundown up")?;
        done?;
        let downed = downed.context("run sundown down")?;
        ensure!(downed.status.success(), "sundown down failed");
        Ok(())
    }

    /// Makes what a manifest says.
    pub(crate) fn create(&self, name: &str, text: &str) -> Result<()> {
        let path = self.files.join(format!("{name}.yaml"));
        fs::write(&path, text).with_context(|| format!("write {}", path.display()))?;
        self.kubectl(&["create", "-f", &path.display().to_string()])?;
        Ok(())
    }

    /// Waits until a field of an object holds a text.
    pub(crate) fn until_told(&mut self, object: &str, path: &str, text: &str) -> Result<()> {
        let jsonpath = format!("jsonpath={path}");
        let mut found = String::new();
        let reached = until(object, || {
            self.look();
            found = self.kubectl(&["get", object, "-o", &jsonpath])?;
            Ok(found.contains(text))
        });
        reached.with_context(|| format!("{path} of {object} is {found:?}, not {text:?}"))?;
        println!("{object}: {found}");
        Ok(())
    }

    /// Fails unless no job, cluster or pod is there.
    pub(crate) fn ensure_no_objects(&self) -> Result<()> {
        let status = self.status()?;
        let runs = status["runs"].as_array().map_or(usize::MAX, Vec::len);
        ensure!(runs == 0, "objects are left: {}", status["runs"]);
        Ok(())
    }

    /// Ends the control plane, removes its data, and counts what is left of all that was seen.
    pub(crate) fn finish(mut self) -> Result<()> {
        self.ensure_no_objects()?;
        self.trace.look();
        process::output(&mut self.command(&["down"]))?;
        process::output(&mut self.command(&["reset", "--yes"]))?;
        println!("\nseen while it ran: {}", self.trace.seen());
        println!("left of it:        {}, 0 objects", self.trace.left());
        self.trace.ensure_nothing_left()
    }
}

/// Waits until something is so.
pub(crate) fn until(what: &str, mut is_reached: impl FnMut() -> Result<bool>) -> Result<()> {
    let started_at = Instant::now();
    while !is_reached()? {
        ensure!(started_at.elapsed() < STATE_TIME_MAX, "not reached: {what}");
        sleep(LOOK_INTERVAL);
    }
    Ok(())
}

impl Drop for Home {
    fn drop(&mut self) {
        // After a failure it may still run; after `finish` there is nothing to end.
        if self.data.exists() {
            let _ = self.command(&["reset", "--yes"]).output();
        }
        let _ = sundown_files::remove(self.scratch.path(), "data");
    }
}

impl Ended {
    /// Fails, with all that it said, unless it ended with this code and said this.
    pub(crate) fn expect(&self, code: i32, words: &[&str]) -> Result<()> {
        let Self { said, what, .. } = self;
        ensure!(
            self.code == Some(code),
            "{what} ended with {:?}, not {code}:\n{said}",
            self.code
        );
        for word in words {
            ensure!(said.contains(word), "{what} does not say {word:?}:\n{said}");
        }
        println!("{what}: exit code {code}, as it should");
        Ok(())
    }
}
