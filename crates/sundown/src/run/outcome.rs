//! How a job ended, with the exit code of `sundown run` and the cause in words. Pure.

use std::collections::BTreeSet;

use serde::Serialize;
use serde_json::Value;

use super::target::Parts;
use super::trouble;
use crate::objects::{Known, condition, has_condition, list_in, text};

/// How many lines of a long message are told.
const LINES_TOLD_MAX: usize = 12;

/// The end of a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Outcome {
    /// `succeeded`, `failed`, `stopped` or `deleted`.
    #[serde(rename = "outcome")]
    pub(super) word: &'static str,
    pub(super) exit_code: u8,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) reason: String,
    /// Why; what came with line breaks has them still.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) causes: Vec<String>,
}

impl Outcome {
    fn succeeded() -> Self {
        Self {
            word: "succeeded",
            exit_code: 0,
            reason: String::new(),
            causes: Vec::new(),
        }
    }

    fn failed(word: &'static str, reason: &str, causes: Vec<String>) -> Self {
        Self {
            word,
            exit_code: 1,
            reason: reason.to_owned(),
            causes,
        }
    }

    /// Somebody else deleted it.
    pub(super) fn deleted() -> Self {
        let cause = "deleted before it finished".to_owned();
        Self::failed("deleted", "", vec![cause])
    }
}

/// How the job ended; None while it has not.
pub(super) fn of(parts: &Parts<'_>) -> Option<Outcome> {
    let job = parts.job?;
    match parts.target.kind {
        Known::RayJob => of_ray_job(parts, job),
        Known::Job => of_job(parts, job),
        Known::RayCluster => of_cluster(job),
        Known::Pod => of_pod(job),
        Known::Service => Some(Outcome::succeeded()),
    }
}

/// Ready, or refused as it is now.
fn of_cluster(cluster: &Value) -> Option<Outcome> {
    let is_of_now = cluster["status"]["observedGeneration"] == cluster["metadata"]["generation"];
    match text(cluster, "/status/state") {
        "ready" => Some(Outcome::succeeded()),
        "failed" if is_of_now => {
            let causes = excerpt(text(cluster, "/status/reason"));
            Some(Outcome::failed("failed", "invalid spec", causes))
        }
        _ => None,
    }
}

fn of_ray_job(parts: &Parts<'_>, job: &Value) -> Option<Outcome> {
    let status = text(job, "/status/jobStatus");
    let reason = text(job, "/status/reason");
    let message = || excerpt(text(job, "/status/message"));
    match text(job, "/status/jobDeploymentStatus") {
        "Complete" if status == "SUCCEEDED" => Some(Outcome::succeeded()),
        "Complete" => Some(Outcome::failed("stopped", status, message())),
        "ValidationFailed" => Some(Outcome::failed("failed", "ValidationFailed", message())),
        "Failed" => {
            let mut causes = message();
            // Ray itself never said a word: what keeps its pods from working is the cause.
            if status.is_empty() {
                let pods = parts.all_pods();
                let troubles = pods.iter().filter_map(|pod| trouble::of(pod));
                causes.extend(
                    troubles.map(|it| {
                        format!("pod {}, container {}: {}", it.pod, it.container, it.text)
                    }),
                );
            }
            Some(Outcome::failed("failed", reason, causes))
        }
        _ => None,
    }
}

fn of_job(parts: &Parts<'_>, job: &Value) -> Option<Outcome> {
    if has_condition(job, "Complete") {
        return Some(Outcome::succeeded());
    }
    let failed = condition(job, "Failed")?;
    let codes = failed_codes(parts);
    let mut causes = excerpt(text(failed, "/message"));
    for (container, code) in &codes {
        causes.push(format!("container {container} ended with exit code {code}"));
    }
    let mut outcome = Outcome::failed("failed", text(failed, "/reason"), causes);
    outcome.exit_code = exit_code(&codes);
    Some(outcome)
}

/// Whether pods of a Job that has failed are yet to be seen to have ended: their states come by another watch than
/// the Job's, and tell its exit code.
pub(super) fn awaits_pods(parts: &Parts<'_>) -> bool {
    let Some(job) = parts.job.filter(|_| parts.target.kind == Known::Job) else {
        return false;
    };
    let failed = job["status"]["failed"].as_u64().unwrap_or(0);
    condition(job, "Failed").is_some() && failed > 0 && failed_codes(parts).is_empty()
}

fn of_pod(pod: &Value) -> Option<Outcome> {
    match text(pod, "/status/phase") {
        "Succeeded" | "Running" => Some(Outcome::succeeded()),
        "Failed" => {
            let codes = codes_of(pod);
            let reason = text(pod, "/status/reason");
            let causes = excerpt(text(pod, "/status/message"));
            let mut outcome = Outcome::failed("failed", reason, causes);
            outcome.exit_code = exit_code(&codes.into_iter().collect());
            Some(outcome)
        }
        _ => None,
    }
}

/// Which containers of the Job failed with which codes, retries and pods that went included.
fn failed_codes(parts: &Parts<'_>) -> BTreeSet<(String, i64)> {
    let pods = parts.snapshot.pods_ever(&parts.target.uid);
    pods.flat_map(codes_of).collect()
}

fn codes_of(pod: &Value) -> Vec<(String, i64)> {
    let all = ["/status/initContainerStatuses", "/status/containerStatuses"];
    let all = all.iter().flat_map(|pointer| list_in(pod, pointer));
    let codes = all.flat_map(|it| {
        let ends = [
            "/state/terminated/exitCode",
            "/lastState/terminated/exitCode",
        ];
        let codes = ends.iter().filter_map(|end| it.pointer(end)?.as_i64());
        let name = text(it, "/name").to_owned();
        codes
            .map(move |code| (name.clone(), code))
            .collect::<Vec<_>>()
    });
    codes.filter(|(_, code)| *code != 0).collect()
}

/// The code that all failed containers agree on, else 1.
fn exit_code(codes: &BTreeSet<(String, i64)>) -> u8 {
    let distinct: BTreeSet<i64> = codes.iter().map(|(_, code)| *code).collect();
    let mut distinct = distinct.into_iter();
    match (distinct.next(), distinct.next()) {
        (Some(code), None) => u8::try_from(code).unwrap_or(1).max(1),
        _ => 1,
    }
}

/// The first line of a message and its last ones: Ray puts 20,000 characters of log into it.
fn excerpt(message: &str) -> Vec<String> {
    let lines = excerpt_lines(message);
    let is_empty = lines.is_empty();
    Some(lines.join("\n"))
        .filter(|_| !is_empty)
        .into_iter()
        .collect()
}

fn excerpt_lines(message: &str) -> Vec<String> {
    let lines: Vec<&str> = message
        .lines()
        .filter(|line| !line.trim().is_empty())
        .collect();
    let own = |lines: &[&str]| {
        lines
            .iter()
            .map(|&line| line.to_owned())
            .collect::<Vec<_>>()
    };
    match lines.len() {
        count if count <= LINES_TOLD_MAX => own(&lines),
        count => {
            let mut told = own(&lines[..1]);
            told.push(format!("... {} lines", count - LINES_TOLD_MAX));
            told.extend(own(&lines[count - LINES_TOLD_MAX + 1..]));
            told
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::snapshot::{Seen, Snapshot};
    use super::super::target::Target;
    use super::*;

    fn check(kind: Known, job: Value, pods: Vec<Value>, expect: Option<(&str, u8)>) {
        let mut job = job;
        job["metadata"] = json!({"uid": "u", "name": "n", "generation": 1});
        let mut snapshot = Snapshot::default();
        snapshot.take(Seen::Put(kind, job.clone()));
        for (number, mut pod) in pods.into_iter().enumerate() {
            let owner = json!([{"uid": "u"}]);
            pod["metadata"] = json!({"uid": number.to_string(), "ownerReferences": owner});
            snapshot.take(Seen::Put(Known::Pod, pod));
        }
        let target = Target {
            kind,
            namespace: "default".into(),
            name: "n".into(),
            uid: "u".into(),
        };
        let found = of(&target.parts(&snapshot)).map(|it| (it.word, it.exit_code));
        assert_eq!(found, expect, "{job}");
    }

    #[test]
    fn a_ray_job_ends_with_what_ray_says() {
        let cases = [
            ("Running", "RUNNING", None),
            ("Running", "SUCCEEDED", None),
            ("Retrying", "FAILED", None),
            ("Complete", "SUCCEEDED", Some(("succeeded", 0))),
            ("Complete", "STOPPED", Some(("stopped", 1))),
            ("Failed", "FAILED", Some(("failed", 1))),
            ("Failed", "", Some(("failed", 1))),
            ("ValidationFailed", "", Some(("failed", 1))),
        ];
        for (deployment, status, expect) in cases {
            let status = json!({"jobDeploymentStatus": deployment, "jobStatus": status});
            check(Known::RayJob, json!({"status": status}), Vec::new(), expect);
        }
    }

    /// It was waited for without end.
    #[test]
    fn a_cluster_that_is_refused_has_failed() {
        let cluster = |state: &str, generation: i64| json!({"status": {"state": state, "observedGeneration": generation, "reason": "why"}});
        check(Known::RayCluster, json!({}), Vec::new(), None);
        let ready = cluster("ready", 1);
        check(Known::RayCluster, ready, Vec::new(), Some(("succeeded", 0)));
        let refused = cluster("failed", 1);
        check(Known::RayCluster, refused, Vec::new(), Some(("failed", 1)));
        // It was changed since.
        check(Known::RayCluster, cluster("failed", 0), Vec::new(), None);
    }

    #[test]
    fn a_job_ends_with_the_code_that_its_failed_containers_agree_on() {
        let conditions = |kind: &str| json!({"conditions": [{"type": kind, "status": "True"}]});
        let failed = || json!({"status": conditions("Failed")});
        let pod = |code: i64| {
            let status = json!({"name": "c", "state": {"terminated": {"exitCode": code}}});
            json!({"status": {"containerStatuses": [status]}})
        };
        check(Known::Job, json!({}), vec![pod(3)], None);
        check(
            Known::Job,
            json!({"status": conditions("Complete")}),
            vec![pod(3)],
            Some(("succeeded", 0)),
        );
        let cases = [
            (vec![pod(3)], 3),
            (vec![pod(3), pod(0), pod(3)], 3),
            (vec![pod(3), pod(4)], 1),
            (vec![], 1),
            (vec![pod(300)], 1),
        ];
        for (pods, code) in cases {
            check(Known::Job, failed(), pods, Some(("failed", code)));
        }
    }

    #[test]
    fn a_long_message_is_told_by_its_ends() {
        let message: Vec<String> = (0..100).map(|line| format!("line {line}")).collect();
        assert!(excerpt("").is_empty());
        let told = excerpt_lines(&message.join("\n"));
        assert_eq!(told.len(), LINES_TOLD_MAX + 1);
        assert_eq!(told[0], "line 0");
        assert_eq!(told[1], "... 88 lines");
        assert_eq!(told.last().unwrap(), "line 99");
    }
}
