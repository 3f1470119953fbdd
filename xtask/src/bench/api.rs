//! `cargo xtask bench api`: our server and the real kube-apiserver with etcd, side by side in one run.
//!
//! What is measured, and how, is in the example `storm` of the binary's crate; the last report is in
//! `docs/bench-api.md`.

use std::process::Command;

use anyhow::Result;

use crate::sundown::{self, Profile};
use crate::{kube, process, workspace};

/// As many as the start is measured with.
const OBJECTS: &str = "100000";

/// Builds and measures; minutes.
pub(crate) fn run() -> Result<()> {
    let (etcd, server) = (kube::program("etcd")?, kube::program("kube-apiserver")?);
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
    let storm = binary.with_file_name("examples").join("storm");
    process::run(
        Command::new(storm)
            .arg("api")
            .args([&binary, &etcd, &server])
            .arg(OBJECTS),
    )
}
