//! `sundown up`: a control plane in the foreground, from its first answer to its clean end.

mod ground;
mod places;

use std::error::Error;
use std::fmt::Write as _;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

use serde::Serialize;
use sundown_embedded::controllers::{OWNER_GC, of_node};
use sundown_embedded::{Data, Embedded, Listen, NodeOptions, RayConfig};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

use crate::arguments::{Authorization, Durability, Egress, Output, Up};
use crate::complaint::Complaint;
use crate::control::{self, Control, Hello, Served};
use crate::{data, limits, objects, output, ray};
use ground::Ground;
use places::{OfPods, Places};

/// What is told once it is up.
#[derive(Debug, Serialize)]
struct Started {
    url: String,
    kubeconfig: PathBuf,
    /// None: in memory.
    data: Option<PathBuf>,
    controllers: Vec<&'static str>,
    garbage_collector: bool,
    authorization: Authorization,
    /// From the start of the process to the first list that was answered over HTTPS.
    start_ms: f64,
    pid: u32,
    /// Told by the control socket.
    #[serde(skip)]
    deletes_finished: bool,
}

/// Runs until it is told to end.
pub(crate) async fn run(
    arguments: &Up,
    output: Output,
    started_at: Instant,
) -> Result<ExitCode, Complaint> {
    check(arguments)?;
    let places = Places::of(arguments, runs_pods(arguments))?;
    if runs_pods(arguments) {
        places.check_for_pods()?;
    }
    places::leave()?;
    limits::set();
    if arguments.while_used {
        // Away from the terminal of whoever started it: its Ctrl-C is not meant for this process.
        // A failure means that it leads a session already.
        let _ = rustix::process::setsid();
    }
    let ray = if runs_pods(arguments) {
        ray::config()?
    } else {
        RayConfig::default()
    };
    // Listened for before anything is written, so that an early Ctrl-C leaves nothing behind.
    let mut ends = Ends::listen()?;
    let embedded = tokio::select! {
        embedded = start(arguments, &places, &ray) => embedded?,
        () = ends.asked() => return Ok(ExitCode::SUCCESS),
    };
    // From here on it is noticed, before anyone reads that it is up and may move it.
    let ground = Ground::of(places.data.as_deref());
    let kubeconfig = embedded
        .kubeconfig_path()
        .expect("started with a path for it")
        .to_owned();
    answer_a_list(&kubeconfig).await?;
    let started = Started {
        url: embedded.url().unwrap_or_default().to_owned(),
        kubeconfig,
        data: places.data,
        controllers: running(arguments),
        garbage_collector: arguments.enable_garbage_collector,
        authorization: arguments.authorization,
        start_ms: (started_at.elapsed().as_secs_f64() * 10_000.0).round() / 10.0,
        pid: std::process::id(),
        deletes_finished: ray.deletes_finished,
    };
    // The socket is there before anybody reads that it is up.
    let control = open_control(&started)?;
    match output {
        Output::Text => output::print(&text(&started))?,
        Output::Json => output::print_json(&started)?,
    }
    let up = Standing {
        embedded,
        ground,
        control,
    };
    serve(arguments, up, &started, ends).await
}

fn check(arguments: &Up) -> Result<(), Complaint> {
    if arguments.ephemeral && arguments.node == Some(true) {
        let complaint = Complaint::usage("pods need a data directory").at("--node=true");
        return Err(complaint.help("leave --ephemeral out, or take --node=false"));
    }
    Ok(())
}

/// What a control plane stands on and answers with.
struct Standing {
    embedded: Embedded,
    ground: Ground,
    control: Option<Control>,
}

/// Serves until it is asked to end, a part fails, or nobody needs it any more.
async fn serve(
    arguments: &Up,
    up: Standing,
    started: &Started,
    mut ends: Ends,
) -> Result<ExitCode, Complaint> {
    let Standing {
        mut embedded,
        ground,
        control,
    } = up;
    let local = embedded.local();
    let served = Arc::new(Served {
        hello: Hello {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            pid: started.pid,
            url: started.url.clone(),
            kubeconfig: started.kubeconfig.clone(),
            deletes_finished: started.deletes_finished,
            authorization: started.authorization,
        },
        while_used: arguments.while_used,
        local: local.clone(),
        clients: watch::Sender::new(0),
        is_ending: watch::Sender::new(false),
        is_down: watch::Sender::new(false),
    });
    let mut is_down = served.is_down.subscribe();
    let clients = served.clients.subscribe();
    let control = control.map(Arc::new);
    let answering = answer_control(control.clone(), Arc::clone(&served));
    tokio::pin!(answering);
    let failed = tokio::select! {
        failed = embedded.failed() => failed,
        gone = ground.until_gone() => {
            ground::part(&served, &mut answering).await;
            // These are compared before they are removed: they would let anyone in who has them.
            embedded.remove_kubeconfigs();
            // Whatever the rest would remove at its paths may be another control plane's by now.
            std::mem::forget((embedded, control));
            return Err(gone);
        }
        () = ends.asked() => {
            served.is_ending.send_replace(true);
            Ok(())
        }
        () = &mut answering => Ok(()),
        _ = is_down.wait_for(|is_down| *is_down) => Ok(()),
        () = control::until_unused(&local, clients), if arguments.while_used => {
            embedded.keep_kubeconfigs();
            Ok(())
        }
    };
    let pods = objects::unfinished(&local.client()).await;
    // What cannot be told runs.
    let pods = pods.map_or(1, |all| all.iter().filter(|it| it.kind == "pod").count());
    // Clients hear of the end while it happens.
    let stopped = tokio::select! {
        stopped = embedded.stop() => stopped,
        () = &mut answering => Ok(()),
    };
    if let Some(directory) = &started.data {
        end_node(&sundown_disk::state(directory), pods).await;
    }
    match failed.and(stopped) {
        Ok(()) => Ok(ExitCode::SUCCESS),
        Err(error) => Err(Complaint::new("the control plane ended by itself").because(&error)),
    }
}

/// A control plane in memory is nobody's to find.
fn open_control(started: &Started) -> Result<Option<Control>, Complaint> {
    let Some(directory) = &started.data else {
        return Ok(None);
    };
    let control = Control::open(&sundown_disk::state(directory)).map_err(|error| {
        let place = sundown_disk::state(directory).join(control::SOCKET);
        Complaint::new("the control socket cannot be opened")
            .at(place.display().to_string())
            .because(&error)
    })?;
    Ok(Some(control))
}

async fn answer_control(control: Option<Arc<Control>>, served: Arc<Served>) {
    match control {
        Some(control) => control.serve(served).await,
        None => std::future::pending().await,
    }
}

/// A node without anything to run ends with its control plane. Pods that run go on without one.
async fn end_node(state: &Path, pods: usize) {
    if pods > 0 {
        return;
    }
    if let Ok(Some(node)) = sundown_node::Node::connect(state).await
        && let Err(error) = node.end().await
    {
        tracing::warn!(%error, "the node stays");
    }
}

async fn start(arguments: &Up, places: &Places, ray: &RayConfig) -> Result<Embedded, Complaint> {
    let listen = Listen {
        address: (Ipv4Addr::LOCALHOST, arguments.port).into(),
        kubeconfigs: places.kubeconfigs.clone(),
    };
    let mut builder = Embedded::builder()
        .controllers(arguments.controllers.clone())
        .garbage_collector(arguments.enable_garbage_collector)
        .authorization(match arguments.authorization {
            Authorization::Rbac => sundown_embedded::Authorization::Rbac,
            Authorization::AlwaysAllow => sundown_embedded::Authorization::AlwaysAllow,
        })
        .listen(listen);
    if let Some(directory) = &places.flight_record {
        builder = builder.flight_record(directory);
    }
    if let (Some(directory), Some(of_pods)) = (&places.data, &places.of_pods) {
        builder = builder.node(node_options(arguments, places, of_pods, directory)?);
        builder = builder.ray(ray.clone());
    }
    if let Some(directory) = places.data.clone() {
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
                .help("put `state/identity.json` of the data directory back from a backup")
                .help(
                    "or make a new one, which ends all old kubeconfigs and tokens: --new-identity",
                ),
            E::ImageRules(_) => complaint.help("correct the file, or move it away"),
            E::FirstList(_)
            | E::Data(_)
            | E::Durable(_)
            | E::Definitions(_)
            | E::Node(_)
            | E::Rights(_) => complaint,
        }
    })
}

fn node_options(
    arguments: &Up,
    places: &Places,
    of_pods: &OfPods,
    directory: &Path,
) -> Result<NodeOptions, Complaint> {
    let mut files = places.kubeconfigs.clone();
    files.push(of_pods.image_rules.clone());
    files.extend(places.flight_record.clone());
    let program = std::env::current_exe();
    let program = program
        .map_err(|error| Complaint::new("this program cannot find itself").because(&error))?;
    Ok(NodeOptions {
        image_rules: of_pods.image_rules.clone(),
        environments: of_pods.environments.clone(),
        environment_limits: data::environment_limits()?,
        hidden: data::hidden(directory, &of_pods.environments),
        egress_credentials: arguments.egress_credentials,
        closed: data::closed_to_pods(directory, &of_pods.environments, &files),
        egress: match arguments.egress {
            Egress::Proxy => true,
            Egress::None => false,
        },
        directory: sundown_disk::state(directory),
        program,
        offers: arguments.offers.asked(),
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
    let of_node = of_node();
    names.retain(|name| runs_pods(arguments) || !of_node.contains(name));
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
    let access = started.authorization.warning();
    let access = access.map_or(String::new(), |warning| {
        format!("  access       {warning}\n")
    });
    let _ = write!(
        text,
        "  API server   {}\n  \
           kubeconfig   {kubeconfig}\n  \
           controllers  {controllers}\n  \
           data         {data}\n{access}\n  \
           export KUBECONFIG={kubeconfig}\n",
        started.url,
    );
    text
}

/// A control plane in memory has no directory for pods.
fn runs_pods(arguments: &Up) -> bool {
    arguments.node.unwrap_or(!arguments.ephemeral)
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
                .map_err(|error| Complaint::new("cannot listen for signals").because(&error))
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
