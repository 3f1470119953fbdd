//! The status as the kubelet writes it, from how the containers stand; and what of it is not on
//! record yet. Nothing is written when nothing changes.

use serde_json::{Map, Value, json};
use sundown_model::node;

use super::chart::{Chart, Scene, Shown, Standing};
use super::conditions;
use super::view::{PodView, Policy, Role, exit_code};
use crate::json::{same, written};

/// Why a pod as a whole failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Failure {
    DeadlineExceeded,
}

/// The parts of the status that differ from what is recorded; None: nothing does.
pub(super) fn patch(
    scene: &Scene<'_>,
    chart: &Chart,
    failure: Option<Failure>,
    host: Option<core::net::Ipv4Addr>,
) -> Option<Value> {
    let pod = scene.pod;
    let phase = phase(scene, chart, failure);
    let mut wanted = Map::new();
    wanted.insert("phase".to_owned(), json!(phase));
    let started_at = pod.started_at.unwrap_or(scene.now);
    wanted.insert("startTime".to_owned(), json!(written(started_at)));
    wanted.insert(
        "conditions".to_owned(),
        conditions::of(scene, chart, &phase),
    );
    let statuses = |all: &[Standing]| all.iter().map(|it| status(pod, it)).collect::<Vec<_>>();
    wanted.insert("containerStatuses".to_owned(), json!(statuses(&chart.main)));
    if !chart.init.is_empty() {
        let init = json!(statuses(&chart.init));
        wanted.insert("initContainerStatuses".to_owned(), init);
    }
    if let Some(Failure::DeadlineExceeded) = failure {
        wanted.insert("reason".to_owned(), json!("DeadlineExceeded"));
        let message = "Pod was active on the node longer than the specified deadline";
        wanted.insert("message".to_owned(), json!(message));
    }
    addresses(scene, host, &mut wanted);
    let stands = |name: &str, value: &Value| pod.status(name).is_some_and(|it| same(it, value));
    wanted.retain(|name, value| !stands(name, value));
    (!wanted.is_empty()).then_some(Value::Object(wanted))
}

/// An address stays on record after the pod has lost it, as the kubelet leaves it.
fn addresses(
    scene: &Scene<'_>,
    host: Option<core::net::Ipv4Addr>,
    wanted: &mut Map<String, Value>,
) {
    if let Some(host) = host {
        wanted.insert("hostIP".to_owned(), json!(host.to_string()));
        wanted.insert("hostIPs".to_owned(), json!([{ "ip": host.to_string() }]));
    }
    if let Some(address) = scene.on_node.and_then(|it| it.address) {
        let ip = address.to_string();
        wanted.insert("podIPs".to_owned(), json!([{ "ip": ip }]));
        wanted.insert("podIP".to_owned(), json!(ip));
    }
}

/// The phase by the kubelet's rule. A pod that is finished stays so.
pub(super) fn phase(scene: &Scene<'_>, chart: &Chart, failure: Option<Failure>) -> String {
    let pod = scene.pod;
    if pod.is_finished() {
        return pod.phase.to_owned();
    }
    if failure.is_some() {
        return "Failed".to_owned();
    }
    let phase = if pod.deletion.is_some() {
        last_phase(pod, chart)
    } else {
        living_phase(pod, chart)
    };
    phase.to_owned()
}

fn living_phase<'a>(pod: &PodView<'_>, chart: &Chart) -> &'a str {
    for init in chart.init.iter().filter(|it| it.role == Role::Init) {
        match &init.shown {
            Shown::Ended(ended) if exit_code(ended) == 0 => {}
            Shown::Ended(_) if pod.policy == Policy::Never => return "Failed",
            Shown::Ended(_) | Shown::Waiting { .. } | Shown::Running { .. } => return "Pending",
        }
    }
    if !chart.is_initialized() {
        return "Pending";
    }
    let (mut waiting, mut running, mut failed) = (0, 0, 0);
    let mut ended = 0;
    for main in &chart.main {
        match &main.shown {
            // Between two runs it counts as stopped.
            Shown::Waiting { .. } if main.last.is_some() => {
                ended += 1;
                failed += 1;
            }
            Shown::Waiting { .. } => waiting += 1,
            Shown::Running { .. } => running += 1,
            Shown::Ended(how) => {
                ended += 1;
                failed += usize::from(exit_code(how) != 0);
            }
        }
    }
    match (waiting, running, ended) {
        (0, 0, 0) => "Pending",
        (0, 0, _) => match pod.policy {
            Policy::Always => "Running",
            Policy::OnFailure if failed > 0 => "Running",
            Policy::Never if failed > 0 => "Failed",
            Policy::OnFailure | Policy::Never => "Succeeded",
        },
        (0, _, _) => "Running",
        (_, _, _) => "Pending",
    }
}

/// A pod that goes ends as what its containers ended as, once none of them runs.
fn last_phase<'a>(pod: &PodView<'_>, chart: &Chart) -> &'a str {
    let runs = |it: &Standing| matches!(it.shown, Shown::Running { .. });
    if chart.all().any(runs) {
        return living_phase(pod, chart);
    }
    let is_well = |it: &Standing| matches!(&it.shown, Shown::Ended(how) if exit_code(how) == 0);
    if chart.main.iter().all(is_well) {
        "Succeeded"
    } else {
        "Failed"
    }
}

/// One entry of `containerStatuses`.
fn status(pod: &PodView<'_>, it: &Standing) -> Value {
    let has_run = !matches!(it.shown, Shown::Waiting { .. });
    let state = match &it.shown {
        Shown::Waiting { reason, message } if message.is_empty() => {
            json!({ "waiting": { "reason": reason } })
        }
        Shown::Waiting { reason, message } => {
            json!({ "waiting": { "reason": reason, "message": message } })
        }
        Shown::Running { started_at } => {
            json!({ "running": { "startedAt": written(*started_at) } })
        }
        Shown::Ended(ended) => json!({ "terminated": with_id(ended, &id(&it.run(pod))) }),
    };
    let before = node::Run {
        attempt: it.attempt.saturating_sub(u32::from(!is_between(it))),
        ..it.run(pod)
    };
    let last = it.last.as_ref().map(|ended| with_id(ended, &id(&before)));
    let mut json = json!({
        "name": &*it.name,
        "state": state,
        "lastState": last.map_or(json!({}), |ended| json!({ "terminated": ended })),
        "ready": it.is_ready,
        "restartCount": it.attempt,
        "image": &*it.image,
        "imageID": if has_run || it.last.is_some() { &*it.image } else { "" },
    });
    if it.role != Role::Init {
        json["started"] = json!(it.is_started);
    }
    let shown_id = if has_run {
        Some(id(&it.run(pod)))
    } else {
        it.last.as_ref().map(|_| id(&before))
    };
    if let Some(id) = shown_id {
        json["containerID"] = json!(id);
    }
    json
}

/// Whether the run that `last` tells of is the attempt that is shown: it waits for the next one.
fn is_between(it: &Standing) -> bool {
    matches!(&it.shown, Shown::Waiting { reason, .. } if reason == super::chart::CRASH_LOOP)
}

fn with_id(ended: &Value, id: &str) -> Value {
    let mut ended = ended.clone();
    if ended.get("containerID").is_none() {
        ended["containerID"] = json!(id);
    }
    ended
}

/// One run as clients name it.
fn id(run: &node::Run) -> String {
    format!("sundown://{}/{}/{}", run.pod, run.container, run.attempt)
}
