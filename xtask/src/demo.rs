//! `cargo xtask demo`: the main job on a fresh machine.
//!
//! It prepares what the job needs; the job itself is run by the `sundown` binary.

use anyhow::{Result, ensure};

use crate::ray;

/// Builds the binary and runs a `RayJob` on real Ray.
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    ensure!(arguments.is_empty(), "cargo xtask demo takes no arguments");
    ray::demo()
}
