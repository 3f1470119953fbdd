//! What a pod on our node needs next: its place, its containers, its end, its status.

use std::sync::Arc;

use jiff::Timestamp;
use sundown_model::{Actions, Decision, DeedOutcome, DeedReason, Facts, Sight, Subject, node};

use super::chart::{Chart, Next, Scene, Shown, Standing};
use super::launch::{self, Place};
use super::reason::Reason;
use super::status::{self, Failure};
use super::view::{PodView, Role};
use super::{account, deed, holds_until, image, notes, sandbox, settles_at, stop, unsupported};
use crate::actions::{finish, set_status, warning};
use crate::json::{after, instant};

/// What is being gathered.
#[derive(Debug, Default)]
struct Draft {
    actions: Actions,
    wake_at: Option<Timestamp>,
}

impl Draft {
    fn wake(&mut self, at: Option<Timestamp>) {
        self.wake_at = [self.wake_at, at].into_iter().flatten().min();
    }

    fn end(self, reason: Reason) -> Decision<Reason> {
        Decision {
            needs: Vec::new(),
            actions: self.actions,
            wake_at: self.wake_at,
            reason,
        }
    }
}

/// Decides on a pod of this node.
pub(super) fn decide(pod: &PodView<'_>, sight: &Sight<'_>) -> Decision<Reason> {
    if pod.main.is_empty() {
        return Decision::idle(Reason::Malformed);
    }
    if !sight.facts.knows_all_pods() {
        return Decision::idle(Reason::NodeAway);
    }
    let failure = deadline(pod).filter(|at| *at <= sight.now && !pod.is_finished());
    let is_ending = pod.deletion.is_some() || pod.is_finished() || failure.is_some();
    let scene = Scene {
        pod,
        on_node: sight.facts.pod(&pod.uid),
        facts: sight.facts,
        now: sight.now,
        is_ending,
    };
    let chart = Chart::of(&scene);
    let failure = failure.map(|_| Failure::DeadlineExceeded);
    let host = account::host_address(sight.cache);
    let patch = status::patch(&scene, &chart, failure, host);
    let mut draft = Draft::default();
    draft.actions.extend(notes::of(&scene, &chart));
    if pod.deletion.is_some() {
        return go(&scene, &chart, patch, draft);
    }
    if is_ending || is_over(&status::phase(&scene, &chart, failure)) {
        return end(&scene, &chart, patch, draft);
    }
    live(&scene, &chart, patch, draft, sight)
}

fn is_over(phase: &str) -> bool {
    matches!(phase, "Succeeded" | "Failed")
}

fn deadline(pod: &PodView<'_>) -> Option<Timestamp> {
    Some(after(pod.started_at?, pod.deadline_seconds?.max(0)))
}

/// A pod that shall run.
fn live(
    scene: &Scene<'_>,
    chart: &Chart,
    patch: Option<serde_json::Value>,
    mut draft: Draft,
    sight: &Sight<'_>,
) -> Decision<Reason> {
    let pod = scene.pod;
    let place = Place {
        pod_address: scene.on_node.and_then(|it| it.address),
        host_address: account::host_address(sight.cache),
        allocatable: account::allocatable(sight.cache),
        has_token: account::has_token(pod, sight.cache),
    };
    let placing = place_it(scene, &place, sight, &mut draft);
    let stops = stop::unhealthy(scene, chart);
    let is_unhealthy = !stops.running.is_empty();
    draft.actions.extend(stops.actions);
    draft.wake(stops.wake_at);
    let starts = start(scene, chart, &place, sight, &mut draft);
    draft.wake(deadline(pod));
    let mut until = None;
    for it in chart.all() {
        if let Next::Restart { due_at } = it.next {
            until = [until, Some(due_at)].into_iter().flatten().min();
        }
        let waits = matches!(&it.shown, Shown::Waiting { reason, .. } if reason == "ErrImagePull");
        draft.wake(image::shown_until(&it.image, scene.facts).filter(|_| waits));
    }
    draft.wake(until);
    // A first step that is about to change everything is not worth a write of its own, but one that
    // failed is what people ask for.
    let has_failed = refusal(scene.facts, &Subject::Pod(pod.uid.clone())).is_some();
    let is_first = placing == Some(Reason::Places) && pod.started_at.is_none() && !has_failed;
    let is_first = is_first && !waits(chart);
    let has_patch = patch.is_some() && !is_first;
    draft.actions.extend(
        patch
            .filter(|_| !is_first)
            .map(|patch| set_status(pod.object, &patch)),
    );
    let reason = match (placing, starts, until) {
        (Some(reason), _, _) => reason,
        (None, _, _) if is_unhealthy => Reason::Unhealthy,
        (None, starts, _) if !starts.is_empty() => Reason::Starts { containers: starts },
        (None, _, _) if has_patch => Reason::Records,
        (None, _, Some(until)) => Reason::BacksOff { until },
        (None, _, None) => resting(chart),
    };
    draft.end(reason)
}

fn waits(chart: &Chart) -> bool {
    let names_something =
        |it: &Shown| matches!(it, Shown::Waiting { message, .. } if !message.is_empty());
    chart.all().any(|it| names_something(&it.shown))
}

/// What a pod does about which nothing is to be done.
fn resting(chart: &Chart) -> Reason {
    let mut waiting = chart.all().filter_map(|it| match &it.shown {
        Shown::Waiting { reason, message } => Some((it, reason, message)),
        Shown::Running { .. } | Shown::Ended(_) => None,
    });
    match waiting.next() {
        Some((it, why, message)) => Reason::Waits {
            container: it.name.to_string(),
            why: why.clone(),
            message: message.clone(),
        },
        None => Reason::Runs,
    }
}

/// Sees to it that the pod has a place; Some: it has none yet.
fn place_it(
    scene: &Scene<'_>,
    place: &Place<'_>,
    sight: &Sight<'_>,
    draft: &mut Draft,
) -> Option<Reason> {
    let pod = scene.pod;
    let is_lost = scene.on_node.is_some_and(|it| it.lost.is_some());
    if pod.is_placed() && (scene.on_node.is_none() || is_lost) {
        // The loss is recorded before anything is made anew.
        return Some(Reason::Lost);
    }
    if is_lost {
        remove(scene, draft);
        return Some(Reason::Lost);
    }
    if scene.on_node.is_some() {
        return None;
    }
    // The status of the container says what it is.
    let mut containers = pod.containers();
    if let Some(trouble) = containers.find_map(|it| unsupported::check(pod, it).err()) {
        let message = trouble.to_string();
        return Some(Reason::Unsupported { message });
    }
    let sandbox = match sandbox::sandbox(pod, place) {
        Ok(sandbox) => sandbox,
        Err(trouble) => {
            let message = trouble.to_string();
            draft
                .actions
                .push(warning(pod.object, "FailedMount", message.clone()));
            return Some(Reason::Unsupported { message });
        }
    };
    match holds_until(sight, &Subject::Pod(pod.uid.clone())) {
        Some(until) => draft.wake(Some(until)),
        None => draft
            .actions
            .push(deed(pod, node::Call::Prepare(Arc::new(sandbox)))),
    }
    Some(Reason::Places)
}

fn remove(scene: &Scene<'_>, draft: &mut Draft) {
    let pod = scene.pod.uid.clone();
    match settles_at(scene.facts, &Subject::Removal(pod.clone()), scene.now) {
        Some(until) => draft.wake(Some(until)),
        None => draft
            .actions
            .push(deed(scene.pod, node::Call::Remove { pod })),
    }
}

/// Starts every container whose attempt is on record.
fn start(
    scene: &Scene<'_>,
    chart: &Chart,
    place: &Place<'_>,
    sight: &Sight<'_>,
    draft: &mut Draft,
) -> Vec<String> {
    let mut names = Vec::new();
    let containers = scene.pod.containers().zip(chart.all());
    for (container, it) in containers.filter(|(_, it)| it.next == Next::Start) {
        let Ok(launch) = launch::launch(scene.pod, container, it.attempt, Some(place)) else {
            continue;
        };
        names.push(it.name.to_string());
        let subject = Subject::Run(launch.run.clone());
        match holds_until(sight, &subject) {
            Some(until) => draft.wake(Some(until)),
            None => draft
                .actions
                .push(deed(scene.pod, node::Call::Start(Arc::new(launch)))),
        }
    }
    names
}

/// How long a finished pod keeps its place. Many are deleted at once by who made them, and then their end is
/// one step instead of two; where many end together, others start while these only wait.
const VACATE_SECONDS: i64 = 2;

/// A pod that is finished: what still runs of it has to end, then what it ran in. Its logs stay.
fn end(
    scene: &Scene<'_>,
    chart: &Chart,
    patch: Option<serde_json::Value>,
    mut draft: Draft,
) -> Decision<Reason> {
    let pod = scene.pod;
    let over = deadline(pod).filter(|at| *at <= scene.now);
    let ended_at = over.or_else(|| ended_at(chart)).unwrap_or(scene.now);
    let stop = stop::all(scene, chart, after(ended_at, pod.grace_seconds));
    let is_stopping = !stop.running.is_empty();
    draft.actions.extend(stop.actions);
    draft.wake(stop.wake_at);
    let has_patch = patch.is_some();
    draft
        .actions
        .extend(patch.map(|patch| set_status(pod.object, &patch)));
    let has_place = scene.on_node.is_some_and(|it| it.lost.is_none());
    let reason = match (is_stopping, has_patch, has_place) {
        (true, _, _) => Reason::Stops {
            until: after(ended_at, pod.grace_seconds),
        },
        (false, true, _) => Reason::Records,
        (false, false, true) => {
            let at = after(ended_at, VACATE_SECONDS);
            release(scene, at, &mut draft);
            Reason::Vacates { at }
        }
        (false, false, false) => Reason::Finished,
    };
    draft.end(reason)
}

/// When a pod came to its end: with its last main container, or with the init container that failed.
/// Sidecars end after that, and none of them gives the others more time.
fn ended_at(chart: &Chart) -> Option<Timestamp> {
    let end = |it: &Standing| match &it.shown {
        Shown::Ended(ended) => instant(ended, "finishedAt"),
        Shown::Waiting { .. } | Shown::Running { .. } => None,
    };
    let has_failed = |it: &&Standing| it.role == Role::Init && !it.has_passed();
    let main = chart.main.iter().filter_map(end).max();
    main.or_else(|| chart.init.iter().filter(has_failed).filter_map(end).max())
}

/// The end stands on record, so nobody asks the place for it any more. As the kubelet stops the sandbox
/// of a finished pod and keeps its logs.
fn release(scene: &Scene<'_>, at: Timestamp, draft: &mut Draft) {
    if scene.now < at {
        return draft.wake(Some(at));
    }
    let pod = scene.pod.uid.clone();
    match settles_at(scene.facts, &Subject::Release(pod.clone()), scene.now) {
        Some(until) => draft.wake(Some(until)),
        None => draft
            .actions
            .push(deed(scene.pod, node::Call::Release { pod })),
    }
}

/// A pod that is being deleted: stop it, record how it ended, leave nothing, say that it is over.
fn go(
    scene: &Scene<'_>,
    chart: &Chart,
    patch: Option<serde_json::Value>,
    mut draft: Draft,
) -> Decision<Reason> {
    let pod = scene.pod;
    let Some(deletion) = pod.deletion else {
        return draft.end(Reason::Runs);
    };
    let stop = stop::all(scene, chart, deletion.at);
    let is_stopping = !stop.running.is_empty();
    draft.actions.extend(stop.actions);
    draft.wake(stop.wake_at);
    // What was never on a node, and what is told already, needs no further word.
    let is_told = pod.started_at.is_none() || pod.is_finished();
    let is_known = scene.on_node.is_some() || !is_told;
    if let Some(patch) = patch.filter(|_| is_known) {
        draft.actions.push(set_status(pod.object, &patch));
        let until = deletion.at;
        return draft.end(if is_stopping {
            Reason::Stops { until }
        } else {
            Reason::Records
        });
    }
    if is_stopping {
        return draft.end(Reason::Stops { until: deletion.at });
    }
    if scene.on_node.is_some() {
        remove(scene, &mut draft);
        return draft.end(Reason::Removes);
    }
    if deletion.grace_seconds > 0 {
        draft.actions.push(finish(pod.object));
        return draft.end(Reason::Finishes);
    }
    draft.end(Reason::Released)
}

/// Whether the node refused a deed on a subject, and why.
pub(super) fn refusal<'a>(facts: &'a Facts, subject: &Subject) -> Option<(node::Refused, &'a str)> {
    match &facts.deed(subject)?.outcome {
        DeedOutcome::Refused(refusal) => match refusal.reason {
            DeedReason::Node(refused) => Some((refused, &refusal.message)),
            DeedReason::Ray(_) => None,
        },
        DeedOutcome::Done | DeedOutcome::Unknown { .. } => None,
    }
}
