//! `RayJob`s on real Ray by the shipped binary, as a user runs them: the demo, the step of the landing gate,
//! and the lanes `ray` and `node` of acceptance.
//!
//! Each works in a data directory of its own and ends by counting what is left of it: nothing.

mod examples;
mod home;
mod kills;
mod pods;
mod promises;
mod user;

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::process;
use crate::sundown::{self, Profile};
use home::Home;

/// What the examples run on.
const IMAGE: &str = "rayproject/ray:2.52.0";

/// `cargo xtask demo`: one `RayJob`, for people to watch.
pub(crate) fn demo() -> Result<()> {
    let binary = sundown::build(Profile::Dev)?;
    println!("\nthe environment that stands for {IMAGE}: made once, from PyPI, then kept");
    environment(&binary)?;
    let mut home = Home::new(&binary)?;
    println!("\n$ sundown run examples/hello.yaml --rm\n");
    home.watch_run(&examples::path("hello.yaml"))?;
    home.finish()
}

/// The step of the landing gate: one `RayJob`.
pub(crate) fn gate() -> Result<()> {
    let binary = sundown::build(Profile::Dev)?;
    environment(&binary)?;
    let mut home = Home::new(&binary)?;
    examples::one(&mut home, "hello.yaml")?;
    home.finish()
}

/// The lane `ray`: every example, several at once, four clusters, and all of it without root.
pub(crate) fn accept() -> Result<()> {
    let binary = sundown::build(Profile::Dev)?;
    environment(&binary)?;
    let mut home = Home::new(&binary)?;
    examples::all(&mut home)?;
    examples::two_at_once(&mut home)?;
    examples::four_clusters(&mut home)?;
    home.finish()?;
    user::run(&binary)
}

/// The lane `node`: kill -9 of everything in turn, and pods that behave badly.
pub(crate) fn accept_node() -> Result<()> {
    let binary = sundown::build(Profile::Dev)?;
    environment(&binary)?;
    pods::all(&binary)?;
    kills::of_control_plane_and_client(&binary)?;
    kills::of_node(&binary)
}

/// The lane `promises`: what a `RayJob` promises while no control plane looks, or while the user interferes.
pub(crate) fn accept_promises() -> Result<()> {
    let binary = sundown::build(Profile::Dev)?;
    environment(&binary)?;
    promises::all(&binary)
}

/// Makes the environment of the examples if need be; where it is.
pub(crate) fn environment(binary: &Path) -> Result<PathBuf> {
    process::run(Command::new(binary).args(["env", "make", IMAGE]))?;
    let told = process::output(Command::new(binary).args(["env", "make", IMAGE, "-o", "json"]))?;
    let last = told.lines().last().context("it tells what it made")?;
    let last: Value = serde_json::from_str(last).context("read what was made")?;
    let path = last["binds"][0]
        .as_str()
        .context("an environment has a place")?;
    ensure!(Path::new(path).is_dir(), "{path} is not there");
    Ok(PathBuf::from(path))
}
