//! Where things are: the root of the repository, its files, its crates, and the cache.
//!
//! The cache lies outside the clone, so that a fresh clone builds warm and a clone is never dirty.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::process;

/// The root of the repository that cargo was called in.
///
/// Asked at run time: several clones share a target directory, and this program may have been built
/// in another one.
pub(crate) fn root() -> PathBuf {
    let manifest = set_variable("CARGO_MANIFEST_DIR").expect("cargo run and cargo test set it");
    let root = manifest.parent().expect("xtask lies in the workspace");
    root.to_path_buf()
}

/// Where everything is kept that is built: `$SUNDOWN_CACHE`, else `~/.cache/sundown`.
pub(crate) fn cache() -> Result<PathBuf> {
    if let Some(cache) = set_variable("SUNDOWN_CACHE") {
        return Ok(cache);
    }
    let home = set_variable("HOME").context("set SUNDOWN_CACHE: there is no HOME to default to")?;
    Ok(home.join(".cache/sundown"))
}

/// Where cargo builds: `$CARGO_TARGET_DIR`, else the cache.
pub(crate) fn target() -> Result<PathBuf> {
    match set_variable("CARGO_TARGET_DIR") {
        Some(target) => Ok(root().join(target)),
        None => Ok(cache()?.join("target")),
    }
}

/// Makes the target directory this clone's own.
///
/// Cargo tells crates of the workspace apart by their path inside it, and fresh from stale by the
/// time of their files, so it may take another clone's build for ours. What comes from a registry
/// stays.
pub(crate) fn claim_target() -> Result<()> {
    let target = target()?;
    let stamp = target.join("sundown-clone");
    let root = root().display().to_string();
    let last = std::fs::read_to_string(&stamp).ok();
    if last.as_deref() == Some(&root) {
        return Ok(());
    }
    if last.is_some() {
        let mut clean = cargo(&["clean", "--quiet"])?;
        for name in crates()? {
            clean.args(["--package", &name]);
        }
        process::run(&mut clean)?;
    }
    std::fs::create_dir_all(&target).context("make the target directory")?;
    std::fs::write(&stamp, root).context("mark the target directory as ours")
}

/// Where tools are installed that a gate needs.
pub(crate) fn tools() -> Result<PathBuf> {
    Ok(cache()?.join("tools"))
}

/// A call of cargo at the root of the repository, building into the cache.
pub(crate) fn cargo(arguments: &[&str]) -> Result<Command> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command
        .current_dir(root())
        .env("CARGO_TARGET_DIR", target()?)
        .args(arguments);
    Ok(command)
}

/// The names of the crates below `crates/`, sorted.
pub(crate) fn crates() -> Result<Vec<String>> {
    let directory = root().join("crates");
    let mut names = Vec::new();
    for entry in std::fs::read_dir(&directory).context("list crates/")? {
        let entry = entry.context("list crates/")?;
        if entry.path().join("Cargo.toml").exists() {
            names.push(entry.file_name().to_string_lossy().into_owned());
        }
    }
    names.sort();
    Ok(names)
}

/// A text file of the repository.
#[derive(Debug, Clone)]
pub(crate) struct TextFile {
    /// Relative to the root, with `/`.
    pub(crate) path: String,
    pub(crate) text: String,
}

impl TextFile {
    /// The last part of the path.
    pub(crate) fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or(&self.path)
    }

    /// Whether it is Rust.
    pub(crate) fn is_rust(&self) -> bool {
        self.has_extension("rs")
    }

    /// Whether it is Markdown.
    pub(crate) fn is_markdown(&self) -> bool {
        self.has_extension("md")
    }

    fn has_extension(&self, extension: &str) -> bool {
        Path::new(&self.path)
            .extension()
            .is_some_and(|found| found == extension)
    }
}

/// All text files that are tracked or would be: what git knows and does not ignore.
pub(crate) fn files() -> Result<Vec<TextFile>> {
    let mut git = Command::new("git");
    git.current_dir(root()).args([
        "ls-files",
        "-z",
        "--cached",
        "--others",
        "--exclude-standard",
    ]);
    let listed = process::output(&mut git)?;
    let mut paths: Vec<&str> = listed.split('\0').filter(|path| !path.is_empty()).collect();
    paths.sort_unstable();
    paths.dedup();
    let mut files = Vec::new();
    for path in paths {
        // Deleted but not yet committed, or not text: nothing to read.
        if let Ok(text) = std::fs::read_to_string(root().join(path)) {
            files.push(TextFile {
                path: path.to_owned(),
                text,
            });
        }
    }
    Ok(files)
}

fn set_variable(name: &str) -> Option<PathBuf> {
    std::env::var_os(name)
        .filter(|value| !value.is_empty())
        .map(PathBuf::from)
}
