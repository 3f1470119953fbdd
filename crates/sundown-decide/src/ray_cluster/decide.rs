//! The order of a decision on a cluster.

use jiff::Timestamp;
use sundown_kinds::ray_cluster::summary::{self, Observed, Pass};
use sundown_kinds::ray_cluster::{ClusterStatus, validate};
use sundown_kinds::{Invalid, RayCluster, Settings};
use sundown_model::{Action, Decision, Object, Sight};

use super::head::Head;
use super::plan::{Failure, Plan};
use super::reason::Reason;
use super::view::View;
use super::{head, services, workers};
use crate::actions::{set_status, warning};
use crate::ray::{merge, place, unsupported, view};

/// Decides what a cluster needs.
pub(super) fn decide(object: &Object, settings: &Settings, sight: Sight<'_>) -> Decision<Reason> {
    let cluster = match view::ray_cluster(object) {
        Ok(cluster) => cluster,
        Err(malformed) => {
            let why = malformed.to_string();
            let refusal = Refusal {
                event: "InvalidRayClusterSpec",
                what: "spec is invalid",
                why: &why,
            };
            return refuse(object, None, &refusal, sight.now);
        }
    };
    if cluster.is_managed_elsewhere() {
        return Decision::idle(Reason::ManagedElsewhere);
    }
    if object.is_deleting() {
        return Decision::idle(Reason::Deleting);
    }
    if let Some((event, what, Invalid(why))) = first_flaw(&cluster, settings) {
        let refusal = Refusal {
            event,
            what,
            why: &why,
        };
        return refuse(object, Some(&cluster), &refusal, sight.now);
    }
    if let Some(field) = unsupported::field(&cluster.spec, &cluster.metadata, &settings.gates) {
        return refuse_by_name(object, &cluster, field, sight.now);
    }
    let view = View::of(object, cluster, settings, sight);
    make(&view)
}

/// The first thing that is wrong: the event, what it is about, and why.
fn first_flaw(
    cluster: &RayCluster,
    settings: &Settings,
) -> Option<(&'static str, &'static str, Invalid)> {
    let metadata = &cluster.metadata;
    let spec = "InvalidRayClusterSpec";
    let checks = [
        (
            "InvalidRayClusterMetadata",
            "metadata is invalid",
            validate::validate_metadata(metadata),
        ),
        (
            spec,
            "spec is invalid",
            validate::validate_spec(&cluster.spec, metadata, &settings.gates),
        ),
        (
            spec,
            "UpgradeStrategy is invalid",
            validate::validate_upgrade(cluster),
        ),
        (
            "InvalidRayClusterStatus",
            "status is invalid",
            validate::validate_status(cluster),
        ),
    ];
    checks
        .into_iter()
        .find_map(|(event, what, result)| Some((event, what, result.err()?)))
}

/// What is wrong with a cluster.
struct Refusal<'a> {
    event: &'a str,
    /// What it is about.
    what: &'a str,
    why: &'a str,
}

/// Says what is wrong in an event and in the status, and makes nothing. What cannot be read has no status that
/// could be written.
fn refuse(
    object: &Object,
    cluster: Option<&RayCluster>,
    Refusal { event, what, why }: &Refusal<'_>,
    now: Timestamp,
) -> Decision<Reason> {
    let message = format!("The RayCluster {what} {}: {why}", place(object.key()));
    let mut actions = vec![warning(object, event, message)];
    actions.extend(cluster.and_then(|cluster| write_refusal(object, cluster, why, now)));
    let why = (*why).to_owned();
    Decision::act_all(actions, Reason::Invalid { why })
}

fn write_refusal(
    object: &Object,
    cluster: &RayCluster,
    why: &str,
    now: Timestamp,
) -> Option<Action> {
    let status = summary::refuse(cluster, why, now);
    write_status(object, &cluster.status, &status)
}

/// Says which field it is in an event and in the status, and makes nothing.
fn refuse_by_name(
    object: &Object,
    cluster: &RayCluster,
    field: String,
    now: Timestamp,
) -> Decision<Reason> {
    let message = unsupported::message(&field);
    let told = format!(
        "The RayCluster spec is invalid {}: {message}",
        place(object.key())
    );
    let mut actions = vec![warning(object, "InvalidRayClusterSpec", told)];
    actions.extend(write_refusal(object, cluster, &message, now));
    Decision::act_all(actions, Reason::Unsupported { field })
}

/// Makes what is missing, unmakes what is too much, and tells how it stands.
fn make(view: &View<'_>) -> Decision<Reason> {
    let mut plan = Plan::default();
    let reason = match services::plan(view, &mut plan) {
        Err(service) => Reason::ServiceTaken { service },
        Ok(()) => make_pods(view, &mut plan),
    };
    let status = status(view, plan.failure.as_ref());
    let reason = match &plan.failure {
        Some(Failure { message, .. }) => Reason::Refused {
            why: message.clone(),
        },
        None => reason,
    };
    if let Some(write) = write_status(view.object, &view.cluster.status, &status) {
        plan.write(write);
    }
    let wake_at = plan.wake_at;
    Decision {
        needs: Vec::new(),
        actions: plan.into_actions(),
        wake_at,
        reason,
    }
}

fn make_pods(view: &View<'_>, plan: &mut Plan) -> Reason {
    let (spec, status) = (&view.cluster.spec, &view.cluster.status);
    let wants_suspension = spec.suspend == Some(true);
    let has_conditions = view.settings.gates.ray_cluster_status_conditions;
    let is_suspending = if has_conditions {
        status.is_true("RayClusterSuspending")
    } else {
        wants_suspension
    };
    if is_suspending {
        let left = view.pods.len();
        delete_all(view, plan, "Pods", "suspension");
        return Reason::Suspends { left };
    }
    // The status says first that it begins, so that it runs to its end whatever the spec says then.
    if wants_suspension || (has_conditions && status.is_true("RayClusterSuspended")) {
        return Reason::Suspended;
    }
    if head::is_outdated(view, plan) {
        let why = "spec change with Recreate upgradeStrategy";
        delete_all(view, plan, "all Pods", why);
        return Reason::Recreates;
    }
    match head::plan(view, plan) {
        Head::Lost => return Reason::HeadLost,
        Head::AwaitsEnd { until } => {
            workers::plan(view, plan);
            return Reason::AwaitsEndOfHead { until };
        }
        Head::Present => workers::plan(view, plan),
    }
    if plan.creates + plan.deletes > 0 {
        let (creates, deletes) = (plan.creates, plan.deletes);
        return Reason::Changes { creates, deletes };
    }
    if is_complete(view) {
        Reason::Ready
    } else {
        Reason::AwaitsPods
    }
}

fn delete_all(view: &View<'_>, plan: &mut Plan, what: &str, why: &str) {
    let live: Vec<_> = view.pods.iter().filter(|pod| pod.is_live()).collect();
    for pod in &live {
        plan.delete_pod(pod);
    }
    if !live.is_empty() {
        let cluster = place(view.object.key());
        let message = format!("Deleted {what} for RayCluster {cluster} due to {why}");
        plan.tell(view, "DeletedPod", message);
    }
}

fn is_complete(view: &View<'_>) -> bool {
    let pods = view.pod_views();
    summary::is_complete(&Observed {
        cluster: &view.cluster,
        pods: &pods,
        service: None,
        pass: Pass::Succeeded,
    })
}

fn status(view: &View<'_>, failure: Option<&Failure>) -> ClusterStatus {
    let pass = failure.map_or(Pass::Succeeded, |failure| Pass::Failed {
        reason: failure.reason,
        message: &failure.message,
    });
    let (pods, service) = (view.pod_views(), view.head_service_view());
    let observed = Observed {
        cluster: &view.cluster,
        pods: &pods,
        service: service.as_ref(),
        pass,
    };
    summary::summarize(&observed, &view.settings.gates, view.sight.now)
}

fn write_status(object: &Object, old: &ClusterStatus, new: &ClusterStatus) -> Option<Action> {
    if !summary::is_worth_writing(old, new) {
        return None;
    }
    let change = merge::between(&old.to_value(), &new.to_value())?;
    Some(set_status(object, &change))
}
