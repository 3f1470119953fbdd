//! The Pythons of this machine: on PATH, of pyenv, of uv. Each is asked what it is; names are not
//! believed, since a shim may lead anywhere.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

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

/// The interpreters that may serve, best first.
pub(super) async fn find(wanted: Option<PythonVersion>) -> Vec<Python> {
    let versions = wanted.map_or_else(|| PREFERRED.to_vec(), |version| vec![version]);
    let mut found = Vec::new();
    for version in versions {
        for candidate in candidates(version).await {
            let Some(python) = ask(&candidate).await else {
                continue;
            };
            if python.version == version && !found.contains(&python) {
                found.push(python);
                break;
            }
        }
    }
    found
}

/// The environment's own interpreter.
pub(super) async fn ask(program: &Path) -> Option<Python> {
    let output = Command::new(program).args(["-c", QUESTION]).output();
    let output = output.await.ok().filter(|it| it.status.success())?;
    serde_json::from_slice(&output.stdout).ok()
}

async fn candidates((major, minor): PythonVersion) -> BTreeSet<PathBuf> {
    let name = format!("python{major}.{minor}");
    let path = std::env::var_os("PATH").unwrap_or_default();
    let on_path = std::env::split_paths(&path);
    let mut candidates: BTreeSet<PathBuf> = on_path
        .flat_map(|directory| [directory.join(&name), directory.join("python3")])
        .filter(|program| program.is_file())
        .collect();
    candidates.extend(of_pyenv(&format!("{major}.{minor}.")));
    candidates.extend(of_uv(&format!("{major}.{minor}")).await);
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

async fn of_uv(version: &str) -> Option<PathBuf> {
    let found = Command::new("uv")
        .args(["python", "find", version])
        .output();
    let found = found.await.ok().filter(|it| it.status.success())?;
    let text = String::from_utf8(found.stdout).ok()?;
    Some(PathBuf::from(text.trim()))
}
