//! This machine as a node: what the controllers ask and decide is handed to `sundown-node`, with what
//! must not stand in a decision looked up on the way (`ConfigMap`s, Secrets, tokens).
//!
//! Nothing is chosen here. What could not be looked up or done is told as a refusal.

mod again;
mod api_service;
mod door;
pub(crate) mod egress;
mod environment;
mod files;
mod link;
mod logs;
mod pods;
mod references;
pub(crate) mod registration;
mod reports;
mod sandbox;
mod user;
mod way_in;

use std::net::{Ipv4Addr, SocketAddrV4};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use futures::stream::BoxStream;
use jiff::Timestamp;
use kube::Client;
use sundown_decide::pod::expand::Budget;
use sundown_decide::pod::{API_PORT, NODE_NAME};
use sundown_decide::rights::Right;
use sundown_decide::schedule::Asked;
use sundown_driver::{Dial, NodePort};
use sundown_model::{DeedOutcome, DeedRefusal, ObjectKey, node};
use sundown_node::environment::{Environments, Standing};
use sundown_node::{ClosedPaths, ContainerKey, HttpProbe, NodeError, ProbeError, Refusal};
use tokio::sync::mpsc;

use egress::Egress;
use references::References;
use way_in::{Names, WayIn};

pub(crate) use again::over_panics;
pub(crate) use door::arrivals;
pub(crate) use link::Link;
pub(crate) use logs::Logs;

/// What of the output of a probe is told.
const PROBE_BYTES_MAX: usize = 1_024;
/// How many reports about images may wait. They are repeated by questions, so that none is missed.
const IMAGE_REPORTS_MAX: usize = 64;

/// What this port asks the API server for, beside the content of `ConfigMap`s and Secrets: its own Node, the
/// pods that run here, and their tokens. The controllers write everything else about pods.
pub(crate) const RIGHTS: &[Right] = &[
    Right::to("", "nodes", &["create"]),
    Right::to("", "nodes", &["get", "patch"]).named(NODE_NAME),
    Right::to("", "nodes/status", &["patch"]).named(NODE_NAME),
    Right::to("", "pods", &["get"]),
    Right::to("", "serviceaccounts/token", &["create"]),
];

/// What a machine needs beside its node.
pub(crate) struct Parts {
    pub(crate) link: Arc<Link>,
    pub(crate) environments: Environments,
    /// None: pods reach nothing outside.
    pub(crate) egress: Option<Egress>,
    /// The paths of the host that no hostPath may be.
    pub(crate) closed: ClosedPaths,
    /// By which objects are looked up, as the node.
    pub(crate) client: Client,
    /// The certificate by which pods know the API server, as PEM.
    pub(crate) authority: String,
}

/// This machine.
#[derive(Debug)]
pub(crate) struct Machine {
    link: Arc<Link>,
    environments: Environments,
    egress: Option<Egress>,
    closed: ClosedPaths,
    references: References,
    names: Arc<Names>,
    images: mpsc::Sender<node::Report>,
    heard: Arc<tokio::sync::Mutex<mpsc::Receiver<node::Report>>>,
}

impl Machine {
    pub(crate) fn new(parts: Parts) -> Self {
        let link = parts.link;
        let names = Arc::clone(link.names());
        let (images, heard) = mpsc::channel(IMAGE_REPORTS_MAX);
        Self {
            link,
            environments: parts.environments,
            egress: parts.egress,
            closed: parts.closed,
            references: References::new(parts.client, parts.authority),
            names,
            images,
            heard: Arc::new(tokio::sync::Mutex::new(heard)),
        }
    }

    /// Makes this machine known as a node, and the API server known to its pods.
    ///
    /// Errors: the API server did not take it.
    pub(crate) async fn register(
        &self,
        administrator: &Client,
        asked: Asked,
        now: Timestamp,
    ) -> Result<(), kube::Error> {
        let client = self.references.client();
        let at = SocketAddrV4::new(self.link.bridge(), API_PORT);
        // At once: what is written together is synced together.
        let (registered, published) = tokio::join!(
            registration::register(client, asked, now),
            api_service::publish(administrator, at)
        );
        registered.and(published)
    }

    /// The node, if a pod has needed one.
    pub(crate) async fn node(&self) -> Option<sundown_node::Node> {
        self.link.existing().await
    }

    /// The way from outside into its pods, by their names.
    pub(crate) fn way_in(&self) -> Arc<dyn Dial> {
        Arc::new(WayIn {
            link: Arc::clone(&self.link),
            names: Arc::clone(&self.names),
        })
    }

    /// Where a name of the pods leads.
    pub(crate) fn address_of(&self, name: &str) -> Option<Ipv4Addr> {
        self.names.first(name)
    }

    async fn answer(&self, query: &node::Query) -> Result<node::Answer, String> {
        match query {
            node::Query::Image { image } => Ok(node::Answer::Image(self.image(image).await)),
            node::Query::Probe { run, probe } => {
                let trouble = self.probe(run, probe).await?;
                Ok(node::Answer::Probe { trouble })
            }
        }
    }

    async fn image(&self, image: &str) -> node::Image {
        match self.environments.standing(image).await {
            Standing::Ready(_) => node::Image::Ready,
            Standing::Missing => node::Image::Missing,
            Standing::Unavailable(message) => node::Image::Unavailable { message },
        }
    }

    /// What a probe found wrong; an error says nothing about the container.
    async fn probe(&self, run: &node::Run, probe: &node::Probe) -> Result<Option<String>, String> {
        let node = self.link.node().await.map_err(|error| words(&error))?;
        let timeout = Duration::from_secs(u64::from(probe.timeout_seconds.max(1)));
        let address = self.link.pods().address(&run.pod);
        let missing = || format!("pod {} has no address", run.pod);
        let tried = match &probe.how {
            node::ProbeKind::Exec { command } => {
                let (pod, container) = (run.pod.as_str(), &*run.container);
                let done = node.exec(pod, container, command.clone(), timeout, PROBE_BYTES_MAX);
                let done = done.await.map_err(|error| words(&error))?;
                return Ok(match done.code {
                    Some(0) => None,
                    Some(_) => Some(done.output),
                    None => Some(format!("command timed out after {}s", timeout.as_secs())),
                });
            }
            node::ProbeKind::Http {
                port,
                path,
                tls,
                headers,
            } => {
                let probe = HttpProbe {
                    address: address.ok_or_else(missing)?,
                    port: *port,
                    path: path.clone(),
                    tls: *tls,
                    headers: headers.clone(),
                    timeout,
                };
                let answered = node.probe_http(&probe).await;
                answered.map(|it| {
                    let is_well = it.is_success();
                    (!is_well).then(|| format!("HTTP probe failed with statuscode: {}", it.status))
                })
            }
            node::ProbeKind::Tcp { port } => {
                let address = SocketAddrV4::new(address.ok_or_else(missing)?, *port);
                node.probe_tcp(address, timeout).await.map(|()| None)
            }
        };
        match tried {
            Ok(trouble) => Ok(trouble),
            Err(ProbeError::Node(error)) => Err(words(&error)),
            Err(error) => Ok(Some(probe_words(&probe.how, address, &error))),
        }
    }

    async fn call(&self, about: &ObjectKey, call: &node::Call) -> Result<(), DeedFailure> {
        match call {
            node::Call::Prepare(sandbox) => self.prepare(sandbox).await,
            node::Call::Start(launch) => self.start(about, launch).await,
            node::Call::Hook {
                run,
                command,
                timeout_seconds,
            } => self.hook(run, command, *timeout_seconds).await,
            node::Call::Signal { run, signal } => {
                let key = ContainerKey {
                    uid: run.pod.to_string(),
                    container: run.container.to_string(),
                    attempt: run.attempt,
                };
                Ok(self.link.node().await?.signal(key, *signal).await?)
            }
            node::Call::Release { pod } => {
                Ok(self.link.node().await?.release_pod(pod.as_str()).await?)
            }
            node::Call::Remove { pod } => {
                Ok(self.link.node().await?.remove_pod(pod.as_str()).await?)
            }
            node::Call::Pull { image } => self.pull(image).await,
            node::Call::Names(names) => Ok(self.link.announce(names).await?),
        }
    }

    async fn hook(
        &self,
        run: &node::Run,
        command: &[String],
        timeout_seconds: u32,
    ) -> Result<(), DeedFailure> {
        let node = self.link.node().await?;
        let timeout = Duration::from_secs(u64::from(timeout_seconds));
        let (pod, container) = (run.pod.as_str(), &*run.container);
        let done = node.exec(pod, container, command.to_vec(), timeout, PROBE_BYTES_MAX);
        let done = done.await?;
        match done.code {
            Some(0) => Ok(()),
            Some(code) => {
                let message = format!("command exited with {code}: ");
                let quote = done.output.trim_end();
                Err(DeedFailure::refused(node::Refused::FailedPreStopHook, message).quoting(quote))
            }
            None => {
                let message = format!("command timed out after {timeout_seconds}s");
                Err(DeedFailure::refused(
                    node::Refused::FailedPreStopHook,
                    message,
                ))
            }
        }
    }

    async fn prepare(&self, sandbox: &node::Sandbox) -> Result<(), DeedFailure> {
        let spec = sandbox::pod_spec(sandbox, &self.closed, &self.references).await?;
        self.link.node().await?.create_pod(spec).await?;
        Ok(())
    }

    async fn start(&self, about: &ObjectKey, launch: &node::Launch) -> Result<(), DeedFailure> {
        let environment = match self.environments.standing(&launch.image).await {
            Standing::Ready(environment) => environment,
            Standing::Missing | Standing::Unavailable(_) => {
                let message = format!("the environment for {} is gone", launch.image);
                return Err(DeedFailure::refused(node::Refused::ImageNotReady, message));
            }
        };
        let namespace = about.namespace_str();
        let node = self.link.node().await?;
        let mut environment = environment;
        if let Some(egress) = &self.egress {
            environment
                .variables
                .extend(egress.variables(node.bridge()));
        }
        let mut budget = Budget::default();
        let variables = environment::variables(
            &mut budget,
            launch,
            &environment,
            namespace,
            &self.references,
        );
        let variables = variables.await?;
        let mut spec = environment::container_spec(&mut budget, launch, &environment, &variables)?;
        spec.run_as = user::of(launch.run_as, node.isolation())?;
        node.start_container(launch.run.pod.as_str(), spec).await?;
        Ok(())
    }

    /// Minutes, the first time; how far it is comes as reports.
    async fn pull(&self, image: &Arc<str>) -> Result<(), DeedFailure> {
        let report = |is| node::Report::Image {
            image: Arc::clone(image),
            is,
        };
        let told = self.images.clone();
        let mut tell = |progress: sundown_node::environment::Progress| {
            let progress = progress.step;
            // Whoever is too slow for all of them gets the next one.
            let _ = told.try_send(report(node::Image::Making { progress }));
        };
        let made = AssertUnwindSafe(self.environments.make(image, &mut tell));
        let made = made.catch_unwind().await;
        let is = match &made {
            Ok(Ok(_)) => node::Image::Ready,
            Ok(Err(error)) => node::Image::Unavailable {
                message: error.to_string(),
            },
            // Else the last word about the image would be that it is being made, for ever.
            Err(_) => node::Image::Unavailable {
                message: "Sundown panicked while it made the environment; its log says where"
                    .to_owned(),
            },
        };
        let _ = self.images.send(report(is)).await;
        match made {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(error)) => Err(DeedFailure::refused(
                node::Refused::ErrImagePull,
                error.to_string(),
            )),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }
}

impl NodePort for Machine {
    fn ask<'a>(&'a self, query: &'a node::Query) -> BoxFuture<'a, Result<node::Answer, String>> {
        Box::pin(self.answer(query))
    }

    fn carry_out<'a>(
        &'a self,
        about: &'a ObjectKey,
        call: &'a node::Call,
    ) -> BoxFuture<'a, DeedOutcome> {
        Box::pin(async move {
            match self.call(about, call).await {
                Ok(()) => DeedOutcome::Done,
                Err(DeedFailure::Refused(refusal)) => DeedOutcome::Refused(refusal),
                Err(DeedFailure::Unknown) => DeedOutcome::unanswered(),
            }
        })
    }

    fn reports(&self) -> BoxStream<'static, node::Report> {
        reports::stream(Arc::clone(&self.link), Arc::clone(&self.heard))
    }
}

/// Why something was not done, as far as it is known.
#[derive(Debug)]
pub(crate) enum DeedFailure {
    Refused(DeedRefusal),
    /// Sent, and nobody said what became of it.
    Unknown,
}

impl DeedFailure {
    pub(crate) fn refused(reason: node::Refused, message: impl Into<String>) -> Self {
        Self::Refused(DeedRefusal::new(reason, message))
    }

    /// The same, with what a program of the pod said about it.
    fn quoting(self, quote: &str) -> Self {
        match self {
            Self::Refused(refusal) => Self::Refused(refusal.quoting(quote)),
            Self::Unknown => self,
        }
    }

    /// The same, because of an object: nothing is tried again before that changes.
    fn for_lack_of(self, object: ObjectKey) -> Self {
        match self {
            Self::Refused(refusal) => Self::Refused(refusal.for_lack_of(object)),
            Self::Unknown => self,
        }
    }
}

impl From<NodeError> for DeedFailure {
    fn from(error: NodeError) -> Self {
        let message = words(&error);
        match error {
            NodeError::Gone { .. } | NodeError::Silent { .. } => Self::Unknown,
            NodeError::Start { .. }
            | NodeError::Version { .. }
            | NodeError::NotEnded { .. }
            | NodeError::Foreign { .. } => Self::refused(node::Refused::NoNode, message),
            NodeError::Refused(refusal) => Self::refused(reason(&refusal), message),
        }
    }
}

/// The node's refusal in one word.
fn reason(refusal: &Refusal) -> node::Refused {
    match refusal {
        Refusal::NoSuchPod { .. } => node::Refused::NoSuchPod,
        Refusal::Setup { .. } => node::Refused::FailedCreatePodSandBox,
        Refusal::Invalid { .. }
        | Refusal::NoSuchContainer { .. }
        | Refusal::StillRunning { .. }
        | Refusal::Address { .. }
        | Refusal::NotGone { .. }
        | Refusal::Network { .. }
        | Refusal::HasPods { .. }
        | Refusal::Ending => node::Refused::NotDone,
    }
}

/// What a probe found wrong, as the kubelet tells it: with what was asked.
fn probe_words(how: &node::ProbeKind, address: Option<Ipv4Addr>, error: &ProbeError) -> String {
    let host = address.map_or(String::new(), |it| it.to_string());
    match (how, error) {
        (
            node::ProbeKind::Http {
                port, path, tls, ..
            },
            error,
        ) => {
            let scheme = if *tls { "https" } else { "http" };
            format!("Get \"{scheme}://{host}:{port}{path}\": {error}")
        }
        (node::ProbeKind::Tcp { port }, ProbeError::Timeout) => {
            format!("dial tcp {host}:{port}: i/o timeout")
        }
        (node::ProbeKind::Tcp { .. } | node::ProbeKind::Exec { .. }, error) => error.to_string(),
    }
}

/// An error with its causes.
fn words(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(error.source(), |it| it.source());
    causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_probe_that_nobody_answers_says_what_was_asked() {
        let address = Some(Ipv4Addr::new(10, 0, 0, 7));
        let http = node::ProbeKind::Http {
            port: 8000,
            path: "/ready".to_owned(),
            tls: false,
            headers: Vec::new(),
        };
        let refused = ProbeError::Connection {
            address: SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, 7), 8000),
            message: "connect: connection refused".to_owned(),
        };
        assert_eq!(
            probe_words(&http, address, &refused),
            "Get \"http://10.0.0.7:8000/ready\": dial tcp 10.0.0.7:8000: connect: connection refused"
        );
        let tcp = node::ProbeKind::Tcp { port: 8000 };
        assert_eq!(
            probe_words(&tcp, address, &ProbeError::Timeout),
            "dial tcp 10.0.0.7:8000: i/o timeout"
        );
    }
}
