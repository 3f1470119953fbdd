//! The cells of a pod: readiness, status and restarts, as upstream's `printPod` sums them up.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::age;
use super::cells::{items, number, text, text_or};

/// What the containers of a pod say together.
struct Summary {
    ready: usize,
    status: String,
    restarts: i64,
    restarted_at: Option<Timestamp>,
}

/// All cells of a pod.
pub(super) fn cells(pod: &Value, now: Timestamp) -> Vec<Value> {
    let summary = summary(pod);
    let sidecars = items(pod, "/spec/initContainers").filter(|it| is_sidecar(it));
    let total = items(pod, "/spec/containers").count() + sidecars.count();
    let restarts = match summary.restarted_at {
        Some(at) if summary.restarts > 0 => {
            let ago = age::human(now.duration_since(at));
            format!("{} ({ago} ago)", summary.restarts)
        }
        _ => summary.restarts.to_string(),
    };
    vec![
        text(pod, "/metadata/name").into(),
        format!("{}/{total}", summary.ready).into(),
        summary.status.into(),
        restarts.into(),
        age::since(pod.pointer("/metadata/creationTimestamp"), now).into(),
        text_or(pod, "/status/podIPs/0/ip", "<none>").into(),
        text_or(pod, "/spec/nodeName", "<none>").into(),
        text_or(pod, "/status/nominatedNodeName", "<none>").into(),
        readiness_gates(pod).into(),
    ]
}

/// What marks the row of a finished pod.
pub(super) fn row_conditions(pod: &Value) -> Option<Value> {
    let (reason, message) = match text(pod, "/status/phase") {
        "Succeeded" => ("Succeeded", "The pod has completed successfully."),
        "Failed" => ("Failed", "The pod failed."),
        _ => return None,
    };
    Some(json!([{ "type": "Completed", "status": "True", "reason": reason, "message": message }]))
}

fn summary(pod: &Value) -> Summary {
    let phase = text(pod, "/status/phase");
    let mut sum = Summary {
        ready: 0,
        status: text_or(pod, "/status/reason", phase).to_owned(),
        restarts: 0,
        restarted_at: None,
    };
    let is_gated = |it: &Value| it["type"] == "PodScheduled" && it["reason"] == "SchedulingGated";
    if items(pod, "/status/conditions").any(is_gated) {
        "SchedulingGated".clone_into(&mut sum.status);
    }
    let (is_initializing, sidecars) = initialize(pod, &mut sum);
    if !is_initializing || has_condition(pod, "Initialized") {
        (sum.restarts, sum.restarted_at) = sidecars;
        run(pod, &mut sum);
    }
    let is_over = matches!(phase, "Succeeded" | "Failed");
    if !pod["metadata"]["deletionTimestamp"].is_null() {
        if text(pod, "/status/reason") == "NodeLost" {
            "Unknown".clone_into(&mut sum.status);
        } else if !is_over {
            "Terminating".clone_into(&mut sum.status);
        }
    }
    sum
}

/// Follows the init containers; says whether one still runs, and what the sidecars restarted.
fn initialize(pod: &Value, sum: &mut Summary) -> (bool, (i64, Option<Timestamp>)) {
    let mut sidecars = (0, None);
    for (index, status) in items(pod, "/status/initContainerStatuses").enumerate() {
        let own = items(pod, "/spec/initContainers").find(|it| it["name"] == status["name"]);
        let is_sidecar = own.is_some_and(is_sidecar);
        count_restarts(status, &mut sum.restarts, &mut sum.restarted_at);
        if is_sidecar {
            count_restarts(status, &mut sidecars.0, &mut sidecars.1);
        }
        let ended = status.pointer("/state/terminated");
        if ended.is_some_and(|it| number(it, "/exitCode") == 0) {
            continue;
        }
        if is_sidecar && status["started"] == true {
            sum.ready += usize::from(status["ready"] == true);
            continue;
        }
        let waits = text(status, "/state/waiting/reason");
        let total = items(pod, "/spec/initContainers").count();
        sum.status = match ended {
            Some(ended) => format!("Init:{}", end(ended)),
            None if !waits.is_empty() && waits != "PodInitializing" => format!("Init:{waits}"),
            None => format!("Init:{index}/{total}"),
        };
        return (true, sidecars);
    }
    (false, sidecars)
}

/// Follows the containers, the last one first, so that the first one has the last word.
fn run(pod: &Value, sum: &mut Summary) {
    let mut has_running = false;
    let mut failed = String::new();
    let statuses: Vec<&Value> = items(pod, "/status/containerStatuses").collect();
    for status in statuses.into_iter().rev() {
        count_restarts(status, &mut sum.restarts, &mut sum.restarted_at);
        let waits = text(status, "/state/waiting/reason");
        if !waits.is_empty() {
            waits.clone_into(&mut sum.status);
        } else if let Some(ended) = status.pointer("/state/terminated") {
            sum.status = end(ended);
            if number(ended, "/exitCode") != 0 {
                failed.clone_from(&sum.status);
            }
        } else if status["ready"] == true && !status["state"]["running"].is_null() {
            has_running = true;
            sum.ready += 1;
        }
    }
    if sum.status == "Completed" {
        if has_running && has_condition(pod, "Ready") {
            "Running".clone_into(&mut sum.status);
        } else if !failed.is_empty() {
            sum.status = failed;
        } else if has_running {
            "NotReady".clone_into(&mut sum.status);
        }
    }
}

fn end(terminated: &Value) -> String {
    let (reason, signal) = (text(terminated, "/reason"), number(terminated, "/signal"));
    match (reason, signal) {
        ("", 0) => format!("ExitCode:{}", number(terminated, "/exitCode")),
        ("", signal) => format!("Signal:{signal}"),
        (reason, _) => reason.to_owned(),
    }
}

fn count_restarts(status: &Value, count: &mut i64, at: &mut Option<Timestamp>) {
    *count = count.saturating_add(number(status, "/restartCount"));
    let ended = status.pointer("/lastState/terminated/finishedAt");
    *at = (*at).max(ended.and_then(age::instant));
}

fn is_sidecar(container: &Value) -> bool {
    container["restartPolicy"] == "Always"
}

fn has_condition(pod: &Value, kind: &str) -> bool {
    items(pod, "/status/conditions").any(|it| it["type"] == kind && it["status"] == "True")
}

fn readiness_gates(pod: &Value) -> String {
    let gates: Vec<&str> = items(pod, "/spec/readinessGates")
        .map(|gate| text(gate, "/conditionType"))
        .collect();
    if gates.is_empty() {
        return "<none>".to_owned();
    }
    let open = gates.iter().filter(|gate| has_condition(pod, gate)).count();
    format!("{open}/{}", gates.len())
}
