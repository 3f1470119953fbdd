//! `cargo xtask sim`: the simulator, in release.
//!
//! Scenarios, levels and the report belong to `sundown sim`.

use anyhow::Result;

use crate::sundown;

/// Runs `sundown sim` with the arguments as they are.
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    sundown::run_release(&["sim"], arguments)
}

/// The simulator's part of the landing gate: fixed scenarios and fresh seeds.
pub(crate) fn rotating_set() -> Result<()> {
    sundown::run_release(&["sim"], &[])
}
