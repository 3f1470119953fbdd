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
mod sockets;
mod users;

use std::fmt;
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
    sockets::TESTS,
    records::TESTS,
];

/// A test that cannot be tried as this user, and why: it counts neither for nor against anything.
#[derive(Debug)]
struct Skipped(&'static str);

impl fmt::Display for Skipped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl std::error::Error for Skipped {}

/// The answer of a test that cannot be tried.
fn skip(why: &'static str) -> Result<()> {
    Err(Skipped(why).into())
}

/// How many tests ended in which way.
#[derive(Debug, Default)]
struct Sum {
    passed: usize,
    skipped: usize,
    failed: Vec<String>,
}

impl Sum {
    /// Counts a test, and tells how it ended.
    fn count(&mut self, name: &str, who: Who, found: Result<()>) -> String {
        match found {
            Ok(()) => {
                self.passed += 1;
                "ok".to_owned()
            }
            Err(error) => {
                if let Some(why) = error.downcast_ref::<Skipped>() {
                    self.skipped += 1;
                    return format!("skipped: {why}");
                }
                self.failed.push(format!("{name} as {who}"));
                format!("FAILED\n  {error:?}")
            }
        }
    }
}

/// Tries all of them, as every user that this machine lets us be.
pub(crate) fn run() -> Result<()> {
    let binary = sundown::build(Profile::Dev)?;
    let mut sum = Sum::default();
    for who in Who::all()? {
        println!("\nas {who}:");
        for (name, test) in TESTS.iter().copied().flatten() {
            if !is_wanted(name) {
                continue;
            }
            let begun_at = Instant::now();
            let found = attempt(&binary, who, *test);
            let seconds = begun_at.elapsed().as_secs_f32();
            let told = sum.count(name, who, found);
            println!("test {name} ({seconds:.1} s) ... {told}");
        }
    }
    let Sum {
        passed,
        skipped,
        failed,
    } = sum;
    println!(
        "\n{passed} passed, {} failed, {skipped} skipped",
        failed.len()
    );
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_that_did_nothing_is_told_and_not_counted_as_passed() {
        let mut sum = Sum::default();
        let told = sum.count("a", Who::Caller, skip("a second user needs root"));
        assert_eq!(told, "skipped: a second user needs root");
        assert_eq!(sum.count("b", Who::Root, Ok(())), "ok");
        let told = sum.count("c", Who::Root, Err(anyhow::anyhow!("broken")));
        assert!(told.starts_with("FAILED") && told.contains("broken"));
        assert_eq!((sum.passed, sum.skipped), (1, 1));
        assert_eq!(sum.failed, ["c as root"]);
    }
}
