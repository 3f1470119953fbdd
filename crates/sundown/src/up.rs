//! `sundown up`: a control plane in the foreground, from its first answer to its clean end.

use std::error::Error;
use std::fmt::Write as _;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use serde::Serialize;
use sundown_embedded::controllers::OWNER_GC;
use sundown_embedded::{Embedded, Listen};
use tokio::signal::unix::{SignalKind, signal};

use crate::arguments::{Output, Up};
use crate::complaint::Complaint;
use crate::output;

/// What is told once it is up.
#[derive(Debug, Serialize)]
struct Started {
    url: String,
    kubeconfig: PathBuf,
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
    if !arguments.ephemeral {
        return Err(Complaint::usage("`sundown up` cannot keep its data yet")
            .at("sundown up")
            .help("start it with --ephemeral: everything is kept in memory and goes when it ends")
            .help("a durable store comes with a later version"));
    }
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
        kubeconfig: Some(kubeconfig.unwrap_or_else(default_kubeconfig)),
    };
    let mut builder = Embedded::builder()
        .controllers(arguments.controllers.clone())
        .garbage_collector(arguments.enable_garbage_collector)
        .listen(listen);
    if let Some(directory) = &arguments.flight_record {
        builder = builder.flight_record(directory);
    }
    builder.start().await.map_err(|error| {
        use sundown_embedded::StartError as E;
        let complaint = Complaint::of(&error);
        match error {
            E::Https(_) => complaint.help("another port: --port 0 takes any free one"),
            E::Kubeconfig(_) => complaint.help("another place: --kubeconfig PATH"),
            E::Recorder(_) => complaint.help("another place: --flight-record DIR"),
            E::Identity(_) | E::FirstList(_) => complaint,
        }
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
    let _ = write!(
        text,
        "  API server   {}\n  \
           kubeconfig   {kubeconfig}\n  \
           controllers  {controllers}\n  \
           data         in memory, gone when this ends (Ctrl-C)\n\n  \
           export KUBECONFIG={kubeconfig}\n",
        started.url,
    );
    text
}

/// A file of this process, so that two control planes do not take each other's place.
fn default_kubeconfig() -> PathBuf {
    let name = format!("ephemeral-{}.kubeconfig", std::process::id());
    state_directory().join(name)
}

/// `$SUNDOWN_DATA`, else the user's state directory.
fn state_directory() -> PathBuf {
    let path = |name: &str| {
        std::env::var_os(name)
            .filter(|it| !it.is_empty())
            .map(PathBuf::from)
    };
    let state = || path("XDG_STATE_HOME").or_else(|| Some(path("HOME")?.join(".local/state")));
    path("SUNDOWN_DATA").unwrap_or_else(|| {
        let state = state().unwrap_or_else(std::env::temp_dir);
        state.join("sundown")
    })
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
