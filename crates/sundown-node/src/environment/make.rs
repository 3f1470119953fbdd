//! How a virtual environment is made: by `uv` where there is one, else by pip. Bytecode is compiled
//! along with it, because pods see it read-only and would compile it at every start.
//!
//! From wheels only: building a source package runs its code, here on the host and outside of every pod.

use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;

use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};
use tokio::process::Command;

use super::mark;
use super::python::{self, Python};
use super::recipe::PythonVersion;
use super::sources::{self, Installer};
use super::tool::{self, ISOLATED};

/// How much of what a tool said is told when it failed.
const LINES_TOLD_MAX: usize = 12;

/// How far the making is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Progress {
    /// In a few words.
    pub step: String,
}

/// Why there is no environment.
#[derive(Debug, thiserror::Error)]
pub enum MakeError {
    #[error(
        "there is no Python {version} on this machine (PATH, pyenv, uv){passed_over}: install it, for \
         example with `uv python install {version}`"
    )]
    NoPython {
        version: String,
        passed_over: String,
    },
    /// A package cannot be had without building it.
    #[error(
        "there is no wheel of {package} for {python} where packages come from, and Sundown installs wheels \
         only, because building a source package runs its code on this machine: take a version or a \
         Python that has one, or build a wheel yourself (`pip wheel '{package}'`) and name its directory \
         in PIP_FIND_LINKS (uv: UV_FIND_LINKS)"
    )]
    NoWheel { package: String, python: String },
    /// Nothing more may be made; what to do.
    #[error("{0}")]
    Full(String),
    #[error(
        "{} is there but was not made by Sundown: move it away, or set SUNDOWN_CACHE to another directory",
        path.display()
    )]
    Foreign { path: PathBuf },
    #[error("{program} failed with {status}:\n{said}")]
    Failed {
        program: String,
        status: ExitStatus,
        said: String,
    },
    #[error("{what}")]
    Io {
        what: String,
        #[source]
        source: io::Error,
    },
    /// Nothing can be made, and why.
    #[error("{0}")]
    Unavailable(String),
}

impl MakeError {
    pub(super) fn io(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let what = what.into();
        |source| Self::Io { what, source }
    }
}

/// What shall be in an environment.
#[derive(Debug, Clone, Copy)]
pub(super) struct Order<'a> {
    pub(super) directory: &'a Path,
    /// Of the directory, held.
    pub(super) lock: &'a Arc<File>,
    pub(super) requirements: &'a [String],
    pub(super) python: Option<PythonVersion>,
    pub(super) installer: &'a Installer,
}

/// Makes an environment; gives the interpreter that it is for.
///
/// Where no Python is asked for, those of the machine are tried until one has wheels.
pub(super) async fn make(
    order: Order<'_>,
    pythons: &python::Known,
    tell: &mut (dyn FnMut(Progress) + Send),
) -> Result<Python, MakeError> {
    if let Some(requirement) = order.requirements.iter().find(|it| !is_of_index(it)) {
        let requirement = sources::bare(requirement);
        return Err(MakeError::Unavailable(format!(
            "the image rule asks for the package {requirement:?}: a package is named as at an index, such \
             as \"numpy==2.1\", or is the address of a wheel; what has to be built is not installed, \
             because that runs its code on this machine"
        )));
    }
    let choice = pythons.all(order.python).await;
    let mut last_error = MakeError::NoPython {
        version: order
            .python
            .map_or("3".to_owned(), |(major, minor)| format!("{major}.{minor}")),
        passed_over: choice.passed_over,
    };
    for python in choice.pythons {
        clear(order).await?;
        let installed = install(order, &python, tell).await;
        let Err(error) = installed else {
            return Ok(python);
        };
        // It would count as one until somebody prunes it. What cannot be removed is removed by the next try.
        let directory = order.directory.to_owned();
        let _ = apart(order.lock, move || mark::discard(&directory)).await;
        match error {
            // Another Python has other wheels.
            error @ MakeError::NoWheel { .. } if order.python.is_none() => last_error = error,
            error => return Err(error),
        }
    }
    Err(last_error)
}

/// Begins anew in the directory of this environment, without what a Python before this one left there.
async fn clear(order: Order<'_>) -> Result<(), MakeError> {
    let directory = order.directory;
    let what = format!("remove {}", directory.display());
    let removed = directory.to_owned();
    let removed = apart(order.lock, move || mark::discard(&removed)).await;
    let removed = removed.and_then(|it| it);
    removed.map_err(MakeError::io(what))?;
    let what = format!("make {}", directory.display());
    mark::begin(directory).map_err(MakeError::io(what))
}

/// Runs what walks through whole directories on a thread of its own: an environment has tens of thousands
/// of files, and everything else of the control plane would wait for them.
///
/// Guarantees: the lock is held until the work is over, also when its caller has given up waiting.
pub(super) async fn apart<T: Send + 'static>(
    lock: &Arc<File>,
    work: impl FnOnce() -> T + Send + 'static,
) -> io::Result<T> {
    let lock = Arc::clone(lock);
    let done = tokio::task::spawn_blocking(move || {
        let done = work();
        drop(lock);
        done
    });
    done.await.map_err(io::Error::other)
}

async fn install(
    order: Order<'_>,
    python: &Python,
    tell: &mut (dyn FnMut(Progress) + Send),
) -> Result<(), MakeError> {
    let (major, minor) = python.version;
    let step = format!("virtual environment with Python {major}.{minor}");
    tell(Progress { step });
    let own = order.directory.join("bin/python");
    let commands = match order.installer {
        Installer::Uv(uv) => [
            with_uv_venv(uv, order, python),
            with_uv_install(uv, order, &own),
        ],
        Installer::Pip => [with_venv(order, python), with_pip(order, &own)],
    };
    for command in commands {
        let ended = run(command, tell).await;
        ended.map_err(|error| name_the_wheel(error, python))?;
    }
    Ok(())
}

/// What installs on this machine.
pub(super) async fn installer() -> Installer {
    let Some(uv) = tool::find("uv") else {
        return Installer::Pip;
    };
    // A shim may be there without the program that it is for.
    let mut command = tool::command(&uv);
    let said = tool::answer(command.arg("--version"), tool::ANSWER_TIME_MAX).await;
    if said.is_ok_and(|said| said.is_some()) {
        Installer::Uv(uv)
    } else {
        Installer::Pip
    }
}

fn with_uv_venv(uv: &Path, order: Order<'_>, python: &Python) -> Command {
    let mut command = tool::command(uv);
    // The directory is there: it holds the proof that it is ours.
    command.args(["venv", "--allow-existing", "--python"]);
    command.arg(&python.executable).arg(order.directory);
    command
}

fn with_uv_install(uv: &Path, order: Order<'_>, own: &Path) -> Command {
    let mut command = tool::command(uv);
    command.args(["pip", "install", "--compile-bytecode", "--no-build"]);
    command.arg("--python").arg(own).args(order.requirements);
    command
}

fn with_venv(order: Order<'_>, python: &Python) -> Command {
    let mut command = tool::command(&python.executable);
    command.args([ISOLATED, "-m", "venv"]).arg(order.directory);
    command
}

fn with_pip(order: Order<'_>, own: &Path) -> Command {
    let mut command = tool::command(own);
    let quiet = [
        "--no-input",
        "--disable-pip-version-check",
        "--progress-bar=off",
    ];
    command
        .args([ISOLATED, "-m", "pip", "install"])
        .args(quiet)
        .arg("--only-binary=:all:")
        .args(order.requirements);
    command
}

/// Whether a requirement is looked up at an index, or is a wheel as it is. What lies elsewhere would be
/// built, also where only wheels are asked for; and an option is no requirement.
fn is_of_index(requirement: &str) -> bool {
    let requirement = requirement.trim();
    let is_elsewhere = requirement.starts_with(['-', '.', '~'])
        || requirement.contains('/')
        || requirement.contains('@');
    let address = requirement
        .split(['#', '?', ';'])
        .next()
        .unwrap_or_default();
    // As pip reads it: what ends with `.WHL` it would unpack and build.
    let is_wheel = Path::new(address.trim_end()).extension() == Some("whl".as_ref());
    let is_wheel = is_wheel && !requirement.starts_with('-');
    !is_elsewhere || is_wheel
}

/// Runs a tool to its end and tells what it does.
async fn run(
    mut command: Command,
    tell: &mut (dyn FnMut(Progress) + Send),
) -> Result<(), MakeError> {
    let program = command.as_std().get_program();
    let program = PathBuf::from(program).display().to_string();
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command
        .spawn()
        .map_err(MakeError::io(format!("start {program}")))?;
    let mut lines = Lines::default();
    let (mut out, mut err) = (reader(child.stdout.take()), reader(child.stderr.take()));
    loop {
        let line = tokio::select! {
            Some(line) = next(&mut out) => line,
            Some(line) = next(&mut err) => line,
            else => break,
        };
        let line = sources::bare(&line);
        if let Some(step) = step(&line) {
            tell(Progress { step });
        }
        lines.push(line);
    }
    let status = child
        .wait()
        .await
        .map_err(MakeError::io(format!("wait for {program}")))?;
    if status.success() {
        return Ok(());
    }
    Err(MakeError::Failed {
        program,
        status,
        said: lines.told(),
    })
}

type Reader<R> = Option<tokio::io::Split<BufReader<R>>>;

fn reader<R: AsyncRead + Unpin>(from: Option<R>) -> Reader<R> {
    from.map(|from| BufReader::new(from).split(b'\n'))
}

/// The next line; None once there is none any more. Cancel-safe.
async fn next<R: AsyncRead + Unpin>(reader: &mut Reader<R>) -> Option<String> {
    let lines = reader.as_mut()?;
    let line = lines.next_segment().await.ok().flatten();
    let Some(line) = line else {
        *reader = None;
        return None;
    };
    // Names of files may be in it, which are of any bytes.
    let line = String::from_utf8_lossy(&line);
    Some(line.trim_end_matches('\r').to_owned())
}

/// The last lines of a tool.
#[derive(Debug, Default)]
struct Lines(VecDeque<String>);

impl Lines {
    fn push(&mut self, line: String) {
        if self.0.len() == LINES_TOLD_MAX {
            self.0.pop_front();
        }
        self.0.push_back(line);
    }

    fn told(self) -> String {
        Vec::from(self.0).join("\n")
    }
}

/// What a line of pip or uv says to people who wait.
fn step(line: &str) -> Option<String> {
    let line = line.trim();
    let told = ["Downloading ", "Prepared ", "Resolved ", "Installed "];
    if told.iter().any(|start| line.starts_with(start)) {
        return Some(line.to_owned());
    }
    if let Some(packages) = line.strip_prefix("Installing collected packages: ") {
        let count = packages.split(',').count();
        return Some(format!("installing {count} packages"));
    }
    None
}

/// A failure for want of a wheel, told as such.
fn name_the_wheel(error: MakeError, python: &Python) -> MakeError {
    let package = match &error {
        MakeError::Failed { said, .. } => without_wheel(said),
        MakeError::NoPython { .. }
        | MakeError::NoWheel { .. }
        | MakeError::Full(_)
        | MakeError::Foreign { .. }
        | MakeError::Io { .. }
        | MakeError::Unavailable(_) => None,
    };
    let (major, minor) = python.version;
    match package {
        Some(package) => MakeError::NoWheel {
            package,
            python: format!("Python {major}.{minor}"),
        },
        None => error,
    }
}

/// The package that pip or uv found no wheel of, by what they said last.
fn without_wheel(said: &str) -> Option<String> {
    // Without a network pip finds nothing either, and another Python would not change that.
    let of_network = [
        "Failed to establish a new connection",
        "connection broken by",
        "error sending request",
        "was not found in the package registry",
    ];
    if of_network.iter().any(|sign| said.contains(sign)) {
        return None;
    }
    let after = |sign: &str| said.split_once(sign).map(|(_, rest)| rest);
    // pip: `No matching distribution found for docopt>=0.6.2`.
    let of_pip = after("No matching distribution found for ")
        .and_then(|rest| rest.lines().next())
        .map(|rest| rest.split(" (from ").next().unwrap_or(rest));
    // uv: ``hint: Wheels are required for `docopt` because ...``, or `Because ray==2.0 has no wheels with
    // a matching Python ...`.
    let hinted = after("Wheels are required for `").and_then(|rest| rest.split('`').next());
    let concluded = [" has no usable wheels", " has no wheels with a matching"]
        .iter()
        .find_map(|sign| said.split_once(sign))
        .and_then(|(before, _)| before.split_whitespace().last());
    let package = of_pip.or(hinted).or(concluded)?.trim();
    (!package.is_empty()).then(|| package.to_owned())
}

#[cfg(test)]
mod tests;
