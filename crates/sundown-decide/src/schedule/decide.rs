//! One round: every pending pod in its order, against what those before it have taken.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::{Value, json};
use sundown_model::{ACTIONS_MAX, Action, Cache, Decision, Note, ObjectKey, Part, Patch, Write};

use super::fit::{NodeView, Obstacle};
use super::reason::Reason;
use super::view::{
    Cluster, PodView, awaited_cluster, cluster_of, is_head, is_initializing, is_pending,
    is_placed_on,
};
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
    pub(super) reason: Reason,
}

/// What a round found.
#[derive(Debug, Default)]
pub(super) struct Round<'a> {
    pub(super) verdicts: Vec<Verdict<'a>>,
    /// When a heavy pod stops to count by itself.
    wake_at: Option<Timestamp>,
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
        return Some(Round::default());
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
    let mut verdicts = Vec::new();
    let mut has_waiting = false;
    let mut unschedulable = 0;
    for pod in pending {
        let obstacle = node.obstacle(&pod);
        let reason = if pod.is_gated {
            Reason::Gated
        } else if let Some(obstacle) = obstacle {
            // Those behind keep their old figures: a queue must not be written to for each pod that ends.
            let is_next = unschedulable < TOLD_ANEW_MAX;
            unschedulable += 1;
            Reason::Unschedulable {
                message: message(&pod, obstacle, is_next),
            }
        } else if pod.is_heavy && starting.before(&pod) >= node.cores() {
            has_waiting = true;
            let starting = starting.before(&pod);
            Reason::AwaitsStarts { starting }
        } else {
            node.take(&pod);
            starting.add(&pod);
            Reason::Binds
        };
        verdicts.push(Verdict { pod, reason });
    }
    Some(Round {
        verdicts,
        wake_at: wake_at.filter(|_| has_waiting),
    })
}

/// What a pod that does not fit is told: what stands in its condition, if only the figures are others and
/// it is not next in line.
fn message(pod: &PodView<'_>, obstacle: Obstacle, is_next: bool) -> String {
    let mut conditions = items(pod.object.field("/status/conditions")).iter();
    let own = conditions.find(|it| text(it, "type") == "PodScheduled");
    let stands = own.map_or("", |it| text(it, "message"));
    if !is_next && stands.starts_with(&obstacle.summary) {
        return stands.to_owned();
    }
    obstacle.message
}

/// Decides on a round.
pub(super) fn decide(cache: &Cache, now: Timestamp) -> Decision<Reason> {
    let Some(round) = round(cache, now) else {
        return Decision::idle(Reason::NoNode);
    };
    let mut actions = Vec::new();
    let mut bound = 0;
    for verdict in &round.verdicts {
        bound += usize::from(verdict.reason == Reason::Binds);
        act(verdict, now, &mut actions);
    }
    actions.truncate(ACTIONS_MAX);
    let waiting = round.verdicts.len() - bound;
    Decision {
        needs: Vec::new(),
        actions,
        wake_at: round.wake_at,
        reason: Reason::Round { bound, waiting },
    }
}

fn act(verdict: &Verdict<'_>, now: Timestamp, out: &mut Vec<Action>) {
    let pod = verdict.pod.object;
    match &verdict.reason {
        Reason::Binds => {
            let target = json!({ "target": { "kind": "Node", "name": NODE_NAME } });
            out.push(Action::Api(Write::Patch {
                at: pod.seen(),
                part: Part::Binding,
                patch: Patch::Merge(target),
            }));
            let (namespace, name) = (pod.key().namespace_str(), &pod.key().name);
            let message = format!("Successfully assigned {namespace}/{name} to {NODE_NAME}");
            out.push(note(verdict, false, "Scheduled", message));
        }
        Reason::Unschedulable { message } => {
            out.extend(mark(verdict, "Unschedulable", message, now));
            out.push(note(verdict, true, "FailedScheduling", message.clone()));
        }
        Reason::Gated => {
            let message = "Scheduling is blocked due to non-empty scheduling gates";
            out.extend(mark(verdict, "SchedulingGated", message, now));
        }
        Reason::AwaitsStarts { .. }
        | Reason::Gone
        | Reason::NotPending
        | Reason::NoNode
        | Reason::Round { .. } => {}
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
    Some(Action::Api(Write::Patch {
        at: pod.seen(),
        part: Part::Status,
        patch: Patch::Merge(json!({ "status": { "conditions": conditions } })),
    }))
}

fn note(verdict: &Verdict<'_>, warning: bool, reason: &str, message: String) -> Action {
    Action::Tell(Note {
        about: verdict.pod.object.key().clone(),
        uid: verdict.pod.object.uid().clone(),
        warning,
        reason: reason.into(),
        message,
        quote: String::new(),
    })
}
