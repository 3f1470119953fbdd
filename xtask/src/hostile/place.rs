//! A home in a fresh temporary directory, the binary in it, and a control plane that runs there.

use std::fmt;
use std::fs::{self, File};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown, lchown};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use tempfile::TempDir;

use crate::process::{self, Done};

/// Bounds a hang; nothing is measured by it.
const WAIT_MAX: Duration = Duration::from_mins(3);
/// The same of what has hundreds of thousands of directories to remove, beside whatever else the machine does.
pub(crate) const LONG: Duration = Duration::from_mins(10);
const LOOK_INTERVAL: Duration = Duration::from_millis(200);

/// Has an account everywhere and owns nothing.
const NOBODY: u32 = 65_534;

/// A further user, who is neither of those who run the binary.
pub(crate) const OTHER: u32 = 65_533;

/// Variables that say where packages come from; all others are left out.
const INDEX: [&str; 4] = ["PIP_", "UV_", "SSL_CERT", "REQUESTS_CA"];

/// Under whose id the binary runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Who {
    /// The caller, who is root.
    Root,
    /// The caller, who is not.
    Caller,
    /// A user that root becomes.
    Nobody,
}

impl Who {
    /// All that the caller can be.
    pub(crate) fn all() -> Result<Vec<Self>> {
        let own = fs::metadata("/proc/self").context("look at this process")?;
        Ok(match own.uid() {
            0 => vec![Self::Root, Self::Nobody],
            _ => vec![Self::Caller],
        })
    }

    fn id(self) -> Option<u32> {
        match self {
            Self::Root | Self::Caller => None,
            Self::Nobody => Some(NOBODY),
        }
    }
}

impl fmt::Display for Who {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Root => f.write_str("root"),
            Self::Caller => f.write_str("the user who called"),
            Self::Nobody => write!(f, "user {NOBODY}"),
        }
    }
}

/// A home with a copy of the binary.
pub(crate) struct Place {
    scratch: TempDir,
    pub(crate) who: Who,
}

impl Place {
    pub(crate) fn new(binary: &Path, who: Who) -> Result<Self> {
        let scratch = tempfile::tempdir().context("make a temporary directory")?;
        let place = Self { scratch, who };
        fs::copy(binary, place.binary()).context("copy the binary")?;
        fs::create_dir(place.home()).context("make a home")?;
        // Others may pass through, as through a directory of homes.
        let open = fs::Permissions::from_mode(0o755);
        fs::set_permissions(place.scratch.path(), open).context("open the directory")?;
        if let Some(id) = who.id() {
            chown(place.home(), Some(id), Some(id)).context("give the home away")?;
        }
        Ok(place)
    }

    fn binary(&self) -> PathBuf {
        self.scratch.path().join("sundown")
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.scratch.path().join("home")
    }

    /// The usual data directory.
    pub(crate) fn data(&self) -> PathBuf {
        self.home().join(".local/state/sundown")
    }

    /// Where a test may keep files of its own.
    pub(crate) fn scratch(&self) -> &Path {
        self.scratch.path()
    }

    /// A call of the binary with nothing of the caller's settings but those of package indexes.
    pub(crate) fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(self.binary());
        command.args(words);
        self.at_home(command)
    }

    /// A command under the id of the user who runs the binary.
    pub(crate) fn as_owner(&self, mut command: Command) -> Command {
        if let Some(id) = self.who.id() {
            command.uid(id).gid(id);
        }
        command
    }

    fn at_home(&self, mut command: Command) -> Command {
        command.env_clear().stdin(Stdio::null());
        for (name, value) in std::env::vars() {
            let is_kept = name == "PATH" || INDEX.iter().any(|it| name.starts_with(it));
            if is_kept {
                command.env(name, value);
            }
        }
        command.env("HOME", self.home()).current_dir(self.home());
        self.as_owner(command)
    }

    /// Runs a call to its end, which has a bound; a failure is for the caller to judge.
    pub(crate) fn call(&self, words: &[&str]) -> Result<Done> {
        self.end(&mut self.command(words))
    }

    /// The same of a command that was changed.
    pub(crate) fn end(&self, command: &mut Command) -> Result<Done> {
        self.end_within(WAIT_MAX, command)
    }

    /// The same with another bound.
    pub(crate) fn end_within(&self, bound: Duration, command: &mut Command) -> Result<Done> {
        let said = self.scratch.path().join("said");
        let file = File::create(&said).context("make a file for what is said")?;
        command.stdout(file.try_clone().context("share it")?);
        let mut child = command.stderr(file).spawn().context("start it")?;
        let begun_at = Instant::now();
        let status = loop {
            if let Some(status) = child.try_wait().context("await it")? {
                break status;
            }
            if begun_at.elapsed() > bound {
                child.kill().context("stop it")?;
                child.wait().context("await it")?;
                anyhow::bail!("waited {bound:?} for the end of {command:?}");
            }
            sleep(LOOK_INTERVAL);
        };
        let said = fs::read(&said).context("read what was said")?;
        Ok(Done {
            succeeded: status.success(),
            said: String::from_utf8_lossy(&said).into_owned(),
        })
    }

    /// Starts `sundown up` and waits until it can be asked.
    pub(crate) fn up(&self, words: &[&str]) -> Result<Plane<'_>> {
        let mut command = self.command(&["up"]);
        command.args(words);
        self.started(command)
    }

    /// The same by a shell script, whose `$0` is the binary.
    pub(crate) fn up_behind(&self, script: &str) -> Result<Plane<'_>> {
        let mut shell = Command::new("sh");
        shell.arg("-c").arg(script).arg(self.binary());
        self.started(self.at_home(shell))
    }

    fn started(&self, mut command: Command) -> Result<Plane<'_>> {
        let log = self.scratch.path().join("log-of-up");
        let log = File::create(&log).context("make a log")?;
        command.stdout(Stdio::null()).stderr(log);
        let child = command.spawn().context("start sundown up")?;
        let up = Plane {
            place: self,
            child,
            is_left: false,
        };
        until("the control plane answers", || {
            Ok(up.kubectl(&["get", "namespaces"])?.succeeded)
        })?;
        Ok(up)
    }
}

impl Place {
    /// Gives everything below a path of this home to the user who runs the binary.
    pub(crate) fn own(&self, path: &Path) -> Result<()> {
        self.who.id().map_or(Ok(()), |id| Self::give(path, id))
    }

    /// Gives everything below a path to a user.
    pub(crate) fn give(path: &Path, id: u32) -> Result<()> {
        let mut left = vec![path.to_owned()];
        while let Some(path) = left.pop() {
            lchown(&path, Some(id), Some(id)).with_context(|| path.display().to_string())?;
            if fs::symlink_metadata(&path)?.is_dir() {
                left.extend(fs::read_dir(&path)?.flatten().map(|entry| entry.path()));
            }
        }
        Ok(())
    }

    /// Kills the node of the data directory of this home.
    pub(crate) fn kill_node(&self) -> Result<()> {
        let home = self.home().canonicalize().context("find the home")?;
        let home = home.display().to_string();
        for entry in fs::read_dir("/proc").context("list processes")?.flatten() {
            let line = fs::read(entry.path().join("cmdline")).unwrap_or_default();
            let line = String::from_utf8_lossy(&line).into_owned();
            if line.contains("__node-serve") && line.contains(&home) {
                let id = entry.file_name().to_string_lossy().into_owned();
                process::run(Command::new("kill").args(["-9", &id]))?;
                return Ok(());
            }
        }
        anyhow::bail!("no node of {home} runs")
    }
}

/// A control plane; ended with this value.
pub(crate) struct Plane<'a> {
    place: &'a Place,
    child: Child,
    /// Whether what it ran is left to the next one.
    is_left: bool,
}

impl Plane<'_> {
    /// A call of kubectl as the administrator; a failure is for the caller to judge.
    pub(crate) fn kubectl(&self, words: &[&str]) -> Result<Done> {
        self.kubectl_with(words, "")
    }

    /// The same with something on its standard input.
    pub(crate) fn kubectl_with(&self, words: &[&str], input: &str) -> Result<Done> {
        let mut command = Command::new("kubectl");
        command
            .env("KUBECONFIG", self.place.data().join("kubeconfig"))
            .arg("--cache-dir")
            .arg(self.place.scratch.path().join("kubectl-cache"))
            .args(["--request-timeout", "30s"])
            .args(words);
        process::output_of(&mut command, input.as_bytes())
    }

    /// The same, and it has to succeed.
    pub(crate) fn ask(&self, words: &[&str]) -> Result<String> {
        let done = self.kubectl(words)?;
        ensure!(done.succeeded, "kubectl {words:?}: {}", done.said);
        Ok(done.said.trim_end().to_owned())
    }

    /// Creates what a manifest says.
    pub(crate) fn create(&self, manifest: &str) -> Result<()> {
        let done = self.kubectl_with(&["create", "-f", "-"], manifest)?;
        ensure!(done.succeeded, "{}\n{manifest}", done.said);
        Ok(())
    }

    /// Runs a shell script in a pod to its end, removes the pod, and gives what it wrote.
    pub(crate) fn script(&self, name: &str, image: &str, script: &str) -> Result<String> {
        let script = serde_json::to_string(script).context("quote a script")?;
        self.create(&format!(
            "apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}}}\nspec:\n  restartPolicy: Never\n  \
             terminationGracePeriodSeconds: 0\n  containers:\n  \
             - {{name: main, image: '{image}', command: [sh, -c, {script}]}}\n"
        ))?;
        until(&format!("pod {name} ends"), || {
            let phase = self.ask(&["get", "pod", name, "-o", "jsonpath={.status.phase}"])?;
            Ok(phase == "Succeeded" || phase == "Failed")
        })?;
        let said = self.ask(&["logs", name])?;
        self.ask(&["delete", "pod", name, "--timeout=60s"])?;
        Ok(said)
    }

    /// Ends pods and control plane by `down`, which has to succeed.
    pub(crate) fn end_within(mut self, bound: Duration) -> Result<()> {
        let down = self
            .place
            .end_within(bound, &mut self.place.command(&["down"]))?;
        ensure!(down.succeeded, "down: {}", down.said);
        self.is_left = true;
        self.child.wait().context("await sundown up")?;
        Ok(())
    }

    /// Kills the control plane; its node and pods stay.
    pub(crate) fn kill(mut self) -> Result<()> {
        self.is_left = true;
        self.child.kill().context("kill sundown up")?;
        self.child.wait().context("await sundown up")?;
        Ok(())
    }

    /// What it has said so far.
    pub(crate) fn log(&self) -> Result<String> {
        let path = self.place.scratch.path().join("log-of-up");
        fs::read_to_string(path).context("read the log of up")
    }

    /// Writes a file for kubectl; gives its path.
    pub(crate) fn file(&self, name: &str, content: &str) -> Result<String> {
        let path = self.place.scratch.path().join(name);
        fs::write(&path, content).with_context(|| format!("write {}", path.display()))?;
        Ok(path.display().to_string())
    }

    /// The process of the control plane.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Plane<'_> {
    fn drop(&mut self) {
        if self.is_left {
            return;
        }
        // Pods first; what does not end by itself is killed.
        let _ = self.place.call(&["down"]);
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Waits for a state, with a bound.
pub(crate) fn until(what: &str, mut is_so: impl FnMut() -> Result<bool>) -> Result<()> {
    let begun_at = Instant::now();
    while !is_so()? {
        ensure!(begun_at.elapsed() < WAIT_MAX, "waited {WAIT_MAX:?}: {what}");
        sleep(LOOK_INTERVAL);
    }
    Ok(())
}
