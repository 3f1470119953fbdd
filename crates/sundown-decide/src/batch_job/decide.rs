//! What a job needs next: pods, fewer pods, its results counted, its end.

use jiff::Timestamp;
use sundown_model::{ACTIONS_MAX, Action, Decision, Object, Propagation, Sight};

use super::finish::{self, Target};
use super::pods::{backs_off_until, drafts, pending_indexes, victims, wanted};
use super::reason::Reason;
use super::status::{self, Rest};
use super::tally::Tally;
use super::view::{JobView, PodView, TRACKING};
use crate::actions::{create, delete, note, set_status, warning, without_finalizer, word};

/// How many pods one decision makes or gives up; the rest is for the next one.
const STEP_MAX: usize = 16;

/// Decides on a job and its pods.
pub(super) fn decide(job: &JobView<'_>, pods: &[PodView], sight: &Sight<'_>) -> Decision<Reason> {
    if job.is_managed_elsewhere {
        return Decision::idle(Reason::ManagedElsewhere);
    }
    if job.object.is_deleting() || job.is_finished() {
        return let_go(job, pods);
    }
    if let Some(field) = job.unsupported {
        let message = format!("spec.{field} is not supported here, so the job is not started");
        let note = warning(job.object, "Unsupported", message);
        return Decision::act(note, Reason::Unsupported { field });
    }
    let tally = Tally::of(job, pods);
    let target = finish::target(job, &tally, pods, sight.now);
    let is_settled = !tally.is_open && !pods.iter().any(|pod| !pod.is_over());
    let (conditions, has_ended) = finish::conditions(job, target.as_ref(), is_settled, sight.now);
    let rest = Rest {
        conditions,
        has_ended,
        is_success: target.as_ref().is_some_and(|it| it.is_success),
    };
    let mut actions = Vec::new();
    let (reason, wake_at) = match &target {
        Some(target) => (end(job, pods, target, &mut actions), None),
        None => manage(job, pods, &tally, sight, &mut actions),
    };
    for pod in pods.iter().filter(|pod| tally.recorded.contains(pod.uid())) {
        actions.push(without_tracking(&pod.object));
    }
    if has_ended && let Some(target) = &target {
        actions.push(told_end(job, target));
    }
    actions.truncate(ACTIONS_MAX - 1);
    let patch = status::patch(job, &tally, pods, &rest, sight.now);
    actions.extend(patch.map(|patch| set_status(job.object, &patch)));
    Decision {
        wake_at,
        ..Decision::act_all(actions, reason)
    }
}

/// A job that goes or is over holds no pod back.
fn let_go(job: &JobView<'_>, pods: &[PodView]) -> Decision<Reason> {
    let held: Vec<_> = pods.iter().filter(|pod| pod.is_tracked).collect();
    let is_going = job.object.is_deleting();
    if held.is_empty() {
        return Decision::idle(if is_going {
            Reason::Deleting
        } else {
            Reason::Finished
        });
    }
    let actions = held.iter().map(|pod| without_tracking(&pod.object));
    Decision::act_all(actions, Reason::LetsGo)
}

/// A job that ends has no active pods.
fn end(job: &JobView<'_>, pods: &[PodView], target: &Target, out: &mut Vec<Action>) -> Reason {
    let active = pods.iter().filter(|pod| pod.is_active());
    for pod in active.take(STEP_MAX) {
        out.push(delete(&pod.object, Propagation::Background));
        out.push(told_delete(job, pod));
    }
    Reason::Ends {
        why: target.reason.clone(),
    }
}

/// Brings the number of active pods to what is wanted.
fn manage(
    job: &JobView<'_>,
    pods: &[PodView],
    tally: &Tally,
    sight: &Sight<'_>,
    out: &mut Vec<Action>,
) -> (Reason, Option<Timestamp>) {
    let active: Vec<&PodView> = pods.iter().filter(|pod| pod.is_active()).collect();
    let count = |number: usize| i64::try_from(number).unwrap_or(i64::MAX);
    let wanted = wanted(job, tally.succeeded_all, count(active.len()));
    let deadline = job.deadline().filter(|_| !job.is_suspended);
    let excess = usize::try_from(count(active.len()) - wanted).unwrap_or(0);
    if excess > 0 {
        for pod in victims(&active).into_iter().take(excess.min(STEP_MAX)) {
            give_up(job, pod, out);
        }
        return (Reason::Shrinks { to: wanted }, deadline);
    }
    let leaving = pods.iter().filter(|pod| pod.is_terminating());
    let leaving = leaving.filter(|_| job.replaces_failed_only).count();
    let missing = usize::try_from(wanted - count(active.len()) - count(leaving)).unwrap_or(0);
    if missing == 0 {
        let reason = if job.is_suspended {
            Reason::Suspended
        } else {
            Reason::Runs
        };
        return (reason, deadline);
    }
    if let Some(until) = backs_off_until(job, pods).filter(|until| sight.now < *until) {
        let wake_at = [Some(until), deadline].into_iter().flatten().min();
        return (Reason::BacksOff { until }, wake_at);
    }
    let missing = missing.min(STEP_MAX);
    let indexes = job.is_indexed.then(|| pending_indexes(job, pods, missing));
    let mut failure = None;
    for mut draft in drafts(job, sight.cache, missing, indexes.as_deref()) {
        let message = format!("Created pod: {}", draft.key.name);
        draft.told = Some(word(job.object, "SuccessfulCreate", message));
        failure = failure.or(sight.facts.refusal(&draft.key));
        out.push(create(draft));
    }
    if let Some(failure) = failure {
        let message = format!("Error creating: {}", failure.message);
        out.push(warning(job.object, "FailedCreate", message));
    }
    (Reason::Grows { to: wanted }, deadline)
}

/// A pod that is not wanted does not count: its finalizer goes first, then the pod.
fn give_up(job: &JobView<'_>, pod: &PodView, out: &mut Vec<Action>) {
    if pod.is_tracked {
        out.push(without_tracking(&pod.object));
        return;
    }
    out.push(delete(&pod.object, Propagation::Background));
    out.push(told_delete(job, pod));
}

/// Takes our finalizer from a pod.
pub(super) fn without_tracking(pod: &Object) -> Action {
    without_finalizer(pod, TRACKING)
}

fn told_delete(job: &JobView<'_>, pod: &PodView) -> Action {
    let message = format!("Deleted pod: {}", pod.object.key().name);
    note(job.object, "SuccessfulDelete", message)
}

fn told_end(job: &JobView<'_>, target: &Target) -> Action {
    if target.is_success {
        return note(job.object, "Completed", "Job completed".to_owned());
    }
    warning(job.object, &target.reason, target.message.clone())
}
