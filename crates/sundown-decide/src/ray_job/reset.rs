//! The end of an attempt that another may follow: everything of it goes, and is seen to be gone.

use sundown_kinds::ray_cluster::ClusterStatus;
use sundown_kinds::ray_job::{DeploymentStatus, JobStatus, RayJobInfo, RayJobStatus};
use sundown_model::{Action, Decision, Object, ObjectKey, Propagation};

use super::lapse::Lapse;
use super::outcome;
use super::pods::{self, Standing};
use super::reason::Reason;
use super::stop::{self, Stop};
use super::view::{Cluster, Submitter, View, later};
use crate::actions::{delete, note, warning};
use crate::ray::place;

/// Begins to suspend a job.
pub(super) fn suspend(view: &View<'_>) -> Decision<Reason> {
    let next = RayJobStatus {
        job_deployment_status: DeploymentStatus::Suspending,
        ..view.job.status.clone()
    };
    outcome::write(view, next, Reason::Suspends)
}

/// Deletes what belongs to the attempt, then begins anew or rests. `suspend` is not read again: what has
/// begun runs to its end.
pub(super) fn decide(view: &View<'_>) -> Decision<Reason> {
    let told = match stop_as_guest(view) {
        Ok(told) => told,
        Err(decision) => return decision,
    };
    let mut decision = clear(view);
    if decision.reason == Reason::Cleared {
        decision.actions.extend(told);
    }
    decision
}

/// Stops what runs on a cluster that was taken from the job meanwhile, and so does not go with the attempt; Ok when
/// nothing runs, as far as can be known, and what is to be told about that.
fn stop_as_guest(view: &View<'_>) -> Result<Option<Action>, Decision<Reason>> {
    if !view.is_guest() || view.intent().is_none() {
        return Ok(None);
    }
    let key = view.cluster_key();
    let since = pods::since(view.object, &key.name);
    let begun_at = since.unwrap_or(view.now());
    let until = later(begun_at, view.config.limits.stop);
    match stop::wind_down(view, until) {
        Stop::Ended => Ok(None),
        Stop::GaveUp(why) => Ok(Some(stop::unstopped(view, why))),
        Stop::Under(_) if since.is_none() => {
            let note = pods::begin(view, &key.name);
            Err(Decision::act(note, Reason::Clears { left: vec![key] }))
        }
        Stop::Under(decision) => Err(decision),
    }
}

fn clear(view: &View<'_>) -> Decision<Reason> {
    let mut actions = Vec::new();
    let mut left: Vec<ObjectKey> = Vec::new();
    // Foreground: what is gone has no pod left that could still run what the next attempt runs.
    let owns_cluster = owns_cluster(view);
    if let Cluster::There(cluster, _) = &view.cluster
        && owns_cluster
    {
        left.push(cluster.key().clone());
        actions.extend(delete_once(
            view,
            cluster,
            "DeletedRayCluster",
            "Deleted cluster",
        ));
    }
    match &view.submitter {
        Submitter::Runs(job) | Submitter::Completed(job) | Submitter::Failed(job, _) => {
            left.push(job.key().clone());
            actions.extend(delete_submitter(view, job));
        }
        Submitter::Absent | Submitter::Foreign => {}
    }
    if !left.is_empty() {
        return Decision::act_all(actions, Reason::Clears { left });
    }
    let mut needs = Vec::new();
    let mut keys = vec![view.submitter_key()];
    let is_of_other = matches!(view.cluster, Cluster::There(..)) && !owns_cluster;
    if !view.job.status.ray_cluster_name.is_empty() && !is_of_other {
        keys.push(view.cluster_key());
    }
    for key in keys {
        needs.extend(view.is_absent(&key).err());
    }
    if !needs.is_empty() {
        return Decision::need(needs, Reason::Clears { left });
    }
    match pods::standing(view) {
        Standing::Gone => outcome::write(view, emptied(view), Reason::Cleared),
        Standing::Unseen(need) => Decision::need(vec![need], Reason::Clears { left }),
        Standing::Found { pods, note } => Decision::act(note, Reason::Clears { left: pods }),
        Standing::Left { pods, until } => Decision::wake_at(until, Reason::Clears { left: pods }),
        Standing::Overdue(pods) => {
            let mut decision = outcome::write(view, emptied(view), Reason::Cleared);
            decision.actions.push(beside_pods(view, &pods));
            decision
        }
    }
}

/// Whether the cluster goes with the attempt.
fn owns_cluster(view: &View<'_>) -> bool {
    if view.config.lapses(Lapse::TrustsSelector) {
        return !view.job.selects_cluster();
    }
    view.owns_cluster()
}

/// What is told when pods of the last attempt outlive the time that they have.
fn beside_pods(view: &View<'_>, pods: &[ObjectKey]) -> Action {
    let first = pods.first().map(place).unwrap_or_default();
    let others = match pods.len().saturating_sub(1) {
        0 => String::new(),
        count => format!(" and {count} others"),
    };
    let limit = view.config.limits.apart.as_secs();
    let message = format!(
        "{first}{others} of the last attempt did not end within {limit}s and may still run; it is not waited for \
         any longer"
    );
    warning(view.object, "PodsOfLastAttemptLeft", message)
}

/// Ends a submitter that outlives its attempt: it would wait for a Ray that is gone, or submit to it, for
/// ever. One that has ended stays, so that its log can be read.
pub(super) fn end_submitter(view: &View<'_>) -> Vec<Action> {
    match &view.submitter {
        Submitter::Runs(job) => delete_submitter(view, job),
        Submitter::Absent
        | Submitter::Foreign
        | Submitter::Completed(_)
        | Submitter::Failed(..) => Vec::new(),
    }
}

fn delete_submitter(view: &View<'_>, job: &Object) -> Vec<Action> {
    let told = "Deleted submitter K8s Job";
    delete_once(view, job, "DeletedRayJobSubmitter", told)
}

fn delete_once(view: &View<'_>, object: &Object, reason: &str, what: &str) -> Vec<Action> {
    if object.is_deleting() {
        return Vec::new();
    }
    let message = format!("{what} {}", place(object.key()));
    vec![
        delete(object, Propagation::Foreground),
        note(view.object, reason, message),
    ]
}

/// The status without what was this attempt's; counters and times of the job itself are kept.
fn emptied(view: &View<'_>) -> RayJobStatus {
    let status = &view.job.status;
    let is_suspending = status.job_deployment_status == DeploymentStatus::Suspending;
    RayJobStatus {
        ray_cluster_status: ClusterStatus::default(),
        ray_cluster_name: String::new(),
        dashboard_url: String::new(),
        job_id: String::new(),
        message: String::new(),
        reason: String::new(),
        ray_job_info: RayJobInfo::default(),
        job_status_check_failure_start_time: None,
        job_status: JobStatus::New,
        job_deployment_status: if is_suspending {
            DeploymentStatus::Suspended
        } else {
            DeploymentStatus::New
        },
        ..status.clone()
    }
}

/// A job that rests begins anew when it shall.
pub(super) fn suspended(view: &View<'_>) -> Decision<Reason> {
    if view.job.spec.suspend {
        return Decision::idle(Reason::Suspended);
    }
    let next = RayJobStatus {
        job_status: JobStatus::New,
        job_deployment_status: DeploymentStatus::New,
        ..view.job.status.clone()
    };
    outcome::write(view, next, Reason::Begins)
}
