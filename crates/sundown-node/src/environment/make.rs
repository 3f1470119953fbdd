//! How a virtual environment is made: by `uv` where there is one, else by pip. Bytecode is compiled
//! along with it, because pods see it read-only and would compile it at every start.

use std::collections::VecDeque;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};

use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};
use tokio::process::Command;

use super::python::{self, Python};
use super::recipe::PythonVersion;

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
        "there is no Python {version} on this machine (PATH, pyenv, uv): install it, for example \
         with `uv python install {version}`"
    )]
    NoPython { version: String },
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
    pub(super) requirements: &'a [String],
    pub(super) python: Option<PythonVersion>,
}

/// Makes an environment; gives the interpreter that it is for.
///
/// Where no Python is asked for, those of the machine are tried until one has wheels.
pub(super) async fn make(
    order: Order<'_>,
    pythons: &python::Known,
    tell: &mut (dyn FnMut(Progress) + Send),
) -> Result<Python, MakeError> {
    let pythons = pythons.all(order.python).await;
    let mut last_error = MakeError::NoPython {
        version: order
            .python
            .map_or("3".to_owned(), |(major, minor)| format!("{major}.{minor}")),
    };
    for python in pythons {
        clear(order.directory)?;
        match install(order, &python, tell).await {
            Ok(()) => return Ok(python),
            // Another Python has other wheels.
            Err(error) if order.python.is_none() && is_about_wheels(&error) => last_error = error,
            Err(error) => return Err(error),
        }
    }
    Err(last_error)
}

/// Removes what an interrupted making left in the directory of this environment.
fn clear(directory: &Path) -> Result<(), MakeError> {
    match std::fs::remove_dir_all(directory) {
        Err(source) if source.kind() != io::ErrorKind::NotFound => {
            let what = format!("remove {}", directory.display());
            Err(MakeError::Io { what, source })
        }
        Ok(()) | Err(_) => Ok(()),
    }
}

async fn install(
    order: Order<'_>,
    python: &Python,
    tell: &mut (dyn FnMut(Progress) + Send),
) -> Result<(), MakeError> {
    let (major, minor) = python.version;
    let step = format!("virtual environment with Python {major}.{minor}");
    tell(Progress { step });
    let has_uv = Command::new("uv")
        .arg("--version")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    let has_uv = has_uv.await.is_ok_and(|status| status.success());
    let own = order.directory.join("bin/python");
    let commands = if has_uv {
        [with_uv_venv(order, python), with_uv_install(order, &own)]
    } else {
        [with_venv(order, python), with_pip(order, &own)]
    };
    for command in commands {
        run(command, tell).await?;
    }
    Ok(())
}

fn with_uv_venv(order: Order<'_>, python: &Python) -> Command {
    let mut command = Command::new("uv");
    command.args(["venv", "--python"]).arg(&python.executable);
    command.arg(order.directory);
    command
}

fn with_uv_install(order: Order<'_>, own: &Path) -> Command {
    let mut command = Command::new("uv");
    command.args(["pip", "install", "--compile-bytecode", "--python"]);
    command.arg(own).args(order.requirements);
    command
}

fn with_venv(order: Order<'_>, python: &Python) -> Command {
    let mut command = Command::new(&python.executable);
    command.args(["-m", "venv"]).arg(order.directory);
    command
}

fn with_pip(order: Order<'_>, own: &Path) -> Command {
    let mut command = Command::new(own);
    let quiet = [
        "--no-input",
        "--disable-pip-version-check",
        "--progress-bar=off",
    ];
    command.args(["-m", "pip", "install"]).args(quiet);
    // Ray cannot be built from source here; a missing wheel shall be said at once.
    command.arg("--only-binary=ray").args(order.requirements);
    command
}

/// Runs a tool to its end and tells what it does.
async fn run(
    mut command: Command,
    tell: &mut (dyn FnMut(Progress) + Send),
) -> Result<(), MakeError> {
    let program = command.as_std().get_program();
    let program = PathBuf::from(program).display().to_string();
    command
        .env_remove("PYTHONDONTWRITEBYTECODE")
        .env_remove("PYTHONPATH")
        .env_remove("PYTHONHOME")
        .env_remove("VIRTUAL_ENV")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
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

type Reader<R> = Option<tokio::io::Lines<BufReader<R>>>;

fn reader<R: AsyncRead + Unpin>(from: Option<R>) -> Reader<R> {
    from.map(|from| BufReader::new(from).lines())
}

/// The next line; None once there is none any more.
async fn next<R: AsyncRead + Unpin>(reader: &mut Reader<R>) -> Option<String> {
    let lines = reader.as_mut()?;
    let line = lines.next_line().await.ok().flatten();
    if line.is_none() {
        *reader = None;
    }
    line
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

fn is_about_wheels(error: &MakeError) -> bool {
    let signs = [
        "No matching distribution",
        "no wheels with a matching Python",
        "has no wheels",
        "requires a different Python",
    ];
    // Without a network pip finds nothing either, and another Python would not change that.
    let of_network = [
        "Failed to establish a new connection",
        "connection broken by",
        "error sending request",
    ];
    match error {
        MakeError::Failed { said, .. } => {
            let says = |signs: &[&str]| signs.iter().any(|sign| said.contains(sign));
            says(&signs) && !says(&of_network)
        }
        MakeError::NoPython { .. } | MakeError::Io { .. } | MakeError::Unavailable(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_pip_and_uv_are_told_in_short() {
        let cases = [
            (
                "  Downloading ray-2.52.0-cp311.whl (72.2 MB)",
                Some("Downloading ray-2.52.0-cp311.whl (72.2 MB)"),
            ),
            (
                "Installing collected packages: a, b, c",
                Some("installing 3 packages"),
            ),
            (
                "Installed 38 packages in 1.2s",
                Some("Installed 38 packages in 1.2s"),
            ),
            ("Collecting ray", None),
        ];
        for (line, expected) in cases {
            assert_eq!(step(line).as_deref(), expected);
        }
    }

    #[tokio::test]
    async fn a_tool_that_fails_is_told_with_its_last_lines() {
        let mut command = Command::new("sh");
        command.args([
            "-c",
            "for i in $(seq 40); do echo line $i; done; echo why >&2; exit 3",
        ]);
        let error = run(command, &mut |_| {}).await.unwrap_err().to_string();
        assert!(
            error.contains("exit status: 3") && error.contains("line 40"),
            "{error}"
        );
        assert!(!error.contains("line 5\n"), "{error}");
    }
}
