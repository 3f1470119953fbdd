//! Gives every namespace its `default` service account, which pods that name none run as.
//!
//! Only for a control plane of our own: a cluster has a controller for it.

use serde_json::json;
use sundown_model::{
    Cache, Controller, Decision, Draft, Explain, Grant, Interest, Object, ObjectKey, Permit, Scope,
    Sight,
};

use crate::actions::create;
use crate::kinds::{NAMESPACE, SERVICE_ACCOUNT};

/// The account of pods that name none.
const DEFAULT: &str = "default";

/// The controller; it needs no memory.
#[derive(Debug, Clone, Default)]
pub struct Accounts;

/// What the decision about a namespace concluded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reason {
    Gone,
    /// It is on its way out: nothing is made in it any more.
    Terminating,
    HasAccount,
    LacksAccount,
}

impl Explain for Reason {
    fn code(&self) -> &'static str {
        match self {
            Self::Gone => "Gone",
            Self::Terminating => "Terminating",
            Self::HasAccount => "HasAccount",
            Self::LacksAccount => "LacksAccount",
        }
    }

    fn sentence(&self) -> String {
        let said = match self {
            Self::Gone => "the namespace is gone",
            Self::Terminating => "terminating; it gets no service account any more",
            Self::HasAccount => "has its default service account",
            Self::LacksAccount => "is to get its default service account",
        };
        said.to_owned()
    }
}

impl Controller for Accounts {
    type Key = ObjectKey;
    type Reason = Reason;

    const NAME: &'static str = "service_account";
    const INTERESTS: &'static [Interest] = &[
        Interest {
            scope: Scope::One(NAMESPACE),
            fields: &[],
        },
        Interest {
            scope: Scope::One(SERVICE_ACCOUNT),
            fields: &[],
        },
    ];
    const GRANTS: &'static [Grant] = &[Grant {
        group: Some(SERVICE_ACCOUNT.group),
        plural: Some(SERVICE_ACCOUNT.plural),
        permits: &[Permit::Create],
    }];

    fn decide(&self, key: &ObjectKey, sight: Sight<'_>) -> Decision<Reason> {
        let Some(namespace) = sight.cache.get(key) else {
            return Decision::idle(Reason::Gone);
        };
        if namespace.is_deleting() {
            return Decision::idle(Reason::Terminating);
        }
        let account = ObjectKey::namespaced(&SERVICE_ACCOUNT.resource(), &key.name, DEFAULT);
        if sight.cache.get(&account).is_some() {
            return Decision::idle(Reason::HasAccount);
        }
        // One that we have not heard of makes the server refuse this one, which changes nothing.
        let body = json!({
            "apiVersion": "v1", "kind": "ServiceAccount",
            "metadata": { "name": DEFAULT, "namespace": &*key.name },
        });
        let draft = Draft::new(account, body);
        Decision::act(create(draft), Reason::LacksAccount)
    }

    /// A namespace is touched by itself and by its default account.
    fn keys_touched(&self, object: &Object, _: &Cache) -> Vec<ObjectKey> {
        let key = object.key();
        if key.resource.is(&SERVICE_ACCOUNT) && &*key.name == DEFAULT {
            return vec![ObjectKey::cluster(
                &NAMESPACE.resource(),
                key.namespace_str(),
            )];
        }
        self.keys_about(object)
    }

    fn keys_about(&self, object: &Object) -> Vec<ObjectKey> {
        let is_own = object.key().resource.is(&NAMESPACE);
        is_own.then(|| object.key().clone()).into_iter().collect()
    }
}

#[cfg(test)]
mod tests;
