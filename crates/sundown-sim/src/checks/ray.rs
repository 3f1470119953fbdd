//! The invariants J: what is owed to a `RayJob`, by what really ran in Ray; and R8, what is owed to a
//! cluster.

mod cluster;
mod job;
mod late;
mod policy;

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;
use sundown_model::{Resource, Uid};

use super::Violation;
use crate::late::MUTE;
use crate::ledger::{Event, Ledger, Version};
use crate::node::Node;
use crate::ray::{Attempt, Execution, Fate, Ray};

pub(crate) use late::late;

const NAME: &str = "/metadata/name";

/// How long the jobs of these stories may take from their start to their end beside a dashboard that does
/// not answer: they run for a second, and Ray is asked every three.
const NEIGHBOUR_TIME_MAX: SignedDuration = SignedDuration::from_secs(20);

/// Judges one write about a job, its cluster or the pods of that.
pub(crate) fn on_event(event: &Event, before: &Ledger, node: &Node, found: &mut Vec<Violation>) {
    match (event.key.resource.group(), event.key.resource.plural()) {
        ("ray.io", "rayjobs") => job::judge(event, &node.ray, before, found),
        ("ray.io", "rayclusters") => policy::judge_cluster(event, before, found),
        ("", "pods") => cluster::judge(event, before, found),
        _ => {}
    }
}

/// Judges what began in Ray since the last time: J2, J3, J9 and J11.
pub(crate) fn on_execution(ray: &mut Ray, ledger: &Ledger, found: &mut Vec<Violation>) {
    for index in ray.take_unjudged() {
        let id = ray.executions[index].submission_id.clone();
        let mut broken = |invariant, text: &str| {
            found.push(Violation::new(invariant, format!("{id}: {text}")));
        };
        let mut jobs = rays(ledger, "rayjobs");
        // That of an interactive job is the user's, who may submit first and tell the job later.
        let is_of = |job: &&Arc<Version>| {
            let ids = ["/status/jobId", "/spec/jobId"].map(|it| text(job, it));
            ids.contains(&&*id) || text(job, "/spec/submissionMode") == "InteractiveMode"
        };
        let Some(job) = jobs.find(is_of) else {
            broken("J11", "it began although its RayJob is gone");
            continue;
        };
        let attempt = attempt_of(job);
        let before = &ray.executions[..index];
        if before.iter().any(|it| it.of.as_ref() == Some(&attempt)) {
            broken("J2", "one attempt ran twice");
        }
        let earlier = goes(before, &job.uid);
        if earlier.is_some_and(|it| !is_head_taken(it, ledger)) {
            broken("J3", "it began while an earlier attempt went on");
        }
        let is_over = matches!(state(job), "Complete" | "Failed" | "Suspended");
        if is_over && !is_submitter_taken(job, ledger) {
            broken("J9", "it began when its attempt was over");
        }
        let is_shared = !text(job, "/spec/clusterSelector/ray.io~1cluster").is_empty();
        ray.executions[index].of = Some(attempt);
        ray.executions[index].is_shared = is_shared;
    }
}

/// J12: beside a dashboard that never answers, every other job comes to its end as fast as ever.
pub(crate) fn neighbours(ledger: &Ledger) -> Vec<Violation> {
    let is_mute = |job: &Version| text(job, NAME) == MUTE;
    if !rays(ledger, "rayjobs").any(|job| is_mute(job)) {
        return Vec::new();
    }
    let took = |job: &Version| {
        let at = |name: &str| text(job, &format!("/status/{name}")).parse::<Timestamp>();
        Some(at("endTime").ok()?.duration_since(at("startTime").ok()?))
    };
    let others = rays(ledger, "rayjobs").filter(|job| !is_mute(job));
    let late = others.filter_map(|job| Some((job, took(job)?)));
    late.filter(|(_, took)| *took > NEIGHBOUR_TIME_MAX)
        .map(|(job, took)| Violation::new("J12", format!("{} took {took:#}", text(job, NAME))))
        .collect()
}

/// Judges a world at rest: J6, J9, J13 and J14.
pub(crate) fn at_rest(ledger: &Ledger, node: &Node, now: Timestamp) -> Vec<Violation> {
    let mut found = Vec::new();
    for job in rays(ledger, "rayjobs") {
        let name = text(job, "/metadata/name");
        let is_at_rest = matches!(
            state(job),
            "Complete" | "Failed" | "Suspended" | "ValidationFailed"
        );
        // A cluster that a job only points at is the user's to make.
        let selected = text(job, "/spec/clusterSelector/ray.io~1cluster");
        let is_missing = !selected.is_empty()
            && !rays(ledger, "rayclusters").any(|it| text(it, NAME) == selected);
        // What is still to be begun waits until it makes sense; what was executed does not.
        let attempt = attempt_of(job);
        let mut executions = node.ray.executions.iter();
        let is_begun = executions.any(|it| it.of.as_ref() == Some(&attempt));
        let may_refuse = policy::is_invalid(job) || policy::is_refused(job);
        let is_held = may_refuse && !is_begun;
        // One that the user has not submitted yet may be waited for, where it could be.
        let clusters = || rays(ledger, "rayclusters").filter(|it| is_controlled(it, &job.uid));
        let awaits_user = state(job) == "Waiting"
            && text(job, "/spec/jobId").is_empty()
            && clusters().next().is_some();
        let is_at_rest = is_at_rest || awaits_user;
        if !is_at_rest && !is_missing && !is_held {
            let text = format!("{name} came to no end: it is {:?}", state(job));
            found.push(Violation::new("J14", text));
        }
        if state(job) == "ValidationFailed" && !may_refuse {
            let text = format!("{name} makes sense, and is refused");
            found.push(Violation::new("J13", text));
        }
        policy::judge_at_rest(job, ledger, now, &mut found);
    }
    let is_taken = |it: &Execution| {
        let of = it.of.as_ref();
        let mut jobs = rays(ledger, "rayjobs").filter(|job| of.is_some_and(|of| of.job == job.uid));
        jobs.any(|job| is_submitter_taken(job, ledger)) || is_head_taken(it, ledger)
    };
    let executions = node.ray.executions.iter();
    for execution in executions.filter(|it| it.fate == Fate::Goes && !is_taken(it)) {
        let text = format!("{} goes on for ever", execution.submission_id);
        found.push(Violation::new("J9", text));
    }
    found
}

/// A user who takes the submitter away has it submit at any time, and nothing here can end it.
fn is_submitter_taken(job: &Version, ledger: &Ledger) -> bool {
    submitter(ledger, job).is_some_and(|it| !is_controlled(it, &job.uid))
}

/// A user who takes a head away from its cluster, or gives it another owner besides, keeps what runs there. So
/// does one who makes a cluster in the place of that of the job.
fn is_head_taken(execution: &Execution, ledger: &Ledger) -> bool {
    let head = ledger.live.values().find(|it| it.uid == execution.head);
    let (Some(head), Some(of)) = (head, &execution.of) else {
        return false;
    };
    let owners = head.owners();
    let has_other = owners.iter().any(|it| &*it.kind != "RayCluster");
    let mut clusters = rays(ledger, "rayclusters").filter(|it| is_controlled(head, &it.uid));
    let is_of_other = !execution.is_shared && clusters.any(|it| !is_controlled(it, &of.job));
    owners.is_empty() || has_other || is_of_other
}

/// The attempt that a job is in.
fn attempt_of(job: &Version) -> Attempt {
    Attempt {
        job: job.uid.clone(),
        cluster: text(job, "/status/rayClusterName").to_owned(),
    }
}

/// Whether it may be there at the end or not: the slice of a service comes and goes with its pods.
pub(super) fn is_chance(version: &Version) -> bool {
    text(version, "/kind") == "EndpointSlice"
}

/// A name and a description of what Ray's controllers make, the same in all lives; None for the rest.
/// The uid of a cluster makes the names of its pods, and it is drawn anew in each life.
pub(super) fn described(version: &Version) -> Option<(String, String)> {
    let owners = version.owners();
    let owner = owners.iter().find(|it| it.controller == Some(true));
    let is = |pointer: &str| text(version, pointer);
    let is_submitter = !is("/metadata/labels/ray.io~1originated-from-cr-name").is_empty();
    let is_made = |kind: &str| match kind {
        "RayCluster" => true,
        "Job" => is_submitter,
        _ => false,
    };
    if let Some(owner) = owner.filter(|it| is_made(&it.kind)) {
        let labels = ["ray.io~1node-type", "ray.io~1group"];
        let labels = labels.map(|it| is(&format!("/metadata/labels/{it}")).to_owned());
        let name = format!("{}-{}", owner.name, labels.join("-"));
        return Some((name, is("/status/phase").to_owned()));
    }
    if is("/kind") == "RayJob" {
        let status = ["jobStatus", "jobDeploymentStatus", "reason"];
        let mut status = status.map(|it| is(&format!("/status/{it}"))).to_vec();
        // How far it came before it was lost is chance.
        status.retain(|it| !matches!(*it, "" | "PENDING" | "RUNNING"));
        let mut status: Vec<_> = status.into_iter().map(ToOwned::to_owned).collect();
        for count in ["failed", "succeeded"] {
            let count = number(version, &format!("/status/{count}"));
            status.push(count.to_string());
        }
        return Some((is("/metadata/name").to_owned(), status.join(" ")));
    }
    None
}

/// The objects of a kind of Ray.
fn rays<'a>(ledger: &'a Ledger, plural: &str) -> impl Iterator<Item = &'a Arc<Version>> {
    let resource = Resource::new("ray.io", plural);
    let live = ledger.live.iter();
    live.filter(move |(key, _)| key.resource == resource)
        .map(|(_, version)| version)
}

/// The Job that submits, or whoever has its name.
fn submitter<'a>(ledger: &'a Ledger, job: &Version) -> Option<&'a Arc<Version>> {
    let jobs = Resource::new("batch", "jobs");
    let mut live = ledger.live.iter();
    let found = live.find(|(key, _)| key.resource == jobs && *key.name == *text(job, NAME));
    found.map(|(_, version)| version)
}

/// An execution of a job that goes on.
fn goes<'a>(executions: &'a [Execution], job: &Uid) -> Option<&'a Execution> {
    let mut all = executions.iter().filter(|it| it.fate == Fate::Goes);
    all.find(|it| it.of.as_ref().is_some_and(|of| of.job == *job))
}

fn text<'a>(version: &'a Version, pointer: &str) -> &'a str {
    let found = version.json.pointer(pointer).and_then(Value::as_str);
    found.unwrap_or("")
}

fn number(version: &Version, pointer: &str) -> i64 {
    let found = version.json.pointer(pointer).and_then(Value::as_i64);
    found.unwrap_or(0)
}

/// Where a job stands.
fn state(job: &Version) -> &str {
    text(job, "/status/jobDeploymentStatus")
}

/// Whether an object is controlled by this incarnation of another.
fn is_controlled(version: &Version, owner: &Uid) -> bool {
    let owners = version.owners();
    let mut owners = owners.iter();
    owners.any(|it| it.controller == Some(true) && it.uid == *owner)
}
