//! `cargo xtask test`: every test of the workspace, with a sum at the end.
//!
//! Gates that are no tests (formatting, lints, purity, …) are in `ci`.

use std::time::Duration;

use anyhow::Result;

use crate::{process, workspace};

/// How long no test may end. The longest takes two minutes on two idle cores, and each one that waits for
/// something has a bound of its own.
const SILENCE_MAX: Duration = Duration::from_mins(20);

/// Runs `cargo test --workspace` with the arguments added, and prints the sum.
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    println!("target directory: {}", workspace::target()?.display());
    println!("crates: {}, xtask", workspace::crates()?.join(", "));
    println!("needs nothing else: no cluster, no network, no root\n");
    let mut sum = Sum::default();
    // Apart from the tests, as a build on a fresh machine is silent for long.
    let options = arguments.iter().take_while(|it| *it != "--");
    let mut build = workspace::cargo(&["test", "--workspace", "--no-run"])?;
    process::run(build.args(options))?;
    let mut cargo = workspace::cargo(&["test", "--workspace"])?;
    let result = process::run_by_line(cargo.args(arguments), SILENCE_MAX, |line| {
        println!("{line}");
        sum.add(line);
    });
    println!(
        "\ntests: {} passed, {} failed, {} skipped",
        sum.passed, sum.failed, sum.skipped
    );
    result
}

/// What the test binaries counted, added up.
#[derive(Debug, Default, PartialEq, Eq)]
struct Sum {
    passed: u64,
    failed: u64,
    skipped: u64,
}

impl Sum {
    /// Reads `test result: ok. 3 passed; 0 failed; 1 ignored; …`, skips every other line.
    fn add(&mut self, line: &str) {
        if !line.starts_with("test result: ") {
            return;
        }
        self.passed += count(line, "passed");
        self.failed += count(line, "failed");
        self.skipped += count(line, "ignored");
    }
}

fn count(line: &str, what: &str) -> u64 {
    let mut words = line.split([' ', ';']).filter(|word| !word.is_empty());
    let mut before = "";
    words
        .find_map(|word| {
            if word == what {
                before.parse().ok()
            } else {
                before = word;
                None
            }
        })
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_of_several_binaries_are_added_up() {
        let mut sum = Sum::default();
        sum.add("running 4 tests");
        sum.add("test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out");
        sum.add("test result: FAILED. 20 passed; 2 failed; 0 ignored; 0 measured; finished in 1s");
        assert_eq!(
            sum,
            Sum {
                passed: 23,
                failed: 2,
                skipped: 1
            }
        );
    }
}
