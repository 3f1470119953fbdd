//! The `sundown` binary: built from this tree, then called.
//!
//! What its commands do is not known here.

use std::path::PathBuf;
use std::process::Command;

use anyhow::Result;

use crate::{process, workspace};

/// How the binary is built.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Profile {
    /// Quick to build, with checks of the arithmetic: demo, scripts and the landing gate.
    Dev,
    /// Quick to run: long simulations and benchmarks.
    Release,
}

/// Builds the binary, with cargo's progress, and returns where it is.
pub(crate) fn build(profile: Profile) -> Result<PathBuf> {
    let mut cargo = workspace::cargo(&["build", "--package", "sundown"])?;
    let directory = match profile {
        Profile::Dev => "debug",
        Profile::Release => {
            cargo.arg("--release");
            "release"
        }
    };
    println!(
        "building sundown ({directory}) in {}",
        workspace::target()?.display()
    );
    process::run(&mut cargo)?;
    Ok(workspace::target()?.join(directory).join("sundown"))
}

/// Builds the binary and runs one command of it.
pub(crate) fn run(profile: Profile, command: &[&str], arguments: &[String]) -> Result<()> {
    let binary = build(profile)?;
    process::run(
        Command::new(binary)
            .current_dir(workspace::root())
            .args(command)
            .args(arguments),
    )
}
