//! Who acts inside of a control plane: the controllers and the node are users of their own, with the
//! rights that they declare and no others. Their roles are stored, so that `kubectl auth can-i --as`
//! tells the truth about them. They are brought up to date at each start, and brought back whenever they are
//! changed or deleted: without them nothing would act any more, not even who could bring them back.
//!
//! What the server writes for itself (definitions of kinds, the Service of the API server, these roles)
//! is the administrator's.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;

use futures::future::try_join_all;
use kube::Client;
use serde_json::{Value, json};
use sundown_api::{Server, User};
use sundown_decide::pod::NODE_NAME;
use sundown_decide::rights::Rights;
use sundown_driver::lookup::Lookup;
use sundown_model::{ObjectKey, Resource};
use sundown_server::{Shared, Stop};
use sundown_store::Revision;

use crate::machine::{self, registration::request};

const GROUP: &str = "rbac.authorization.k8s.io";
const ROLES: &str = "/apis/rbac.authorization.k8s.io/v1/clusterroles";
const BINDINGS: &str = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings";

/// A user of our own, and the role that says what it may do. Role and binding have one name.
#[derive(Debug, Clone)]
pub(crate) struct Identity {
    user: String,
    groups: &'static [&'static str],
    role: &'static str,
    rules: Value,
}

impl Identity {
    /// The controllers of one engine.
    pub(crate) fn of_controllers(rights: &Rights) -> Self {
        let rules = rights.rules();
        Self {
            user: "system:sundown:controllers".to_owned(),
            groups: &["system:sundown", "system:authenticated"],
            role: "system:sundown:controllers",
            rules: json!(rules),
        }
    }

    /// This machine, as kubelets are called.
    pub(crate) fn of_node() -> Self {
        let mut rights = Rights::default();
        rights.declare(machine::RIGHTS);
        rights.declare(Lookup::RIGHTS);
        Self {
            user: format!("system:node:{NODE_NAME}"),
            groups: &["system:nodes", "system:authenticated"],
            role: "system:sundown:node",
            rules: json!(rights.rules()),
        }
    }

    /// As the server knows callers.
    pub(crate) fn user(&self) -> User {
        User {
            name: self.user.clone(),
            uid: String::new(),
            groups: self.groups.iter().map(|it| (*it).to_owned()).collect(),
            extra: BTreeMap::new(),
        }
    }

    /// The stored objects: role and binding.
    fn keys(&self) -> [ObjectKey; 2] {
        ["clusterroles", "clusterrolebindings"]
            .map(|plural| ObjectKey::cluster(&Resource::new(GROUP, plural), self.role))
    }

    /// Whether nothing is declared, so that no role is needed.
    fn is_idle(&self) -> bool {
        self.rules.as_array().is_none_or(Vec::is_empty)
    }

    fn role(&self) -> Value {
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
            "metadata": metadata(self.role), "rules": self.rules, "aggregationRule": null,
        })
    }

    fn binding(&self) -> Value {
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
            "metadata": metadata(self.role),
            "roleRef": { "apiGroup": GROUP, "kind": "ClusterRole", "name": self.role },
            "subjects": [{ "apiGroup": GROUP, "kind": "User", "name": self.user }],
        })
    }
}

/// Sees to it that roles and bindings are stored as they are here, and says what had to be done.
///
/// Errors: the API server did not take them.
pub(crate) async fn grant(
    client: &Client,
    identities: &[Identity],
) -> Result<Vec<Change>, kube::Error> {
    let identities = identities.iter().filter(|identity| !identity.is_idle());
    let wanted = identities.flat_map(|it| [(ROLES, it.role()), (BINDINGS, it.binding())]);
    // At once: what is written together is synced together.
    let kept = wanted.map(|(collection, wanted)| keep(client, collection, wanted));
    try_join_all(kept).await
}

/// Brings roles and bindings back when they are changed or deleted, until it is asked to stop.
///
/// Assumes: they were granted before; `client` has the rights of the administrator.
pub(crate) async fn keep_granted(
    shared: Arc<Shared>,
    client: Client,
    identities: Vec<Identity>,
    stop: Stop,
) -> Result<(), Infallible> {
    let keys: Vec<ObjectKey> = identities.iter().flat_map(Identity::keys).collect();
    let mut published = shared.subscribe();
    let mut kept = None;
    loop {
        let seen = revisions(&published.borrow_and_update(), &keys);
        if kept.as_ref() != Some(&seen) {
            match grant(&client, &identities).await {
                Ok(changes) => {
                    kept = Some(seen);
                    if changes.iter().any(|it| *it != Change::Nothing) {
                        tracing::warn!(
                            "the roles or bindings of system:sundown:controllers or of system:sundown:node were \
                             changed or deleted; Sundown needs them and has brought them back"
                        );
                    }
                }
                // Tried again after the next commit: a full disk or another writer stood in the way.
                Err(error) => tracing::warn!(%error, "bring back the roles of Sundown"),
            }
        }
        tokio::select! {
            changed = published.changed() => changed.expect("the server is held here"),
            () = stop.asked() => return Ok(()),
        }
    }
}

/// Which state of each object is stored.
fn revisions(server: &Server, keys: &[ObjectKey]) -> Vec<Option<Revision>> {
    let stored = keys.iter().map(|key| server.store().get(key));
    stored
        .map(|stored| stored.map(|stored| stored.revision()))
        .collect()
}

fn metadata(name: &str) -> Value {
    json!({ "name": name, "labels": { "app.kubernetes.io/managed-by": "sundown" } })
}

/// Makes an object, or brings it up to date.
async fn keep(client: &Client, collection: &str, wanted: Value) -> Result<Change, kube::Error> {
    let name = wanted["metadata"]["name"].as_str().unwrap_or_default();
    let path = format!("{collection}/{name}");
    let found = client.request::<Value>(request("GET", &path, &Value::Null));
    let found = match found.await {
        Ok(found) => found,
        Err(kube::Error::Api(status)) if status.code == 404 => Value::Null,
        Err(error) => return Err(error),
    };
    let change = match &found {
        Value::Null => Change::Create,
        found => change(found, &wanted),
    };
    let create = request("POST", collection, &wanted);
    let call = match change {
        Change::Nothing => return Ok(change),
        Change::Create => create,
        Change::Patch => request("PATCH", &path, &wanted),
        Change::Replace => {
            let seen = &found["metadata"];
            let seen = json!({ "uid": seen["uid"], "resourceVersion": seen["resourceVersion"] });
            let delete = request("DELETE", &path, &json!({ "preconditions": seen }));
            client.request::<Value>(delete).await?;
            create
        }
    };
    client.request::<Value>(call).await?;
    Ok(change)
}

/// What it takes to make what was found what is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Change {
    Nothing,
    Create,
    Patch,
    /// The role of a binding cannot be changed.
    Replace,
}

fn change(found: &Value, wanted: &Value) -> Change {
    let is_same = |member: &str| found[member] == wanted[member];
    if !is_same("roleRef") {
        return Change::Replace;
    }
    if ["aggregationRule", "rules", "subjects"]
        .into_iter()
        .all(is_same)
    {
        Change::Nothing
    } else {
        Change::Patch
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{Change, Identity, change};

    #[test]
    fn what_somebody_changed_is_brought_back() {
        let identity = Identity::of_node();
        let (role, binding) = (identity.role(), identity.binding());
        assert_eq!(change(&role, &role), Change::Nothing);
        assert_eq!(change(&binding, &binding), Change::Nothing);
        let mut wide = role.clone();
        wide["rules"] = json!([{ "apiGroups": ["*"], "resources": ["*"], "verbs": ["*"] }]);
        assert_eq!(change(&wide, &role), Change::Patch);
        let mut shared = binding.clone();
        shared["subjects"] = json!([]);
        assert_eq!(change(&shared, &binding), Change::Patch);
        let mut other = binding.clone();
        other["roleRef"]["name"] = json!("cluster-admin");
        assert_eq!(change(&other, &binding), Change::Replace);
    }

    #[test]
    fn neither_the_controllers_nor_the_node_are_administrators() {
        let controllers = Identity::of_controllers(&sundown_decide::rights::Rights::default());
        for identity in [controllers, Identity::of_node()] {
            let groups = identity.user().groups;
            assert!(!groups.contains(&"system:masters".to_owned()), "{groups:?}");
        }
    }
}
