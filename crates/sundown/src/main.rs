//! The `sundown` binary: arguments, wiring, output; nothing else.

mod arguments;
mod complaint;
mod control;
mod data;
mod db;
mod down;
mod env;
mod explain;
mod kubectl;
mod limits;
mod objects;
mod output;
mod ray;
mod reset;
mod run;
mod sim;
mod status;
mod terminal;
mod up;
mod words;

use std::process::ExitCode;
use std::time::Instant;

use clap::{CommandFactory, Parser};
use tracing_subscriber::EnvFilter;

use arguments::{Arguments, Command};
use complaint::Complaint;

/// The variable that sets the level of the log, such as `debug` or `sundown_driver=trace`.
const LOG: &str = "SUNDOWN_LOG";

/// Warnings; what kube says of requests that failed is told by those who made them.
const QUIET: &str = "warn,kube_client::client::builder=off";

fn main() -> ExitCode {
    let started_at = Instant::now();
    // Before any thread exists: this process may be about to become the node, or a part of a pod.
    if let Some(code) = sundown_node::stage(std::env::args_os()) {
        return code;
    }
    let arguments = Arguments::parse();
    start_log();
    let end = run(&arguments, started_at);
    end.unwrap_or_else(|complaint| complaint.tell(arguments.output))
}

fn run(arguments: &Arguments, started_at: Instant) -> Result<ExitCode, Complaint> {
    let output = arguments.output;
    match &arguments.command {
        Command::Up(up) => runtime(tokio::runtime::Builder::new_multi_thread())?
            .block_on(up::run(up, output, started_at)),
        Command::Run(run) => {
            runtime(tokio::runtime::Builder::new_current_thread())?.block_on(run::run(run, output))
        }
        Command::Status(place) => runtime(tokio::runtime::Builder::new_current_thread())?
            .block_on(status::run(place, output)),
        Command::Down(arguments) => runtime(tokio::runtime::Builder::new_current_thread())?
            .block_on(down::run(arguments, output)),
        Command::Reset(reset) => runtime(tokio::runtime::Builder::new_current_thread())?
            .block_on(reset::run(reset, output)),
        Command::Env(env) => {
            runtime(tokio::runtime::Builder::new_current_thread())?.block_on(env::run(env, output))
        }
        Command::Db(db) => db::run(db, output),
        Command::Explain(explain) => runtime(tokio::runtime::Builder::new_current_thread())?
            .block_on(explain::run(explain, output)),
        Command::Sim(sim) => sim::run(sim, output),
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(*shell, &mut Arguments::command(), "sundown", &mut script);
            output::print(&String::from_utf8_lossy(&script))?;
            Ok(ExitCode::SUCCESS)
        }
    }
}

fn runtime(mut builder: tokio::runtime::Builder) -> Result<tokio::runtime::Runtime, Complaint> {
    let runtime = builder.enable_all().build();
    runtime.map_err(|error| Complaint::new("the runtime does not start").because(&error))
}

fn start_log() {
    let level = EnvFilter::try_from_env(LOG).unwrap_or_else(|_| EnvFilter::new(QUIET));
    tracing_subscriber::fmt()
        .with_env_filter(level)
        .with_writer(std::io::stderr)
        .init();
}
