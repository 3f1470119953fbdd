//! batch/v1 Jobs: makes pods until enough of them have succeeded, and counts each result exactly once.
//!
//! A pod cannot go before its result is on record: the finalizer `batch.kubernetes.io/job-tracking`
//! holds it. Names are made of the job's uid and a number, so nothing here is random. Pod failure
//! policies, success policies and limits by index are refused by name.

mod decide;
mod finish;
mod indexes;
mod pods;
mod reason;
mod status;
mod tally;
#[cfg(test)]
mod tests;
mod view;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use sundown_model::{
    Cache, Change, Controller, Decision, Facts, Grant, Interest, KnownKind, Need, Object,
    ObjectKey, OwnerRef, Part, Permit, Scope, Sight, Uid,
};

use crate::kinds::{JOB, POD};
use view::{JobView, PodView};

pub use reason::Reason;
pub use view::TRACKING;

/// What is decided on.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Key {
    Job(ObjectKey),
    /// A pod that a job may have left behind.
    Pod(ObjectKey),
}

/// The controller; it remembers which pods belong to which job.
#[derive(Debug, Clone, Default)]
pub struct Jobs {
    pods: BTreeMap<Uid, BTreeSet<ObjectKey>>,
}

impl Controller for Jobs {
    type Key = Key;
    type Reason = Reason;

    const NAME: &'static str = "batch_job";
    const TOLD_BY: &'static str = "job-controller";
    const INTERESTS: &'static [Interest] = &[
        Interest {
            scope: Scope::One(JOB),
            fields: view::JOB_FIELDS,
        },
        Interest {
            scope: Scope::One(POD),
            fields: view::POD_FIELDS,
        },
    ];
    const GRANTS: &'static [Grant] = &[
        Grant {
            group: Some(JOB.group),
            plural: Some(JOB.plural),
            permits: &[Permit::Patch(Part::Status)],
        },
        Grant {
            group: Some(POD.group),
            plural: Some(POD.plural),
            permits: &[Permit::Create, Permit::Delete, Permit::Patch(Part::Main)],
        },
    ];
    const OWNERS: &'static [KnownKind] = &[JOB];

    fn observe(&mut self, change: &Change, cache: &Cache, touched: &mut BTreeSet<Key>) {
        self.follow(change.transition(), cache, touched);
    }

    fn decide(&self, key: &Key, sight: Sight<'_>) -> Decision<Reason> {
        match key {
            Key::Job(key) => match sight.cache.get(key) {
                Some(job) => {
                    let pods = self.pods_of(job, sight.cache);
                    decide::decide(&JobView::of(job), &pods, &sight)
                }
                None => Decision::idle(Reason::Gone),
            },
            Key::Pod(key) => orphan(key, sight.cache, sight.facts),
        }
    }

    fn keys_about(&self, object: &Object) -> Vec<Key> {
        let key = object.key();
        if key.resource.is(&JOB) {
            return vec![Key::Job(key.clone())];
        }
        let is_pod = key.resource.is(&POD) && job_of(object).is_some();
        is_pod.then(|| Key::Pod(key.clone())).into_iter().collect()
    }

    fn audit(&self, cache: &Cache) -> Result<(), String> {
        let mut anew = Self::default();
        let mut touched = BTreeSet::new();
        for object in cache.of(&POD.resource()) {
            anew.follow((None, Some(object)), cache, &mut touched);
        }
        if self.pods == anew.pods {
            return Ok(());
        }
        Err(format!(
            "followed {:?}, made anew {:?}",
            self.pods, anew.pods
        ))
    }
}

impl Jobs {
    fn follow(
        &mut self,
        (old, new): (Option<&Arc<Object>>, Option<&Arc<Object>>),
        cache: &Cache,
        touched: &mut BTreeSet<Key>,
    ) {
        for object in old.into_iter().chain(new) {
            if object.key().resource.is(&JOB) {
                touched.insert(Key::Job(object.key().clone()));
                if new.is_none() {
                    // Whoever it held is let go.
                    let left = self.pods.get(object.uid()).into_iter().flatten();
                    touched.extend(left.cloned().map(Key::Pod));
                }
            }
        }
        if let Some(old) = old.filter(|old| old.key().resource.is(&POD)) {
            self.forget(old, touched);
        }
        if let Some(new) = new.filter(|new| new.key().resource.is(&POD)) {
            self.remember(new, cache, touched);
        }
    }

    fn forget(&mut self, pod: &Object, touched: &mut BTreeSet<Key>) {
        let Some(owner) = job_of(pod) else { return };
        touched.insert(Key::Job(job_key(owner, pod)));
        if let Some(keys) = self.pods.get_mut(&owner.uid) {
            keys.remove(pod.key());
            if keys.is_empty() {
                self.pods.remove(&owner.uid);
            }
        }
    }

    fn remember(&mut self, pod: &Object, cache: &Cache, touched: &mut BTreeSet<Key>) {
        let Some(owner) = job_of(pod) else {
            // A pod whose reference was taken away may still be held.
            if pod.has_finalizer(TRACKING) {
                touched.insert(Key::Pod(pod.key().clone()));
            }
            return;
        };
        let job = job_key(owner, pod);
        let keys = self.pods.entry(owner.uid.clone()).or_default();
        keys.insert(pod.key().clone());
        let is_there = cache.get(&job).is_some_and(|it| *it.uid() == owner.uid);
        if is_there {
            touched.insert(Key::Job(job));
        } else if pod.has_finalizer(TRACKING) {
            touched.insert(Key::Pod(pod.key().clone()));
        }
    }

    fn pods_of(&self, job: &Object, cache: &Cache) -> Vec<PodView> {
        let keys = self.pods.get(job.uid()).into_iter().flatten();
        let pods = keys.filter_map(|key| cache.get(key));
        let own = pods.filter(|pod| job_of(pod).is_some_and(|it| it.uid == *job.uid()));
        own.map(PodView::of).collect()
    }
}

/// The job that controls a pod. Only the controlling reference counts, by its uid.
fn job_of(pod: &Object) -> Option<&OwnerRef> {
    let mut owners = pod.owners().iter();
    owners.find(|owner| {
        owner.controller == Some(true)
            && &*owner.kind == JOB.kind
            && &*owner.api_version == "batch/v1"
    })
}

fn job_key(owner: &OwnerRef, pod: &Object) -> ObjectKey {
    ObjectKey::namespaced(&JOB.resource(), pod.key().namespace_str(), &owner.name)
}

/// A pod that is held although its job is gone, which is proven: seen to go, or read after the pod.
fn orphan(key: &ObjectKey, cache: &Cache, facts: &Facts) -> Decision<Reason> {
    let held = cache.get(key).filter(|pod| pod.has_finalizer(TRACKING));
    let Some(pod) = held else {
        return Decision::idle(Reason::NoOrphan);
    };
    if let Some(owner) = job_of(pod) {
        let job = job_key(owner, pod);
        let is_owner = |it: &Arc<Object>| *it.uid() == owner.uid;
        if cache.get(&job).is_some_and(is_owner) {
            return Decision::idle(Reason::NoOrphan);
        }
        let seen = cache.seen_step(key).unwrap_or_default();
        let read = facts.live(&job).filter(|fact| fact.asked > seen);
        let is_read_gone = read.map(|fact| !fact.found.as_ref().is_some_and(is_owner));
        match (cache.is_gone(&owner.uid), is_read_gone) {
            (true, _) | (false, Some(true)) => {}
            (false, Some(false)) => return Decision::idle(Reason::NoOrphan),
            (false, None) => {
                return Decision::need(vec![Need::Live(job)], Reason::OrphanUnproven);
            }
        }
    }
    Decision::act(decide::without_tracking(pod), Reason::OrphanReleased)
}
