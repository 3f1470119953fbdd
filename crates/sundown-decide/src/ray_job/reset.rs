//! The end of an attempt that another may follow: everything of it goes, and is seen to be gone.

use sundown_kinds::ray_cluster::ClusterStatus;
use sundown_kinds::ray_job::{DeploymentStatus, JobStatus, RayJobInfo, RayJobStatus};
use sundown_model::{Action, Decision, Object, ObjectKey, Propagation};

use super::lapse::Lapse;
use super::outcome;
use super::pods::{self, Standing};
use super::reason::Reason;
use super::stop::{self, Stop};
use super::view::{Cluster, Sight, Submitter, later};
use crate::ray::{delete, note, place};

/// Begins to suspend a job.
pub(super) fn suspend(sight: &Sight<'_>) -> Decision<Reason> {
    let next = RayJobStatus {
        job_deployment_status: DeploymentStatus::Suspending,
        ..sight.job.status.clone()
    };
    outcome::write(sight, next, Reason::Suspends)
}

/// Deletes what belongs to the attempt, then begins anew or rests. `suspend` is not read again: what has
/// begun runs to its end.
pub(super) fn decide(sight: &Sight<'_>) -> Decision<Reason> {
    let told = match stop_as_guest(sight) {
        Ok(told) => told,
        Err(decision) => return decision,
    };
    let mut decision = clear(sight);
    if decision.reason == Reason::Cleared {
        decision.actions.extend(told);
    }
    decision
}

/// Stops what runs on a cluster that was taken from the job meanwhile, and so does not go with the attempt; Ok when
/// nothing runs, as far as can be known, and what is to be told about that.
fn stop_as_guest(sight: &Sight<'_>) -> Result<Option<Action>, Decision<Reason>> {
    if !sight.is_guest() || sight.intent().is_none() {
        return Ok(None);
    }
    let key = sight.cluster_key();
    let since = pods::since(sight.object, &key.name);
    let begun_at = since.unwrap_or(sight.now());
    let until = later(begun_at, sight.scope.config.limits.stop);
    match stop::wind_down(sight, until) {
        Stop::Ended => Ok(None),
        Stop::GaveUp(why) => Ok(Some(stop::unstopped(sight, why))),
        Stop::Under(_) if since.is_none() => {
            let note = pods::begin(sight, &key.name);
            Err(Decision::act(note, Reason::Clears { left: vec![key] }))
        }
        Stop::Under(decision) => Err(decision),
    }
}

fn clear(sight: &Sight<'_>) -> Decision<Reason> {
    let mut actions = Vec::new();
    let mut left: Vec<ObjectKey> = Vec::new();
    // Foreground: what is gone has no pod left that could still run what the next attempt runs.
    let owns_cluster = owns_cluster(sight);
    if let Cluster::There(cluster, _) = &sight.cluster
        && owns_cluster
    {
        left.push(cluster.key().clone());
        actions.extend(delete_once(
            sight,
            cluster,
            "DeletedRayCluster",
            "Deleted cluster",
        ));
    }
    match &sight.submitter {
        Submitter::Runs(job) | Submitter::Completed(job) | Submitter::Failed(job, _) => {
            left.push(job.key().clone());
            actions.extend(delete_submitter(sight, job));
        }
        Submitter::Absent | Submitter::Foreign => {}
    }
    if !left.is_empty() {
        return Decision::act_all(actions, Reason::Clears { left });
    }
    let mut needs = Vec::new();
    let mut keys = vec![sight.submitter_key()];
    let is_of_other = matches!(sight.cluster, Cluster::There(..)) && !owns_cluster;
    if !sight.job.status.ray_cluster_name.is_empty() && !is_of_other {
        keys.push(sight.cluster_key());
    }
    for key in keys {
        needs.extend(sight.is_absent(&key).err());
    }
    if !needs.is_empty() {
        return Decision::need(needs, Reason::Clears { left });
    }
    match pods::standing(sight) {
        Standing::Gone => outcome::write(sight, emptied(sight), Reason::Cleared),
        Standing::Unseen(need) => Decision::need(vec![need], Reason::Clears { left }),
        Standing::Found { pods, note } => Decision::act(note, Reason::Clears { left: pods }),
        Standing::Left { pods, until } => Decision::wake_at(until, Reason::Clears { left: pods }),
        Standing::Overdue(pods) => {
            let mut decision = outcome::write(sight, emptied(sight), Reason::Cleared);
            decision.actions.push(beside_pods(sight, &pods));
            decision
        }
    }
}

/// Whether the cluster goes with the attempt.
fn owns_cluster(sight: &Sight<'_>) -> bool {
    if sight.scope.config.lapses(Lapse::TrustsSelector) {
        return !sight.job.selects_cluster();
    }
    sight.owns_cluster()
}

/// What is told when pods of the last attempt outlive the time that they have.
fn beside_pods(sight: &Sight<'_>, pods: &[ObjectKey]) -> Action {
    let first = pods.first().map(place).unwrap_or_default();
    let others = match pods.len().saturating_sub(1) {
        0 => String::new(),
        count => format!(" and {count} others"),
    };
    let limit = sight.scope.config.limits.apart.as_secs();
    let message = format!(
        "{first}{others} of the last attempt did not end within {limit}s and may still run; it is not waited for \
         any longer"
    );
    note(sight.object, true, "PodsOfLastAttemptLeft", message)
}

/// Ends a submitter that outlives its attempt: it would wait for a Ray that is gone, or submit to it, for
/// ever. One that has ended stays, so that its log can be read.
pub(super) fn end_submitter(sight: &Sight<'_>) -> Vec<Action> {
    match &sight.submitter {
        Submitter::Runs(job) => delete_submitter(sight, job),
        Submitter::Absent
        | Submitter::Foreign
        | Submitter::Completed(_)
        | Submitter::Failed(..) => Vec::new(),
    }
}

fn delete_submitter(sight: &Sight<'_>, job: &Object) -> Vec<Action> {
    let told = "Deleted submitter K8s Job";
    delete_once(sight, job, "DeletedRayJobSubmitter", told)
}

fn delete_once(sight: &Sight<'_>, object: &Object, reason: &str, what: &str) -> Vec<Action> {
    if object.is_deleting() {
        return Vec::new();
    }
    let message = format!("{what} {}", place(object.key()));
    vec![
        delete(object, Propagation::Foreground),
        note(sight.object, false, reason, message),
    ]
}

/// The status without what was this attempt's; counters and times of the job itself are kept.
fn emptied(sight: &Sight<'_>) -> RayJobStatus {
    let status = &sight.job.status;
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
pub(super) fn suspended(sight: &Sight<'_>) -> Decision<Reason> {
    if sight.job.spec.suspend {
        return Decision::idle(Reason::Suspended);
    }
    let next = RayJobStatus {
        job_status: JobStatus::New,
        job_deployment_status: DeploymentStatus::New,
        ..sight.job.status.clone()
    };
    outcome::write(sight, next, Reason::Begins)
}
