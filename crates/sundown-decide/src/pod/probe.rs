//! Probes: when a container is asked how it is, and what follows from the answers.
//!
//! Answers in a row are counted among the facts. After a death of ours the count begins anew; until
//! there is an answer, what was recorded of the same run stands.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sundown_model::{Decision, Facts, Need, Question, Reply, node};

use super::chart::Scene;
use super::reason::Reason;
use super::view::{ContainerView, PodView};
use crate::json::{after, count, list, number, text, texts};

/// What a probe is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Purpose {
    Startup,
    Liveness,
    Readiness,
}

impl Purpose {
    pub(super) const ALL: [Self; 3] = [Self::Startup, Self::Liveness, Self::Readiness];

    /// As manifests name it.
    pub(super) fn member(self) -> &'static str {
        match self {
            Self::Startup => "startupProbe",
            Self::Liveness => "livenessProbe",
            Self::Readiness => "readinessProbe",
        }
    }

    /// As events name it.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Startup => "Startup",
            Self::Liveness => "Liveness",
            Self::Readiness => "Readiness",
        }
    }
}

/// A probe as a manifest describes it.
#[derive(Debug, Clone)]
pub(super) struct ProbeView {
    probe: node::Probe,
    delay_seconds: i64,
    period_seconds: i64,
    successes: u32,
    failures: u32,
    grace_seconds: Option<i64>,
}

/// What the probes of a container say.
#[derive(Debug, Clone)]
pub(super) struct Health {
    pub(super) is_started: bool,
    pub(super) is_ready: bool,
    /// Why it has to go, and how long it may take.
    pub(super) stop: Option<(String, i64)>,
}

impl ProbeView {
    pub(super) fn of(container: &ContainerView<'_>, purpose: Purpose) -> Option<Self> {
        let json = container.json.get(purpose.member())?;
        let how = kind(json, container.json)?;
        let timeout_seconds = count(json, "timeoutSeconds", 1).max(1);
        Some(Self {
            probe: node::Probe {
                how,
                timeout_seconds,
            },
            delay_seconds: number(json, "initialDelaySeconds").unwrap_or(0).max(0),
            period_seconds: number(json, "periodSeconds").unwrap_or(10).max(1),
            successes: count(json, "successThreshold", 1).max(1),
            failures: count(json, "failureThreshold", 3).max(1),
            grace_seconds: number(json, "terminationGracePeriodSeconds"),
        })
    }

    pub(super) fn question(&self, run: &node::Run) -> Question {
        Question::Node(self.query(run))
    }

    fn query(&self, run: &node::Run) -> node::Query {
        node::Query::Probe {
            run: run.clone(),
            probe: self.probe.clone(),
        }
    }

    /// Whether enough answers in a row were good, or bad; None: neither.
    fn verdict(&self, facts: &Facts, run: &node::Run) -> Option<bool> {
        let streak = facts.streak(&self.question(run))?;
        let enough = if streak.is_well {
            self.successes
        } else {
            self.failures
        };
        (streak.count >= enough).then_some(streak.is_well)
    }
}

/// Decides when a container is asked next.
pub(super) fn decide(
    pod: &PodView<'_>,
    container: &ContainerView<'_>,
    purpose: Purpose,
    facts: &Facts,
    now: Timestamp,
) -> Decision<Reason> {
    let running = facts.pod(&pod.uid).filter(|it| it.lost.is_none());
    let running = running.and_then(|it| it.containers.get(&container.name));
    let (Some(node), Some(view)) = (running, ProbeView::of(container, purpose)) else {
        return Decision::idle(Reason::NothingToProbe);
    };
    let node::State::Running { started_at } = node.state else {
        return Decision::idle(Reason::NothingToProbe);
    };
    let run = node::Run {
        pod: pod.uid.clone(),
        container: container.name.clone(),
        attempt: node.attempt,
    };
    let is_started = is_started(container, facts, &run);
    if pod.deletion.is_some() || pod.is_finished() || is_started == (purpose == Purpose::Startup) {
        return Decision::idle(Reason::NothingToProbe);
    }
    let asked = facts.reply(&view.question(&run));
    let due_at = match asked {
        Some(reply) => after(reply.answered_at, view.period_seconds),
        None => after(started_at, view.delay_seconds),
    };
    if now < due_at {
        return Decision::wake_at(due_at, Reason::ProbesLater { at: due_at });
    }
    let container = container.name.to_string();
    Decision::need(
        vec![Need::Node(view.query(&run))],
        Reason::Probes { container },
    )
}

/// What the answers so far mean for a run.
pub(super) fn health(scene: &Scene<'_>, container: &ContainerView<'_>, run: &node::Run) -> Health {
    let facts = scene.facts;
    let is_started = is_started(container, facts, run);
    let ready = ProbeView::of(container, Purpose::Readiness);
    let was_ready = recorded(container, run).is_some_and(|it| it.is_ready);
    let is_ready = match &ready {
        Some(view) => view.verdict(facts, run).unwrap_or(was_ready),
        None => true,
    };
    let fails = |purpose: Purpose| {
        let view = ProbeView::of(container, purpose)?;
        let has_failed = view.verdict(facts, run) == Some(false);
        let name = &container.name;
        let word = purpose.word().to_lowercase();
        let why = format!("Container {name} failed {word} probe, will be restarted");
        let grace = view.grace_seconds.unwrap_or(scene.pod.grace_seconds);
        has_failed.then_some((why, grace))
    };
    let stop = if is_started {
        fails(Purpose::Liveness)
    } else {
        fails(Purpose::Startup)
    };
    Health {
        is_started,
        is_ready: is_ready && is_started,
        stop,
    }
}

/// The trouble that a probe found last, to be told: in our words, then in those of the pod.
pub(super) fn troubles(
    pod: &PodView<'_>,
    container: &ContainerView<'_>,
    run: &node::Run,
    facts: &Facts,
) -> Vec<(String, String)> {
    let told = Purpose::ALL.into_iter().filter_map(|purpose| {
        let view = ProbeView::of(container, purpose)?;
        let reply = &facts.reply(&view.question(run))?.reply;
        let Reply::Node(Ok(node::Answer::Probe {
            trouble: Some(trouble),
        })) = reply
        else {
            return None;
        };
        let is_asked = pod.deletion.is_none();
        is_asked.then(|| {
            (
                format!("{} probe failed: ", purpose.word()),
                trouble.clone(),
            )
        })
    });
    told.collect()
}

fn is_started(container: &ContainerView<'_>, facts: &Facts, run: &node::Run) -> bool {
    let Some(view) = ProbeView::of(container, Purpose::Startup) else {
        return true;
    };
    let was_started = recorded(container, run).is_some_and(|it| it.is_started);
    was_started || view.verdict(facts, run) == Some(true)
}

/// What was recorded of this very run.
fn recorded<'a>(
    container: &'a ContainerView<'_>,
    run: &node::Run,
) -> Option<&'a super::view::Record> {
    let record = container.record.as_ref();
    record.filter(|record| {
        record.attempt == run.attempt && record.state == super::view::Recorded::Running
    })
}

fn kind(json: &Value, container: &Value) -> Option<node::ProbeKind> {
    if let Some(exec) = json.get("exec") {
        let command = texts(exec, "command");
        return Some(node::ProbeKind::Exec { command });
    }
    if let Some(get) = json.get("httpGet") {
        let headers = list(get, "httpHeaders").iter();
        let headers = headers.map(|it| (text(it, "name").to_owned(), text(it, "value").to_owned()));
        let path = match text(get, "path") {
            "" => "/".to_owned(),
            path if path.starts_with('/') => path.to_owned(),
            path => format!("/{path}"),
        };
        return Some(node::ProbeKind::Http {
            port: port(get, container)?,
            path,
            tls: text(get, "scheme") == "HTTPS",
            headers: headers.collect(),
        });
    }
    let tcp = json.get("tcpSocket")?;
    let port = port(tcp, container)?;
    Some(node::ProbeKind::Tcp { port })
}

/// A port by number, or by the name that the container gives it.
fn port(handler: &Value, container: &Value) -> Option<u16> {
    let port = handler.get("port")?;
    let number = port.as_i64().or_else(|| {
        let name = port.as_str()?;
        let mut ports = list(container, "ports").iter();
        let named = ports.find(|it| text(it, "name") == name);
        named.map_or_else(|| name.parse().ok(), |it| number(it, "containerPort"))
    })?;
    u16::try_from(number).ok()
}
