//! The controller of before, which follows Events under both of their names. What it follows is a constant, so it is
//! another controller around the shipped one.

use std::collections::BTreeSet;

use sundown_model::{
    Cache, Change, Controller, Decision, Grant, Interest, Object, ObjectKey, Scope, Sight,
};

use crate::kinds::NAMESPACE;
use crate::namespace::{Namespaces, Reason, view};

/// Namespaces whose Events are there twice.
#[derive(Debug, Clone, Default)]
pub struct Twice(Namespaces);

impl Controller for Twice {
    type Key = ObjectKey;
    type Reason = Reason;

    const NAME: &'static str = Namespaces::NAME;
    const INTERESTS: &'static [Interest] = &[
        Interest {
            scope: Scope::One(NAMESPACE),
            fields: view::FIELDS,
        },
        Interest {
            scope: Scope::Collectable { except: &[] },
            fields: &[],
        },
    ];
    const GRANTS: &'static [Grant] = Namespaces::GRANTS;

    fn observe(&mut self, change: &Change, cache: &Cache, touched: &mut BTreeSet<ObjectKey>) {
        self.0.observe(change, cache, touched);
    }

    fn decide(&self, key: &ObjectKey, sight: Sight<'_>) -> Decision<Reason> {
        self.0.decide(key, sight)
    }

    fn keys_about(&self, object: &Object) -> Vec<ObjectKey> {
        self.0.keys_about(object)
    }

    fn audit(&self, cache: &Cache) -> Result<(), String> {
        self.0.audit(cache)
    }
}
