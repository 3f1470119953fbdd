//! The service of a job: the head of whatever cluster it runs on, under a name that stays.
//!
//! It is made and moved beside whatever else is done for a job that runs, until it is right, and never
//! waited for: a job must not hang on a service that cannot be made. As the engine waits after a failure, one
//! that failed is tried again only along with something else that is new, or after a while if it was not
//! refused. One of another owner is left alone.

use jiff::{SignedDuration, Timestamp};
use serde_json::json;
use sundown_kinds::constants::LABEL_CLUSTER;
use sundown_kinds::service;
use sundown_model::{Action, Decision, Object, Part, Write};

use super::lapse::Lapse;
use super::reason::Reason;
use super::view::{Cluster, View, later};
use crate::actions::{note, patch, warning};
use crate::kinds::SERVICE;
use crate::ray::{Told, beside, create, is_owned, merge, name_of, place};

/// The reasons of the events that the service cannot be had, or not moved.
const REFUSED: &str = "FailedToCreateService";
const UNMOVED: &str = "FailedToUpdateService";

/// When it is tried again by itself after the API server could not take it.
const AGAIN: SignedDuration = SignedDuration::from_mins(1);

/// A decision, and beside it what is to be done about the service. That one cannot be had is said, and tried
/// again, when something else is new, not with every question.
pub(super) fn along_with(view: &View<'_>, mut decision: Decision<Reason>) -> Decision<Reason> {
    let own = plan(view);
    let is_hopeful = own.iter().any(|it| is_hopeful(view, it));
    let was_refused = own
        .iter()
        .any(|it| matches!(it, Action::Tell(note) if [REFUSED, UNMOVED].contains(&&*note.reason)));
    let was_refused = was_refused && !view.config.lapses(Lapse::ServiceHoldsUp);
    if (is_hopeful && !was_refused) || !decision.actions.is_empty() {
        decision.actions.extend(own);
    }
    decision
}

/// Whether an action is a write that did not fail a moment ago.
fn is_hopeful(view: &View<'_>, action: &Action) -> bool {
    let key = match action {
        Action::Api(Write::Create(draft)) => &draft.key,
        Action::Api(Write::Patch { at, .. } | Write::Delete { at, .. } | Write::Finish { at }) => {
            at.key()
        }
        Action::Do(_) | Action::Tell(_) => return false,
    };
    let failed = view.sight.facts.failed_write(key);
    failed.is_none_or(|it| view.now() >= later(it.failed_at, AGAIN))
        || view.config.lapses(Lapse::ServiceHoldsUp)
}

/// What is to be done about the service, if anything.
fn plan(view: &View<'_>) -> Vec<Action> {
    let Cluster::There(made, cluster) = &view.cluster else {
        return Vec::new();
    };
    if !view.owns_cluster() {
        return Vec::new();
    }
    let object = view.object;
    let body = service::ray_job_head_service(&view.job, cluster, &view.config.settings);
    let key = beside(object.key(), &SERVICE, name_of(&body));
    let place = place(&key);
    let Some(present) = view.sight.cache.get(&key) else {
        let told = Told {
            reason: "CreatedService",
            message: format!("Created the service {place}"),
        };
        let failed = view.refusal(&key).map(|it| {
            let message = format!("Failed to create the service {place}, {}", it.message);
            warning(object, REFUSED, message)
        });
        let makes = create(object, &SERVICE, body, told);
        return [makes].into_iter().chain(failed).collect();
    };
    if !is_owned(present, object) {
        let why = "it exists and is not owned by this RayJob";
        let message = format!("Failed to create the service {place}, {why}");
        return vec![warning(object, REFUSED, message)];
    }
    let selector = present.field("/spec/selector").cloned().unwrap_or_default();
    if selector[LABEL_CLUSTER] == body["spec"]["selector"][LABEL_CLUSTER] {
        let message = format!("Updated the service {place}");
        let told = is_older(present, made).then(|| note(object, "UpdatedService", message));
        return told.into_iter().collect();
    }
    let Some(change) = merge::between(&selector, &body["spec"]["selector"]) else {
        return Vec::new();
    };
    let change = json!({"spec": {"selector": change, "ports": body["spec"]["ports"]}});
    // That it was moved is told when it is seen.
    let failed = view.refusal(&key).map(|refusal| {
        let message = format!("Failed to update the service {place}, {}", refusal.message);
        warning(object, UNMOVED, message)
    });
    let moves = patch(present, Part::Main, change);
    [moves].into_iter().chain(failed).collect()
}

/// Whether a service was there before the cluster that it leads to, and so led to another one.
fn is_older(service: &Object, cluster: &Object) -> bool {
    let made_at = |object: &Object| {
        let text = object.field("/metadata/creationTimestamp")?.as_str()?;
        text.parse::<Timestamp>().ok()
    };
    let both = made_at(service).zip(made_at(cluster));
    both.is_some_and(|(service, cluster)| service < cluster)
}
