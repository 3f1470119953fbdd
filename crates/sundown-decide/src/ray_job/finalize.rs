//! The end of a `RayJob`: what it runs is stopped, within a bound, then it is let go.

use sundown_kinds::constants::FINALIZER_RAY_JOB;
use sundown_model::{Action, Decision, Object};

use super::reason::Reason;
use super::stop::{self, Stop};
use super::view::{Cluster, View, later};
use crate::actions::without_finalizer;

/// Decides on a job that is being deleted.
pub(super) fn decide(view: &View<'_>) -> Decision<Reason> {
    let Some(deletion) = view.object.deletion() else {
        return Decision::idle(Reason::Released);
    };
    if !view.object.has_finalizer(FINALIZER_RAY_JOB) {
        return Decision::idle(Reason::Released);
    }
    let may_run = view.may_be_submitted() && !view.job.status.job_status.is_terminal();
    if may_run && let Cluster::Absent | Cluster::Foreign(_) = &view.cluster {
        // Without its cluster nothing runs. It is looked for before that is believed.
        let absent = view.is_absent(&view.cluster_key());
        if let (Cluster::Absent, Err(need)) = (&view.cluster, absent) {
            return Decision::need(vec![need], Reason::AsksForCluster);
        }
        return Decision::act(release(view.object), Reason::Releases);
    }
    let until = later(deletion.at, view.config.limits.stop);
    match stop::wind_down(view, until) {
        Stop::Under(decision) => decision,
        Stop::Ended => Decision::act(release(view.object), Reason::Releases),
        Stop::GaveUp(why) => {
            let told = stop::unstopped(view, why);
            Decision::act_all(vec![release(view.object), told], Reason::Releases)
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
    without_finalizer(object, FINALIZER_RAY_JOB)
}
