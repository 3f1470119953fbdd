//! What people are told about a pod, in the kubelet's words. Each note is told once: the engine knows
//! which it has told, and a second telling changes nothing.

use sundown_model::{Action, Subject, node};

use super::chart::{Chart, Next, Scene, Shown, Standing};
use super::decide::refusal;
use super::image::shown;
use super::view::{ContainerView, PodView, Recorded};
use super::{confinement, hook, probe};
use crate::actions::{note, quoting, warning};

/// All that there is to tell now.
pub(super) fn of(scene: &Scene<'_>, chart: &Chart) -> Vec<Action> {
    let mut told = Vec::new();
    place(scene, &mut told);
    for (container, it) in scene.pod.containers().zip(chart.all()) {
        image(scene, container, it, &mut told);
        life(scene, container, it, &mut told);
    }
    told
}

fn place(scene: &Scene<'_>, told: &mut Vec<Action>) {
    let pod = scene.pod;
    let refused = refusal(scene.facts, &Subject::Pod(pod.uid.clone()));
    let refused = refused.filter(|_| scene.on_node.is_none() && !scene.is_ending);
    match refused {
        Some((refused, message)) if refused.is_lack() => {
            told.push(warning(pod.object, "FailedMount", message.to_owned()));
        }
        // The containers tell of it.
        Some((node::Refused::ClosedHostPath, _)) | None => {}
        Some((_, message)) => {
            let message = format!("Failed to create pod sandbox: {message}");
            told.push(warning(pod.object, "FailedCreatePodSandBox", message));
        }
    }
}

fn image(scene: &Scene<'_>, container: &ContainerView<'_>, it: &Standing, told: &mut Vec<Action>) {
    let (pod, image) = (scene.pod, &container.image);
    let Shown::Waiting { reason, message } = &it.shown else {
        return;
    };
    if scene.is_ending {
        return;
    }
    match (reason.as_str(), scene.facts.image(image)) {
        ("ErrImagePull", _) => {
            let message = format!("Failed to pull image \"{}\": {message}", shown(image));
            told.push(warning(pod.object, "Failed", message));
        }
        ("ImagePullBackOff", _) => {
            let message = format!("Back-off pulling image \"{}\"", shown(image));
            told.push(note(pod.object, "BackOff", message));
        }
        (_, Some(node::Image::Making { .. })) => {
            let message = format!("Pulling image \"{}\"", shown(image));
            told.push(note(pod.object, "Pulling", message));
        }
        (
            _,
            Some(node::Image::Ready | node::Image::Missing | node::Image::Unavailable { .. })
            | None,
        ) => {}
    }
}

fn life(scene: &Scene<'_>, container: &ContainerView<'_>, it: &Standing, told: &mut Vec<Action>) {
    let (pod, name) = (scene.pod, &container.name);
    let was_running = container.record.as_ref();
    let was_running = was_running
        .is_some_and(|record| record.attempt == it.attempt && record.state == Recorded::Running);
    match &it.shown {
        Shown::Waiting { reason, message } if reason == super::chart::CRASH_LOOP => {
            let message = message.replacen("back-off", "Back-off", 1);
            let message = message
                .split_once(' ')
                .map_or(message.clone(), |(first, rest)| {
                    // The event leaves the length of the pause out, so that it is one event.
                    let rest = rest.split_once(' ').map_or(rest, |(_, rest)| rest);
                    format!("{first} {rest}")
                });
            told.push(warning(pod.object, "BackOff", message));
        }
        Shown::Waiting { reason, message } if reason.starts_with("CreateContainer") => {
            told.push(warning(pod.object, "Failed", format!("Error: {message}")));
        }
        Shown::Running { .. } => {
            if !was_running {
                begun(pod, container, told);
            }
            for (message, quote) in probe::troubles(pod, container, &it.run(pod), scene.facts) {
                told.push(quoting(pod.object, "Unhealthy", message, quote));
            }
            if let Next::Stop { why, .. } = &it.next {
                told.push(note(pod.object, "Killing", why.clone()));
            }
            if let Some((message, quote)) = hook::trouble(scene, it) {
                told.push(quoting(pod.object, "FailedPreStopHook", message, quote));
            }
            if pod.deletion.is_some() {
                let message = format!("Stopping container {name}");
                told.push(note(pod.object, "Killing", message));
            }
        }
        // Too short for a look while it ran.
        Shown::Ended(_) if container.record.as_ref().is_some_and(is_waiting) => {
            begun(pod, container, told);
        }
        Shown::Waiting { .. } | Shown::Ended(_) => {}
    }
}

fn is_waiting(record: &super::view::Record) -> bool {
    matches!(record.state, Recorded::Waiting { .. })
}

fn begun(pod: &PodView<'_>, container: &ContainerView<'_>, told: &mut Vec<Action>) {
    let (name, image) = (&container.name, &container.image);
    let present = format!("Container image \"{image}\" already present on machine");
    told.push(note(pod.object, "Pulled", present));
    told.push(note(
        pod.object,
        "Created",
        format!("Created container: {name}"),
    ));
    told.push(note(
        pod.object,
        "Started",
        format!("Started container {name}"),
    ));
    for sentence in confinement::unmet(pod, container) {
        told.push(warning(pod.object, "NotEnforced", sentence));
    }
}
