//! How each container of a pod stands and what comes next for it: the node's report, as far as it is
//! newer than what was recorded, else the record.
//!
//! A run is started only after its attempt stands in the record, and a record is never taken back. So
//! whatever was started can be missed, and no attempt is started twice, whoever is killed when.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Value, json};
use sundown_model::{Facts, Subject, node};

use super::decide::refusal;
use super::probe::{self, Health};
use super::view::{ContainerView, PodView, Policy, Record, Recorded, Role, exit_code};
use super::{image, launch, unsupported};
use crate::json::{after, instant, whole, written};

pub(super) const CRASH_LOOP: &str = "CrashLoopBackOff";
const CREATING: &str = "ContainerCreating";
const INITIALIZING: &str = "PodInitializing";
const CONFIG_ERROR: &str = "CreateContainerConfigError";
const CREATE_ERROR: &str = "CreateContainerError";

/// The recorded reasons to wait after which a start may have been sent.
const STARTABLE: [&str; 3] = [CREATING, CONFIG_ERROR, CREATE_ERROR];

/// The kubelet's back-off between runs, in seconds.
const BACKOFF_FIRST: i64 = 10;
const BACKOFF_MAX: i64 = 300;
/// A run of this length is forgiven: the next one starts at once.
const FORGIVEN_AFTER: i64 = 600;

/// How a container stands.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Standing {
    pub(super) name: Arc<str>,
    pub(super) image: Arc<str>,
    pub(super) role: Role,
    pub(super) attempt: u32,
    pub(super) shown: Shown,
    /// How the run before ended.
    pub(super) last: Option<Value>,
    pub(super) is_ready: bool,
    pub(super) is_started: bool,
    pub(super) next: Next,
}

/// The state that is shown.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Shown {
    Waiting { reason: String, message: String },
    Running { started_at: Timestamp },
    Ended(Value),
}

/// What comes next.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Next {
    Nothing,
    /// This attempt is on record and may begin.
    Start,
    /// Another run follows, not before.
    Restart {
        due_at: Timestamp,
    },
    /// A probe says that it has to go.
    Stop {
        why: String,
        grace_seconds: i64,
    },
}

/// All containers of a pod.
#[derive(Debug, Clone)]
pub(super) struct Chart {
    pub(super) init: Vec<Standing>,
    pub(super) main: Vec<Standing>,
    /// The place on the node and all that ran there are gone.
    pub(super) is_lost: bool,
}

/// What a chart is made from.
#[derive(Debug, Clone, Copy)]
pub(super) struct Scene<'a> {
    pub(super) pod: &'a PodView<'a>,
    pub(super) on_node: Option<&'a node::Pod>,
    pub(super) facts: &'a Facts,
    pub(super) now: Timestamp,
    /// Nothing begins any more: the pod is finished or goes.
    pub(super) is_ending: bool,
}

/// What is true of a container.
struct Truth {
    attempt: u32,
    state: Recorded,
    started_at: Option<Timestamp>,
    last: Option<Value>,
    /// The record says that this attempt may begin.
    is_marked: bool,
}

impl Chart {
    pub(super) fn of(scene: &Scene<'_>) -> Self {
        let gone = scene.on_node.is_none_or(|it| it.lost.is_some());
        let is_lost = scene.pod.is_placed() && gone;
        let mut is_turn = true;
        let mut init: Vec<_> = Vec::new();
        for container in &scene.pod.init {
            let standing = stand(scene, container, is_lost, is_turn);
            is_turn &= standing.has_passed();
            init.push(standing);
        }
        let main = scene.pod.main.iter();
        let main: Vec<_> = main
            .map(|container| stand(scene, container, is_lost, is_turn))
            .collect();
        let goes_on = main.iter().any(|it| !matches!(it.shown, Shown::Ended(_)));
        if is_lost && goes_on && scene.pod.policy != Policy::Never && !scene.is_ending {
            // What the init containers made is lost as well.
            init.iter_mut().for_each(begin_again);
        }
        Self {
            init,
            main,
            is_lost,
        }
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &Standing> {
        self.init.iter().chain(&self.main)
    }

    pub(super) fn is_initialized(&self) -> bool {
        self.init.iter().all(Standing::has_passed)
    }
}

impl Standing {
    /// Whether the containers after it may begin.
    pub(super) fn has_passed(&self) -> bool {
        match (self.role, &self.shown) {
            (Role::Sidecar, _) => self.is_started,
            (Role::Init, Shown::Ended(ended)) => exit_code(ended) == 0,
            (Role::Init, Shown::Waiting { .. } | Shown::Running { .. }) => false,
            (Role::Main, _) => true,
        }
    }

    pub(super) fn run(&self, pod: &PodView<'_>) -> node::Run {
        node::Run {
            pod: pod.uid.clone(),
            container: self.name.clone(),
            attempt: self.attempt,
        }
    }

    fn wait(&mut self, reason: &str, message: String) {
        let reason = reason.to_owned();
        self.shown = Shown::Waiting { reason, message };
    }
}

fn stand(scene: &Scene<'_>, container: &ContainerView<'_>, is_lost: bool, turn: bool) -> Standing {
    let truth = truth(scene, container, is_lost);
    let mut standing = Standing {
        name: container.name.clone(),
        image: container.image.clone(),
        role: container.role,
        attempt: truth.attempt,
        shown: Shown::Waiting {
            reason: INITIALIZING.to_owned(),
            message: String::new(),
        },
        last: truth.last.clone(),
        is_ready: false,
        is_started: false,
        next: Next::Nothing,
    };
    // Said before its turn, and before minutes go into an image that nothing will run in.
    let refused = unsupported::check(scene.pod, container).err();
    let refused = refused.or_else(|| unsupported::by_node(scene));
    match (truth.state, refused) {
        (Recorded::Waiting { .. }, Some(trouble)) => {
            standing.wait(CONFIG_ERROR, trouble.to_string());
        }
        (Recorded::Waiting { .. }, None) if turn => {
            begin(scene, container, &mut standing, truth.is_marked);
        }
        (Recorded::Waiting { .. }, None) => {}
        (Recorded::Running, _) => run(scene, container, &mut standing, truth.started_at),
        (Recorded::Ended(ended), _) => end(scene, &mut standing, ended),
    }
    if container.role == Role::Init
        && matches!(&standing.shown, Shown::Ended(it) if exit_code(it) == 0)
    {
        standing.is_ready = true;
    }
    standing
}

/// A container whose turn it is: what it waits for, or that it may begin.
fn begin(scene: &Scene<'_>, container: &ContainerView<'_>, it: &mut Standing, is_marked: bool) {
    if let Some((reason, message)) = image::waits_for(scene, container) {
        return it.wait(&reason, message);
    }
    if let Err(trouble) = launch::launch(scene.pod, container, it.attempt, None) {
        return it.wait(CONFIG_ERROR, trouble.to_string());
    }
    it.wait(CREATING, String::new());
    let subject = Subject::Run(it.run(scene.pod));
    if let Some((refused, message)) = refusal(scene.facts, &subject) {
        // What cannot be reached says nothing about the pod.
        if refused != node::Refused::Unreachable {
            let shown = if refused.is_flaw() {
                CONFIG_ERROR
            } else {
                CREATE_ERROR
            };
            it.wait(shown, message.to_owned());
        }
    }
    let has_place = scene.on_node.is_some_and(|it| it.lost.is_none());
    if is_marked && has_place && scene.pod.is_placed() && !scene.is_ending {
        it.next = Next::Start;
    }
}

fn run(
    scene: &Scene<'_>,
    container: &ContainerView<'_>,
    it: &mut Standing,
    started_at: Option<Timestamp>,
) {
    let started_at = whole(started_at.unwrap_or(scene.now));
    it.shown = Shown::Running { started_at };
    let health = probe::health(scene, container, &it.run(scene.pod));
    let Health {
        is_started,
        is_ready,
        stop,
    } = health;
    it.is_started = is_started;
    it.is_ready = is_ready;
    if let Some((why, grace_seconds)) = stop.filter(|_| !scene.is_ending) {
        it.next = Next::Stop { why, grace_seconds };
    }
}

/// A run is over: whether and when another one follows.
fn end(scene: &Scene<'_>, it: &mut Standing, ended: Value) {
    if scene.is_ending || !restarts(scene.pod.policy, it.role, exit_code(&ended)) {
        it.shown = Shown::Ended(ended);
        return;
    }
    let finished_at = instant(&ended, "finishedAt").unwrap_or(scene.now);
    let ran = instant(&ended, "startedAt").map_or(0, |at| finished_at.duration_since(at).as_secs());
    let delay = backoff(it.attempt, ran);
    let due_at = after(finished_at, delay);
    it.last = Some(ended);
    if scene.now < due_at {
        let (name, pod) = (&it.name, scene.pod);
        let (pod, namespace, uid) = (pod.name(), pod.namespace(), &pod.uid);
        let message = format!(
            "back-off {} restarting failed container={name} pod={pod}_{namespace}({uid})",
            in_words(delay)
        );
        it.wait(CRASH_LOOP, message);
        it.next = Next::Restart { due_at };
        return;
    }
    // On record first; it begins when that stands.
    it.attempt = it.attempt.saturating_add(1);
    it.wait(CREATING, String::new());
}

fn begin_again(it: &mut Standing) {
    if let Shown::Ended(ended) = &it.shown {
        it.last = Some(ended.clone());
        it.attempt = it.attempt.saturating_add(1);
        it.is_ready = false;
        it.wait(INITIALIZING, String::new());
    }
}

fn restarts(policy: Policy, role: Role, exit_code: i64) -> bool {
    match (role, policy) {
        (Role::Sidecar, _) | (Role::Main, Policy::Always) => true,
        (Role::Main | Role::Init, Policy::Never) => false,
        (Role::Main, Policy::OnFailure) | (Role::Init, Policy::Always | Policy::OnFailure) => {
            exit_code != 0
        }
    }
}

/// How long after the end of an attempt the next one begins: at once, then 10 s, 20 s and so on. It
/// is counted from what is on record, so no death of ours makes it shorter or longer.
fn backoff(attempt: u32, ran_seconds: i64) -> i64 {
    if attempt == 0 || ran_seconds >= FORGIVEN_AFTER {
        return 0;
    }
    let doubled = BACKOFF_FIRST.saturating_mul(1 << (attempt - 1).min(6));
    doubled.min(BACKOFF_MAX)
}

/// A duration as Go prints it.
fn in_words(seconds: i64) -> String {
    match (seconds / 60, seconds % 60) {
        (0, seconds) => format!("{seconds}s"),
        (minutes, seconds) => format!("{minutes}m{seconds}s"),
    }
}

/// The newer of record and report.
fn truth(scene: &Scene<'_>, container: &ContainerView<'_>, is_lost: bool) -> Truth {
    let record = container.record.as_ref();
    let reported = scene
        .on_node
        .and_then(|it| it.containers.get(&container.name));
    let recorded = record.map_or(0, |record| record.attempt);
    let has_ended = record.is_some_and(|it| matches!(it.state, Recorded::Ended(_)));
    let mut truth = match reported {
        Some(node) if node.attempt > recorded || (node.attempt == recorded && !has_ended) => {
            of_node(node, record)
        }
        Some(_) | None => of_record(record),
    };
    let is_there = reported.is_some_and(|node| node.attempt == truth.attempt);
    let is_missed = match &truth.state {
        Recorded::Running => is_lost || !is_there,
        Recorded::Waiting { .. } => is_lost && truth.is_marked,
        Recorded::Ended(_) => false,
    };
    if is_missed {
        truth.state = Recorded::Ended(missed(scene, &truth));
    }
    truth
}

fn of_node(node: &node::Container, record: Option<&Record>) -> Truth {
    let before = record.filter(|record| record.attempt < node.attempt);
    let before = before.and_then(|record| match &record.state {
        Recorded::Ended(ended) => Some(ended.clone()),
        Recorded::Waiting { .. } | Recorded::Running => None,
    });
    let last = before
        .or_else(|| node.last.as_ref().map(terminated))
        .or_else(|| record.and_then(|record| record.last.clone()));
    let (state, started_at) = match &node.state {
        node::State::Running { started_at } => (Recorded::Running, Some(*started_at)),
        node::State::Ended(ended) => (Recorded::Ended(terminated(ended)), None),
    };
    Truth {
        attempt: node.attempt,
        state,
        started_at,
        last,
        is_marked: false,
    }
}

fn of_record(record: Option<&Record>) -> Truth {
    let Some(record) = record else {
        return Truth {
            attempt: 0,
            state: Recorded::Waiting {
                reason: String::new(),
            },
            started_at: None,
            last: None,
            is_marked: false,
        };
    };
    let is_marked = match &record.state {
        Recorded::Waiting { reason } => STARTABLE.contains(&reason.as_str()),
        Recorded::Running | Recorded::Ended(_) => false,
    };
    Truth {
        attempt: record.attempt,
        state: record.state.clone(),
        started_at: None,
        last: record.last.clone(),
        is_marked,
    }
}

/// The end of a run that nobody saw, in the kubelet's words.
fn missed(scene: &Scene<'_>, truth: &Truth) -> Value {
    let why = scene.on_node.and_then(|it| it.lost.as_deref());
    let words = "The container could not be located when the pod was terminated";
    let message = why.map_or(words.to_owned(), |why| format!("{words}: {why}"));
    let mut ended = json!({
        "exitCode": 137, "reason": "ContainerStatusUnknown", "message": message,
        "finishedAt": written(scene.now),
    });
    if let Some(at) = truth.started_at {
        ended["startedAt"] = json!(written(at));
    }
    ended
}

/// The end of a run as a status shows it.
fn terminated(ended: &node::Ended) -> Value {
    let mut json = json!({
        "exitCode": ended.exit_code,
        "reason": ended.reason,
        "finishedAt": written(ended.finished_at),
    });
    if let Some(at) = ended.started_at {
        json["startedAt"] = json!(written(at));
    }
    if let Some(signal) = ended.signal {
        json["signal"] = json!(signal);
    }
    if !ended.message.is_empty() {
        json["message"] = json!(ended.message);
    }
    json
}
