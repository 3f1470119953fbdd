//! How far a job is, as stages: what a person who waits wants to see. A pure function of what the API
//! server has shown; what the clean-up does is told by `cleanup`.

use serde::Serialize;
use serde_json::Value;

use super::target::{Parts, Submission};
use super::trouble::{self, Trouble};
use crate::kubectl::Kubectl;
use crate::objects::{Known, has_condition, list_in, text};

/// One stage on the way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Stage {
    #[serde(rename = "stage")]
    pub(super) name: Name,
    pub(super) state: State,
    pub(super) text: String,
}

/// The stages in their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Name {
    Environment,
    Cluster,
    Workers,
    Submission,
    Pods,
    Job,
    CleanUp,
}

/// Where a stage stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum State {
    Waiting,
    Active,
    /// It cannot go on by itself; what to look at is in the text.
    Stuck,
    Done,
    Failed,
}

impl Name {
    /// As it is written.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Environment => "environment",
            Self::Cluster => "cluster",
            Self::Workers => "workers",
            Self::Submission => "submission",
            Self::Pods => "pods",
            Self::Job => "job",
            Self::CleanUp => "clean-up",
        }
    }
}

impl Stage {
    pub(super) fn new(name: Name, state: State, text: impl Into<String>) -> Self {
        Self {
            name,
            state,
            text: text.into(),
        }
    }
}

/// All stages of a job but its clean-up.
pub(super) fn stages(parts: &Parts<'_>) -> Vec<Stage> {
    match parts.target.kind {
        Known::RayJob => vec![
            environment(parts),
            cluster(parts),
            workers(parts),
            submission(parts),
            ray_job(parts),
        ],
        Known::RayCluster => vec![environment(parts), cluster(parts), workers(parts)],
        Known::Job => vec![environment(parts), pods(parts), job(parts)],
        Known::Pod => vec![environment(parts)],
        Known::Service => Vec::new(),
    }
}

/// The stages of a job that is stopped: what was under way no longer is.
pub(super) fn stopped(stages: Vec<Stage>) -> Vec<Stage> {
    let stop = |stage: Stage| match stage.state {
        State::Active | State::Stuck => Stage::new(stage.name, State::Waiting, "stopped"),
        State::Waiting | State::Done | State::Failed => stage,
    };
    stages.into_iter().map(stop).collect()
}

/// Tells the address of the dashboard along with the cluster that has it.
pub(super) fn add_address(stages: &mut [Stage], url: &str) {
    let is_up = |it: &&mut Stage| it.name == Name::Cluster && it.state == State::Done;
    if let Some(cluster) = stages.iter_mut().find(is_up) {
        // First: it is of no use if it is cut, and fits a terminal of 80 columns.
        cluster.text = format!("dashboard {url}, {}", cluster.text);
    }
}

/// Whether the job is over, so that what has not begun never will.
fn is_over(parts: &Parts<'_>) -> bool {
    match parts.target.kind {
        Known::RayJob => {
            let ends = ["Complete", "Failed", "ValidationFailed"];
            ends.contains(&parts.says("/status/jobDeploymentStatus"))
        }
        Known::Job => parts.job.is_some_and(|job| {
            ["Complete", "Failed"]
                .iter()
                .any(|it| has_condition(job, it))
        }),
        Known::RayCluster | Known::Pod | Known::Service => false,
    }
}

/// Whether the job was refused, so that nothing of it was ever begun.
fn is_refused(parts: &Parts<'_>) -> bool {
    parts.says("/status/jobDeploymentStatus") == "ValidationFailed"
}

/// The images of its pods are there.
fn environment(parts: &Parts<'_>) -> Stage {
    let is = |state, text: String| Stage::new(Name::Environment, state, text);
    if is_refused(parts) {
        return is(State::Waiting, String::new());
    }
    let pods = parts.all_pods();
    let image = |pod: &Value| {
        let of = |pointer| {
            list_in(pod, pointer)
                .first()
                .map(|it| text(it, "/image").to_owned())
        };
        of("/spec/containers").unwrap_or_default()
    };
    let stuck = pods.iter().filter_map(|pod| trouble::of(pod));
    if let Some(trouble) = stuck.into_iter().find(is_about_image) {
        return is(State::Stuck, cause_of_pull(&trouble.text));
    }
    // What one pod runs in is there for all that name the same image.
    let is_there = |image_of: &str| {
        let begun = pods.iter().filter(|pod| has_begun(pod));
        begun.into_iter().any(|pod| image(pod) == image_of)
    };
    let waiting = pods.iter().find_map(|pod| {
        let why = trouble::waits_for(pod).filter(|_| !has_begun(pod))?;
        let image = image(pod);
        (!is_there(&image)).then_some((image, why))
    });
    // Not placed yet: nothing is known about its image.
    let is_new = |pod: &&&Value| text(pod, "/status/phase") == "Pending" && !has_begun(pod);
    if waiting.is_none() && !pods.is_empty() && pods.iter().all(|pod| is_new(&pod)) {
        return is(State::Waiting, String::new());
    }
    match (waiting, pods.first()) {
        (Some((image, why)), _) if why.is_empty() => is(State::Active, image),
        (Some((image, why)), _) => is(State::Active, format!("{image}: {why}")),
        (None, Some(pod)) => is(State::Done, image(pod)),
        (None, None) if is_over(parts) => is(State::Done, String::new()),
        (None, None) => is(State::Waiting, String::new()),
    }
}

/// Whether anything of a Job has begun. Pods count as active from their creation on, before there is anything to
/// run in, and their own states come by another watch, earlier or later.
fn has_pods_begun(parts: &Parts<'_>, job: &Value) -> bool {
    let has_ended = count(job, "succeeded") + count(job, "failed") > 0;
    has_ended || environment(parts).state == State::Done
}

fn is_about_image(trouble: &Trouble) -> bool {
    ["ErrImagePull", "ImagePullBackOff"]
        .iter()
        .any(|reason| trouble.text.starts_with(reason))
}

/// Why there is no image. Between two tries the same cause is told in other words, which is no news.
fn cause_of_pull(text: &str) -> String {
    let Some((_, cause)) = text.rsplit_once("ErrImagePull: ") else {
        return text.to_owned();
    };
    let cause = match cause.strip_prefix("failed to pull image ") {
        Some(named) => named.split_once("\": ").map_or(cause, |(_, cause)| cause),
        None => cause,
    };
    format!("ErrImagePull: {cause}")
}

/// Whether any container of the pod has ever run.
fn has_begun(pod: &Value) -> bool {
    let all = ["/status/initContainerStatuses", "/status/containerStatuses"];
    let mut all = all.iter().flat_map(|pointer| list_in(pod, pointer));
    all.any(|it| {
        let state = &it["state"];
        let restarts = it["restartCount"].as_u64().unwrap_or(0);
        state["running"].is_object() || state["terminated"].is_object() || restarts > 0
    })
}

/// Whether a pod has begun and not come to its end, so that it makes room some time.
fn is_at_work(pod: &Value) -> bool {
    has_begun(pod) && !matches!(text(pod, "/status/phase"), "Succeeded" | "Failed")
}

/// The head of the cluster.
fn cluster(parts: &Parts<'_>) -> Stage {
    let is = |state, text: String| Stage::new(Name::Cluster, state, text);
    let name = parts.cluster.map(|it| text(it, "/metadata/name"));
    let Some(head) = parts.head() else {
        let refused = refused(parts);
        let has_failed = parts
            .cluster
            .is_some_and(|it| text(it, "/status/state") == "failed");
        // A cluster that the job only selects can be mended or made again; the job waits for that.
        let is_awaited = parts.target.kind == Known::RayJob && !is_over(parts);
        return match name {
            _ if is_refused(parts) => is(State::Waiting, String::new()),
            Some(name) if has_failed && is_awaited => is(
                State::Stuck,
                format!("raycluster/{name} failed: {refused}; fix it to continue"),
            ),
            _ if has_failed => is(State::Failed, refused.to_owned()),
            _ if is_over(parts) => is(State::Done, "ended".to_owned()),
            _ if !refused.is_empty() => is(State::Stuck, refused.to_owned()),
            Some(name) => is(State::Active, format!("{name}: waiting for the head pod")),
            None => match missing_cluster(parts) {
                Some(name) => is(State::Stuck, awaits_cluster(name)),
                None => is(State::Waiting, String::new()),
            },
        };
    };
    let pod = text(head, "/metadata/name");
    if trouble::is_ready(head) {
        return is(State::Done, format!("head {pod} is ready"));
    }
    match trouble::of(head).filter(|it| !is_about_image(it)) {
        Some(trouble) => is(State::Stuck, in_words(&trouble)),
        None if is_over(parts) => is(State::Done, "ended".to_owned()),
        None if has_begun(head) => is(State::Active, format!("head {pod} starting")),
        None => is(
            State::Active,
            format!("head {pod} waiting for its environment"),
        ),
    }
}

/// The cluster that the job selects and that is not there.
fn missing_cluster<'a>(parts: &Parts<'a>) -> Option<&'a str> {
    let name = parts.says("/spec/clusterSelector/ray.io~1cluster");
    let is_there = parts.snapshot.named(Known::RayCluster, name).is_some();
    (!name.is_empty() && !is_there).then_some(name)
}

fn awaits_cluster(name: &str) -> String {
    format!("raycluster/{name} (from clusterSelector) not found; create it to continue")
}

/// Why something could not be made, in the words of whoever tried: of the cluster, or of the job while it
/// has none.
fn refused<'a>(parts: &Parts<'a>) -> &'a str {
    match parts.cluster {
        Some(cluster) => text(cluster, "/status/reason"),
        None if parts.target.kind == Known::RayJob => parts.says("/status/message"),
        None => "",
    }
}

fn workers(parts: &Parts<'_>) -> Stage {
    let is = |state, text: String| Stage::new(Name::Workers, state, text);
    let Some(cluster) = parts.cluster else {
        return if is_over(parts) && !is_refused(parts) {
            is(State::Done, "ended".to_owned())
        } else {
            is(State::Waiting, String::new())
        };
    };
    let groups = list_in(cluster, "/spec/workerGroupSpecs").iter();
    let wanted: u64 = groups.map(wanted_in_group).sum();
    if wanted == 0 {
        return is(State::Done, "no workers requested".to_owned());
    }
    let pods = parts.nodes("worker");
    let ready = pods.iter().filter(|pod| trouble::is_ready(pod)).count();
    let ready = u64::try_from(ready).unwrap_or(u64::MAX);
    let count = format!("{ready} of {wanted} ready");
    if ready >= wanted {
        return is(State::Done, count);
    }
    let stuck = pods.iter().filter_map(|pod| trouble::of(pod));
    match stuck.into_iter().find(|it| !is_about_image(it)) {
        Some(trouble) => is(State::Stuck, format!("{count}; {}", in_words(&trouble))),
        None if is_over(parts) => is(State::Done, count),
        None if parts.head().is_some() && !refused(parts).is_empty() => {
            is(State::Stuck, format!("{count}; {}", refused(parts)))
        }
        None if pods.is_empty() => is(State::Waiting, count),
        None => is(State::Active, count),
    }
}

fn wanted_in_group(group: &Value) -> u64 {
    if group["suspend"] == true {
        return 0;
    }
    let number = |name: &str| group[name].as_u64();
    let replicas = number("replicas").or_else(|| number("minReplicas"));
    replicas.unwrap_or(0) * number("numOfHosts").unwrap_or(1)
}

fn in_words(trouble: &Trouble) -> String {
    match &*trouble.container {
        "" => format!("pod {}: {}", trouble.pod, trouble.text),
        container => format!(
            "pod {}, container {container}: {}",
            trouble.pod, trouble.text
        ),
    }
}

/// Whether the job waits for the id of what its user submits.
fn awaits_id(parts: &Parts<'_>) -> bool {
    parts.submission() == Submission::Interactive
        && parts.says("/status/jobDeploymentStatus") == "Waiting"
        && parts.says("/status/jobStatus").is_empty()
}

/// The command that tells that id, for a job that waits for one.
pub(super) fn how_to_tell_id(parts: &Parts<'_>, kubectl: &Kubectl) -> Option<String> {
    let (object, namespace) = (parts.target.word(), &*parts.target.namespace);
    let patch = [&*object, "--type=merge", "-p", r#"{"spec":{"jobId":"ID"}}"#];
    let command = || kubectl.command("patch", Some(namespace), &patch);
    awaits_id(parts).then(|| format!("submit a job, then tell its id: {}", command()))
}

fn submission(parts: &Parts<'_>) -> Stage {
    let is = |state, text: String| Stage::new(Name::Submission, state, text);
    let id = parts.says("/status/jobId");
    if !parts.says("/status/jobStatus").is_empty() {
        return is(State::Done, id.to_owned());
    }
    if is_over(parts) {
        return is(State::Failed, "not submitted".to_owned());
    }
    if awaits_id(parts) {
        let text = "waiting for you to submit a job; then set spec.jobId";
        return is(State::Active, text.to_owned());
    }
    let pods = parts.own_pods();
    let stuck = pods.iter().filter_map(|pod| trouble::of(pod));
    if let Some(trouble) = stuck.into_iter().find(|it| !is_about_image(it)) {
        return is(State::Stuck, in_words(&trouble));
    }
    match (
        parts.submitter.is_some(),
        parts.says("/status/jobDeploymentStatus"),
    ) {
        (true, _) => {
            let name = &parts.target.name;
            is(State::Active, format!("submitting (job/{name})"))
        }
        // Without a cluster it is said there.
        (false, _) if parts.cluster.is_some() && !parts.says("/status/message").is_empty() => {
            is(State::Stuck, parts.says("/status/message").to_owned())
        }
        (false, "Running") => is(State::Active, id.to_owned()),
        (false, _) => is(State::Waiting, String::new()),
    }
}

fn ray_job(parts: &Parts<'_>) -> Stage {
    let is = |state, text: String| Stage::new(Name::Job, state, text);
    let status = parts.says("/status/jobStatus");
    let deployment = parts.says("/status/jobDeploymentStatus");
    match (deployment, status) {
        ("Complete", "SUCCEEDED") => is(State::Done, status.to_owned()),
        ("Complete", _) => is(State::Failed, status.to_owned()),
        ("Failed" | "ValidationFailed", _) => {
            let reason = parts.says("/status/reason");
            let reason = if reason.is_empty() {
                deployment
            } else {
                reason
            };
            let words = if status.is_empty() {
                reason.to_owned()
            } else {
                format!("{status}, {reason}")
            };
            is(State::Failed, words)
        }
        ("Suspended" | "Suspending", _) => is(
            State::Stuck,
            "suspended; set spec.suspend to false to start".to_owned(),
        ),
        ("Retrying", _) => is(State::Active, "failed; retrying".to_owned()),
        (_, "") => is(State::Waiting, String::new()),
        (_, status) => is(State::Active, status.to_owned()),
    }
}

fn count(job: &Value, name: &str) -> u64 {
    job["status"][name].as_u64().unwrap_or(0)
}

fn pods(parts: &Parts<'_>) -> Stage {
    let is = |state, text: String| Stage::new(Name::Pods, state, text);
    let Some(job) = parts.job else {
        return is(State::Waiting, String::new());
    };
    let (active, succeeded, failed) = (
        count(job, "active"),
        count(job, "succeeded"),
        count(job, "failed"),
    );
    let mut words = Vec::new();
    let wanted = job["spec"]["completions"].as_u64();
    match wanted.filter(|&wanted| wanted > 1) {
        Some(wanted) => words.push(format!("{succeeded} of {wanted} succeeded")),
        None if succeeded > 0 => words.push(format!("{succeeded} succeeded")),
        None => {}
    }
    if active > 0 {
        words.push(format!("{active} active"));
    }
    if failed > 0 {
        words.push(format!("{failed} failed"));
    }
    let all = parts.own_pods();
    // A Job that is wider than the node works through its pods: those without a place only wait their turn.
    let has_room_later = all.iter().any(|pod| is_at_work(pod));
    let unplaced = all.iter().filter(|pod| trouble::is_unplaced(pod)).count();
    if has_room_later && unplaced > 0 {
        words.push(format!("{unplaced} waiting for room"));
    }
    let words = words.join(", ");
    let stuck = all
        .iter()
        .filter(|pod| !(has_room_later && trouble::is_unplaced(pod)));
    let stuck = stuck.filter_map(|pod| trouble::of(pod));
    let stuck = stuck
        .into_iter()
        .find(|it| it.ended.is_none() && !is_about_image(it));
    match stuck {
        _ if is_over(parts) => is(State::Done, words),
        Some(trouble) => is(State::Stuck, in_words(&trouble)),
        None if active + succeeded + failed == 0 => is(State::Waiting, words),
        None if !has_pods_begun(parts, job) => is(State::Waiting, words),
        None => is(State::Active, words),
    }
}

fn job(parts: &Parts<'_>) -> Stage {
    let is = |state, text: &str| Stage::new(Name::Job, state, text);
    let Some(job) = parts.job else {
        return is(State::Waiting, "");
    };
    let reason = |kind| crate::objects::condition(job, kind).map(|it| text(it, "/reason"));
    if has_condition(job, "Complete") {
        return is(State::Done, "complete");
    }
    if let Some(reason) = reason("Failed") {
        return is(State::Failed, reason);
    }
    if let Some(reason) = reason("FailureTarget") {
        return is(State::Active, &format!("failing: {reason}"));
    }
    let has = |name| count(job, name) > 0;
    match () {
        () if job["spec"]["suspend"] == true => is(
            State::Stuck,
            "suspended; set spec.suspend to false to start",
        ),
        () if has("active") && has_pods_begun(parts, job) => is(State::Active, "running"),
        () if has("failed") => is(State::Active, "failed; retrying"),
        () => is(State::Waiting, ""),
    }
}

#[cfg(test)]
mod tests;
