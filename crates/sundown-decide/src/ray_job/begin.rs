//! A job before it runs: names, the cluster, the dashboard.

use jiff::Timestamp;
use serde_json::{Value, json};
use sundown_kinds::constants::{FINALIZER_RAY_JOB, LABEL_CLUSTER};
use sundown_kinds::names::with_suffix;
use sundown_kinds::ray_cluster::ClusterStatus;
use sundown_kinds::ray_cluster::summary::ServiceView;
use sundown_kinds::ray_job::{DeploymentStatus, RayJobStatus, SubmissionMode};
use sundown_kinds::{RayCluster, ray_job};
use sundown_model::{Action, Decision, Object, ObjectKey, Part};

use super::intent::ANNOTATION_SUBMISSION;
use super::lapse::Lapse;
use super::outcome::{self, Failure};
use super::pods::{self, ANNOTATION_APART};
use super::reason::Reason;
use super::stop::{self, Stop};
use super::view::{Cluster, View, later, seconds};
use super::{head_service, reset, running, submit};
use crate::actions::{patch, warning};
use crate::kinds::{RAY_CLUSTER, SERVICE};
use crate::ray::{Told, beside, create, place, suffix, view};

/// Nothing is done before the finalizer is stored, and nothing before the names are.
pub(super) fn new(view: &View<'_>) -> Decision<Reason> {
    if !view.object.has_finalizer(FINALIZER_RAY_JOB) {
        let mut finalizers: Vec<&str> = view.object.finalizers().iter().map(|it| &**it).collect();
        finalizers.push(FINALIZER_RAY_JOB);
        let change = json!({"metadata": {"finalizers": finalizers}});
        let action = patch(view.object, Part::Main, change);
        return Decision::act(action, Reason::Begins);
    }
    let spec = &view.job.spec;
    let mut next = view.job.status.clone();
    if next.job_id.is_empty() && spec.submission_mode != SubmissionMode::Interactive {
        next.job_id = match spec.job_id.as_str() {
            "" => generated(view, "submission"),
            own => own.to_owned(),
        };
    }
    if next.ray_cluster_name.is_empty() {
        let selected = spec.cluster_selector.get(LABEL_CLUSTER).cloned();
        next.ray_cluster_name = selected.unwrap_or_else(|| generated(view, "cluster"));
    }
    next.job_deployment_status = DeploymentStatus::Initializing;
    next.start_time = Some(view.now());
    outcome::write(view, next, Reason::Begins)
}

/// A name of this attempt: the same each time it is made.
fn generated(view: &View<'_>, what: &str) -> String {
    let metadata = &view.job.metadata;
    let attempt = view.job.status.failed.unwrap_or(0).to_string();
    let generation = metadata.generation.to_string();
    let suffix = suffix(&[&metadata.uid, &generation, &attempt, what]);
    with_suffix(&metadata.name, &suffix)
}

/// Until the cluster is ready and its dashboard known.
pub(super) fn initializing(view: &View<'_>) -> Decision<Reason> {
    if view.shall_be_suspended() {
        return reset::suspend(view);
    }
    if let Some(overdue) = overdue(view) {
        return overdue;
    }
    let (object, cluster) = match &view.cluster {
        Cluster::There(object, cluster) => (object, cluster),
        Cluster::Absent => return without_cluster(view),
        Cluster::Foreign(other) => return rename(view, other),
    };
    if object.is_deleting() {
        return wait(view, Reason::AwaitsCluster);
    }
    let mut next = view.next();
    // What kept its cluster from being made is over.
    next.message.clear();
    if next.dashboard_url.is_empty() {
        if cluster.status.state != "ready" {
            return mirrored(view, next);
        }
        match dashboard_url(view, object, cluster) {
            Dashboard::At(url) => next.dashboard_url = url,
            Dashboard::NoService => return wait(view, Reason::AwaitsDashboard),
            Dashboard::NoPort(service) => return without_port(view, next, &service),
        }
    }
    if view.job.spec.submission_mode == SubmissionMode::Interactive {
        next.job_deployment_status = DeploymentStatus::Waiting;
        return outcome::write(view, next, Reason::AwaitsSubmission);
    }
    next.job_deployment_status = DeploymentStatus::Running;
    let decision = outcome::write(view, next, Reason::ClusterReady);
    head_service::along_with(view, decision)
}

/// Until somebody submits and says so. Unlike upstream's, it can be suspended, and ends in time.
pub(super) fn waiting(view: &View<'_>) -> Decision<Reason> {
    if view.shall_be_suspended() {
        return reset::suspend(view);
    }
    if let Some(overdue) = overdue(view) {
        return overdue;
    }
    let cluster = match &view.cluster {
        Cluster::There(cluster, _) => Some(cluster),
        Cluster::Foreign(_) => return running::without_its_cluster(view),
        Cluster::Absent if view.config.lapses(Lapse::WaitsWithoutCluster) => None,
        Cluster::Absent => {
            return match view.is_absent(&view.cluster_key()) {
                Err(need) => Decision::need(vec![need], Reason::AsksForCluster),
                Ok(_) => running::without_its_cluster(view),
            };
        }
    };
    if view.job.spec.job_id.is_empty() {
        let next = view.next();
        let decision = outcome::write(view, next, Reason::AwaitsSubmission);
        return waking(view, decision);
    }
    if let Some(stores) = cluster.and_then(|it| submit::store_place(view, it)) {
        return stores;
    }
    let next = RayJobStatus {
        job_id: view.job.spec.job_id.clone(),
        job_deployment_status: DeploymentStatus::Running,
        ..view.next()
    };
    let decision = outcome::write(view, next, Reason::ClusterReady);
    head_service::along_with(view, decision)
}

/// The end of a job that did not come to run in time; None if there is time.
pub(super) fn overdue(view: &View<'_>) -> Option<Decision<Reason>> {
    let (at, why, text) = deadlines(view).into_iter().min_by_key(|it| it.0)?;
    if view.now() < at {
        return None;
    }
    let until = later(at, view.config.limits.stop);
    Some(match stop::wind_down(view, until) {
        Stop::Under(decision) => decision,
        Stop::Ended | Stop::GaveUp(_) => outcome::fail(view, view.next(), why, text),
    })
}

/// When a job that does not run yet has no more time.
pub(super) fn next_deadline(view: &View<'_>) -> Option<Timestamp> {
    deadlines(view).into_iter().map(|it| it.0).min()
}

fn deadlines(view: &View<'_>) -> Vec<(Timestamp, Failure, String)> {
    let spec = &view.job.spec;
    let Some(started) = view.job.status.start_time else {
        return Vec::new();
    };
    let of = |limit: Option<i32>, why: Failure, field: &str, title: &str| {
        // One that is refused by the validation is not obeyed.
        let obeys_all = view.config.lapses(Lapse::ObeysFlaws);
        let limit = limit.filter(|limit| *limit > 0 || obeys_all)?;
        let text =
            format!("The RayJob has passed the {field}. StartTime: {started}. {title}: {limit}");
        Some((later(started, seconds(limit)), why, text))
    };
    let active = (
        spec.active_deadline,
        "activeDeadlineSeconds",
        "ActiveDeadlineSeconds",
    );
    let before = (
        spec.pre_running_deadline,
        "preRunningDeadlineSeconds",
        "PreRunningDeadlineSeconds",
    );
    let both = [
        of(active.0, Failure::Deadline, active.1, active.2),
        of(before.0, Failure::PreRunningDeadline, before.1, before.2),
    ];
    both.into_iter().flatten().collect()
}

/// The deadline of a job that runs, and what is said when it is over.
pub(super) fn active_deadline(view: &View<'_>) -> Option<(Timestamp, String)> {
    let all = deadlines(view).into_iter();
    let mut active = all.filter(|(_, why, _)| *why == Failure::Deadline);
    active.next().map(|(at, _, text)| (at, text))
}

/// Waits for something to change, or for the next deadline.
fn wait(view: &View<'_>, reason: Reason) -> Decision<Reason> {
    waking(view, Decision::idle(reason))
}

fn waking(view: &View<'_>, decision: Decision<Reason>) -> Decision<Reason> {
    let wake_at = next_deadline(view);
    Decision {
        wake_at,
        ..decision
    }
}

fn mirrored(view: &View<'_>, next: RayJobStatus) -> Decision<Reason> {
    let decision = outcome::write(view, next, Reason::AwaitsCluster);
    waking(view, decision)
}

fn without_cluster(view: &View<'_>) -> Decision<Reason> {
    let key = view.cluster_key();
    if view.job.selects_cluster() {
        let message = format!(
            "RayCluster {} set in the clusterSelector is not found. It must be created manually",
            place(&key)
        );
        let mut decision = wait(view, Reason::AwaitsCluster);
        let told = warning(view.object, "RayClusterNotFound", message);
        decision.actions.push(told);
        return decision;
    }
    if view.job.status.ray_cluster_status != ClusterStatus::default() {
        return after_cluster(view, &key);
    }
    let Some(body) = ray_job::cluster::ray_cluster(&view.job, &key.name) else {
        return wait(view, Reason::AwaitsCluster);
    };
    let makes = make_cluster(view.object, body);
    let Some(why) = view.refusal(&key).map(|it| &it.message) else {
        return waking(view, Decision::act(makes, Reason::MakesCluster));
    };
    let why = format!("Failed to create RayCluster {}: {why}", place(&key));
    let event = "FailedToCreateRayCluster";
    waking(view, outcome::refused(view, view.next(), makes, event, why))
}

/// The cluster was there and is gone, before anything was submitted. The next one has another name: for its grace
/// period the old head still answers to this one.
fn after_cluster(view: &View<'_>, gone: &ObjectKey) -> Decision<Reason> {
    if let Err(need) = view.is_absent(gone) {
        return Decision::need(vec![need], Reason::AsksForCluster);
    }
    let metadata = &view.job.metadata;
    let suffix = suffix(&[&metadata.uid, &gone.name, "cluster"]);
    let name = with_suffix(&metadata.name, &suffix);
    if let Some(note) = pods::renames(view, gone, &name) {
        return Decision::act(note, Reason::AwaitsCluster);
    }
    let next = RayJobStatus {
        ray_cluster_name: name,
        ray_cluster_status: ClusterStatus::default(),
        ..view.job.status.clone()
    };
    outcome::write(view, next, Reason::AwaitsCluster)
}

fn make_cluster(object: &Object, mut body: Value) -> Action {
    if let Some(Value::Object(annotations)) = body.pointer_mut("/metadata/annotations") {
        // What an attempt before this one stored is not about this cluster.
        annotations.remove(ANNOTATION_SUBMISSION);
        annotations.remove(ANNOTATION_APART);
    }
    let name = body["metadata"]["name"].as_str().unwrap_or("").to_owned();
    let place = place(&beside(object.key(), &RAY_CLUSTER, &name));
    let told = Told {
        reason: "CreatedRayCluster",
        message: format!("Created RayCluster {place}"),
    };
    create(object, &RAY_CLUSTER, body, told)
}

/// Somebody else's cluster has the name: another name is taken, and theirs left alone.
fn rename(view: &View<'_>, other: &Object) -> Decision<Reason> {
    let metadata = &view.job.metadata;
    let suffix = suffix(&[&metadata.uid, other.uid().as_str(), "cluster"]);
    let name = with_suffix(&metadata.name, &suffix);
    let had_own = view.job.status.ray_cluster_status != ClusterStatus::default();
    let note = had_own.then(|| pods::renames(view, other.key(), &name));
    if let Some(note) = note.flatten() {
        return Decision::act(note, Reason::ClusterTaken);
    }
    let next = RayJobStatus {
        ray_cluster_name: name,
        ..view.job.status.clone()
    };
    outcome::write(view, next, Reason::ClusterTaken)
}

/// Where the dashboard of a cluster answers.
enum Dashboard {
    At(String),
    NoService,
    /// The head service has no port of that name.
    NoPort(ObjectKey),
}

fn dashboard_url(view: &View<'_>, object: &Object, cluster: &RayCluster) -> Dashboard {
    let name = cluster.head_service_name();
    let key = beside(object.key(), &SERVICE, &name);
    let Some(service) = view.sight.cache.get(&key) else {
        return Dashboard::NoService;
    };
    let service: ServiceView = view::service(service);
    let domain = &view.config.settings.cluster_domain;
    let url = ray_job::cluster::dashboard_url(&service, key.namespace_str(), domain);
    url.map_or(Dashboard::NoPort(key), Dashboard::At)
}

/// A head whose ports were named by somebody who forgot the dashboard: it says so, and which field it is.
fn without_port(view: &View<'_>, next: RayJobStatus, service: &ObjectKey) -> Decision<Reason> {
    let spec = if view.job.selects_cluster() {
        "spec of its RayCluster"
    } else {
        "spec.rayClusterSpec"
    };
    let field = format!("headGroupSpec.template.spec.containers[0].ports in {spec}");
    let message = format!(
        "The service {} has no port named dashboard, without which Ray cannot be asked: {field} needs one",
        place(service)
    );
    let told = warning(view.object, "DashboardPortNotFound", message.clone());
    let next = RayJobStatus { message, ..next };
    let mut decision = outcome::write(view, next, Reason::AwaitsDashboard);
    decision.actions.push(told);
    waking(view, decision)
}
