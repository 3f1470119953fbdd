//! `cargo xtask demo`: the tour on a fresh machine.
//!
//! It prepares what the tour needs; the tour itself is told by the `sundown` binary.

use std::process::Command;

use anyhow::{Result, ensure};

use crate::process;
use crate::sundown::{self, Profile};

/// Builds the binary and gives the tour.
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    ensure!(arguments.is_empty(), "cargo xtask demo takes no arguments");
    let binary = sundown::build(Profile::Dev)?;
    process::run(Command::new(binary).arg("demo"))
}
