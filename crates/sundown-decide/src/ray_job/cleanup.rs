//! What goes when a job has ended: the most destructive rule that is due, one at a time.
//!
//! A cluster that the job only points at is never touched. An outcome that no rule covers is told, since
//! what is left then stays for ever.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use sundown_kinds::ray_job::{self, CleanUp, DeletionPolicy};
use sundown_model::{Decision, Need, Object, Part, Propagation};

use super::reason::Reason;
use super::view::{Cluster, View, later};
use super::{outcome, reset};
use crate::actions::{delete, note, patch, warning};
use crate::clock_skew;
use crate::ray::place;

/// On a `RayJob` whose logs somebody reads: what it ran on stays a moment longer, until the annotation is
/// taken away. Whoever forgot it only delays.
pub const ANNOTATION_READER: &str = "sundown.dev/reader";

/// How long that moment may be, from the end of the job.
const READ_TIME_MAX: SignedDuration = SignedDuration::from_secs(10);

/// One thing that goes at an instant.
type Due = (DeletionPolicy, Timestamp);

/// Decides what goes after a job that has ended. A submitter that still runs goes whatever the policy
/// says: whoever wrote the end may have died before it did this.
pub(super) fn decide(view: &View<'_>) -> Decision<Reason> {
    let mut decision = by_policy(view);
    decision.actions.extend(reset::end_submitter(view));
    decision
}

fn by_policy(view: &View<'_>) -> Decision<Reason> {
    let Some(ended_at) = view.job.status.end_time else {
        // Restored or edited by hand: it has ended now at the latest.
        return outcome::write(view, view.job.status.clone(), Reason::Ends);
    };
    match policy(view) {
        CleanUp::Kept => Decision::idle(Reason::Kept),
        CleanUp::Uncovered => uncovered(view),
        CleanUp::Due(dues) => {
            let wait = reading_time(view.object);
            let after = |due: ray_job::Due| SignedDuration::from_secs(due.after.into());
            let at = |due| later(ended_at, after(due).max(wait));
            let dues = dues.into_iter().map(|due| (due.policy, at(due)));
            carry_out(view, ended_at, dues.collect())
        }
    }
}

/// What is said about this outcome. A cluster that was made for the job does not become another's by a selector
/// that is added later.
fn policy(view: &View<'_>) -> CleanUp {
    let deletes_finished = view.config.deletes_finished;
    if !(view.owns_cluster() && view.job.selects_cluster()) {
        return view.job.clean_up(deletes_finished);
    }
    let mut job = view.job.clone();
    job.spec.cluster_selector.clear();
    job.clean_up(deletes_finished)
}

fn reading_time(job: &Object) -> SignedDuration {
    let annotations = job.field("/metadata/annotations");
    let is_read = annotations.is_some_and(|all| all[ANNOTATION_READER].is_string());
    if is_read {
        READ_TIME_MAX
    } else {
        SignedDuration::ZERO
    }
}

fn uncovered(view: &View<'_>) -> Decision<Reason> {
    let status = &view.job.status;
    let message = format!(
        "No deletion rule of {} covers jobStatus {:?} with jobDeploymentStatus {:?}: nothing will be \
         deleted",
        place(view.object.key()),
        status.job_status.as_str(),
        status.job_deployment_status.as_str()
    );
    let told = warning(view.object, "UncoveredOutcome", message);
    Decision::act(told, Reason::Uncovered)
}

/// Carries out the one with the greatest impact of what is due and not achieved; wakes for the next.
fn carry_out(view: &View<'_>, ended_at: Timestamp, dues: Vec<Due>) -> Decision<Reason> {
    let now = view.now();
    let open: Vec<Due> = dues
        .into_iter()
        .filter(|(policy, _)| !is_achieved(view, *policy))
        .collect();
    let due = open
        .iter()
        .filter(|(_, at)| *at <= now)
        .max_by_key(|(policy, _)| *policy);
    let next_at = open.iter().map(|(_, at)| *at).filter(|at| *at > now).min();
    let decision = match (due, next_at) {
        (Some((policy, _)), _) => match unconfirmed(view, *policy) {
            Some(asks) => asks,
            None => perform(view, *policy),
        },
        (None, Some(at)) => match clock_skew::credible_at(ended_at, now) {
            Some(credible_at) => return in_the_future(view, ended_at, at, credible_at),
            None => Decision::idle(Reason::NotDue { at }),
        },
        (None, None) => Decision::idle(Reason::CleanedUp),
    };
    Decision {
        wake_at: next_at,
        ..decision
    }
}

/// The rules count from that instant all the same.
fn in_the_future(
    view: &View<'_>,
    ended_at: Timestamp,
    at: Timestamp,
    credible_at: Timestamp,
) -> Decision<Reason> {
    let told = clock_skew::warn(view.object, "status.endTime", ended_at);
    Decision {
        wake_at: Some(credible_at),
        ..Decision::act(told, Reason::EndInFuture { ended_at, at })
    }
}

/// What to wait for before something of the cluster goes: it must be what the job says now, and not what it
/// said a moment ago. A request about the job itself carries its revision; one about its cluster cannot.
fn unconfirmed(view: &View<'_>, policy: DeletionPolicy) -> Option<Decision<Reason>> {
    if policy == DeletionPolicy::DeleteSelf {
        return None;
    }
    let key = view.object.key();
    let read = view.sight.facts.live(key);
    match read.filter(|it| it.asked > view.seen()) {
        None => {
            let need = Need::Live(key.clone());
            Some(Decision::need(vec![need], Reason::Confirms { policy }))
        }
        Some(read) => {
            let is_same = |it: &Arc<Object>| it.rv() == view.object.rv();
            let is_same = read.found.as_ref().is_some_and(is_same);
            // What is newer is on its way here.
            (!is_same).then(|| Decision::idle(Reason::Confirms { policy }))
        }
    }
}

/// The cluster, if it is this job's to delete from and stays.
fn own_cluster<'a>(view: &'a View<'_>) -> Option<&'a Object> {
    match &view.cluster {
        Cluster::There(object, _) if view.owns_cluster() && !object.is_deleting() => Some(object),
        Cluster::There(..) | Cluster::Absent | Cluster::Foreign(_) => None,
    }
}

fn is_achieved(view: &View<'_>, policy: DeletionPolicy) -> bool {
    match policy {
        DeletionPolicy::DeleteNone => true,
        DeletionPolicy::DeleteSelf => false,
        DeletionPolicy::DeleteCluster => own_cluster(view).is_none(),
        DeletionPolicy::DeleteWorkers => own_cluster(view).is_none_or(|cluster| {
            let mut groups = groups(cluster).iter();
            groups.all(|group| group["suspend"] == true)
        }),
    }
}

fn groups(cluster: &Object) -> &[Value] {
    let groups = cluster.field("/spec/workerGroupSpecs");
    groups.and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn perform(view: &View<'_>, policy: DeletionPolicy) -> Decision<Reason> {
    let object = view.object;
    let reason = Reason::Deletes { policy };
    let how = Propagation::Background;
    match (policy, own_cluster(view)) {
        (DeletionPolicy::DeleteSelf, _) => Decision::act(delete(object, how), reason),
        (DeletionPolicy::DeleteCluster, Some(cluster)) => {
            let told = format!("Deleted cluster {}", place(cluster.key()));
            let told = note(object, "DeletedRayCluster", told);
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
            let told = note(object, "UpdatedRayCluster", told);
            Decision::act_all(vec![patch(cluster, Part::Main, change), told], reason)
        }
        (DeletionPolicy::DeleteCluster | DeletionPolicy::DeleteWorkers, None)
        | (DeletionPolicy::DeleteNone, _) => Decision::idle(Reason::CleanedUp),
    }
}
