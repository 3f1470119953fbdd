//! `cargo xtask sim`: the simulator, in release, and the lab that puts famous bugs back.
//!
//! Scenarios, levels and the report belong to `sundown sim`; mutated rules to the lab alone.

use anyhow::Result;

use crate::sundown::Profile;
use crate::{process, sundown, workspace};

/// Runs `sundown sim` with the arguments as they are; without any, the lab as well.
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    sundown::run(Profile::Release, &["sim"], arguments)?;
    if arguments.is_empty() {
        lab(Profile::Release, &[])
    } else {
        Ok(())
    }
}

/// The simulator's part of the landing gate: every scenario, fixed seeds, every mutant. The tests have built
/// most of it already: a release build takes longer than it saves.
pub(crate) fn rotating_set() -> Result<()> {
    sundown::run(Profile::Dev, &["sim"], &[])?;
    lab(Profile::Dev, &[])
}

/// Puts bugs back and has the simulator find them; all of them when none is named.
pub(crate) fn lab(profile: Profile, names: &[String]) -> Result<()> {
    let mut cargo = workspace::cargo(&["run", "--quiet", "--package", "sundown-sim"])?;
    match profile {
        Profile::Dev => {}
        Profile::Release => {
            cargo.arg("--release");
        }
    }
    cargo.args(["--features", "mutants", "--example", "mutants", "--"]);
    process::run(cargo.args(names))
}
