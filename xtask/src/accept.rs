//! `cargo xtask accept LANE`: acceptance, the slow gate, one lane at a time.
//!
//! A lane stands in the table once it checks something; the landing gate is `ci`.

use anyhow::Result;

use crate::deny;
use crate::lane::{self, Lane};

const LANES: &[Lane] = &[Lane {
    name: "advisories",
    about: "known security advisories of dependencies, where their database can be reached",
    run: deny::advisories,
}];

/// Runs the lane that the arguments name.
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    lane::run("lane", LANES, arguments)
}
