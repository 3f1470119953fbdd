//! Who uses which storage, as pods and volumes say it.

use serde_json::Value;
use sundown_model::{Namespace, Object, ObjectKey, Uid};

use crate::json;
use crate::kinds::CLAIM;

/// The fields of a pod that a watch has to keep.
pub(super) const POD_FIELDS: &[&str] = &["/spec/nodeName", "/spec/volumes"];

/// The fields of a volume that a watch has to keep.
pub(super) const VOLUME_FIELDS: &[&str] = &["/spec/claimRef", "/status/phase"];

/// The claims that a pod names, by whichever of its volumes.
pub(super) fn claims_of(pod: &Object) -> Vec<ObjectKey> {
    let volumes = json::items(pod.field("/spec/volumes")).iter();
    let claims = volumes.filter_map(|it| by_name(it).or_else(|| made_for(pod, it)));
    claims.map(|it| claim_key(pod, &it)).collect()
}

/// Whether a pod keeps a claim: upstream's rule. A pod without a node cannot start any more once the
/// claim is terminating; one with a node counts until its object is gone, whether it runs or not.
pub(super) fn uses(pod: &Object, claim: &Object) -> bool {
    let is_bound = pod.field("/spec/nodeName").and_then(Value::as_str);
    if is_bound.is_none_or(str::is_empty) || pod.key().namespace != claim.key().namespace {
        return false;
    }
    let is_meant = |name: Option<String>| name.is_some_and(|name| *name == *claim.key().name);
    let owners = || claim.owners().iter();
    let is_its_own = || owners().any(|it| it.controller == Some(true) && it.uid == *pod.uid());
    json::items(pod.field("/spec/volumes"))
        .iter()
        .any(|volume| {
            is_meant(by_name(volume))
                || !is_shut_down(pod) && is_meant(made_for(pod, volume)) && is_its_own()
        })
}

/// The claim that a volume is bound to, and which incarnation of it, if that is said.
pub(super) fn claim_of(volume: &Object) -> Option<(ObjectKey, Option<Uid>)> {
    let claim = volume.field("/spec/claimRef")?;
    let (namespace, name) = (json::text(claim, "namespace"), json::text(claim, "name"));
    let key = ObjectKey {
        resource: CLAIM.resource(),
        namespace: Some(Namespace::from(namespace)),
        name: name.into(),
    };
    let uid = Some(json::text(claim, "uid")).filter(|uid| !uid.is_empty());
    Some((key, uid.map(Uid::from)))
}

/// Whether the volume is in use, as far as its status goes.
pub(super) fn is_bound(volume: &Object) -> bool {
    volume.field("/status/phase").and_then(Value::as_str) == Some("Bound")
}

fn by_name(volume: &Value) -> Option<String> {
    let name = volume.get("persistentVolumeClaim")?.get("claimName")?;
    name.as_str().map(ToOwned::to_owned)
}

/// The claim that is made for an ephemeral volume, named as upstream names it.
fn made_for(pod: &Object, volume: &Value) -> Option<String> {
    volume.get("ephemeral")?;
    Some(format!("{}-{}", pod.key().name, json::text(volume, "name")))
}

/// Whether nothing of the pod runs any more, so that only its finalizers keep the object. Such a
/// finalizer may itself wait for the claim that was made for the pod.
fn is_shut_down(pod: &Object) -> bool {
    pod.deletion().is_some_and(|it| it.grace_seconds == 0)
}

fn claim_key(pod: &Object, name: &str) -> ObjectKey {
    ObjectKey {
        resource: CLAIM.resource(),
        namespace: pod.key().namespace.clone(),
        name: name.into(),
    }
}
