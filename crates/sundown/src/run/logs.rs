//! The logs of a run: which are wanted is decided from a snapshot; each is read by a task of its own,
//! and read on where it stopped when the control plane was away.

mod printed;
mod reading;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use futures::AsyncBufReadExt as _;
use jiff::Timestamp;
use kube::Client;
use serde_json::Value;
use sundown_model::path::part;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::target::{Parts, Submission};
use super::trouble;
use printed::Printed;
pub(super) use reading::{Incomplete, Reading, in_words};

use crate::control::{self, Forwarded, Request};
use crate::kubectl::Kubectl;
use crate::objects::{self, Known, list_in, text};

/// Lines that wait to be printed: a reader that is slower makes the writer wait.
const LINES_MAX: usize = 1_024;
/// Before a log is asked for again after its server was away.
const PAUSE: Duration = Duration::from_millis(500);
/// How often Ray is asked for what its job wrote: it pushes only over a websocket.
const RAY_INTERVAL: Duration = Duration::from_secs(1);
/// How many lines of a container that failed are shown.
const CRASH_LINES: u32 = 20;
/// Ray's dashboard.
const DASHBOARD_PORT: u16 = 8265;

/// A log that is wanted.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Source {
    /// One run of a container, to its end.
    Container {
        namespace: String,
        pod: String,
        container: String,
        /// Which run of it.
        attempt: u64,
        /// The identity of the pod: another of the same name has another log.
        uid: String,
    },
    /// The end of a run that failed, of a pod that is not the job itself.
    Crash {
        namespace: String,
        pod: String,
        container: String,
        attempt: u64,
        uid: String,
    },
    /// What Ray keeps of a job that nobody submits by a pod.
    Ray {
        namespace: String,
        service: String,
        id: String,
    },
}

/// One line of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) source: String,
    pub(super) text: String,
    /// Whether it is ours to tell, about a log or of a pod that failed, and not the job's own.
    pub(super) is_ours: bool,
}

/// Which logs are wanted now.
pub(super) fn wanted(parts: &Parts<'_>) -> BTreeSet<Source> {
    let mut all = BTreeSet::new();
    let own = parts.own_pods();
    for pod in &own {
        all.extend(containers(pod, None));
    }
    if parts.target.kind == Known::Pod {
        all.extend(parts.job.into_iter().flat_map(|pod| containers(pod, None)));
    }
    if parts.target.kind == Known::RayJob {
        match parts.submission() {
            Submission::Job | Submission::Interactive => {}
            Submission::Sidecar => {
                let name = sundown_kinds::constants::CONTAINER_SUBMITTER;
                all.extend(
                    parts
                        .head()
                        .into_iter()
                        .flat_map(|it| containers(it, Some(name))),
                );
            }
            Submission::Http => all.extend(of_ray(parts)),
        }
    }
    let nodes = parts.nodes("head").into_iter().chain(parts.nodes("worker"));
    all.extend(nodes.filter_map(crash));
    all
}

/// Every run of a container that has begun.
fn containers(pod: &Value, only: Option<&str>) -> Vec<Source> {
    let all = list_in(pod, "/status/initContainerStatuses").iter();
    let all = all.chain(list_in(pod, "/status/containerStatuses"));
    let is_wanted = |it: &&Value| only.is_none_or(|only| it["name"] == only);
    let all = all.filter(|it| has_begun(it)).filter(is_wanted);
    let source = |it: &Value| Source::Container {
        namespace: text(pod, "/metadata/namespace").to_owned(),
        pod: text(pod, "/metadata/name").to_owned(),
        container: text(it, "/name").to_owned(),
        attempt: it["restartCount"].as_u64().unwrap_or(0),
        uid: text(pod, "/metadata/uid").to_owned(),
    };
    all.map(source).collect()
}

/// Whether the run that the status of a container is about has begun, so that there is a log of it.
fn has_begun(status: &Value) -> bool {
    let state = &status["state"];
    state["running"].is_object() || state["terminated"].is_object()
}

fn crash(pod: &Value) -> Option<Source> {
    let trouble = trouble::of(pod)?;
    Some(Source::Crash {
        namespace: text(pod, "/metadata/namespace").to_owned(),
        pod: trouble.pod,
        container: trouble.container,
        attempt: trouble.ended?,
        uid: text(pod, "/metadata/uid").to_owned(),
    })
}

fn of_ray(parts: &Parts<'_>) -> Option<Source> {
    let id = parts.says("/status/jobId");
    let has_begun = !parts.says("/status/jobStatus").is_empty() && parts.head().is_some();
    has_begun.then(|| Source::Ray {
        namespace: parts.target.namespace.clone(),
        service: head_service(parts),
        id: id.to_owned(),
    })
}

/// The service that leads to the dashboard.
pub(super) fn head_service(parts: &Parts<'_>) -> String {
    let told = parts
        .cluster
        .map_or("", |it| text(it, "/status/head/serviceName"));
    if !told.is_empty() {
        return told.to_owned();
    }
    let cluster = parts.cluster.map_or("", |it| text(it, "/metadata/name"));
    format!("{cluster}-head-svc")
}

/// All logs of a run.
pub(super) struct Logs {
    client: watch::Receiver<Client>,
    directory: PathBuf,
    known: BTreeSet<Source>,
    /// What of it has not been read to its end.
    open: BTreeSet<Source>,
    tasks: JoinSet<Source>,
    tell: mpsc::Sender<Line>,
    lines: mpsc::Receiver<Line>,
    /// When something of them came last.
    heard_at: Instant,
    /// Whether it was told which are not complete.
    are_given_up: bool,
}

impl Logs {
    pub(super) fn new(client: watch::Receiver<Client>, directory: &Path) -> Self {
        let (tell, lines) = mpsc::channel(LINES_MAX);
        Self {
            client,
            directory: directory.to_owned(),
            known: BTreeSet::new(),
            open: BTreeSet::new(),
            tasks: JoinSet::new(),
            tell,
            lines,
            heard_at: Instant::now(),
            are_given_up: false,
        }
    }

    /// Begins to read what is wanted and not read yet.
    pub(super) fn want(&mut self, wanted: BTreeSet<Source>) {
        for source in wanted {
            if self.known.insert(source.clone()) {
                let reader = Reader {
                    client: self.client.clone(),
                    directory: self.directory.clone(),
                    tell: self.tell.clone(),
                    printed: Printed::default(),
                    is_ours: matches!(source, Source::Crash { .. }),
                };
                self.open.insert(source.clone());
                self.tasks.spawn(reader.read(source));
                self.hear();
            }
        }
    }

    /// The next lines, as many as there are; none: a log came to its end. Cancel-safe.
    pub(super) async fn next(&mut self) -> Vec<Line> {
        let mut lines = Vec::new();
        tokio::select! {
            biased;
            _ = self.lines.recv_many(&mut lines, LINES_MAX) => {}
            // One that panicked stays open, and is told as not complete.
            Some(ended) = self.tasks.join_next() => {
                if let Ok(source) = ended {
                    self.open.remove(&source);
                }
            }
        }
        lines
    }

    /// Something came, or it begins anew that something may come.
    pub(super) fn hear(&mut self) {
        self.heard_at = Instant::now();
    }

    /// How far they are after the end of the job.
    pub(super) fn reading(&self, parts: &Parts<'_>) -> Reading {
        let is_read = self.open.is_empty() && self.lines.is_empty();
        if self.are_given_up || (is_read && reading::unopened(parts).is_empty()) {
            return Reading::Done;
        }
        if !reading::come_to_end(parts) {
            return Reading::Endless;
        }
        let quiet = self.heard_at.elapsed();
        let quiet = if self.lines.is_empty() {
            quiet
        } else {
            Duration::ZERO
        };
        Reading::Open { quiet }
    }

    /// They are not waited for any more; gives what is not complete.
    pub(super) fn give_up(
        &mut self,
        parts: &Parts<'_>,
        kubectl: Option<&Kubectl>,
    ) -> Vec<Incomplete> {
        self.are_given_up = true;
        reading::incomplete(&self.open, &reading::unopened(parts), kubectl)
    }
}

/// Reads one log.
struct Reader {
    client: watch::Receiver<Client>,
    directory: PathBuf,
    tell: mpsc::Sender<Line>,
    /// So that a second reading goes on there.
    printed: Printed,
    is_ours: bool,
}

impl Reader {
    async fn read(mut self, source: Source) -> Source {
        match &source {
            Source::Container { .. } | Source::Crash { .. } => self.read_container(&source).await,
            Source::Ray {
                namespace,
                service,
                id,
            } => self.read_ray(namespace, service, id).await,
        }
        source
    }

    async fn read_container(&mut self, source: &Source) {
        loop {
            let (path, name) = address(source, self.printed.since());
            let client = self.client.borrow().clone();
            match self.stream(&client, &path, &name).await {
                Ok(()) => return,
                Err(Trouble::Refused(why)) => {
                    let line = Line {
                        source: name,
                        text: format!("cannot read its log: {why}"),
                        is_ours: true,
                    };
                    let _ = self.tell.send(line).await;
                    return;
                }
                Err(Trouble::Away) if self.tell.is_closed() => return,
                Err(Trouble::Away) => tokio::time::sleep(PAUSE).await,
            }
        }
    }

    /// Reads to the end of the log, leaving out what was printed before.
    async fn stream(&mut self, client: &Client, path: &str, name: &str) -> Result<(), Trouble> {
        let request = http::Request::get(path).body(Vec::new());
        let request = request.map_err(|error| Trouble::Refused(error.to_string()))?;
        let stream = client.request_stream(request).await;
        let mut stream = std::pin::pin!(stream.map_err(|error| Trouble::of(&error))?);
        let mut known = self.printed.clone();
        loop {
            let mut line = Vec::new();
            let length = stream.read_until(b'\n', &mut line).await;
            if length.map_err(|_| Trouble::Away)? == 0 {
                return Ok(());
            }
            let line = String::from_utf8_lossy(&line);
            let (at, text) = printed::split(&line);
            if at.is_some_and(|at| known.take(at)) {
                continue;
            }
            if let Some(at) = at {
                self.printed.add(at);
            }
            self.line(name, text).await;
        }
    }

    async fn line(&self, source: &str, text: &str) {
        let line = Line {
            source: source.to_owned(),
            text: text.trim_end_matches(['\n', '\r']).to_owned(),
            is_ours: self.is_ours,
        };
        // Closed: nobody wants it any more, and the task is about to end.
        let _ = self.tell.send(line).await;
    }

    /// Asks again and again.
    async fn read_ray(&self, namespace: &str, service: &str, id: &str) {
        let request = Request::Forward {
            namespace: namespace.to_owned(),
            service: service.to_owned(),
            port: DASHBOARD_PORT,
        };
        // How many bytes of it were printed: the whole log comes each time.
        let mut printed = 0;
        while !self.tell.is_closed() {
            if let Ok(open) = control::forward(&self.directory, &request).await
                && self.poll_ray(&open, id, &mut printed).await == Polled::Ended
            {
                return;
            }
            tokio::time::sleep(RAY_INTERVAL).await;
        }
    }

    async fn poll_ray(&self, open: &Forwarded, id: &str, printed: &mut usize) -> Polled {
        let Some(client) = dashboard(open.port) else {
            return Polled::Lost;
        };
        loop {
            // Before the log: what is written until the end is in the log that is read after it.
            let job = get(&client, open, &format!("/api/jobs/{}", part(id))).await;
            let log = get(&client, open, &format!("/api/jobs/{}/logs", part(id))).await;
            let (Some(job), Some(log)) = (job, log) else {
                return Polled::Lost;
            };
            let is_over = ["SUCCEEDED", "FAILED", "STOPPED"].contains(&text(&job, "/status"));
            let content = text(&log, "/logs");
            let fresh = content.get(*printed..).unwrap_or_default();
            let end = if is_over {
                fresh.len()
            } else {
                fresh.rfind('\n').map_or(0, |at| at + 1)
            };
            for line in fresh[..end].lines() {
                self.line(id, line).await;
            }
            *printed += end;
            if is_over {
                return Polled::Ended;
            }
            tokio::time::sleep(RAY_INTERVAL).await;
        }
    }
}

/// How a look at Ray's log ended.
#[derive(Debug, PartialEq, Eq)]
enum Polled {
    Ended,
    Lost,
}

/// Why a log was not read.
#[derive(Debug)]
enum Trouble {
    /// The server will not give it.
    Refused(String),
    /// Nobody answered, or not to the end.
    Away,
}

impl Trouble {
    fn of(error: &kube::Error) -> Self {
        match objects::code(error) {
            // 400: the container waits; 500 and above: the server is about to be well again.
            Some(code) if code != 400 && code < 500 => Self::Refused(match error {
                kube::Error::Api(status) => status.message.clone(),
                other => other.to_string(),
            }),
            Some(_) | None => Self::Away,
        }
    }
}

/// Where a log is, from a time on, and whose it is.
fn address(source: &Source, since: Option<Timestamp>) -> (String, String) {
    let (Source::Container {
        namespace,
        pod,
        container,
        ..
    }
    | Source::Crash {
        namespace,
        pod,
        container,
        ..
    }) = source
    else {
        return (String::new(), String::new());
    };
    let how = match source {
        Source::Crash { .. } => format!("tailLines={CRASH_LINES}"),
        Source::Container { .. } | Source::Ray { .. } => "follow=true".to_owned(),
    };
    let path = format!("{}/{}/log", Known::Pod.path(Some(namespace)), part(pod));
    let since = since.map_or(String::new(), |since| format!("&sinceTime={since}"));
    let path = format!(
        "{path}?container={}&{how}&timestamps=true{since}",
        part(container)
    );
    (path, pod.clone())
}

fn dashboard(port: u16) -> Option<Client> {
    let url = format!("http://127.0.0.1:{port}").parse().ok()?;
    let mut config = kube::Config::new(url);
    config.proxy_url = None;
    config.default_retry = false;
    Client::try_from(config).ok()
}

async fn get(client: &Client, open: &Forwarded, path: &str) -> Option<Value> {
    let request = http::Request::get(path);
    let request = request.header("authorization", format!("Bearer {}", open.token));
    let request = request.body(Vec::new()).ok()?;
    client.request(request).await.ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_log_is_wanted_once_a_run_has_begun() {
        let pod = |state: Value| {
            let status = json!({"name": "c", "restartCount": 2, "state": state});
            json!({"metadata": {"name": "p", "namespace": "n", "uid": "u"},
                   "status": {"containerStatuses": [status]}})
        };
        assert!(containers(&pod(json!({"waiting": {}})), None).is_empty());
        let running = pod(json!({"running": {}}));
        assert!(containers(&running, Some("other")).is_empty());
        let found = containers(&running, None);
        let path = address(&found[0], None).0;
        let log = "/api/v1/namespaces/n/pods/p/log?container=c";
        assert_eq!(path, format!("{log}&follow=true&timestamps=true"));
        let since = "2026-01-02T03:04:05.000000006Z";
        let path = address(&found[0], since.parse().ok()).0;
        assert_eq!(
            path,
            format!("{log}&follow=true&timestamps=true&sinceTime={since}")
        );
        assert!(crash(&running).is_none());
        let failed = pod(json!({"terminated": {"exitCode": 1}}));
        let path = address(&crash(&failed).unwrap(), None).0;
        assert_eq!(path, format!("{log}&tailLines=20&timestamps=true"));
    }
}
