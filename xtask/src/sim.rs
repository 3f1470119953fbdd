//! `cargo xtask sim`: the simulator, in release, and the lab that puts famous bugs back.
//!
//! Scenarios, levels and the report belong to `sundown sim`; mutated rules to the lab alone.

use anyhow::Result;

use crate::{process, sundown, workspace};

/// Runs `sundown sim` with the arguments as they are; without any, the lab as well.
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    sundown::run_release(&["sim"], arguments)?;
    if arguments.is_empty() {
        lab(&[])
    } else {
        Ok(())
    }
}

/// The simulator's part of the landing gate: every scenario, fixed seeds, every mutant.
pub(crate) fn rotating_set() -> Result<()> {
    run(&[])
}

/// Puts bugs back and has the simulator find them; all of them when none is named.
pub(crate) fn lab(names: &[String]) -> Result<()> {
    let mut cargo = workspace::cargo(&[
        "run",
        "--quiet",
        "--release",
        "--package",
        "sundown-sim",
        "--features",
        "mutants",
        "--example",
        "mutants",
        "--",
    ])?;
    process::run(cargo.args(names))
}
