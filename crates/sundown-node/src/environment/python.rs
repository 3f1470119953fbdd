//! The Pythons of this machine: on PATH, of pyenv, of uv. Each is asked what it is; names are not
//! believed, since a shim may lead anywhere.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use serde::Deserialize;
use tokio::process::Command;

use super::recipe::PythonVersion;

/// What every interpreter is asked.
const QUESTION: &str = "import json, sys; print(json.dumps({'version': list(sys.version_info[:2]), \
     'executable': sys.executable, 'prefix': sys.base_prefix}))";

/// In the order in which they are tried where the image does not say: the one that most wheels of the
/// field are made for comes first.
const PREFERRED: [PythonVersion; 6] = [(3, 11), (3, 12), (3, 10), (3, 13), (3, 9), (3, 14)];

/// An interpreter.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
pub(super) struct Python {
    pub(super) version: PythonVersion,
    pub(super) executable: PathBuf,
    /// Where its library is.
    pub(super) prefix: PathBuf,
}

/// What interpreters answered. Each question starts a process, and a loaded machine needs seconds for
/// it; an answer holds as long as neither the program nor the interpreter behind it is touched.
#[derive(Debug, Default)]
pub(super) struct Known(Mutex<BTreeMap<PathBuf, Answer>>);

#[derive(Debug, Clone)]
struct Answer {
    /// When the program was last changed that was asked, and the one that answered.
    changed_at: (SystemTime, SystemTime),
    python: Python,
}

impl Known {
    /// The interpreters that may serve, best first.
    pub(super) async fn all(&self, wanted: Option<PythonVersion>) -> Vec<Python> {
        let mut found = Vec::new();
        for version in versions(wanted) {
            found.extend(self.of(version).await);
        }
        found
    }

    /// The best of them; the rest is not asked.
    pub(super) async fn first(&self, wanted: Option<PythonVersion>) -> Option<Python> {
        for version in versions(wanted) {
            if let Some(python) = self.of(version).await {
                return Some(python);
            }
        }
        None
    }

    async fn of(&self, version: PythonVersion) -> Option<Python> {
        for candidate in candidates(version) {
            if let Some(python) = self.fitting(&candidate, version).await {
                return Some(python);
            }
        }
        self.fitting(&of_uv(version).await?, version).await
    }

    async fn fitting(&self, program: &Path, version: PythonVersion) -> Option<Python> {
        let python = self.ask(program).await?;
        (python.version == version).then_some(python)
    }

    /// What a program is.
    pub(super) async fn ask(&self, program: &Path) -> Option<Python> {
        if let Some(python) = self.remembered(program) {
            return Some(python);
        }
        let python = ask(program).await?;
        if let Some(changed_at) = changed_at(program, &python) {
            let python = python.clone();
            let answer = Answer { changed_at, python };
            self.answers().insert(program.to_owned(), answer);
        }
        Some(python)
    }

    fn remembered(&self, program: &Path) -> Option<Python> {
        let answer = self.answers().get(program).cloned()?;
        let is_same = changed_at(program, &answer.python) == Some(answer.changed_at);
        is_same.then_some(answer.python)
    }

    fn answers(&self) -> MutexGuard<'_, BTreeMap<PathBuf, Answer>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn versions(wanted: Option<PythonVersion>) -> Vec<PythonVersion> {
    wanted.map_or_else(|| PREFERRED.to_vec(), |version| vec![version])
}

fn changed_at(program: &Path, python: &Python) -> Option<(SystemTime, SystemTime)> {
    let of = |path: &Path| path.metadata().and_then(|it| it.modified()).ok();
    Some((of(program)?, of(&python.executable)?))
}

async fn ask(program: &Path) -> Option<Python> {
    let output = Command::new(program).args(["-c", QUESTION]).output();
    let output = output.await.ok().filter(|it| it.status.success())?;
    serde_json::from_slice(&output.stdout).ok()
}

fn candidates((major, minor): PythonVersion) -> BTreeSet<PathBuf> {
    let name = format!("python{major}.{minor}");
    let path = std::env::var_os("PATH").unwrap_or_default();
    let on_path = std::env::split_paths(&path);
    let mut candidates: BTreeSet<PathBuf> = on_path
        .flat_map(|directory| [directory.join(&name), directory.join("python3")])
        .filter(|program| program.is_file())
        .collect();
    candidates.extend(of_pyenv(&format!("{major}.{minor}.")));
    candidates
}

fn of_pyenv(start: &str) -> Vec<PathBuf> {
    let home = std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".pyenv"));
    let root = std::env::var_os("PYENV_ROOT").map(PathBuf::from).or(home);
    let versions = root.and_then(|root| std::fs::read_dir(root.join("versions")).ok());
    let versions = versions.into_iter().flatten().flatten();
    let fitting = versions.filter(|it| it.file_name().to_string_lossy().starts_with(start));
    fitting.map(|it| it.path().join("bin/python3")).collect()
}

/// The one that uv would take; asked last, because asking starts a process.
async fn of_uv((major, minor): PythonVersion) -> Option<PathBuf> {
    let version = format!("{major}.{minor}");
    let found = Command::new("uv")
        .args(["python", "find", &version])
        .output();
    let found = found.await.ok().filter(|it| it.status.success())?;
    let text = String::from_utf8(found.stdout).ok()?;
    Some(PathBuf::from(text.trim()))
}

#[cfg(test)]
mod tests;
