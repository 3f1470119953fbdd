//! Deletes finished jobs that have outlived `spec.ttlSecondsAfterFinished`.
//!
//! Upstream reads the job once more before it deletes; here the delete carries the revision that
//! was decided on, so a TTL that is raised in between wins. Dependents are the collector's business.

mod decide;
#[cfg(test)]
mod properties;
mod reason;
#[cfg(test)]
mod tests;
mod view;

use sundown_model::{
    Controller, Decision, Grant, Interest, Object, ObjectKey, Permit, Scope, Sight,
};

use crate::kinds::JOB;

pub use reason::Reason;
use view::JobView;

/// The controller; it needs no memory.
#[derive(Debug, Clone, Default)]
pub struct Ttl;

impl Controller for Ttl {
    type Key = ObjectKey;
    type Reason = Reason;

    const NAME: &'static str = "ttl";
    const INTERESTS: &'static [Interest] = &[Interest {
        scope: Scope::One(JOB),
        fields: view::FIELDS,
    }];
    const GRANTS: &'static [Grant] = &[Grant {
        group: Some(JOB.group),
        plural: Some(JOB.plural),
        permits: &[Permit::Delete],
    }];

    fn decide(&self, key: &ObjectKey, sight: Sight<'_>) -> Decision<Reason> {
        match sight.cache.get(key) {
            Some(job) => decide::decide(&JobView::of(job), sight.now),
            None => Decision::idle(Reason::Gone),
        }
    }

    fn keys_about(&self, object: &Object) -> Vec<ObjectKey> {
        object
            .key()
            .resource
            .is(&JOB)
            .then(|| object.key().clone())
            .into_iter()
            .collect()
    }
}
