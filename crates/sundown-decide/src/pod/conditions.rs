//! The conditions that the kubelet keeps. Those of others stay as they are.

use serde_json::{Value, json};

use super::chart::{Chart, Scene, Standing};
use super::stop;
use super::view::{PLACED, PodView, Role};
use crate::json::{items, text, written};

const OWN: [&str; 4] = [PLACED, "Initialized", "Ready", "ContainersReady"];

/// What a condition says.
struct Said {
    is_true: bool,
    reason: &'static str,
    message: String,
}

/// All conditions: our own first, then those of others in their order.
pub(super) fn of(scene: &Scene<'_>, chart: &Chart, phase: &str) -> Value {
    let pod = scene.pod;
    let has_place = scene.on_node.is_some_and(|it| it.lost.is_none()) && !chart.is_lost;
    // The place of a finished pod goes as soon as this stands; saying so now saves a second write.
    let is_needed = over(phase).is_none() || chart.all().any(stop::is_running);
    let is_placed = has_place && is_needed;
    let placed = Said {
        is_true: is_placed,
        reason: "",
        message: String::new(),
    };
    let containers = containers_ready(chart, phase);
    let ready = ready(pod, &containers);
    let said = [placed, initialized(chart, phase), ready, containers];
    let own = OWN.iter().zip(said);
    let own = own.map(|(name, said)| condition(pod, name, &said, scene.now));
    let others = pod.conditions.iter();
    let others = others
        .filter(|it| !OWN.contains(&text(it, "type")))
        .cloned();
    own.chain(others).collect()
}

fn condition(pod: &PodView<'_>, name: &str, said: &Said, now: jiff::Timestamp) -> Value {
    let status = if said.is_true { "True" } else { "False" };
    let mut before = pod.conditions.iter();
    let before = before.find(|it| text(it, "type") == name && text(it, "status") == status);
    // The time is that of the transition, so it stays while the status does.
    let since = before.and_then(|it| it.get("lastTransitionTime")).cloned();
    let mut json = json!({
        // The server writes it whether it is set or not, and what differs would be written again.
        "type": name, "status": status, "lastProbeTime": null,
        "lastTransitionTime": since.unwrap_or_else(|| json!(written(now))),
    });
    if !said.reason.is_empty() {
        json["reason"] = json!(said.reason);
    }
    if !said.message.is_empty() {
        json["message"] = json!(said.message);
    }
    json
}

fn initialized(chart: &Chart, phase: &str) -> Said {
    let open = chart.init.iter().filter(|it| !it.has_passed());
    let open: Vec<_> = open.map(|it| &*it.name).collect();
    let (reason, message) = match (phase, open.is_empty()) {
        ("Succeeded", _) => ("PodCompleted", String::new()),
        (_, true) => ("", String::new()),
        (_, false) => (
            "ContainersNotInitialized",
            format!("containers with incomplete status: [{}]", open.join(" ")),
        ),
    };
    Said {
        is_true: phase == "Succeeded" || open.is_empty(),
        reason,
        message,
    }
}

fn containers_ready(chart: &Chart, phase: &str) -> Said {
    if let Some(reason) = over(phase) {
        return Said {
            is_true: false,
            reason,
            message: String::new(),
        };
    }
    let counts = |it: &&Standing| it.role != Role::Init;
    let unready = chart.all().filter(counts).filter(|it| !it.is_ready);
    let unready: Vec<_> = unready.map(|it| &*it.name).collect();
    let incomplete = chart.init.iter().filter(|it| !it.has_passed()).count() > 0;
    let is_true = unready.is_empty() && !incomplete;
    Said {
        is_true,
        reason: if is_true { "" } else { "ContainersNotReady" },
        message: if unready.is_empty() {
            String::new()
        } else {
            format!("containers with unready status: [{}]", unready.join(" "))
        },
    }
}

/// Ready is `ContainersReady` and every readiness gate.
fn ready(pod: &PodView<'_>, containers: &Said) -> Said {
    let gates = items(pod.object.field("/spec/readinessGates")).iter();
    let closed = gates.map(|gate| text(gate, "conditionType"));
    let closed: Vec<_> = closed.filter(|gate| !pod.has_condition(gate)).collect();
    if !containers.is_true || closed.is_empty() {
        return Said {
            message: containers.message.clone(),
            ..*containers
        };
    }
    Said {
        is_true: false,
        reason: "ReadinessGatesNotReady",
        message: format!(
            "the status of pod readiness gate {:?} is not \"True\"",
            closed[0]
        ),
    }
}

fn over(phase: &str) -> Option<&'static str> {
    match phase {
        "Succeeded" => Some("PodCompleted"),
        "Failed" => Some("PodFailed"),
        _ => None,
    }
}
