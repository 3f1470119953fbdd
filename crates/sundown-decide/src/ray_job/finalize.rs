//! The end of a `RayJob`: what it runs is stopped, within a bound, then it is let go.

use serde_json::{Value, json};
use sundown_kinds::constants::FINALIZER_RAY_JOB;
use sundown_model::{Action, Decision, Object, Part};

use super::reason::Reason;
use super::stop::{self, Stop};
use super::view::{Cluster, Sight, later};
use crate::ray::patch;

/// Decides on a job that is being deleted.
pub(super) fn decide(sight: &Sight<'_>) -> Decision<Reason> {
    let Some(deletion) = sight.object.deletion() else {
        return Decision::idle(Reason::Released);
    };
    if !sight.object.has_finalizer(FINALIZER_RAY_JOB) {
        return Decision::idle(Reason::Released);
    }
    let may_run = sight.may_be_submitted() && !sight.job.status.job_status.is_terminal();
    if may_run && let Cluster::Absent | Cluster::Foreign(_) = &sight.cluster {
        // Without its cluster nothing runs. It is looked for before that is believed.
        let absent = sight.is_absent(&sight.cluster_key());
        if let (Cluster::Absent, Err(need)) = (&sight.cluster, absent) {
            return Decision::need(vec![need], Reason::AsksForCluster);
        }
        return Decision::act(release(sight.object), Reason::Releases);
    }
    let until = later(deletion.at, sight.scope.config.limits.stop);
    match stop::wind_down(sight, until) {
        Stop::Under(decision) => decision,
        Stop::Ended => Decision::act(release(sight.object), Reason::Releases),
        Stop::GaveUp(why) => {
            let told = stop::unstopped(sight, why);
            Decision::act_all(vec![release(sight.object), told], Reason::Releases)
        }
    }
}

/// Lets go of a job of which nothing can be read.
pub(super) fn release_unread(object: &Object, told: Action) -> Decision<Reason> {
    if !object.has_finalizer(FINALIZER_RAY_JOB) {
        return Decision::idle(Reason::Released);
    }
    Decision::act_all(vec![release(object), told], Reason::Releases)
}

fn release(object: &Object) -> Action {
    let others = object.finalizers().iter().map(|it| &**it);
    let others: Vec<&str> = others.filter(|it| *it != FINALIZER_RAY_JOB).collect();
    // A merge patch removes a field by null; an empty list would stay as an empty list.
    let kept = if others.is_empty() {
        Value::Null
    } else {
        json!(others)
    };
    patch(
        object,
        Part::Main,
        json!({"metadata": {"finalizers": kept}}),
    )
}
