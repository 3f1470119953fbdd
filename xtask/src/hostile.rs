//! The lane `hostile`: what pods, manifests, other users and directories do that mean harm, against the shipped
//! binary, as root and as an unprivileged user. Each test has a home of its own in a fresh temporary directory.
//!
//! What needs neither root nor a second user is in the tests of the crates as well.

mod api;
mod directories;
mod machine;
mod manifests;
mod place;
mod records;
mod users;

use std::path::Path;
use std::time::Instant;

use anyhow::{Result, ensure};

use crate::sundown::{self, Profile};
use place::{Place, Who};

/// A name, and what is tried.
type Test = (&'static str, fn(&Place) -> Result<()>);

const TESTS: &[&[Test]] = &[
    api::TESTS,
    machine::TESTS,
    manifests::TESTS,
    directories::TESTS,
    users::TESTS,
    records::TESTS,
];

/// Tries all of them, as every user that this machine lets us be.
pub(crate) fn run() -> Result<()> {
    let binary = sundown::build(Profile::Dev)?;
    let mut failed = Vec::new();
    let mut count = 0;
    for who in Who::all()? {
        println!("\nas {who}:");
        for (name, test) in TESTS.iter().copied().flatten() {
            if !is_wanted(name) {
                continue;
            }
            count += 1;
            let begun_at = Instant::now();
            let found = attempt(&binary, who, *test);
            let seconds = begun_at.elapsed().as_secs_f32();
            match found {
                Ok(()) => println!("test {name} ... ok ({seconds:.1} s)"),
                Err(error) => {
                    println!("test {name} ... FAILED ({seconds:.1} s)\n  {error:?}");
                    failed.push(format!("{name} as {who}"));
                }
            }
        }
    }
    println!("\n{} passed, {} failed", count - failed.len(), failed.len());
    ensure!(failed.is_empty(), "failed: {}", failed.join(", "));
    Ok(())
}

/// `SUNDOWN_ONLY=word` tries those whose names hold the word: a lane takes no arguments.
fn is_wanted(name: &str) -> bool {
    std::env::var("SUNDOWN_ONLY").map_or(true, |word| name.contains(&word))
}

fn attempt(binary: &Path, who: Who, test: fn(&Place) -> Result<()>) -> Result<()> {
    let place = Place::new(binary, who)?;
    test(&place)
}
