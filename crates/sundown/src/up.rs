//! `sundown up`: a control plane in the foreground, from its first answer to its clean end.

use std::error::Error;
use std::fmt::Write as _;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use serde::Serialize;
use sundown_embedded::controllers::{OWNER_GC, of_node};
use sundown_embedded::{Data, Embedded, Listen, NodeOptions};
use tokio::signal::unix::{SignalKind, signal};

use crate::arguments::{Durability, Output, Up};
use crate::complaint::Complaint;
use crate::{data, output};

/// What is told once it is up.
#[derive(Debug, Serialize)]
struct Started {
    url: String,
    kubeconfig: PathBuf,
    /// None: in memory.
    data: Option<PathBuf>,
    controllers: Vec<&'static str>,
    garbage_collector: bool,
    /// From the start of the process to the first list that was answered over HTTPS.
    start_ms: f64,
    pid: u32,
}

/// Runs until it is told to end.
pub(crate) async fn run(
    arguments: &Up,
    output: Output,
    started_at: Instant,
) -> Result<ExitCode, Complaint> {
    // Listened for before anything is written, so that an early Ctrl-C leaves nothing behind.
    let mut ends = Ends::listen()?;
    let mut embedded = tokio::select! {
        embedded = start(arguments) => embedded?,
        () = ends.asked() => return Ok(ExitCode::SUCCESS),
    };
    let kubeconfig = embedded
        .kubeconfig_path()
        .expect("started with a path for it")
        .to_owned();
    answer_a_list(&kubeconfig).await?;
    let started = Started {
        url: embedded.url().unwrap_or_default().to_owned(),
        kubeconfig,
        data: data_directory(arguments),
        controllers: running(arguments),
        garbage_collector: arguments.enable_garbage_collector,
        start_ms: (started_at.elapsed().as_secs_f64() * 10_000.0).round() / 10.0,
        pid: std::process::id(),
    };
    match output {
        Output::Text => output::print(&text(&started))?,
        Output::Json => output::print_json(&started)?,
    }
    let failed = tokio::select! {
        failed = embedded.failed() => failed,
        () = ends.asked() => Ok(()),
    };
    let stopped = embedded.stop().await;
    match failed.and(stopped) {
        Ok(()) => Ok(ExitCode::SUCCESS),
        Err(error) => Err(Complaint::new("the control plane ended by itself").because(&error)),
    }
}

async fn start(arguments: &Up) -> Result<Embedded, Complaint> {
    let kubeconfig = arguments.kubeconfig.clone();
    let listen = Listen {
        address: (Ipv4Addr::LOCALHOST, arguments.port).into(),
        kubeconfig: Some(kubeconfig.unwrap_or_else(|| default_kubeconfig(arguments))),
    };
    let mut builder = Embedded::builder()
        .controllers(arguments.controllers.clone())
        .garbage_collector(arguments.enable_garbage_collector)
        .listen(listen);
    if let Some(directory) = &arguments.flight_record {
        builder = builder.flight_record(directory);
    }
    if let Some(directory) = data_directory(arguments).filter(|_| arguments.node) {
        builder = builder.node(node_options(directory)?);
    }
    if let Some(directory) = data_directory(arguments) {
        builder = builder.data(Data {
            directory,
            durability: match arguments.durability {
                Durability::Relaxed => sundown_embedded::Durability::Relaxed,
                Durability::Strict => sundown_embedded::Durability::Strict,
            },
            accept_loss_after: arguments.accept_loss_after,
            new_identity: arguments.new_identity,
        });
    }
    builder.start().await.map_err(|error| {
        use sundown_embedded::StartError as E;
        if let E::Data(error) = &error {
            return data::refused(error);
        }
        let complaint = Complaint::of(&error);
        match error {
            E::Https(_) => complaint.help("another port: --port 0 takes any free one"),
            E::Kubeconfig(_) => complaint.help("another place: --kubeconfig PATH"),
            E::Recorder(_) => complaint.help("another place: --flight-record DIR"),
            E::Identity(_) | E::IdentityGone { .. } => complaint
                .help("put `identity.json` of the data directory back from a backup")
                .help(
                    "or make a new one, which ends all old kubeconfigs and tokens: --new-identity",
                ),
            E::ImageRules(_) => complaint.help("correct the file, or move it away"),
            E::FirstList(_) | E::Data(_) | E::Durable(_) | E::Definitions(_) | E::Node(_) => {
                complaint
            }
        }
    })
}

fn node_options(directory: PathBuf) -> Result<NodeOptions, Complaint> {
    let program = std::env::current_exe();
    let program = program
        .map_err(|error| Complaint::new("this program cannot find itself").because(&error))?;
    Ok(NodeOptions {
        image_rules: directory.join("images.json"),
        environments: data::cache_directory().join("environments"),
        directory,
        program,
    })
}

/// Ready means that a client from outside gets an answer, so one is asked for.
async fn answer_a_list(kubeconfig: &Path) -> Result<(), Complaint> {
    let failed = |error: &(dyn Error + 'static)| {
        Complaint::new("the control plane does not answer").because(error)
    };
    let connection = sundown_driver::connect(Some(kubeconfig)).await;
    let client = connection.map_err(|error| failed(&error))?.client;
    let request = http::Request::get("/api/v1/namespaces?limit=1").body(Vec::new());
    let request = request.expect("the address is a constant");
    let answer = client.request_text(request).await;
    answer.map_err(|error| failed(&error))?;
    Ok(())
}

fn running(arguments: &Up) -> Vec<&'static str> {
    let mut names = arguments.controllers.names();
    names.retain(|name| arguments.enable_garbage_collector || *name != OWNER_GC);
    if arguments.node {
        names.extend(of_node().iter().map(|it| it.name));
    }
    names
}

fn text(started: &Started) -> String {
    let mut text = format!("sundown is up, after {} ms\n\n", started.start_ms);
    let controllers = if started.controllers.is_empty() {
        "none".to_owned()
    } else {
        started.controllers.join(", ")
    };
    let kubeconfig = started.kubeconfig.display();
    let data = match &started.data {
        Some(directory) => directory.display().to_string(),
        None => "in memory, gone when this ends (Ctrl-C)".to_owned(),
    };
    let _ = write!(
        text,
        "  API server   {}\n  \
           kubeconfig   {kubeconfig}\n  \
           controllers  {controllers}\n  \
           data         {data}\n\n  \
           export KUBECONFIG={kubeconfig}\n",
        started.url,
    );
    text
}

/// None: everything is kept in memory.
fn data_directory(arguments: &Up) -> Option<PathBuf> {
    let directory = || arguments.data_dir.clone();
    (!arguments.ephemeral).then(|| directory().unwrap_or_else(data::state_directory))
}

/// In the data directory; else a file of this process, so that two control planes do not take each
/// other's place.
fn default_kubeconfig(arguments: &Up) -> PathBuf {
    if let Some(directory) = data_directory(arguments) {
        return directory.join("kubeconfig");
    }
    let name = format!("ephemeral-{}.kubeconfig", std::process::id());
    data::state_directory().join(name)
}

/// The two ways in which a process is asked to end.
struct Ends {
    interrupt: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
}

impl Ends {
    fn listen() -> Result<Self, Complaint> {
        let listen = |kind| {
            signal(kind)
                .map_err(|error| Complaint::new("signals cannot be listened for").because(&error))
        };
        Ok(Self {
            interrupt: listen(SignalKind::interrupt())?,
            terminate: listen(SignalKind::terminate())?,
        })
    }

    async fn asked(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}
