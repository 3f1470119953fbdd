//! What the decisions on Ray clusters and Ray jobs share: who owns what, and names that are the same
//! each time they are made.
//!
//! What is made, and when, is decided in `ray_cluster` and `ray_job`.

pub(crate) mod config;
pub(crate) mod merge;
pub(crate) mod unsupported;
pub(crate) mod view;

use serde_json::Value;
use sundown_kinds::{constants, names};
use sundown_model::{Action, Draft, KnownKind, Object, ObjectKey, OwnerRef, Resource};
use xxhash_rust::xxh3::xxh3_64;

use crate::actions;

/// The reference to the controller of an object.
pub(crate) fn controller_of(object: &Object) -> Option<&OwnerRef> {
    object
        .owners()
        .iter()
        .find(|owner| owner.controller == Some(true))
}

/// Whether an object is controlled by this very incarnation of another. A label proves nothing: anybody
/// may write one, and a successor of the same name has the same.
pub(crate) fn is_owned(object: &Object, owner: &Object) -> bool {
    controller_of(object).is_some_and(|reference| reference.uid == *owner.uid())
}

/// The key of the controller of an object, if it is of this kind.
pub(crate) fn controller_key(object: &Object, kind: &KnownKind) -> Option<ObjectKey> {
    let reference = controller_of(object)?;
    let group = reference.api_version.split('/').next().unwrap_or("");
    let is_kind = &*reference.kind == kind.kind && group == kind.group;
    is_kind.then(|| beside(object.key(), kind, &reference.name))
}

/// The key of an object of another kind in the same namespace.
pub(crate) fn beside(key: &ObjectKey, kind: &KnownKind, name: &str) -> ObjectKey {
    ObjectKey {
        resource: Resource::new(kind.group, kind.plural),
        namespace: key.namespace.clone(),
        name: name.into(),
    }
}

/// A suffix as upstream's are, but the same each time it is made of the same: a create that is repeated
/// meets the object of the first one.
pub(crate) fn suffix(parts: &[&str]) -> String {
    let text: String = parts.iter().flat_map(|part| [part, "\0"]).collect();
    let bytes = xxh3_64(text.as_bytes()).to_le_bytes();
    let mut random = [0; constants::SUFFIX_LENGTH];
    random.copy_from_slice(&bytes[..constants::SUFFIX_LENGTH]);
    names::suffix(random)
}

/// Creates an object of a kind beside the one that it is told about; the body says its name.
pub(crate) fn create(about: &Object, kind: &KnownKind, body: Value, told: Told) -> Action {
    let key = beside(about.key(), kind, name_of(&body));
    let told = Some(actions::word(about, told.reason, told.message));
    actions::create(Draft { key, body, told })
}

/// What is told once something was made.
#[derive(Debug, Clone)]
pub(crate) struct Told {
    pub(crate) reason: &'static str,
    pub(crate) message: String,
}

/// The name that stands in a body.
pub(crate) fn name_of(body: &Value) -> &str {
    body["metadata"]["name"].as_str().unwrap_or("")
}

/// Namespace and name, as upstream's messages have them.
pub(crate) fn place(key: &ObjectKey) -> String {
    format!("{}/{}", key.namespace_str(), key.name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::RAY_JOB;
    use crate::testing::a;
    use serde_json::json;

    #[test]
    fn suffixes_are_upstreams_in_form_and_the_same_for_the_same() {
        let one = suffix(&["uid", "group", "0"]);
        assert_eq!(one, suffix(&["uid", "group", "0"]));
        assert_ne!(one, suffix(&["uid", "group", "1"]));
        assert_ne!(suffix(&["a", "bc"]), suffix(&["ab", "c"]));
        let fits = |byte: u8| constants::SUFFIX_ALPHABET.contains(&byte);
        assert!(one.len() == 5 && one.bytes().all(fits), "{one}");
    }

    #[test]
    fn only_the_controller_of_the_right_uid_and_kind_owns() {
        let owner = a("rayjob", "mine").build();
        let reference = |uid: &str, controller: bool| {
            json!({"apiVersion": "ray.io/v1", "kind": "RayJob", "name": "mine", "uid": uid,
                   "controller": controller})
        };
        let is_own = |it: Value| is_owned(&a("pod", "p").referring(it).build(), &owner);
        assert!(is_own(reference("uid-mine", true)));
        assert!(!is_own(reference("uid-mine", false)));
        assert!(!is_own(reference("uid-of-another", true)));
        let pod = a("pod", "p").referring(reference("uid-mine", true)).build();
        assert_eq!(controller_key(&pod, &RAY_JOB), Some(owner.key().clone()));
        assert_eq!(controller_key(&pod, &crate::kinds::RAY_CLUSTER), None);
    }
}
