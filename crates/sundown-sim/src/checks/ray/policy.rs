//! What goes with a job that has ended, and when: J1, J6, J7 and J8. Written anew after the
//! specification, so that it can disagree with the decision.

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;
use sundown_api::Method;
use sundown_model::Resource;

use super::{Violation, is_controlled, rays, state, text};
use crate::ledger::{Event, Ledger, Version};

/// Judges the creation and the end of a cluster.
pub(super) fn judge_cluster(event: &Event, before: &Ledger, found: &mut Vec<Violation>) {
    if !event.is_by("ray_job") {
        return;
    }
    let mut broken = |invariant, text: &str| {
        found.push(Violation::new(invariant, format!("{}: {text}", event.key)));
    };
    let version = event.new.as_ref().or(event.prev.as_ref());
    let Some(version) = version else { return };
    let job = rays(before, "rayjobs").find(|job| is_controlled(version, &job.uid));
    let Some(job) = job else {
        return broken("J7", "a cluster that is no job's was touched");
    };
    if event.prev.is_none() {
        if rays(before, "rayclusters").any(|it| is_controlled(it, &job.uid)) {
            broken("J1", "a second cluster of one job");
        }
        return;
    }
    if event.method == Method::Patch && event.new.is_some() {
        if !is_due(job, "DeleteWorkers", event.at) {
            broken("J8", "its workers go before their time");
        }
        return;
    }
    let is_reset = matches!(state(job), "Suspending" | "Retrying");
    if event.first && !is_reset && !is_due(job, "DeleteCluster", event.at) {
        broken("J8", "it goes before its time, or nobody said so");
    }
}

/// Judges the end of a job by its own policy.
pub(super) fn judge_job(event: &Event, found: &mut Vec<Violation>) {
    let Some(prev) = &event.prev else { return };
    let is_delete = event.method == Method::Delete && event.first;
    if is_delete && !is_due(prev, "DeleteSelf", event.at) {
        let text = format!("{}: it goes before its time, or nobody said so", event.key);
        found.push(Violation::new("J8", text));
    }
}

/// J6, and J13 where the spec makes no sense: what was to go is gone.
pub(super) fn judge_at_rest(
    job: &Version,
    ledger: &Ledger,
    now: Timestamp,
    found: &mut Vec<Violation>,
) {
    if is_broken(job) {
        return;
    }
    let mut broken = |text: &str| {
        let name = super::text(job, "/metadata/name");
        let invariant = if is_invalid(job) { "J13" } else { "J6" };
        found.push(Violation::new(invariant, format!("{name}: {text}")));
    };
    if is_due(job, "DeleteSelf", now) {
        broken("it was to go and is still there");
    }
    let clusters = || rays(ledger, "rayclusters").filter(|it| is_controlled(it, &job.uid));
    if is_due(job, "DeleteCluster", now) && clusters().next().is_some() {
        broken("its cluster was to go and is still there");
    }
    let pods = Resource::new("", "pods");
    let worker = |pod: &Version| text(pod, "/metadata/labels/ray.io~1node-type") == "worker";
    let has_workers = clusters().any(|cluster| {
        let mut live = ledger.live.iter();
        live.any(|(key, pod)| {
            key.resource == pods && worker(pod) && is_controlled(pod, &cluster.uid)
        })
    });
    if is_due(job, "DeleteWorkers", now) && has_workers {
        broken("its workers were to go and are still there");
    }
}

/// Whether somebody made a spec that makes no sense: what is made waits until it does.
pub(super) fn is_invalid(job: &Version) -> bool {
    let runtime_env = &job.json["spec"]["runtimeEnvYAML"];
    let is_list = runtime_env.as_str().is_some_and(|it| it.starts_with("- "));
    is_list || is_broken(job)
}

/// Whether a spec wishes for what it may not: what runs goes on, and what did not begin does not.
pub(super) fn is_refused(job: &Version) -> bool {
    let spec = &job.json["spec"];
    let is_suspended = spec["suspend"] == true && spec["shutdownAfterJobFinishes"] != true;
    is_suspended || spec["activeDeadlineSeconds"] == 0
}

/// Whether what a spec says about the clean-up makes no sense: nothing goes by a broken rule.
fn is_broken(job: &Version) -> bool {
    let spec = &job.json["spec"];
    let has_ttl = spec["ttlSecondsAfterFinished"].as_i64().unwrap_or(0) > 0;
    has_ttl && spec["shutdownAfterJobFinishes"] != true
}

/// Whether a policy of a job is to be carried out by now.
fn is_due(job: &Version, policy: &str, now: Timestamp) -> bool {
    if !matches!(state(job), "Complete" | "Failed") {
        return false;
    }
    let ended_at: Option<Timestamp> = text(job, "/status/endTime").parse().ok();
    let Some(ended_at) = ended_at else {
        return false;
    };
    let after = |ttl: &Value| ended_at + SignedDuration::from_secs(ttl.as_i64().unwrap_or(0));
    let spec = &job.json["spec"];
    let rules = spec["deletionStrategy"]["deletionRules"].as_array();
    if let Some(rules) = rules {
        let applies = |rule: &&Value| {
            let condition = &rule["condition"];
            let is = |name: &str| condition[name] == job.json["status"][name];
            rule["policy"] == policy
                && (condition.get("jobStatus").is_none() || is("jobStatus"))
                && (condition.get("jobDeploymentStatus").is_none() || is("jobDeploymentStatus"))
        };
        let mut all = rules.iter().filter(applies);
        return all.any(|rule| after(&rule["condition"]["ttlSeconds"]) <= now);
    }
    // The policies of before the rules act at once, on the two outcomes that they know.
    let legacy = match text(job, "/status/jobStatus") {
        "SUCCEEDED" => &spec["deletionStrategy"]["onSuccess"]["policy"],
        "FAILED" => &spec["deletionStrategy"]["onFailure"]["policy"],
        _ => &Value::Null,
    };
    if !legacy.is_null() {
        return legacy == policy && ended_at <= now;
    }
    spec["shutdownAfterJobFinishes"] == true
        && policy == "DeleteCluster"
        && after(&spec["ttlSecondsAfterFinished"]) <= now
}
