//! Empties terminating namespaces, and says what keeps them.
//!
//! Upstream deletes by collection and polls; here every object is deleted by itself, guarded by its
//! uid and revision, and the namespace is released when a barrier proves that nothing is left. Each
//! object is a key of its own, so that one whose deletion is refused waits alone. The order is
//! upstream's: pods first, everything else when no pod is left (KEP-5080).

mod conditions;
mod content;
mod decide;
mod lapse;
mod reason;
#[cfg(test)]
mod tests;
mod view;

use std::collections::BTreeSet;
use std::sync::Arc;

use sundown_model::{
    Cache, Change, Controller, Decision, Grant, Interest, Namespace, Object, ObjectKey, Part,
    Permit, Scope, Sight,
};

use content::Content;

use crate::kinds::{EVENT_K8S_IO, NAMESPACE, POD};

pub use lapse::Lapse;
#[cfg(feature = "mutants")]
pub use lapse::Twice;
pub use reason::Reason;

/// What a namespace may hold: everything that can be observed and deleted. Events are served under
/// two names, and followed under one.
const CONTENT: Scope = Scope::Collectable {
    except: &[EVENT_K8S_IO],
};

/// The controller; its memory is how much is in each namespace.
#[derive(Debug, Clone, Default)]
pub struct Namespaces {
    content: Content,
    lapse: Option<Lapse>,
}

impl Namespaces {
    /// Follows one object from one state to the next.
    fn follow(
        &mut self,
        (old, new): (Option<&Arc<Object>>, Option<&Arc<Object>>),
        cache: &Cache,
        touched: &mut BTreeSet<ObjectKey>,
    ) {
        let was_terminating = old.is_some_and(|it| it.is_deleting());
        if let Some(old) = old {
            self.content.take_out(old);
        }
        if let Some(new) = new {
            self.content.enter(new);
        }
        let Some(object) = new.or(old) else { return };
        if object.key().resource.is(&NAMESPACE) {
            touched.insert(object.key().clone());
            if object.is_deleting() && !was_terminating {
                touch_content(&Namespace::from(&*object.key().name), cache, touched);
            }
            return;
        }
        let Some(namespace) = self.content.terminating_around(object.key()) else {
            return;
        };
        touched.insert(key_of(namespace));
        touched.extend(new.map(|new| new.key().clone()));
        let is_pod = object.key().resource.is(&POD);
        if new.is_none() && is_pod && self.content.counts(namespace).pods.left == 0 {
            touch_content(namespace, cache, touched);
        }
    }
}

impl Controller for Namespaces {
    type Key = ObjectKey;
    type Reason = Reason;

    const NAME: &'static str = "namespace";
    const INTERESTS: &'static [Interest] = &[
        Interest {
            scope: Scope::One(NAMESPACE),
            fields: view::FIELDS,
        },
        Interest {
            scope: CONTENT,
            fields: &[],
        },
    ];
    const GRANTS: &'static [Grant] = &[
        Grant {
            group: None,
            plural: None,
            permits: &[Permit::Delete],
        },
        Grant {
            group: Some(NAMESPACE.group),
            plural: Some(NAMESPACE.plural),
            permits: &[Permit::Patch(Part::Status), Permit::Patch(Part::Finalize)],
        },
    ];

    fn observe(&mut self, change: &Change, cache: &Cache, touched: &mut BTreeSet<ObjectKey>) {
        self.follow(change.transition(), cache, touched);
        match change {
            // No pod can be hidden any more, so that the rest may go.
            Change::Freshness(resource) if resource.is(&POD) => {
                let all: Vec<_> = self.content.terminating().cloned().collect();
                let without_pods = |it: &&Namespace| self.content.counts(it).pods.left == 0;
                for namespace in all.iter().filter(without_pods) {
                    touch_content(namespace, cache, touched);
                }
            }
            Change::Refused(key) => {
                touched.extend(self.content.terminating_around(key).map(key_of));
            }
            Change::Added(_)
            | Change::Updated { .. }
            | Change::Deleted(_)
            | Change::Forgotten(_)
            | Change::Read(_)
            | Change::Freshness(_)
            | Change::Catalog
            | Change::Report(_)
            | Change::Answered(_) => {}
        }
    }

    fn decide(&self, key: &ObjectKey, sight: Sight<'_>) -> Decision<Reason> {
        let view = decide::View {
            sight,
            lapse: self.lapse,
        };
        let Some(object) = sight.cache.get(key) else {
            return Decision::idle(Reason::Gone);
        };
        let Some(around) = &key.namespace else {
            let name = Namespace::from(&*key.name);
            return decide::namespace(object, self.content.counts(&name), &view);
        };
        match sight.cache.get(&key_of(around)) {
            Some(namespace) => {
                decide::content(object, namespace, self.content.counts(around), &view)
            }
            None => Decision::idle(Reason::Gone),
        }
    }

    fn keys_about(&self, object: &Object) -> Vec<ObjectKey> {
        let is_namespace = object.key().resource.is(&NAMESPACE);
        let is_content = self.content.terminating_around(object.key()).is_some();
        let is_own = is_namespace || is_content;
        is_own.then(|| object.key().clone()).into_iter().collect()
    }

    fn audit(&self, cache: &Cache) -> Result<(), String> {
        let anew = Content::of(cache);
        if self.content == anew {
            Ok(())
        } else {
            Err(format!("{:?} instead of {anew:?}", self.content))
        }
    }
}

fn key_of(namespace: &Namespace) -> ObjectKey {
    ObjectKey::cluster(&NAMESPACE.resource(), namespace.as_str())
}

/// Everything in a namespace that is to be deleted next.
fn touch_content(namespace: &Namespace, cache: &Cache, touched: &mut BTreeSet<ObjectKey>) {
    let all = cache.within(namespace).filter(|it| !it.is_deleting());
    touched.extend(all.map(|it| it.key().clone()));
}
