//! What a pod needs to know of other objects: its service account, and the address and size of its node.

use core::net::Ipv4Addr;

use serde_json::Value;
use sundown_model::{Cache, Object, ObjectKey};

use super::NODE_NAME;
use super::view::PodView;
use crate::json::{items, text};
use crate::kinds::{NODE, SERVICE_ACCOUNT};

/// Whether the pod gets a token: it says so itself, else its account does, else yes.
pub(super) fn has_token(pod: &PodView<'_>, cache: &Cache) -> bool {
    let own = pod.object.field("/spec/automountServiceAccountToken");
    let name = pod.object.field("/spec/serviceAccountName");
    let name = name.and_then(Value::as_str).unwrap_or("default");
    let key = ObjectKey::namespaced(&SERVICE_ACCOUNT.resource(), pod.namespace(), name);
    let account = cache.get(&key);
    let account = account.and_then(|it| it.field("/automountServiceAccountToken"));
    own.or(account).and_then(Value::as_bool).unwrap_or(true)
}

fn node(cache: &Cache) -> Option<&Object> {
    let key = ObjectKey::cluster(&NODE.resource(), NODE_NAME);
    cache.get(&key).map(|it| &**it)
}

/// What the node's object says that there is for pods.
pub(super) fn allocatable(cache: &Cache) -> Option<&Value> {
    node(cache)?.field("/status/allocatable")
}

/// The address that the node's object names.
pub(super) fn host_address(cache: &Cache) -> Option<Ipv4Addr> {
    let node = node(cache)?;
    let mut addresses = items(node.field("/status/addresses")).iter();
    let internal = addresses.find(|it| text(it, "type") == "InternalIP")?;
    text(internal, "address").parse().ok()
}
