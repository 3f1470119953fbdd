//! `cargo xtask bench node`: pods and Ray heads on this machine, a head beside `ray start` by hand.
//!
//! What is measured, and how, is in the example `storm` of the binary's crate.

use std::process::Command;

use anyhow::Result;

use crate::sundown::{self, Profile};
use crate::{process, ray, workspace};

/// Builds and measures; minutes.
pub(crate) fn run() -> Result<()> {
    let binary = sundown::build(Profile::Release)?;
    let build = [
        "build",
        "--release",
        "--package",
        "sundown",
        "--example",
        "storm",
    ];
    process::run(&mut workspace::cargo(&build)?)?;
    let python = ray::environment(&binary)?.join("bin/python");
    let storm = binary.with_file_name("examples").join("storm");
    process::run(Command::new(storm).arg("node").args([&binary, &python]))
}
