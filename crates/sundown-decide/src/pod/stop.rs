//! Ending what runs: SIGTERM first, SIGKILL when the grace period is over. The end of it is a durable
//! instant, so a death of ours makes it neither longer nor shorter.

use jiff::Timestamp;
use sundown_model::{Action, DeedOutcome, Subject, node};

use super::chart::{Chart, Next, Scene, Shown, Standing};
use super::{deed, hook, settles_at};
use crate::json::after;

const TERM: i32 = 15;
const KILL: i32 = 9;

/// How long after a SIGKILL everything of the pod is taken away by force.
const KILL_PATIENCE: i64 = 10;

/// What is done to end some runs, and when to look again.
#[derive(Debug, Default)]
pub(super) struct Stop {
    pub(super) actions: Vec<Action>,
    pub(super) wake_at: Option<Timestamp>,
    /// The names of those that run.
    pub(super) running: Vec<String>,
}

/// Ends every container that runs; killed at `kill_at`.
pub(super) fn all(scene: &Scene<'_>, chart: &Chart, kill_at: Timestamp) -> Stop {
    let mut stop = Stop::default();
    for it in chart.all().filter(|it| is_running(it)) {
        stop.running.push(it.name.to_string());
        one(scene, it, kill_at, &mut stop);
    }
    stop
}

/// Ends the containers that a probe gave up. That they were told is remembered only as a fact: after
/// a death of ours the probe has to fail again first.
pub(super) fn unhealthy(scene: &Scene<'_>, chart: &Chart) -> Stop {
    let mut stop = Stop::default();
    for it in chart.all() {
        let Next::Stop { grace_seconds, .. } = &it.next else {
            continue;
        };
        stop.running.push(it.name.to_string());
        let told = Subject::Signal(it.run(scene.pod), TERM);
        let told_at = scene.facts.deed(&told).map_or(scene.now, |it| it.ended_at);
        one(scene, it, after(told_at, *grace_seconds), &mut stop);
    }
    stop
}

/// Whether a container runs by the node's word.
pub(super) fn is_running(it: &Standing) -> bool {
    matches!(it.shown, Shown::Running { .. })
}

fn one(scene: &Scene<'_>, it: &Standing, kill_at: Timestamp, stop: &mut Stop) {
    let run = it.run(scene.pod);
    let was_sent = |signal| {
        let fact = scene.facts.deed(&Subject::Signal(run.clone(), signal));
        fact.is_some_and(|fact| fact.outcome == DeedOutcome::Done)
    };
    let mut wake = |at: Timestamp| {
        let first = stop.wake_at.is_none_or(|before| at < before);
        stop.wake_at = if first { Some(at) } else { stop.wake_at };
    };
    let send = |signal| {
        let run = run.clone();
        deed(scene.pod, node::Call::Signal { run, signal })
    };
    if scene.now < kill_at {
        wake(kill_at);
        let last = hook::due(scene, it, kill_at).filter(|_| !was_sent(TERM));
        if let Some(call) = last {
            stop.actions.push(deed(scene.pod, call));
        } else if !was_sent(TERM) {
            stop.actions.push(send(TERM));
        }
        return;
    }
    if !was_sent(KILL) {
        stop.actions.push(send(KILL));
        return;
    }
    // Nothing survives a removal; that it did not end by itself is for the node to say.
    let killed = scene.facts.deed(&Subject::Signal(run.clone(), KILL));
    let due_at = killed.map_or(scene.now, |it| after(it.ended_at, KILL_PATIENCE));
    if scene.now < due_at {
        wake(due_at);
        return;
    }
    let pod = scene.pod.uid.clone();
    match settles_at(scene.facts, &Subject::Removal(pod.clone()), scene.now) {
        Some(until) => wake(until),
        None => stop
            .actions
            .push(deed(scene.pod, node::Call::Remove { pod })),
    }
}
