//! Runs a `RayJob` to its end, at most once per attempt, and leaves behind what its policy says.
//!
//! Ray is asked before anything is concluded: neither a deadline nor the end of a submitter decides what
//! became of a job. Before a job is submitted, the session of Ray that it goes to is stored on the
//! `RayJob`; it is submitted to that session and to no other, so that a head that was lost and came back
//! never runs it again. What is lost is a failed attempt, told as such, and tried again only as
//! `backoffLimit` says.
//!
//! The pods of a cluster are the business of `ray_cluster`; collecting what is owned is the collector's.

mod begin;
mod cleanup;
mod decide;
mod finalize;
mod head_service;
mod intent;
mod lapse;
mod outcome;
mod pods;
#[cfg(test)]
mod properties;
mod reason;
mod reset;
mod running;
mod stop;
mod submit;
#[cfg(test)]
mod tests;
mod view;

use std::collections::BTreeSet;

use jiff::SignedDuration;
use sundown_kinds::Settings;
use sundown_model::{
    Cache, Change, Controller, Decision, Grant, Interest, KnownKind, Object, ObjectKey, Part,
    Permit, Port, Scope, Sight,
};

use crate::kinds::{JOB, POD, RAY_CLUSTER, RAY_JOB, SERVICE};
use crate::ray::controller_key;
use crate::ray::view::{RAY_FIELDS, SERVICE_FIELDS};

pub use cleanup::ANNOTATION_READER;
pub use intent::ANNOTATION_SUBMISSION;
pub use lapse::Lapse;
pub use pods::ANNOTATION_APART;
pub use reason::Reason;

/// The controller; it needs no memory, only to be told what is the same for all jobs.
#[derive(Debug, Clone)]
pub struct RayJobs {
    settings: Settings,
    limits: Limits,
    deletes_finished: bool,
    lapse: Option<Lapse>,
}

/// How often and how long. Every bound counts from an instant that is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// How old an answer of Ray about a job that runs may be.
    pub poll: SignedDuration,
    /// How long a job that has ended waits for its submitter.
    pub transition_grace: SignedDuration,
    /// How long Ray may give no answer.
    pub status_check: SignedDuration,
    /// How long it is tried to stop a job.
    pub stop: SignedDuration,
    /// How long an attempt waits for the pods of the one before it, once their cluster is known to be gone.
    pub apart: SignedDuration,
}

impl Limits {
    /// On a laptop: Ray is near, and somebody waits.
    pub const LAPTOP: Self = Self {
        poll: SignedDuration::from_millis(250),
        transition_grace: SignedDuration::from_secs(300),
        status_check: SignedDuration::from_secs(300),
        stop: SignedDuration::from_secs(60),
        apart: SignedDuration::from_secs(300),
    };
    /// On a cluster: as often as upstream asks.
    pub const CLUSTER: Self = Self {
        poll: SignedDuration::from_secs(3),
        ..Self::LAPTOP
    };
}

impl Default for RayJobs {
    fn default() -> Self {
        Self::new(Settings::default(), Limits::LAPTOP)
    }
}

impl RayJobs {
    /// A controller with these settings and limits.
    pub fn new(settings: Settings, limits: Limits) -> Self {
        Self {
            settings,
            limits,
            deletes_finished: false,
            lapse: None,
        }
    }

    /// The same, but `shutdownAfterJobFinishes` deletes the `RayJob` itself: what upstream reads from
    /// `DELETE_RAYJOB_CR_AFTER_JOB_FINISHES`.
    #[must_use]
    pub fn deleting_finished(mut self) -> Self {
        self.deletes_finished = true;
        self
    }
}

impl Controller for RayJobs {
    type Key = ObjectKey;
    type Reason = Reason;

    const NAME: &'static str = "ray_job";
    const TOLD_BY: &'static str = "rayjob-controller";
    const INTERESTS: &'static [Interest] = &[
        Interest {
            scope: Scope::One(RAY_JOB),
            fields: RAY_FIELDS,
        },
        Interest {
            scope: Scope::One(RAY_CLUSTER),
            fields: RAY_FIELDS,
        },
        Interest {
            scope: Scope::One(SERVICE),
            fields: SERVICE_FIELDS,
        },
        Interest {
            scope: Scope::One(JOB),
            fields: view::SUBMITTER_FIELDS,
        },
        Interest {
            scope: Scope::One(POD),
            fields: pods::POD_FIELDS,
        },
    ];
    const GRANTS: &'static [Grant] = &[
        Grant {
            group: Some(RAY_JOB.group),
            plural: Some(RAY_JOB.plural),
            permits: &[
                Permit::Delete,
                Permit::Patch(Part::Main),
                Permit::Patch(Part::Status),
            ],
        },
        Grant {
            group: Some(RAY_CLUSTER.group),
            plural: Some(RAY_CLUSTER.plural),
            // The patch suspends the worker groups of a job that has ended.
            permits: &[Permit::Create, Permit::Delete, Permit::Patch(Part::Main)],
        },
        Grant {
            group: Some(SERVICE.group),
            plural: Some(SERVICE.plural),
            permits: &[Permit::Create, Permit::Patch(Part::Main)],
        },
        Grant {
            group: Some(JOB.group),
            plural: Some(JOB.plural),
            permits: &[Permit::Create, Permit::Delete],
        },
    ];
    const OWNERS: &'static [KnownKind] = &[RAY_JOB];
    const PORTS: &'static [Port] = &[Port::Ray];

    fn observe(&mut self, change: &Change, cache: &Cache, touched: &mut BTreeSet<ObjectKey>) {
        match change {
            Change::Added(object) | Change::Forgotten(object) => touch(object, cache, touched),
            Change::Deleted(object) => {
                touch(object, cache, touched);
                touch_by_end(object, cache, touched);
            }
            // Whose it was has to know that it is theirs no more.
            Change::Updated { old, new } => {
                touch(old, cache, touched);
                touch(new, cache, touched);
                if pods::has_ended(new) && !pods::has_ended(old) {
                    touch_by_end(new, cache, touched);
                }
            }
            // A kind that is not served any more will never be read.
            Change::Catalog => {
                touched.extend(cache.of(&RAY_JOB.resource()).map(|it| it.key().clone()));
            }
            Change::Read(_)
            | Change::Refused(_)
            | Change::Freshness(_)
            | Change::Report(_)
            | Change::Answered(_) => {}
        }
    }

    fn decide(&self, key: &ObjectKey, sight: Sight<'_>) -> Decision<Reason> {
        match sight.cache.get(key) {
            Some(object) => decide::decide(object, self, sight),
            None => Decision::idle(Reason::Gone),
        }
    }

    fn keys_about(&self, object: &Object) -> Vec<ObjectKey> {
        own_key(object).into_iter().collect()
    }
}

/// The job that an object is or belongs to.
fn own_key(object: &Object) -> Option<ObjectKey> {
    let resource = &object.key().resource;
    if resource.is(&RAY_JOB) {
        return Some(object.key().clone());
    }
    let parts = [&RAY_CLUSTER, &SERVICE, &JOB];
    let is_part = parts.iter().any(|kind| resource.is(kind));
    is_part.then(|| controller_key(object, &RAY_JOB)).flatten()
}

/// Only the end of a pod is waited for, and only when its cluster is gone.
fn touch_by_end(pod: &Object, cache: &Cache, touched: &mut BTreeSet<ObjectKey>) {
    if pod.key().resource.is(&POD)
        && let Some(cluster) = pods::cluster_of(pod)
        && !pods::is_of_present(pod, &cluster, cache)
    {
        touched.extend(view::jobs_on(&cluster, cache));
        touched.extend(pods::jobs_before(&cluster, cache));
    }
}

/// A job is touched by itself, by what it owns, by the cluster that it runs on, and by the head service
/// of that.
fn touch(object: &Object, cache: &Cache, touched: &mut BTreeSet<ObjectKey>) {
    touched.extend(own_key(object));
    let resource = &object.key().resource;
    let cluster = if resource.is(&RAY_CLUSTER) {
        Some(object.key().clone())
    } else if resource.is(&SERVICE) {
        controller_key(object, &RAY_CLUSTER)
    } else {
        None
    };
    if let Some(cluster) = cluster {
        touched.extend(view::jobs_on(&cluster, cache));
    }
}
