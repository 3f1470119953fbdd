//! What a status of a job may say, and when: J4, J5, J9, J10, J11 and J15.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use sundown_kinds::constants::FINALIZER_RAY_JOB;
use sundown_model::Resource;
use sundown_model::ray::JobStatus;

use super::{
    Violation, attempt_of, goes, is_controlled, is_head_taken, number, policy, rays, state, text,
};
use crate::ledger::{Event, Ledger, Version};
use crate::ray::{Execution, Fate, Ray};

/// From where to where a job may go.
const EDGES: &[(&str, &[&str])] = &[
    ("", &["Initializing", "ValidationFailed"]),
    (
        "Initializing",
        &["Running", "Waiting", "Suspending", "Failed", "Retrying"],
    ),
    (
        "Waiting",
        &[
            "Running",
            "Suspending",
            "Failed",
            "Retrying",
            "Initializing",
        ],
    ),
    (
        "Running",
        &[
            "Complete",
            "Failed",
            "Retrying",
            "Suspending",
            "Initializing",
        ],
    ),
    ("Suspending", &["Suspended"]),
    ("Suspended", &[""]),
    ("Retrying", &[""]),
    ("Complete", &[]),
    ("Failed", &[]),
    (
        "ValidationFailed",
        &["", "Initializing", "Running", "Complete", "Failed"],
    ),
];

pub(super) fn judge(event: &Event, ray: &Ray, before: &Ledger, found: &mut Vec<Violation>) {
    if !event.is_by("ray_job") {
        return;
    }
    policy::judge_job(event, found);
    let Some(prev) = &event.prev else { return };
    let mut broken = |invariant, text: String| {
        found.push(Violation::new(invariant, format!("{}: {text}", event.key)));
    };
    let had = prev.has_finalizer(FINALIZER_RAY_JOB);
    let has = event
        .new
        .as_ref()
        .is_some_and(|new| new.has_finalizer(FINALIZER_RAY_JOB));
    if had && !has {
        released(prev, ray, before, &mut broken);
    }
    let Some(new) = &event.new else { return };
    counts(prev, new, &mut broken);
    // What another wrote into a status is not this controller's to answer for.
    if prev.json["status"] != new.json["status"] {
        coherent(new, &mut broken);
    }
    let (from, to) = (state(prev), state(new));
    if from == to {
        return;
    }
    let legal = EDGES.iter().find(|(name, _)| *name == from);
    if !legal.is_some_and(|(_, to_all)| to_all.contains(&to)) {
        broken("J4", format!("went from {from:?} to {to:?}"));
    }
    match to {
        "Complete" | "Failed" | "Retrying" => ended(new, ray, before, &mut broken),
        "Suspended" => emptied(new, ray, before, &mut broken),
        "Suspending" => suspending(new, event.at, ray, &mut broken),
        _ => {}
    }
    // Of an interactive job the user may submit before it is known where.
    let is_interactive = text(new, "/spec/submissionMode") == "InteractiveMode";
    let is_slow = text(new, "/status/reason") == "PreRunningDeadlineExceeded";
    if is_slow && !is_interactive && of_attempt(ray, new).next().is_some() {
        broken(
            "J13",
            "it ran, and ended by the time that it had to begin".to_owned(),
        );
    }
    let is_deadline = text(new, "/status/reason") == "DeadlineExceeded";
    if is_deadline && number(new, "/spec/activeDeadlineSeconds") <= 0 {
        broken(
            "J13",
            "it ended by a deadline that makes no sense".to_owned(),
        );
    }
}

/// How long ago a job may have ended that is suspended all the same: Ray was asked after the wish was seen, and
/// its answer holds for three seconds.
const RESULT_AGE_MAX: SignedDuration = SignedDuration::from_secs(5);

/// J13 and J15: only what may be suspended is, and no result is thrown away.
fn suspending(
    new: &Version,
    now: Timestamp,
    ray: &Ray,
    broken: &mut dyn FnMut(&'static str, String),
) {
    if new.json["spec"]["shutdownAfterJobFinishes"] != true {
        broken("J13", "it is suspended, and may not be".to_owned());
    }
    let has_ended = |it: &&Execution| match it.fate {
        Fate::Ended { status, at } => {
            status != JobStatus::Stopped && now.duration_since(at) > RESULT_AGE_MAX
        }
        Fate::Goes | Fate::Lost => false,
    };
    let mut ended = of_attempt(ray, new).filter(has_ended);
    if let Some(thrown) = ended.find(|it| ray.has_session(&it.session)) {
        broken(
            "J15",
            format!("the result of {} is thrown away", thrown.submission_id),
        );
    }
}

/// What ran in the attempt that a job is in.
fn of_attempt<'a>(ray: &'a Ray, job: &Version) -> impl DoubleEndedIterator<Item = &'a Execution> {
    let attempt = attempt_of(job);
    let all = ray.executions.iter();
    all.filter(move |it| it.of.as_ref() == Some(&attempt))
}

/// J11: a job is let go only when nothing of it runs. Ray is never silent here for as long as it is tried, so
/// there is no excuse.
fn released(
    prev: &Version,
    ray: &Ray,
    before: &Ledger,
    broken: &mut dyn FnMut(&'static str, String),
) {
    // Who takes the cluster away, or deletes it without its pods, has what runs there: nobody can be asked
    // any more, and the collector ends what is garbage.
    let has_cluster = |left: &&Execution| {
        let mut clusters = rays(before, "rayclusters").filter(|it| is_controlled(it, &prev.uid));
        let head = before.live.values().find(|it| it.uid == left.head);
        left.is_shared || head.is_none_or(|head| clusters.any(|it| is_controlled(head, &it.uid)))
    };
    // Nor can it be asked for when its name was taken away; it is owned, and goes as garbage.
    let is_named = !text(prev, "/status/rayClusterName").is_empty();
    let left = goes(&ray.executions, &prev.uid).filter(|it| is_named && has_cluster(it));
    if let Some(left) = left {
        broken("J11", format!("let go while {} runs", left.submission_id));
    }
}

/// J4: attempts are counted up, and never more than are allowed.
fn counts(prev: &Version, new: &Version, broken: &mut dyn FnMut(&'static str, String)) {
    let (was, is) = (
        number(prev, "/status/failed"),
        number(new, "/status/failed"),
    );
    if is < was || is > was + 1 || is > number(new, "/spec/backoffLimit") + 1 {
        broken("J4", format!("{was} failed attempts became {is}"));
    }
}

/// J5: what a status says fits together.
fn coherent(new: &Version, broken: &mut dyn FnMut(&'static str, String)) {
    let has = |pointer: &str| !text(new, pointer).is_empty();
    let is_over = matches!(state(new), "Complete" | "Failed");
    // The id of an interactive job is the user's, and comes later.
    let is_interactive = text(new, "/spec/submissionMode") == "InteractiveMode";
    let is_known = has("/status/rayClusterName") && (has("/status/jobId") || is_interactive);
    let why = match state(new) {
        "Initializing" if !is_known => "it began without names",
        "Running" if !is_known || !has("/status/dashboardURL") => "it runs nowhere",
        "Complete" if !matches!(text(new, "/status/jobStatus"), "SUCCEEDED" | "STOPPED") => {
            "it is complete, and Ray did not say so"
        }
        "Failed" | "Retrying" if !has("/status/reason") => "it failed without a reason",
        "Suspended" if has("/status/rayClusterName") => "it rests and has a cluster",
        _ if is_over && !has("/status/endTime") => "it is over and has no end",
        _ => return,
    };
    broken("J5", why.to_owned());
}

/// J9 and J15: when an attempt is over nothing of it runs, and its end is what it really was.
fn ended(new: &Version, ray: &Ray, before: &Ledger, broken: &mut dyn FnMut(&'static str, String)) {
    // A user who deletes the cluster ends the attempt; its pods have their grace, and J3 judges what follows.
    let cluster = text(new, "/status/rayClusterName");
    let has_cluster = rays(before, "rayclusters").any(|it| text(it, "/metadata/name") == cluster);
    if let Some(left) = goes(&ray.executions, &new.uid).filter(|_| has_cluster) {
        broken("J9", format!("over while {} goes on", left.submission_id));
    }
    let really = of_attempt(ray, new).next_back();
    if really.is_some_and(|it| is_head_taken(it, before)) {
        return;
    }
    let Fate::Ended { status, .. } = really.map_or(Fate::Lost, |it| it.fate) else {
        if matches!(text(new, "/status/jobStatus"), "SUCCEEDED") {
            broken("J15", "succeeded, and nothing ran to its end".to_owned());
        }
        return;
    };
    let is = text(new, "/status/jobStatus");
    let is_known = has_cluster && really.is_some_and(|it| ray.has_session(&it.session));
    let (was, is_wrong) = match status {
        JobStatus::Succeeded => ("SUCCEEDED", is_known && state(new) != "Complete"),
        JobStatus::Failed => ("FAILED", state(new) == "Complete"),
        JobStatus::Stopped => ("STOPPED", false),
        JobStatus::Pending | JobStatus::Running => return,
    };
    let is_untrue = matches!(is, "SUCCEEDED" | "FAILED" | "STOPPED") && is != was;
    if is_wrong || is_untrue {
        broken(
            "J15",
            format!("{was} in truth, told as {} {is}", state(new)),
        );
    }
}

/// J10: a job that rests has no cluster, no pod and nothing that runs.
fn emptied(
    new: &Version,
    ray: &Ray,
    before: &Ledger,
    broken: &mut dyn FnMut(&'static str, String),
) {
    // A head that somebody took away is theirs, alone or with its cluster, and so is all that runs there.
    let is_ours = |left: &&Execution| {
        let Some(head) = before.live.values().find(|it| it.uid == left.head) else {
            return true;
        };
        let owners = head.owners();
        let mut clusters = rays(before, "rayclusters").filter(|it| is_controlled(head, &it.uid));
        owners.iter().any(|owner| &*owner.kind == "RayCluster")
            && clusters.all(|it| is_controlled(it, &new.uid))
    };
    if let Some(left) = goes(&ray.executions, &new.uid).filter(is_ours) {
        broken("J10", format!("rests while {} runs", left.submission_id));
    }
    if rays(before, "rayclusters").any(|it| is_controlled(it, &new.uid)) {
        broken("J10", "rests and has a cluster".to_owned());
    }
    let pods = Resource::new("", "pods");
    let origin = text(new, "/metadata/name");
    let is_left = |(key, pod): (&sundown_model::ObjectKey, &Arc<Version>)| {
        let from = text(pod, "/metadata/labels/ray.io~1originated-from-cr-name");
        key.resource == pods && from == origin && !pod.owners().is_empty()
    };
    if before.live.iter().any(is_left) {
        broken("J10", "rests and has a pod".to_owned());
    }
}
