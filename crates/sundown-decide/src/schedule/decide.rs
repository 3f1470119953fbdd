//! One round: every pending pod in its order, against what those before it have taken.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::{Value, json};
use sundown_model::{ACTIONS_MAX, Action, Cache, Decision, ObjectKey, Part};

use super::amounts::{Amounts, sum};
use super::fit::{NodeView, Obstacle};
use super::reason::Reason;
use super::view::{
    Cluster, PodView, awaited_cluster, cluster_of, is_head, is_initializing, is_pending,
    is_placed_on,
};
use crate::actions::{note, patch, set_status, warning};
use crate::json::{after, items, text, written};
use crate::kinds::{NODE, POD};
use crate::pod::NODE_NAME;

/// A heavy pod that is not ready after so long holds nobody up any more.
const START_SECONDS: i64 = 300;

/// How many of the pods that do not fit are told new figures whenever these change: those next in line.
const TOLD_ANEW_MAX: usize = 4;

/// What becomes of one pending pod.
#[derive(Debug, Clone)]
pub(super) struct Verdict<'a> {
    pub(super) pod: PodView<'a>,
    fate: Fate,
}

/// A reason whose text is not made yet: thousands may wait, and few of them are told anything in a round.
#[derive(Debug, Clone)]
enum Fate {
    Gated,
    DoesNotFit(Misfit),
    AwaitsStarts { starting: usize },
    Binds,
}

/// Why a pod does not fit.
#[derive(Debug, Clone)]
struct Misfit {
    /// In upstream's words, without figures.
    summary: String,
    /// What it asks for of resources that it lacks, and what those before it in line do.
    in_line: Amounts,
    /// Whether it is told new figures whenever they change.
    is_next: bool,
}

/// What a round found.
#[derive(Debug)]
pub(super) struct Round<'a> {
    pub(super) verdicts: Vec<Verdict<'a>>,
    /// With those who are bound in this round.
    node: NodeView<'a>,
    /// When a heavy pod stops to count by itself.
    wake_at: Option<Timestamp>,
}

impl Round<'_> {
    /// What the round says of a pod.
    pub(super) fn reason(&self, verdict: &Verdict<'_>) -> Reason {
        match &verdict.fate {
            Fate::Gated => Reason::Gated,
            Fate::DoesNotFit(misfit) => Reason::Unschedulable {
                message: self.message(&verdict.pod, misfit),
            },
            Fate::AwaitsStarts { starting } => Reason::AwaitsStarts {
                starting: *starting,
            },
            Fate::Binds => Reason::Binds,
        }
    }

    /// What a pod that does not fit is told: what stands in its condition, if only the figures are others and
    /// it is not next in line.
    fn message(&self, pod: &PodView<'_>, misfit: &Misfit) -> String {
        let mut conditions = items(pod.object.field("/status/conditions")).iter();
        let own = conditions.find(|it| text(it, "type") == "PodScheduled");
        let stands = own.map_or("", |it| text(it, "message"));
        // Those behind keep their old figures: a queue must not be written to for each pod that ends.
        if !misfit.is_next && stands.starts_with(&misfit.summary) {
            return stands.to_owned();
        }
        let advice = self.node.advice(pod, &misfit.in_line);
        format!("{}{advice}", misfit.summary)
    }
}

/// How many heavy pods start.
#[derive(Debug, Default)]
struct Starting<'a> {
    /// Those that are beyond their init containers.
    at_work: usize,
    /// Those in init containers that may be work themselves.
    initializing: usize,
    /// Those that wait for a head, by its cluster.
    waiting: BTreeMap<Cluster<'a>, usize>,
}

impl<'a> Starting<'a> {
    fn add(&mut self, pod: &PodView<'a>) {
        if !pod.is_heavy {
            return;
        }
        match awaited_cluster(pod.object) {
            Some(cluster) => *self.waiting.entry(cluster).or_default() += 1,
            None if is_initializing(pod.object) => self.initializing += 1,
            None => self.at_work += 1,
        }
    }

    /// How many hold up a pod. A head is not held up by those who may be waiting for it. Who waits for a
    /// head does nothing meanwhile, and holds up only those who will start together with it: its head
    /// may never come.
    fn before(&self, pod: &PodView<'a>) -> usize {
        if is_head(pod.object) {
            return self.at_work;
        }
        let beside = cluster_of(pod.object).and_then(|cluster| self.waiting.get(&cluster));
        self.at_work + self.initializing + beside.copied().unwrap_or(0)
    }
}

/// Judges all pending pods; None: there is no node.
pub(super) fn round(cache: &Cache, now: Timestamp) -> Option<Round<'_>> {
    let key = ObjectKey::cluster(&NODE.resource(), NODE_NAME);
    let mut node = NodeView::of(cache.get(&key)?);
    let resource = POD.resource();
    let pending = cache.of(&resource).filter(|pod| is_pending(pod));
    let mut pending: Vec<_> = pending.map(|pod| PodView::of(pod)).collect();
    if pending.is_empty() {
        return Some(Round {
            verdicts: Vec::new(),
            node,
            wake_at: None,
        });
    }
    let mut starting = Starting::default();
    let mut wake_at: Option<Timestamp> = None;
    for pod in cache
        .of(&resource)
        .filter(|pod| is_placed_on(pod, NODE_NAME))
    {
        let pod = PodView::of(pod);
        node.take(&pod);
        let until = pod.bound_at.map(|at| after(at, START_SECONDS));
        let is_starting = pod.is_heavy && !pod.is_ready && !pod.object.is_deleting();
        if let Some(until) = until.filter(|until| is_starting && now < *until) {
            starting.add(&pod);
            wake_at = [wake_at, Some(until)].into_iter().flatten().min();
        }
    }
    pending.sort_by(|one, other| one.order.cmp(&other.order));
    let mut verdicts = Vec::with_capacity(pending.len());
    let mut line = Line::default();
    for pod in pending {
        let fate = judge(&pod, &mut node, &mut starting, &mut line);
        verdicts.push(Verdict { pod, fate });
    }
    let is_held = |it: &Verdict<'_>| matches!(it.fate, Fate::AwaitsStarts { .. });
    let wake_at = wake_at.filter(|_| verdicts.iter().any(is_held));
    Some(Round {
        verdicts,
        node,
        wake_at,
    })
}

/// The pods that do not fit, in their order.
#[derive(Debug, Default)]
struct Line {
    count: usize,
    /// What they ask for of resources that they lack.
    asked: Amounts,
}

/// Judges one pod; what it gets is not there for those after it.
fn judge<'a>(
    pod: &PodView<'a>,
    node: &mut NodeView<'a>,
    starting: &mut Starting<'a>,
    line: &mut Line,
) -> Fate {
    if pod.is_gated {
        return Fate::Gated;
    }
    if let Some(Obstacle { summary, lacking }) = node.obstacle(pod) {
        sum(&mut line.asked, &lacking);
        line.count += 1;
        return Fate::DoesNotFit(Misfit {
            summary,
            in_line: line.asked.clone(),
            is_next: line.count <= TOLD_ANEW_MAX,
        });
    }
    let before = starting.before(pod);
    if pod.is_heavy && before >= node.cores() {
        return Fate::AwaitsStarts { starting: before };
    }
    node.take(pod);
    starting.add(pod);
    Fate::Binds
}

/// Decides on a round. Bindings come first: what is only told of pods that wait must not keep a pod that fits from
/// its node, however many wait.
pub(super) fn decide(cache: &Cache, now: Timestamp) -> Decision<Reason> {
    let Some(round) = round(cache, now) else {
        return Decision::idle(Reason::NoNode);
    };
    let is_bound = |it: &&Verdict<'_>| matches!(it.fate, Fate::Binds);
    let bound = round.verdicts.iter().filter(is_bound);
    let mut actions: Vec<Action> = bound.flat_map(bind).take(ACTIONS_MAX).collect();
    for verdict in &round.verdicts {
        // The rest is told in the next rounds, which these writes bring about.
        if actions.len() >= ACTIONS_MAX {
            break;
        }
        actions.extend(tell(&round, verdict, now));
    }
    actions.truncate(ACTIONS_MAX);
    let bound = round.verdicts.iter().filter(is_bound).count();
    let waiting = round.verdicts.len() - bound;
    Decision {
        wake_at: round.wake_at,
        ..Decision::act_all(actions, Reason::Round { bound, waiting })
    }
}

fn bind(verdict: &Verdict<'_>) -> [Action; 2] {
    let pod = verdict.pod.object;
    let target = json!({ "target": { "kind": "Node", "name": NODE_NAME } });
    let binding = patch(pod, Part::Binding, target);
    let (namespace, name) = (pod.key().namespace_str(), &pod.key().name);
    let message = format!("Successfully assigned {namespace}/{name} to {NODE_NAME}");
    [binding, note(pod, "Scheduled", message)]
}

/// What is told of a pod that waits; nothing when it stands in its condition.
fn tell(round: &Round<'_>, verdict: &Verdict<'_>, now: Timestamp) -> Vec<Action> {
    match round.reason(verdict) {
        Reason::Unschedulable { message } => {
            let Some(mark) = mark(verdict, "Unschedulable", &message, now) else {
                return Vec::new();
            };
            // In this order a round that is full between them loses neither.
            vec![
                warning(verdict.pod.object, "FailedScheduling", message),
                mark,
            ]
        }
        Reason::Gated => {
            let message = "Scheduling is blocked due to non-empty scheduling gates";
            let mark = mark(verdict, "SchedulingGated", message, now);
            mark.into_iter().collect()
        }
        Reason::AwaitsStarts { .. }
        | Reason::Binds
        | Reason::Gone
        | Reason::NotPending
        | Reason::NoNode
        | Reason::Round { .. } => Vec::new(),
    }
}

/// Says in the condition why a pod has no node; None when it stands there.
fn mark(verdict: &Verdict<'_>, reason: &str, message: &str, now: Timestamp) -> Option<Action> {
    let pod = verdict.pod.object;
    let mut conditions = items(pod.field("/status/conditions")).to_vec();
    let own = |it: &Value| text(it, "type") == "PodScheduled";
    let before = conditions.iter().position(own);
    let was = before.map(|at| conditions[at].clone()).unwrap_or_default();
    let stands = text(&was, "status") == "False"
        && text(&was, "reason") == reason
        && text(&was, "message") == message;
    if stands {
        return None;
    }
    let since = was.get("lastTransitionTime").cloned();
    let since = since.filter(|_| text(&was, "status") == "False");
    let condition = json!({
        "type": "PodScheduled", "status": "False", "reason": reason, "message": message,
        "lastTransitionTime": since.unwrap_or_else(|| json!(written(now))),
    });
    match before {
        Some(at) => conditions[at] = condition,
        None => conditions.push(condition),
    }
    Some(set_status(pod, &json!({ "conditions": conditions })))
}
