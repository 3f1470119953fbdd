//! The Pythons of this machine: on PATH, of pyenv, of uv. Each is asked what it is; names are not
//! believed, since a shim may lead anywhere.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use super::hidden::Hidden;
use super::recipe::PythonVersion;
use super::tool::{self, ISOLATED, Silent};
use serde::Deserialize;

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
#[derive(Debug)]
pub(super) struct Known {
    answers: Mutex<BTreeMap<PathBuf, Answer>>,
    /// An interpreter whose library lies around one of these is passed over.
    hidden: Hidden,
    /// How long an interpreter may take for its answer.
    answer_time_max: Duration,
}

impl Default for Known {
    fn default() -> Self {
        Self::hiding(Hidden::default())
    }
}

/// The interpreters that may serve, best first.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Choice {
    pub(super) pythons: Vec<Python>,
    /// What was passed over and why; empty or `; ...`, to follow that there is none.
    pub(super) passed_over: String,
}

#[derive(Debug, Clone)]
struct Answer {
    /// When the program was last changed that was asked, and the one that answered.
    changed_at: (SystemTime, SystemTime),
    python: Python,
}

impl Known {
    /// Passes over what would show one of these to pods.
    pub(super) fn hiding(hidden: Hidden) -> Self {
        Self {
            answers: Mutex::default(),
            hidden,
            answer_time_max: tool::ANSWER_TIME_MAX,
        }
    }

    /// All that may serve.
    pub(super) async fn all(&self, wanted: Option<PythonVersion>) -> Choice {
        self.choice(wanted, PREFERRED.len()).await
    }

    /// The best of them; the rest is not asked.
    pub(super) async fn first(&self, wanted: Option<PythonVersion>) -> Choice {
        self.choice(wanted, 1).await
    }

    async fn choice(&self, wanted: Option<PythonVersion>, count_max: usize) -> Choice {
        let mut choice = Choice::default();
        for version in versions(wanted) {
            self.choose(version, &mut choice).await;
            if choice.pythons.len() == count_max {
                break;
            }
        }
        choice
    }

    async fn choose(&self, version: PythonVersion, choice: &mut Choice) {
        for candidate in candidates(version) {
            if self.take(&candidate, version, choice).await {
                return;
            }
        }
        if let Some(program) = of_uv(version).await {
            self.take(&program, version, choice).await;
        }
    }

    /// Takes an interpreter if it fits, and says whether it did.
    async fn take(&self, program: &Path, version: PythonVersion, choice: &mut Choice) -> bool {
        let Some(python) = self.fitting(program, version).await else {
            return false;
        };
        if let Some(why) = self.revealed_by(&python.prefix) {
            let program = python.executable.display();
            let text = format!("; {program} is passed over, because {why}, which pods would see");
            choice.passed_over.push_str(&text);
            return false;
        }
        choice.pythons.push(python);
        true
    }

    /// What pods would see of the hidden in a directory that is bound for them; in words.
    pub(super) fn revealed_by(&self, directory: &Path) -> Option<String> {
        self.hidden.revealed_by(directory)
    }

    async fn fitting(&self, program: &Path, version: PythonVersion) -> Option<Python> {
        let python = self.ask(program).await.ok().flatten()?;
        (python.version == version).then_some(python)
    }

    /// What a program is; None: no interpreter.
    pub(super) async fn ask(&self, program: &Path) -> Result<Option<Python>, Silent> {
        if let Some(python) = self.remembered(program) {
            return Ok(Some(python));
        }
        let Some(python) = ask(program, self.answer_time_max).await? else {
            return Ok(None);
        };
        if let Some(changed_at) = changed_at(program, &python) {
            let python = python.clone();
            let answer = Answer { changed_at, python };
            self.answers().insert(program.to_owned(), answer);
        }
        Ok(Some(python))
    }

    fn remembered(&self, program: &Path) -> Option<Python> {
        let answer = self.answers().get(program).cloned()?;
        let is_same = changed_at(program, &answer.python) == Some(answer.changed_at);
        is_same.then_some(answer.python)
    }

    fn answers(&self) -> MutexGuard<'_, BTreeMap<PathBuf, Answer>> {
        self.answers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn versions(wanted: Option<PythonVersion>) -> Vec<PythonVersion> {
    wanted.map_or_else(|| PREFERRED.to_vec(), |version| vec![version])
}

fn changed_at(program: &Path, python: &Python) -> Option<(SystemTime, SystemTime)> {
    let of = |path: &Path| path.metadata().and_then(|it| it.modified()).ok();
    Some((of(program)?, of(&python.executable)?))
}

async fn ask(program: &Path, answer_time_max: Duration) -> Result<Option<Python>, Silent> {
    let mut command = tool::command(program);
    command.args([ISOLATED, "-c", QUESTION]);
    let said = tool::answer(&mut command, answer_time_max).await?;
    Ok(said.and_then(|said| serde_json::from_slice(&said).ok()))
}

fn candidates((major, minor): PythonVersion) -> BTreeSet<PathBuf> {
    let name = format!("python{major}.{minor}");
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut candidates: BTreeSet<PathBuf> = tool::directories(&path)
        .into_iter()
        .flat_map(|directory| [directory.join(&name), directory.join("python3")])
        .filter(|program| program.is_file())
        .collect();
    candidates.extend(of_pyenv(&format!("{major}.{minor}.")));
    candidates
}

fn of_pyenv(start: &str) -> Vec<PathBuf> {
    let home = std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".pyenv"));
    let root = std::env::var_os("PYENV_ROOT").map(PathBuf::from).or(home);
    let root = root.filter(|it| it.is_absolute());
    let versions = root.and_then(|root| std::fs::read_dir(root.join("versions")).ok());
    let versions = versions.into_iter().flatten().flatten();
    let fitting = versions.filter(|it| it.file_name().to_string_lossy().starts_with(start));
    fitting.map(|it| it.path().join("bin/python3")).collect()
}

/// The one that uv would take; asked last, because asking starts a process.
async fn of_uv((major, minor): PythonVersion) -> Option<PathBuf> {
    let version = format!("{major}.{minor}");
    let mut command = tool::command(&tool::find("uv")?);
    command.args(["python", "find", &version]);
    let found = tool::answer(&mut command, tool::ANSWER_TIME_MAX).await;
    let text = String::from_utf8(found.ok().flatten()?).ok()?;
    Some(PathBuf::from(text.trim())).filter(|it| it.is_absolute())
}

#[cfg(test)]
mod tests;
