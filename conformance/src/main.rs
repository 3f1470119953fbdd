//! One request script against a real kube-apiserver and against ours, and the judgement between.
//!
//! It starts no kube-apiserver: `cargo xtask accept oracle` does, and hands over a kubeconfig.
#![allow(
    clippy::print_stdout,
    reason = "a command line tool: its output is the product"
)]

mod facts;
mod history;
mod normalise;
mod questions;
mod run;
mod script;
mod transcript;
mod verdict;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::{Parser, Subcommand};
use kube::Client;
use kube::config::Kubeconfig;
use sundown_driver::controllers::Selection;
use sundown_embedded::{Embedded, Listen};

use crate::run::Server;
use crate::script::Script;
use crate::verdict::Verdict;

/// Compares API servers request by request.
#[derive(Debug, Parser)]
struct Arguments {
    /// Where script, transcripts and pending.jsonl are.
    #[arg(long, default_value = "conformance")]
    directory: PathBuf,
    /// Only files whose name begins so.
    #[arg(long, default_value = "")]
    only: String,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Writes down what the server of a kubeconfig answers.
    Record { kubeconfig: PathBuf },
    /// Fails if the server of a kubeconfig answers otherwise than recorded.
    Drift { kubeconfig: PathBuf },
    /// Writes down what the server of a kubeconfig serves, and the columns of its Tables.
    Facts {
        kubeconfig: PathBuf,
        /// Where the files go.
        #[arg(default_value = "crates/sundown-api/src/generated")]
        into: PathBuf,
    },
    /// Compares our own server, in process, with what was recorded.
    Check,
    /// Judges what writers and watchers see: of our own server, or that of a kubeconfig.
    History {
        kubeconfig: Option<PathBuf>,
        /// How many runs, each with a seed of its own.
        #[arg(long, default_value_t = 3)]
        rounds: u64,
    },
}

#[tokio::main]
async fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let mut scripts = script::read_all(&arguments.directory.join("script"))?;
    scripts.retain(|script| script.name.starts_with(&arguments.only));
    let transcripts = arguments.directory.join("transcripts");
    match &arguments.command {
        Command::Record { kubeconfig } => record(kubeconfig, &scripts, &transcripts).await,
        Command::Drift { kubeconfig } => {
            let server = Server::of_file(kubeconfig).await?;
            compare(&server, &scripts, &transcripts).await?.judge(&[])
        }
        Command::Facts { kubeconfig, into } => {
            let client = sundown_driver::connect(Some(kubeconfig)).await?.client;
            facts::write(&client, into).await
        }
        Command::Check => {
            let mut pending = verdict::read_pending(&arguments.directory.join("pending.jsonl"))?;
            pending.retain(|line| line.id.starts_with(&arguments.only));
            // Nobody but the script writes, as with the oracle.
            let nobody = Selection::only([]).context("no controllers")?;
            let builder = Embedded::builder().controllers(nobody);
            let embedded = builder.listen(Listen::default()).start().await?;
            let kubeconfig = embedded.kubeconfig().context("it listens")?;
            let kubeconfig = Kubeconfig::from_yaml(kubeconfig)?;
            let server = Server::new(embedded.client(), kubeconfig).await?;
            let verdict = compare(&server, &scripts, &transcripts).await?;
            embedded.stop().await?;
            verdict.judge(&pending)
        }
        Command::History {
            kubeconfig: Some(kubeconfig),
            rounds,
        } => {
            let client = sundown_driver::connect(Some(kubeconfig)).await?.client;
            judge(&client, *rounds).await
        }
        Command::History {
            kubeconfig: None,
            rounds,
        } => {
            let embedded = Embedded::builder().start().await?;
            let judged = judge(&embedded.client(), *rounds).await;
            embedded.stop().await?;
            judged
        }
    }
}

async fn judge(client: &Client, rounds: u64) -> Result<()> {
    for seed in 0..rounds {
        history::run(client, seed).await?;
    }
    Ok(())
}

async fn record(kubeconfig: &Path, scripts: &[Script], transcripts: &Path) -> Result<()> {
    let server = Server::of_file(kubeconfig).await?;
    for script in scripts {
        let answers = run::run(&server, script).await?;
        transcript::write(transcripts, &script.name, &answers)?;
        println!("{}: {} requests", script.name, answers.len());
    }
    Ok(())
}

async fn compare(server: &Server, scripts: &[Script], transcripts: &Path) -> Result<Verdict> {
    let mut verdict = Verdict::default();
    for script in scripts {
        let recorded = transcript::read(transcripts, &script.name)?;
        let answers = run::run(server, script).await?;
        verdict.compare(&script.name, &recorded, &answers);
    }
    Ok(verdict)
}
