//! `cargo xtask ci`: the landing gate. What runs here is what decides, word for word.
//!
//! Cheap steps come first. The slow gate is `accept`.

use anyhow::{Result, ensure};

use crate::steps::{self, Step};
use crate::{deny, kill, kubectl, oracle, process, purity, ray, sim, test, tidy, workspace};

const STEPS: &[Step] = &[
    Step {
        name: "lock file",
        run: lock_file,
    },
    Step {
        name: "fmt",
        run: fmt,
    },
    Step {
        name: "tidy",
        run: || tidy::run(&[]),
    },
    Step {
        name: "purity",
        run: || purity::run(&[]),
    },
    Step {
        name: "deny",
        run: || deny::run(&[]),
    },
    Step {
        name: "clippy",
        run: clippy,
    },
    Step {
        name: "each crate alone",
        run: each_crate_alone,
    },
    Step {
        name: "test",
        run: || test::run(&[]),
    },
    Step {
        name: "transcripts",
        run: oracle::transcripts,
    },
    Step {
        name: "doc",
        run: doc,
    },
    Step {
        name: "simulator",
        run: sim::rotating_set,
    },
    Step {
        name: "kill",
        run: kill::gate,
    },
    Step {
        name: "kubectl",
        run: kubectl::script,
    },
    Step {
        name: "ray",
        run: ray::gate,
    },
];

/// Runs all steps; the first failure ends the gate.
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    ensure!(
        arguments.is_empty(),
        "cargo xtask ci takes no arguments: it is one gate"
    );
    steps::run(STEPS)
}

/// The lock file fits the manifests, so that every later call builds what is committed.
fn lock_file() -> Result<()> {
    process::output(&mut workspace::cargo(&[
        "metadata",
        "--locked",
        "--format-version",
        "1",
    ])?)?;
    Ok(())
}

fn fmt() -> Result<()> {
    process::run(&mut workspace::cargo(&["fmt", "--all", "--check"])?)
}

fn clippy() -> Result<()> {
    let arguments = [
        "clippy",
        "--workspace",
        "--all-targets",
        "--",
        "-D",
        "warnings",
    ];
    process::run(&mut workspace::cargo(&arguments)?)
}

/// In a workspace build one crate's features can hide what another one forgot to ask for.
fn each_crate_alone() -> Result<()> {
    for name in workspace::crates()? {
        println!("check {name}");
        process::run(&mut workspace::cargo(&[
            "check",
            "--quiet",
            "--package",
            &name,
        ])?)?;
    }
    Ok(())
}

fn doc() -> Result<()> {
    let mut cargo = workspace::cargo(&["doc", "--workspace", "--no-deps"])?;
    process::run(cargo.env("RUSTDOCFLAGS", "-D warnings"))
}
