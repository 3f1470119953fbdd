//! Releases claims and volumes that were deleted while in use, as soon as their last user is gone.
//!
//! The API server puts a finalizer on every claim and volume; here it is taken off. Upstream has two
//! controllers for it, `pvc-protection` and `pv-protection`, which also add the finalizer to objects
//! from before that: there are none here. Whether a volume is bound is for others to say.

mod decide;
mod reason;
#[cfg(test)]
mod tests;
mod view;

use sundown_model::{
    Cache, Controller, Decision, Grant, Interest, Object, ObjectKey, Part, Permit, Scope, Sight,
};

use crate::kinds::{CLAIM, POD, VOLUME};

pub use reason::Reason;

/// The controller; it needs no memory.
#[derive(Debug, Clone, Default)]
pub struct StorageProtection;

impl Controller for StorageProtection {
    type Key = ObjectKey;
    type Reason = Reason;

    const NAME: &'static str = "storage_protection";
    const INTERESTS: &'static [Interest] = &[
        Interest {
            scope: Scope::One(CLAIM),
            fields: &[],
        },
        Interest {
            scope: Scope::One(VOLUME),
            fields: view::VOLUME_FIELDS,
        },
        Interest {
            scope: Scope::One(POD),
            fields: view::POD_FIELDS,
        },
    ];
    const GRANTS: &'static [Grant] = &[
        Grant {
            group: Some(CLAIM.group),
            plural: Some(CLAIM.plural),
            permits: &[Permit::Patch(Part::Main)],
        },
        Grant {
            group: Some(VOLUME.group),
            plural: Some(VOLUME.plural),
            permits: &[Permit::Patch(Part::Main)],
        },
    ];

    fn decide(&self, key: &ObjectKey, sight: Sight<'_>) -> Decision<Reason> {
        match sight.cache.get(key) {
            Some(object) if key.resource.is(&CLAIM) => {
                decide::claim(object, sight.cache, sight.facts)
            }
            Some(object) => decide::volume(object, sight.cache, sight.facts),
            None => Decision::idle(Reason::Gone),
        }
    }

    /// Storage is touched by itself and, once it is terminating, by whatever may be its user.
    fn keys_touched(&self, object: &Object, cache: &Cache) -> Vec<ObjectKey> {
        let resource = &object.key().resource;
        let mut near = self.keys_about(object);
        if resource.is(&POD) {
            near.extend(view::claims_of(object));
        }
        if resource.is(&CLAIM) {
            let volumes = cache.of(&VOLUME.resource());
            let is_bound = |it: &Object| view::claim_of(it).is_some_and(|it| it.0 == *object.key());
            let bound = volumes.filter(|it| it.is_deleting() && is_bound(it));
            near.extend(bound.map(|it| it.key().clone()));
        }
        near.retain(|key| cache.get(key).is_some_and(|it| it.is_deleting()));
        near
    }

    fn keys_about(&self, object: &Object) -> Vec<ObjectKey> {
        let resource = &object.key().resource;
        let is_own = resource.is(&CLAIM) || resource.is(&VOLUME);
        is_own.then(|| object.key().clone()).into_iter().collect()
    }
}
