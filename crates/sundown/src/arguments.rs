//! The command line. What a command does lies in the module of its name.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use serde::{Deserialize, Serialize};
use sundown_decide::schedule::{Asked, parse_cpus, parse_memory};
use sundown_embedded::controllers::Selection;
use sundown_model::Quantity;

/// Runs Ray and batch jobs to the end and leaves nothing behind.
#[derive(Debug, Parser)]
#[command(name = "sundown", version, max_term_width = 100)]
pub(crate) struct Arguments {
    /// How answers and complaints are written
    #[arg(short, long, global = true, value_enum, default_value_t = Output::Text)]
    pub(crate) output: Output,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// How answers are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Output {
    /// For people
    Text,
    /// For programs
    Json,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a control plane on this machine, in the foreground
    #[command(after_help = "\
Examples:
  sundown up --port 6443
  sundown up --ephemeral

The data directory is --data-dir, else $SUNDOWN_DATA, else the user's state directory.")]
    Up(Up),
    /// Apply a file, follow its job, show its logs, clean up, and exit with the job's result
    #[command(after_help = "\
Examples:
  sundown run rayjob.yaml
  sundown run --rm job.yaml -o json

Starts a control plane if none is up; it ends by itself a minute after nothing runs any more.
Ctrl-C asks, and once more deletes the job and waits until all of it is gone.
Exit code: 0 succeeded, 1 failed (a Job: the code of its one failed container), 2 wrong usage,
130 stopped by Ctrl-C or a signal.")]
    Run(Run),
    /// Say what is up and what runs
    #[command(after_help = "\
Examples:
  sundown status
  sundown status -o json

Exit code: 0 a control plane is up, 1 none is, 2 wrong usage.")]
    Status(Place),
    /// End all pods, then the control plane; what is stored stays
    #[command(after_help = "\
Examples:
  sundown down
  sundown down --delete

Jobs that have not come to their end stay, and go on when a control plane is up again.
Exit code: 0 nothing runs any more, 1 something is left or was not deleted, 2 wrong usage.")]
    Down(Down),
    /// End everything and remove what the control plane stored, after asking
    #[command(after_help = "\
Examples:
  sundown reset
  sundown reset --yes --data-dir DIR

Only what Sundown keeps in a data directory of its own is removed. Environments stay: see sundown env.
Exit code: 0 removed, 1 not or not all of it, 2 wrong usage.")]
    Reset(Reset),
    /// List, make and prune the environments that stand for images
    #[command(after_help = "\
Examples:
  sundown env list
  sundown env make rayproject/ray:2.52.0
  sundown env prune --all

Packages come from where the settings of pip or uv say, as wheels only: nothing is built here.
At most $SUNDOWN_ENVIRONMENTS_MAX environments are kept [default: 32], which take at most
$SUNDOWN_ENVIRONMENTS_SIZE_MAX [default: 40Gi]; over that none is made until some are pruned.
Exit code: 0 done, 1 failed, 2 wrong usage.")]
    Env(Env),
    /// Look into a data directory that no control plane uses
    #[command(after_help = "\
Examples:
  sundown db verify
  sundown db dump -o json > backup.json

Exit code: 0 everything acknowledged is there, 1 damaged or in use, 2 wrong usage.")]
    Db(Db),
    /// Say why an object is still there, what blocks it and what happens next; or why it went
    #[command(after_help = "\
Examples:
  sundown explain rayjob/train
  sundown explain jobs/report -n team-a --kubeconfig PATH

The controllers of the control plane that is up are asked: those who decide. Another API server is looked at
from outside, by the controllers that run on any cluster: of pods, Jobs and Ray they do not decide there.
Nothing is written either way.
Exit code: 0 explained, 1 the object is not there or cannot be explained, 2 wrong usage.")]
    Explain(Explain),
    /// Run the simulator, or replay a flight record
    #[command(after_help = "\
Examples:
  sundown sim
  sundown sim --scenario foreground-tree --effect 25 --fault crash-after
  sundown sim --replay flight/

Exit code: 0 no invariant was broken (with --mutant: the bug was found), 1 otherwise, 2 wrong usage.")]
    Sim(Sim),
    /// Print the completions of a shell
    #[command(after_help = "Example:\n  sundown completions bash > /etc/bash_completion.d/sundown")]
    Completions { shell: clap_complete::Shell },
}

#[derive(Debug, Args)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "switches that stand for themselves"
)]
pub(crate) struct Up {
    /// Keep everything in memory; it goes when the control plane ends
    #[arg(long)]
    pub(crate) ephemeral: bool,
    /// Where everything is kept [default: `$SUNDOWN_DATA`, else the user's state directory]
    #[arg(long, value_name = "DIR", conflicts_with = "ephemeral")]
    pub(crate) data_dir: Option<PathBuf>,
    /// Go on from this revision of a damaged data directory, without what came after it; 0 starts
    /// empty. The damaged files are kept
    #[arg(long, value_name = "REV", conflicts_with = "ephemeral")]
    pub(crate) accept_loss_after: Option<u64>,
    /// When writes are answered: all of them when they are synced (strict), or Leases and Events
    /// a moment earlier (relaxed); a power failure may take those
    #[arg(long, value_enum, default_value_t = Durability::Relaxed)]
    pub(crate) durability: Durability,
    /// Make a new authority, token and signing key; kubeconfigs and tokens of the old ones end
    #[arg(long, conflicts_with = "ephemeral")]
    pub(crate) new_identity: bool,
    /// The port on this machine; 0 takes any free one
    #[arg(long, default_value_t = 0)]
    pub(crate) port: u16,
    /// Where the kubeconfig is written [default: a file of this process in the state directory]
    #[arg(long, value_name = "PATH")]
    pub(crate) kubeconfig: Option<PathBuf>,
    /// The controllers that run: names, `*` for all, `-name` to leave one out
    #[arg(
        long,
        value_name = "LIST",
        default_value = "*",
        allow_hyphen_values = true
    )]
    pub(crate) controllers: Selection,
    /// Whether owners and dependents are collected; false also keeps the server from adding the
    /// finalizers that a collector removes
    #[arg(long, value_name = "BOOL", default_value_t = true, action = clap::ArgAction::Set)]
    pub(crate) enable_garbage_collector: bool,
    /// Who may do what: as roles and bindings say, or allow every authenticated user everything, pods with
    /// their tokens included
    #[arg(
        long,
        value_name = "MODE",
        value_enum,
        default_value_t,
        ignore_case = true
    )]
    pub(crate) authorization: Authorization,
    /// Run pods as processes of this machine [default: true, with --ephemeral false]
    #[arg(
        long,
        value_name = "BOOL",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "true",
        overrides_with = "node"
    )]
    pub(crate) node: Option<bool>,
    /// The way out of pods: a proxy for pip, with the index and the certificates of this machine's
    /// settings; or none
    #[arg(long, value_enum, default_value_t = Egress::Proxy)]
    pub(crate) egress: Egress,
    /// Also give pods the user names and passwords in the addresses of this machine's package indexes
    #[arg(long)]
    pub(crate) egress_credentials: bool,
    /// Your rules about what stands for images
    /// [default: `$SUNDOWN_IMAGE_RULES`, else `sundown/images.json` in the user's configuration]
    #[arg(long, value_name = "FILE")]
    pub(crate) image_rules: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) offers: Offers,
    /// End when nothing runs and no client has been there for a minute: as `sundown run` starts it
    #[arg(long, hide = true, conflicts_with = "ephemeral")]
    pub(crate) while_used: bool,
    /// Record what the controllers see and do, without the texts of objects, in this directory
    #[arg(long, value_name = "DIR")]
    pub(crate) flight_record: Option<PathBuf>,
}

/// Who may do what.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
pub(crate) enum Authorization {
    #[default]
    #[value(name = "RBAC")]
    #[serde(rename = "RBAC")]
    Rbac,
    #[value(name = "AlwaysAllow")]
    AlwaysAllow,
}

impl Authorization {
    /// A line for those who should know that nothing is checked; None if it is as it should be.
    pub(crate) fn warning(self) -> Option<&'static str> {
        match self {
            Self::Rbac => None,
            Self::AlwaysAllow => {
                Some("none: every pod with a token may do everything (--authorization=AlwaysAllow)")
            }
        }
    }
}

/// What pods reach outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Egress {
    Proxy,
    None,
}

/// When a write is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Durability {
    Relaxed,
    Strict,
}

#[derive(Debug, Args)]
pub(crate) struct Run {
    /// The manifest: one job, and what it needs, as YAML or JSON; `-` reads standard input
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Also delete what was applied, and wait until all of it is gone
    #[arg(long)]
    pub(crate) rm: bool,
    /// Open no address of this machine for Ray's dashboard
    #[arg(long)]
    pub(crate) no_dashboard: bool,
    /// Print logs as they are: on a terminal, escape sequences other than colours are shown instead of obeyed
    #[arg(long)]
    pub(crate) raw: bool,
    /// The namespace of objects that name none [default: default]
    #[arg(short, long)]
    pub(crate) namespace: Option<String>,
    #[command(flatten)]
    pub(crate) place: Place,
    /// Your rules about what stands for images, for a control plane that is started
    #[arg(long, value_name = "FILE")]
    pub(crate) image_rules: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) offers: Offers,
}

/// What a node that is started offers to pods.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Args)]
pub(crate) struct Offers {
    /// The CPUs that pods may request together, such as 4 or 1500m; nothing holds them to it
    /// [default: four times the cores of the machine, 8 at least]
    #[arg(long, value_name = "QUANTITY", value_parser = parse_cpus, allow_negative_numbers = true)]
    pub(crate) cpus: Option<Quantity>,
    /// The memory that pods may request together, such as 8Gi [default: that of the machine]
    #[arg(long, value_name = "QUANTITY", value_parser = parse_memory, allow_negative_numbers = true)]
    pub(crate) memory: Option<Quantity>,
}

impl Offers {
    pub(crate) fn asked(self) -> Asked {
        Asked {
            cpus: self.cpus,
            memory: self.memory,
        }
    }

    /// As they were given, for a process that is started with them.
    pub(crate) fn arguments(self) -> Vec<String> {
        let given = [("--cpus", self.cpus), ("--memory", self.memory)];
        let given = given.into_iter().filter_map(|(flag, it)| Some((flag, it?)));
        given
            .map(|(flag, amount)| format!("{flag}={}", amount.canonical()))
            .collect()
    }
}

/// Which control plane.
#[derive(Debug, Args)]
pub(crate) struct Place {
    /// Its data directory [default: `$SUNDOWN_DATA`, else the user's state directory]
    #[arg(long, value_name = "DIR")]
    pub(crate) data_dir: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct Down {
    #[command(flatten)]
    pub(crate) place: Place,
    /// First delete all clusters and all jobs that have not come to their end, so that none comes back
    #[arg(long)]
    pub(crate) delete: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Reset {
    #[command(flatten)]
    pub(crate) place: Place,
    /// Do not ask
    #[arg(short, long)]
    pub(crate) yes: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Env {
    #[command(subcommand)]
    pub(crate) what: Option<EnvCommand>,
    /// Your rules about what stands for images
    #[arg(long, value_name = "FILE", global = true)]
    pub(crate) image_rules: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum EnvCommand {
    /// Say which environments there are
    List,
    /// Make what stands for an image
    Make { image: String },
    /// Remove environments: those that were never finished, or the named ones, or all
    Prune {
        /// Names as `sundown env list` tells them
        #[arg(value_name = "NAME", conflicts_with = "all")]
        names: Vec<String>,
        /// All environments
        #[arg(long)]
        all: bool,
    },
}

#[derive(Debug, Args)]
pub(crate) struct Db {
    #[command(subcommand)]
    pub(crate) what: DbCommand,
    /// The data directory [default: `$SUNDOWN_DATA`, else the user's state directory]
    #[arg(long, value_name = "DIR", global = true)]
    pub(crate) data_dir: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, Subcommand)]
pub(crate) enum DbCommand {
    /// Check that everything acknowledged is there
    Verify,
    /// Print all objects, one per line; with -o json as one List
    Dump,
}

#[derive(Debug, Args)]
pub(crate) struct Explain {
    /// The object, such as `jobs/report` or `jobs.batch/report`
    #[arg(value_name = "TYPE/NAME")]
    pub(crate) object: String,
    /// The namespace of the object [default: that of the kubeconfig, else `default`]
    #[arg(short, long)]
    pub(crate) namespace: Option<String>,
    /// The data directory of the control plane [default: `$SUNDOWN_DATA`, else the user's state directory]
    #[arg(long, value_name = "DIR", conflicts_with = "kubeconfig")]
    pub(crate) data_dir: Option<PathBuf>,
    /// The kubeconfig of another API server
    #[arg(long, value_name = "PATH")]
    pub(crate) kubeconfig: Option<PathBuf>,
    /// Where a flight was recorded, to say why an object went
    #[arg(long, value_name = "DIR")]
    pub(crate) flight_record: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct Sim {
    /// How many random seeds are run [default: 200, with --scenario none]
    #[arg(long, value_name = "N", conflicts_with = "replay")]
    pub(crate) seeds: Option<u64>,
    /// Run this seed and print each step
    #[arg(long, value_name = "S", conflicts_with = "replay")]
    pub(crate) seed: Option<u64>,
    /// Run this scenario only
    #[arg(long, value_name = "NAME", conflicts_with = "replay")]
    pub(crate) scenario: Option<String>,
    /// With --scenario: run it with a fault at this effect and print each step; 0 for none
    #[arg(long, value_name = "K", requires = "scenario")]
    pub(crate) effect: Option<usize>,
    /// The fault at that effect, such as `crash-after`
    #[arg(long, value_name = "FAULT", requires = "effect")]
    pub(crate) fault: Option<String>,
    /// Put a known bug back and find it
    #[arg(long, value_name = "NAME", conflicts_with = "replay")]
    pub(crate) mutant: Option<String>,
    /// Replay a flight record: a file of it, or its directory
    #[arg(long, value_name = "FILE")]
    pub(crate) replay: Option<PathBuf>,
}
