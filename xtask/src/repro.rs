//! `cargo xtask repro ISSUE`: a known bug is put back, and the simulator has to find it.
//!
//! Which bugs there are, `sundown sim` knows.

use anyhow::{Result, bail};

use crate::sundown;

/// Runs the simulator with the mutant of one issue, such as `kubernetes#114603`.
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let [_issue] = arguments else {
        bail!("name one issue, for example: cargo xtask repro 'kubernetes#114603'");
    };
    sundown::run_release(&["sim", "--mutant"], arguments)
}
