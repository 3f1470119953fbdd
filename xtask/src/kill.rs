//! `sundown up` killed with kill -9 in a write storm at seeded moments: every acknowledged write is
//! there after the restart. The storm itself is an example of the binary's crate.

use std::process::Command;

use anyhow::Result;

use crate::sundown::{self, Profile};
use crate::{process, workspace};

/// One seed for ever, so that a red gate means a change.
const SEED: &str = "20261116";

/// The rounds of acceptance.
pub(crate) fn accept() -> Result<()> {
    rounds(200)
}

/// The rounds of the landing gate.
pub(crate) fn gate() -> Result<()> {
    rounds(20)
}

fn rounds(count: u32) -> Result<()> {
    let binary = sundown::build(Profile::Dev)?;
    let build = ["build", "--package", "sundown", "--example", "storm"];
    process::run(&mut workspace::cargo(&build)?)?;
    let storm = binary.with_file_name("examples").join("storm");
    process::run(
        Command::new(storm)
            .arg("kill")
            .arg(&binary)
            .args([&count.to_string(), SEED]),
    )
}
