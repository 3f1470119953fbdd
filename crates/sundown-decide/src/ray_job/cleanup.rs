//! What goes when a job has ended: the most destructive rule that is due, one at a time.
//!
//! A cluster that the job only points at is never touched. An outcome that no rule covers is told, since
//! what is left then stays for ever.

use jiff::Timestamp;
use serde_json::{Value, json};
use sundown_kinds::ray_job::{DeletionPolicy, DeletionRule, DeploymentStatus, JobStatus};
use sundown_model::{Decision, Object, Part, Propagation};

use super::outcome;
use super::reason::Reason;
use super::view::{Cluster, Sight, later, seconds};
use crate::ray::{delete, note, patch, place};

/// One thing that goes at an instant.
type Due = (DeletionPolicy, Timestamp);

/// Decides what goes after a job that has ended.
pub(super) fn decide(sight: &Sight<'_>) -> Decision<Reason> {
    let Some(ended_at) = sight.job.status.end_time else {
        // Restored or edited by hand: it has ended now at the latest.
        return outcome::write(sight, sight.job.status.clone(), Reason::Ends);
    };
    match dues(sight, ended_at) {
        Dues::Kept => Decision::idle(Reason::Kept),
        Dues::Uncovered => uncovered(sight),
        Dues::Are(dues) => carry_out(sight, dues),
    }
}

/// What the policy of a job says about its outcome.
enum Dues {
    /// Nothing goes, and nobody asked for anything to go.
    Kept,
    /// Something is said about other outcomes, and nothing about this one.
    Uncovered,
    Are(Vec<Due>),
}

fn dues(sight: &Sight<'_>, ended_at: Timestamp) -> Dues {
    let spec = &sight.job.spec;
    let after = |ttl: i32| later(ended_at, seconds(ttl.max(0)));
    let shutdown = || {
        let policy = if sight.scope.config.deletes_finished {
            DeletionPolicy::DeleteSelf
        } else {
            DeletionPolicy::DeleteCluster
        };
        // A cluster that was only pointed at stays, and the job that points at it with it.
        if sight.job.selects_cluster() {
            Dues::Kept
        } else {
            Dues::Are(vec![(policy, after(spec.ttl))])
        }
    };
    let Some(strategy) = &spec.deletion_strategy else {
        return if spec.shutdown {
            shutdown()
        } else {
            Dues::Kept
        };
    };
    if let Some(rules) = &strategy.rules {
        let matching = rules.iter().filter(|rule| applies(rule, sight));
        let dues = matching.map(|rule| (rule.policy, after(rule.condition.ttl)));
        let dues: Vec<Due> = dues.collect();
        return if dues.is_empty() {
            Dues::Uncovered
        } else {
            Dues::Are(dues)
        };
    }
    let status = &sight.job.status;
    let has_failed = status.job_deployment_status == DeploymentStatus::Failed;
    let policy = match status.job_status {
        // An attempt that ran out of time has failed, whatever Ray said last.
        JobStatus::New | JobStatus::Pending | JobStatus::Running | JobStatus::Stopped => {
            strategy.on_failure.filter(|_| has_failed)
        }
        JobStatus::Succeeded => strategy.on_success,
        JobStatus::Failed => strategy.on_failure,
    };
    match policy.flatten() {
        Some(policy) => Dues::Are(vec![(policy, after(spec.ttl))]),
        // Upstream forgets a job that was stopped; shutdown was asked for, so it is done.
        None if spec.shutdown => shutdown(),
        None => Dues::Uncovered,
    }
}

fn applies(rule: &DeletionRule, sight: &Sight<'_>) -> bool {
    let status = &sight.job.status;
    let condition = &rule.condition;
    match &condition.job_status {
        Some(wanted) => wanted == status.job_status.as_str(),
        None => {
            condition.deployment_status.as_deref() == Some(status.job_deployment_status.as_str())
        }
    }
}

fn uncovered(sight: &Sight<'_>) -> Decision<Reason> {
    let status = &sight.job.status;
    let message = format!(
        "No deletion rule of {} covers jobStatus {:?} with jobDeploymentStatus {:?}: nothing will be \
         deleted",
        place(sight.object.key()),
        status.job_status.as_str(),
        status.job_deployment_status.as_str()
    );
    let told = note(sight.object, true, "UncoveredOutcome", message);
    Decision::act(told, Reason::Uncovered)
}

/// Carries out the one with the greatest impact of what is due and not achieved; wakes for the next.
fn carry_out(sight: &Sight<'_>, dues: Vec<Due>) -> Decision<Reason> {
    let now = sight.now();
    let open: Vec<Due> = dues
        .into_iter()
        .filter(|(policy, _)| !is_achieved(sight, *policy))
        .collect();
    let due = open
        .iter()
        .filter(|(_, at)| *at <= now)
        .max_by_key(|(policy, _)| *policy);
    let next_at = open.iter().map(|(_, at)| *at).filter(|at| *at > now).min();
    let decision = match (due, next_at) {
        (Some((policy, _)), _) => perform(sight, *policy),
        (None, Some(at)) => Decision::idle(Reason::NotDue { at }),
        (None, None) => Decision::idle(Reason::CleanedUp),
    };
    Decision {
        wake_at: next_at,
        ..decision
    }
}

/// The cluster, if it is this job's to delete from and stays.
fn own_cluster<'a>(sight: &'a Sight<'_>) -> Option<&'a Object> {
    match &sight.cluster {
        Cluster::There(object, _) if !sight.job.selects_cluster() && !object.is_deleting() => {
            Some(object)
        }
        Cluster::There(..) | Cluster::Absent | Cluster::Foreign(_) => None,
    }
}

fn is_achieved(sight: &Sight<'_>, policy: DeletionPolicy) -> bool {
    match policy {
        DeletionPolicy::DeleteNone => true,
        DeletionPolicy::DeleteSelf => false,
        DeletionPolicy::DeleteCluster => own_cluster(sight).is_none(),
        DeletionPolicy::DeleteWorkers => own_cluster(sight).is_none_or(|cluster| {
            let mut groups = groups(cluster).iter();
            groups.all(|group| group["suspend"] == true)
        }),
    }
}

fn groups(cluster: &Object) -> &[Value] {
    let groups = cluster.field("/spec/workerGroupSpecs");
    groups.and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn perform(sight: &Sight<'_>, policy: DeletionPolicy) -> Decision<Reason> {
    let object = sight.object;
    let reason = Reason::Deletes { policy };
    let how = Propagation::Background;
    match (policy, own_cluster(sight)) {
        (DeletionPolicy::DeleteSelf, _) => Decision::act(delete(object, how), reason),
        (DeletionPolicy::DeleteCluster, Some(cluster)) => {
            let told = format!("Deleted cluster {}", place(cluster.key()));
            let told = note(object, false, "DeletedRayCluster", told);
            Decision::act_all(vec![delete(cluster, how), told], reason)
        }
        (DeletionPolicy::DeleteWorkers, Some(cluster)) => {
            let suspended = groups(cluster).iter().map(|group| {
                let mut group = group.clone();
                group["suspend"] = json!(true);
                group
            });
            let suspended: Vec<Value> = suspended.collect();
            let change = json!({"spec": {"workerGroupSpecs": suspended}});
            let told = format!(
                "Set the `suspend` field to true for all worker groups in cluster {}",
                place(cluster.key())
            );
            let told = note(object, false, "UpdatedRayCluster", told);
            Decision::act_all(vec![patch(cluster, Part::Main, change), told], reason)
        }
        (DeletionPolicy::DeleteCluster | DeletionPolicy::DeleteWorkers, None)
        | (DeletionPolicy::DeleteNone, _) => Decision::idle(Reason::CleanedUp),
    }
}
