//! The command that a container wants to be run before it is told to end. It has the time until the
//! end of the grace period, and whatever comes of it, the end follows.

use jiff::Timestamp;
use sundown_model::{DeedOutcome, Subject, node};

use super::chart::{Scene, Standing};
use super::view::ContainerView;
use crate::json::texts;

/// The command, if it has not been run for this container yet.
///
/// That it ran is remembered as a fact only: after a death of ours it is run again, as by the kubelet.
pub(super) fn due(scene: &Scene<'_>, it: &Standing, kill_at: Timestamp) -> Option<node::Call> {
    let mut containers = scene.pod.containers();
    let command = command(containers.find(|container| container.name == it.name)?)?;
    let run = it.run(scene.pod);
    let subject = Subject::Hook(run.clone());
    if scene.facts.deed(&subject).is_some() {
        return None;
    }
    let left = kill_at.duration_since(scene.now).as_secs().max(1);
    let timeout_seconds = u32::try_from(left).unwrap_or(u32::MAX);
    Some(node::Call::Hook {
        run,
        command,
        timeout_seconds,
    })
}

/// What is told of a command that failed, and what it said.
pub(super) fn trouble(scene: &Scene<'_>, it: &Standing) -> Option<(String, String)> {
    let subject = Subject::Hook(it.run(scene.pod));
    match &scene.facts.deed(&subject)?.outcome {
        DeedOutcome::Refused(refusal) => {
            let message = format!("PreStopHook failed: {}", refusal.message);
            Some((message, refusal.quote.clone()))
        }
        DeedOutcome::Done | DeedOutcome::Unknown { .. } => None,
    }
}

fn command(container: &ContainerView<'_>) -> Option<Vec<String>> {
    let exec = container.json.pointer("/lifecycle/preStop/exec")?;
    Some(texts(exec, "command")).filter(|command| !command.is_empty())
}
