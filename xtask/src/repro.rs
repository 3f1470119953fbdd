//! `cargo xtask repro ISSUE`: a known bug is put back, and the simulator has to find it.
//!
//! Which bugs there are, the lab knows.

use anyhow::{Result, ensure};

use crate::sim;
use crate::sundown::Profile;

/// Runs the lab with the mutant of one issue, such as `kubernetes#114603`.
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    ensure!(
        arguments.len() == 1,
        "name one issue, for example: cargo xtask repro 'kubernetes#114603'"
    );
    sim::lab(Profile::Release, arguments)
}
