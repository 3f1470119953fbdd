//! Deletes what finished and has outlived `spec.ttlSecondsAfterFinished`: batch Jobs and Volcano Jobs, by one rule over
//! one view of each.
//!
//! Upstream reads the job once more before it deletes; here the delete carries the revision that
//! was decided on, so a TTL that is raised in between wins. Dependents are the collector's business.

mod decide;
mod lapse;
#[cfg(test)]
mod properties;
mod reason;
#[cfg(test)]
mod tests;
mod view;

use sundown_model::{
    Controller, Decision, Grant, Interest, Object, ObjectKey, Permit, Scope, Sight,
};

use crate::kinds::{JOB, VOLCANO_JOB};

pub use lapse::Lapse;
pub use reason::Reason;
use view::{JobView, Kind, batch, volcano};

/// The controller; it needs no memory.
#[derive(Debug, Clone, Default)]
pub struct Ttl {
    lapse: Option<Lapse>,
}

impl Controller for Ttl {
    type Key = ObjectKey;
    type Reason = Reason;

    const NAME: &'static str = "ttl";
    const INTERESTS: &'static [Interest] = &[
        Interest {
            scope: Scope::One(JOB),
            fields: batch::FIELDS,
        },
        Interest {
            scope: Scope::One(VOLCANO_JOB),
            fields: volcano::FIELDS,
        },
    ];
    const GRANTS: &'static [Grant] = &[
        Grant {
            group: Some(JOB.group),
            plural: Some(JOB.plural),
            permits: &[Permit::Delete],
        },
        Grant {
            group: Some(VOLCANO_JOB.group),
            plural: Some(VOLCANO_JOB.plural),
            permits: &[Permit::Delete],
        },
    ];

    fn decide(&self, key: &ObjectKey, sight: Sight<'_>) -> Decision<Reason> {
        let job = sight.cache.get(key).zip(Kind::of(&key.resource));
        match job {
            Some((job, kind)) => decide::decide(&JobView::of(job, kind), sight.now, self.lapse),
            None => Decision::idle(Reason::Gone),
        }
    }

    fn keys_about(&self, object: &Object) -> Vec<ObjectKey> {
        let key = object.key();
        let kind = Kind::of(&key.resource);
        kind.map(|_| key.clone()).into_iter().collect()
    }
}
