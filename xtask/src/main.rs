//! `cargo xtask`: the chores of the repository as one program.
//!
//! It owns the two gates and what they need; what Sundown itself does stays in its own binary.
#![allow(
    clippy::print_stdout,
    reason = "a command line tool: its output is the product"
)]

mod accept;
mod bench;
mod ci;
mod codegen;
mod control_plane;
mod demo;
mod deny;
mod hostile;
mod kill;
mod kube;
mod kubectl;
mod lane;
mod leftovers;
mod oracle;
mod peers;
mod process;
mod purity;
mod ray;
mod repro;
mod sim;
mod source;
mod steps;
mod sundown;
mod test;
mod tidy;
mod workspace;
mod yaml;

use std::process::ExitCode;

use anyhow::{Result, bail};

/// One chore: what stands behind `cargo xtask NAME`.
struct Command {
    name: &'static str,
    arguments: &'static str,
    about: &'static str,
    run: fn(&[String]) -> Result<()>,
}

const COMMANDS: &[Command] = &[
    Command {
        name: "demo",
        arguments: "",
        about: "the tour: a control plane, an owned tree and a finished Job, collected live",
        run: demo::run,
    },
    Command {
        name: "test",
        arguments: "[ARGS...]",
        about: "all tests; ARGS go to cargo test",
        run: test::run,
    },
    Command {
        name: "ci",
        arguments: "",
        about: "the landing gate, word for word",
        run: ci::run,
    },
    Command {
        name: "accept",
        arguments: "LANE",
        about: "one lane of the acceptance gate",
        run: accept::run,
    },
    Command {
        name: "bench",
        arguments: "NAME",
        about: "one benchmark",
        run: bench::run,
    },
    Command {
        name: "sim",
        arguments: "[ARGS...]",
        about: "the simulator, in release; ARGS go to sundown sim",
        run: sim::run,
    },
    Command {
        name: "repro",
        arguments: "ISSUE",
        about: "re-introduces a known bug and lets the simulator find it",
        run: repro::run,
    },
    Command {
        name: "purity",
        arguments: "",
        about: "proves that the pure crates are pure",
        run: purity::run,
    },
    Command {
        name: "tidy",
        arguments: "",
        about: "what no compiler checks: docs, names, sizes, links",
        run: tidy::run,
    },
    Command {
        name: "codegen",
        arguments: "",
        about: "facts about the built-in kinds, out of the Go modules of Kubernetes",
        run: codegen::run,
    },
    Command {
        name: "kube",
        arguments: "",
        about: "builds kube-apiserver, kube-controller-manager, etcd and kubectl",
        run: kube::run,
    },
    Command {
        name: "deny",
        arguments: "",
        about: "licences, duplicate versions and sources of dependencies",
        run: deny::run,
    },
];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match dispatch(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn dispatch(arguments: &[String]) -> Result<()> {
    let Some((name, rest)) = arguments.split_first() else {
        println!("{}", usage());
        return Ok(());
    };
    if matches!(name.as_str(), "help" | "--help" | "-h") {
        println!("{}", usage());
        return Ok(());
    }
    match COMMANDS.iter().find(|command| command.name == name) {
        Some(command) => {
            workspace::claim_target()?;
            (command.run)(rest)
        }
        None => bail!("no command is called `{name}`\n\n{}", usage()),
    }
}

fn usage() -> String {
    let mut lines = vec!["usage: cargo xtask COMMAND\n".to_owned()];
    for command in COMMANDS {
        let call = format!("{} {}", command.name, command.arguments);
        lines.push(format!("  {call:<16} {}", command.about));
    }
    lines.join("\n")
}
