//! The same without root: a user with nothing but an id.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use super::IMAGE;
use super::examples;
use super::home::Home;
use crate::process;

/// The user that owns nothing.
const NOBODY: u32 = 65_534;

/// Runs a cluster of head and worker as an unprivileged user.
pub(super) fn run(binary: &Path) -> Result<()> {
    let home = Home::new(binary)?;
    if !is_root()? {
        println!("not root: all of it ran without root already");
        return Ok(());
    }
    let scratch = home.files().to_owned();
    // Neither the binary nor root's cache can be reached by others.
    let own = scratch.join("sundown");
    fs::copy(binary, &own).context("copy the binary")?;
    let examples = scratch.join("hello.yaml");
    fs::copy(examples::path("hello.yaml"), &examples).context("copy an example")?;
    let variables = vec![
        ("HOME".to_owned(), scratch.clone()),
        ("SUNDOWN_CACHE".to_owned(), scratch.join("cache")),
    ];
    let mut home = home.with_binary(&own).under(NOBODY, variables)?;
    println!("as user {NOBODY}: the environment is made anew, in a cache of its own");
    process::run(&mut home.bare(&["env", "make", IMAGE]))?;
    let going = home.run(&examples)?;
    home.wait(going)?
        .expect(0, &["squares [1, 4] on 2 nodes"])?;
    home.finish()
}

fn is_root() -> Result<bool> {
    use std::os::unix::fs::MetadataExt as _;
    Ok(fs::metadata("/proc/self")
        .context("look at this process")?
        .uid()
        == 0)
}
