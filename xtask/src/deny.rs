//! `cargo xtask deny`: licences, duplicate versions and sources of dependencies, by `deny.toml`.
//!
//! Advisories are a lane of acceptance: a new one must not turn an old commit red.

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use anyhow::{Result, ensure};

use crate::{process, workspace};

/// Pinned, so that the gate does not change under a commit.
const VERSION: &str = "0.20.2";

/// How long the advisory database may take to arrive. A first clone takes a few seconds.
const FETCH_DURATION_MAX: Duration = Duration::from_mins(1);

/// Checks bans, licences and sources.
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    ensure!(arguments.is_empty(), "cargo xtask deny takes no arguments");
    check(&["bans", "licenses", "sources"])
}

/// Checks known advisories, or says that their database cannot be reached.
pub(crate) fn advisories() -> Result<()> {
    let mut fetch = Command::new(installed()?);
    fetch.current_dir(workspace::root()).args(["fetch", "db"]);
    if !process::succeeds_within(&mut fetch, FETCH_DURATION_MAX)? {
        println!("not checked: the advisory database cannot be reached from here");
        return Ok(());
    }
    check(&["advisories"])
}

fn check(what: &[&str]) -> Result<()> {
    let mut deny = Command::new(installed()?);
    deny.current_dir(workspace::root())
        .args(["--log-level", "warn", "check"])
        .args(what);
    process::run(&mut deny)
}

/// Installs the pinned version unless it is there. Once per machine.
fn installed() -> Result<PathBuf> {
    let home = workspace::tools()?.join(format!("cargo-deny-{VERSION}"));
    let binary = home.join("bin/cargo-deny");
    if binary.exists() {
        return Ok(binary);
    }
    println!(
        "installing cargo-deny {VERSION} into {}, once per machine",
        home.display()
    );
    let mut cargo = workspace::cargo(&[
        "install",
        "cargo-deny",
        "--locked",
        "--version",
        VERSION,
        "--root",
    ])?;
    // Without a target directory cargo builds in a temporary one and removes it.
    cargo.arg(&home).env_remove("CARGO_TARGET_DIR");
    // It runs for a second and is built for minutes: optimise the build, not the program.
    cargo
        .env("CARGO_PROFILE_RELEASE_LTO", "off")
        .env("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "16")
        .env("CARGO_PROFILE_RELEASE_OPT_LEVEL", "1");
    process::run(&mut cargo)?;
    Ok(binary)
}
