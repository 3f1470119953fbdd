//! How far the logs of a job that has ended are, and what is told of those that did not come to their
//! end. How long they are waited for is decided with the rest of the run's steps. Pure.

use std::collections::BTreeSet;
use std::time::Duration;

use serde::Serialize;
use serde_json::Value;

use super::Source;
use crate::kubectl::Kubectl;
use crate::objects::{Known, list_in, text};
use crate::run::target::Parts;
use crate::terminal::one_line;

/// How far the logs are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::run) enum Reading {
    /// Read to their ends, or it was told which were not.
    Done,
    /// Some come to an end that was not reached.
    Open {
        /// How long nothing came of any of them.
        quiet: Duration,
    },
    /// They are of what goes on running.
    Endless,
}

/// A log that was not read to its end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(in crate::run) struct Incomplete {
    /// A pod, or a job of Ray.
    source: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    container: Option<String>,
    /// How to read it as long as its pod is there.
    #[serde(skip_serializing_if = "Option::is_none")]
    command: Option<String>,
}

/// Whether all logs come to an end now that the job has ended. A pod or a cluster that became ready
/// goes on.
pub(in crate::run) fn come_to_end(parts: &Parts<'_>) -> bool {
    match (parts.target.kind, parts.job) {
        (Known::RayJob | Known::Job | Known::Service, _) | (_, None) => true,
        (Known::Pod, Some(pod)) => has_finished(pod),
        (Known::RayCluster, Some(_)) => false,
    }
}

/// The pods of a job that has ended whose logs could not be opened yet: their own ends may be seen
/// after that of the job.
pub(in crate::run) fn unopened(parts: &Parts<'_>) -> Vec<(String, String)> {
    let is_awaited = |pod: &&&Value| {
        let is_deleting = !pod["metadata"]["deletionTimestamp"].is_null();
        !has_finished(pod) && !is_deleting && !has_begun(pod)
    };
    let own = parts.own_pods();
    let name = |pod: &&Value| {
        let at = |pointer| text(pod, pointer).to_owned();
        (at("/metadata/namespace"), at("/metadata/name"))
    };
    own.iter().filter(is_awaited).map(name).collect()
}

/// What is told of the logs that are open still and of those that could not be opened, with commands that
/// read them, unless their pods are about to be deleted.
pub(in crate::run) fn incomplete(
    open: &BTreeSet<Source>,
    unopened: &[(String, String)],
    kubectl: Option<&Kubectl>,
) -> Vec<Incomplete> {
    let command = |namespace: &str, words: &[&str]| {
        kubectl.map(|kubectl| kubectl.command("logs", Some(namespace), words))
    };
    let opened = open.iter().map(|source| match source {
        Source::Container {
            namespace,
            pod,
            container,
            ..
        }
        | Source::Crash {
            namespace,
            pod,
            container,
            ..
        } => Incomplete {
            source: pod.clone(),
            container: Some(container.clone()),
            command: command(namespace, &[pod, "-c", container]),
        },
        Source::Ray { id, .. } => Incomplete {
            source: id.clone(),
            container: None,
            command: None,
        },
    });
    let unopened = unopened.iter().map(|(namespace, pod)| Incomplete {
        source: pod.clone(),
        container: None,
        command: command(namespace, &[pod, "--all-containers"]),
    });
    opened.chain(unopened).collect()
}

/// The same for people.
pub(in crate::run) fn in_words(logs: &[Incomplete]) -> String {
    let is_readable = logs.iter().any(|it| it.command.is_some());
    let how = if is_readable {
        "; as long as their pods are there, read them with:"
    } else {
        ":"
    };
    let mut words = format!("these logs are incomplete{how}");
    for log in logs {
        let container = log.container.iter().map(|it| format!(", container {it}"));
        let name = || format!("{}{}", log.source, container.collect::<String>());
        words.push_str("\n  ");
        words.push_str(&one_line(&log.command.clone().unwrap_or_else(name)));
    }
    words
}

fn has_finished(pod: &Value) -> bool {
    matches!(text(pod, "/status/phase"), "Succeeded" | "Failed")
}

fn has_begun(pod: &Value) -> bool {
    let all = ["/status/initContainerStatuses", "/status/containerStatuses"];
    let mut all = all.iter().flat_map(|pointer| list_in(pod, pointer));
    all.any(super::has_begun)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use serde_json::json;

    use super::*;
    use crate::run::snapshot::{Seen, Snapshot};
    use crate::run::target::Target;

    fn followed(api: &str, kind: &str, status: &Value) -> (Target, Value) {
        let object = json!({"apiVersion": api, "kind": kind, "status": status,
            "metadata": {"name": "x", "namespace": "n", "uid": "u"}});
        (Target::of(&object).unwrap(), object)
    }

    fn pod(name: &str, phase: &str, state: &Value) -> Value {
        json!({"metadata": {"name": name, "namespace": "n", "uid": name, "ownerReferences": [{"uid": "u"}]},
               "status": {"phase": phase, "containerStatuses": [{"name": "c", "state": state}]}})
    }

    fn container(pod: &str) -> Source {
        Source::Container {
            namespace: "n".to_owned(),
            pod: pod.to_owned(),
            container: "c".to_owned(),
            attempt: 0,
            uid: pod.to_owned(),
        }
    }

    #[test]
    fn only_what_goes_on_running_has_logs_without_an_end() {
        let cases = [
            ("batch/v1", "Job", json!({}), true),
            ("ray.io/v1", "RayJob", json!({}), true),
            ("v1", "Pod", json!({"phase": "Failed"}), true),
            ("v1", "Pod", json!({"phase": "Running"}), false),
            ("ray.io/v1", "RayCluster", json!({"state": "ready"}), false),
        ];
        for (api, kind, status, expect) in cases {
            let (target, object) = followed(api, kind, &status);
            let mut snapshot = Snapshot::default();
            // Somebody deleted it: then all of it ends.
            assert!(come_to_end(&target.parts(&snapshot)), "{kind}");
            snapshot.take(Seen::Put(target.kind, object));
            assert_eq!(come_to_end(&target.parts(&snapshot)), expect, "{kind}");
        }
    }

    #[test]
    fn a_pod_whose_end_was_not_seen_yet_has_a_log_to_come() {
        let (target, job) = followed("batch/v1", "Job", &json!({}));
        let mut snapshot = Snapshot::default();
        snapshot.take(Seen::Put(Known::Job, job));
        let mut going = pod("going", "Pending", &json!({"waiting": {}}));
        going["metadata"]["deletionTimestamp"] = json!("2026-01-02T03:04:05Z");
        for pod in [
            pod("waits", "Pending", &json!({"waiting": {}})),
            pod("runs", "Running", &json!({"running": {}})),
            pod(
                "ended",
                "Succeeded",
                &json!({"terminated": {"exitCode": 0}}),
            ),
            pod("refused", "Failed", &json!({"waiting": {}})),
            going,
        ] {
            snapshot.take(Seen::Put(Known::Pod, pod));
        }
        let found = unopened(&target.parts(&snapshot));
        assert_eq!(found, [("n".to_owned(), "waits".to_owned())]);
    }

    #[test]
    fn logs_that_are_not_complete_are_named_with_the_command_that_reads_them() {
        let ray = Source::Ray {
            namespace: "n".to_owned(),
            service: "s".to_owned(),
            id: "raysubmit_1".to_owned(),
        };
        let open = BTreeSet::from([container("p"), ray]);
        let unopened = [("n".to_owned(), "q".to_owned())];
        let kubectl = Kubectl::of_data(Path::new("/d"));
        let logs = incomplete(&open, &unopened, Some(&kubectl));
        assert_eq!(
            in_words(&logs),
            "these logs are incomplete; as long as their pods are there, \
             read them with:\n  kubectl --kubeconfig /d/kubeconfig logs -n n p -c c\n  raysubmit_1\n  \
             kubectl --kubeconfig /d/kubeconfig logs -n n q --all-containers"
        );
        let told = serde_json::to_value(&logs).unwrap();
        assert_eq!(
            told[0],
            json!({"source": "p", "container": "c",
                   "command": "kubectl --kubeconfig /d/kubeconfig logs -n n p -c c"})
        );
        assert_eq!(told[1], json!({"source": "raysubmit_1"}));
    }

    #[test]
    fn of_what_is_about_to_be_deleted_no_command_is_told() {
        let logs = incomplete(&BTreeSet::from([container("p")]), &[], None);
        let words = in_words(&logs);
        assert!(
            words.ends_with("these logs are incomplete:\n  p, container c"),
            "{words}"
        );
    }
}
