//! Deletes Events an hour after they were last seen to happen.
//!
//! Upstream's API server lets etcd do it (`--event-ttl`). Here it is a controller of a server of our
//! own, so that an Event goes like everything else: at an instant that is stored with it, by a guarded
//! DELETE that watchers see. On a cluster it does not run.

mod decide;
mod reason;
#[cfg(test)]
mod tests;

use sundown_model::{
    Controller, Decision, Grant, Interest, Object, ObjectKey, Permit, Scope, Sight,
};

use crate::kinds::EVENT;

pub use reason::Reason;

/// The controller; it needs no memory.
#[derive(Debug, Clone, Default)]
pub struct EventTtl;

impl Controller for EventTtl {
    type Key = ObjectKey;
    type Reason = Reason;

    const NAME: &'static str = "event_ttl";
    const INTERESTS: &'static [Interest] = &[Interest {
        scope: Scope::One(EVENT),
        fields: decide::FIELDS,
    }];
    const GRANTS: &'static [Grant] = &[Grant {
        group: Some(EVENT.group),
        plural: Some(EVENT.plural),
        permits: &[Permit::Delete],
    }];

    fn decide(&self, key: &ObjectKey, sight: Sight<'_>) -> Decision<Reason> {
        match sight.cache.get(key) {
            Some(event) => decide::decide(event, sight.now),
            None => Decision::idle(Reason::Gone),
        }
    }

    fn keys_about(&self, object: &Object) -> Vec<ObjectKey> {
        let is_own = object.key().resource.is(&EVENT);
        is_own.then(|| object.key().clone()).into_iter().collect()
    }
}
