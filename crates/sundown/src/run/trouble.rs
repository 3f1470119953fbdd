//! What keeps a pod from working, read off its status as a person would with `kubectl describe`.

use serde_json::Value;

use super::target::Target;
use crate::kubectl::Kubectl;
use crate::objects::{Known, condition, list_in, text};

/// A container that cannot go on by itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Trouble {
    pub(super) pod: String,
    pub(super) container: String,
    /// Reason and message in one line.
    pub(super) text: String,
    /// Which run of the container ended badly, if one did: its log tells more.
    pub(super) ended: Option<u64>,
}

/// What is wrong with a pod.
pub(super) fn of(pod: &Value) -> Option<Trouble> {
    let name = text(pod, "/metadata/name").to_owned();
    let statuses = ["/status/initContainerStatuses", "/status/containerStatuses"];
    let statuses = statuses.iter().flat_map(|pointer| list_in(pod, pointer));
    if let Some(trouble) = statuses.into_iter().find_map(|it| container(&name, it)) {
        return Some(trouble);
    }
    unschedulable(pod).map(|text| Trouble {
        pod: name,
        container: String::new(),
        text,
        ended: None,
    })
}

/// Nothing of it runs yet: what its first container waits for; empty if nobody said.
pub(super) fn waits_for(pod: &Value) -> Option<String> {
    let statuses = list_in(pod, "/status/containerStatuses");
    let inits = list_in(pod, "/status/initContainerStatuses");
    let is_waiting = |it: &&Value| it["state"]["waiting"].is_object();
    let waiting = inits.iter().chain(statuses).find(is_waiting)?;
    Some(text(waiting, "/state/waiting/message").to_owned())
}

/// What to tell whoever waits for a job that cannot go on by itself: why, which a line of the screen may be too short
/// for, for how long, and what to do.
pub(super) fn advice(
    target: &Target,
    job: Option<&Value>,
    cause: &str,
    kubectl: &Kubectl,
) -> String {
    let word = target.word();
    let deadline = job.and_then(|job| job["spec"]["activeDeadlineSeconds"].as_u64());
    let until = match (target.kind, deadline) {
        (Known::Job | Known::RayJob, Some(seconds)) => {
            format!("until activeDeadlineSeconds ({seconds}s) is reached")
        }
        (Known::Job | Known::RayJob, None) => "indefinitely (no activeDeadlineSeconds)".to_owned(),
        (Known::RayCluster | Known::Pod | Known::Service, _) => "indefinitely".to_owned(),
    };
    format!(
        "{word} is stuck: {cause}; waiting {until}. It continues when the cause is removed; to see more: \
         {}. Press Ctrl-C to stop it",
        kubectl.explain(&word, &target.namespace)
    )
}

/// Whether all containers of a pod are ready.
pub(super) fn is_ready(pod: &Value) -> bool {
    condition(pod, "Ready").is_some()
}

/// Whether nothing but a place on the node is missing to a pod.
pub(super) fn is_unplaced(pod: &Value) -> bool {
    unschedulable(pod).is_some()
}

fn unschedulable(pod: &Value) -> Option<String> {
    let conditions = list_in(pod, "/status/conditions").iter();
    let mut missing =
        conditions.filter(|it| it["type"] == "PodScheduled" && it["status"] == "False");
    let missing = missing.next()?;
    Some(format!(
        "{}: {}",
        text(missing, "/reason"),
        text(missing, "/message")
    ))
}

fn container(pod: &str, status: &Value) -> Option<Trouble> {
    let trouble = |text: String, ended| Trouble {
        pod: pod.to_owned(),
        container: self::text(status, "/name").to_owned(),
        text,
        ended,
    };
    let runs = status["restartCount"].as_u64().unwrap_or(0);
    let reason = text(status, "/state/waiting/reason");
    let message = text(status, "/state/waiting/message");
    let last = &status["lastState"]["terminated"];
    match reason {
        "" | "ContainerCreating" | "PodInitializing" => {}
        "CrashLoopBackOff" => {
            let ended = runs.checked_sub(1);
            return Some(trouble(format!("{reason}: {}", ending(last)), ended));
        }
        _ => return Some(trouble(format!("{reason}: {message}"), None)),
    }
    let ended = &status["state"]["terminated"];
    let has_failed = ended["exitCode"].as_i64().is_some_and(|code| code != 0);
    has_failed.then(|| trouble(ending(ended), Some(runs)))
}

fn ending(terminated: &Value) -> String {
    let code = terminated["exitCode"].as_i64().unwrap_or_default();
    let mut text = format!("exit code {code}");
    for part in ["/reason", "/message"] {
        match self::text(terminated, part) {
            "" | "Error" | "Completed" => {}
            part => {
                text.push_str(": ");
                text.push_str(part.trim_end());
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use serde_json::json;

    use super::*;

    #[test]
    fn the_container_that_cannot_go_on_is_named_with_its_reason() {
        let pod = |status: Value| json!({"metadata": {"name": "p"}, "status": status});
        let with = |state: Value| pod(json!({"containerStatuses": [state]}));
        let cases = [
            (with(json!({"name": "c", "state": {"running": {}}})), None),
            (
                with(json!({"name": "c", "state": {"waiting": {"reason": "ContainerCreating"}}})),
                None,
            ),
            (
                with(
                    json!({"name": "c", "state": {"waiting": {"reason": "ErrImagePull", "message": "no"}}}),
                ),
                Some(("c", "ErrImagePull: no", None)),
            ),
            (
                with(
                    json!({"name": "c", "restartCount": 3, "state": {"waiting": {"reason": "CrashLoopBackOff", "message": "b"}},
                    "lastState": {"terminated": {"exitCode": 3, "reason": "Error"}}}),
                ),
                Some(("c", "CrashLoopBackOff: exit code 3", Some(2))),
            ),
            (
                with(
                    json!({"name": "c", "state": {"terminated": {"exitCode": 128, "reason": "StartError", "message": "no such file"}}}),
                ),
                Some(("c", "exit code 128: StartError: no such file", Some(0))),
            ),
            (
                with(
                    json!({"name": "c", "state": {"terminated": {"exitCode": 0, "reason": "Completed"}}}),
                ),
                None,
            ),
            (
                pod(
                    json!({"conditions": [{"type": "PodScheduled", "status": "False",
                    "reason": "Unschedulable", "message": "Insufficient cpu"}]}),
                ),
                Some(("", "Unschedulable: Insufficient cpu", None)),
            ),
        ];
        for (pod, expect) in cases {
            let found = of(&pod).map(|it| (it.container, it.text, it.ended));
            let expect = expect.map(|(c, t, e)| (c.to_owned(), t.to_owned(), e));
            assert_eq!(found, expect, "{pod}");
        }
    }

    #[test]
    fn whoever_waits_is_told_for_how_long_and_what_to_do() {
        let told = |kind: &str, spec: Value| {
            let api = if kind == "Job" {
                "batch/v1"
            } else {
                "ray.io/v1"
            };
            let job = json!({"apiVersion": api, "kind": kind, "spec": spec,
                "metadata": {"name": "x", "namespace": "n", "uid": "u"}});
            let kubectl = Kubectl::of_data(Path::new("/d"));
            advice(
                &Target::of(&job).unwrap(),
                Some(&job),
                "ErrImagePull: add a rule",
                &kubectl,
            )
        };
        let text = told("RayJob", json!({"activeDeadlineSeconds": 60}));
        assert!(
            text.contains("until activeDeadlineSeconds (60s) is reached"),
            "{text}"
        );
        assert!(
            text.starts_with("rayjob/x is stuck: ErrImagePull: add a rule; waiting"),
            "{text}"
        );
        let explain = "sundown explain rayjob/x --kubeconfig /d/kubeconfig -n n";
        assert!(text.contains(explain), "{text}");
        assert!(text.ends_with("Press Ctrl-C to stop it"), "{text}");
        let text = told("Job", json!({}));
        assert!(text.contains("no activeDeadlineSeconds"), "{text}");
        let text = told("RayCluster", json!({}));
        assert!(text.contains("waiting indefinitely."), "{text}");
    }
}
