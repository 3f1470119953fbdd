//! The patches of the collector: always the whole list that remains, guarded by uid and revision.

use serde_json::{Value, json};
use sundown_model::{Action, Object, OwnerRef, Part, Patch, Write};

/// Leaves an object with these owner references.
pub(super) fn set_owners(object: &Object, keep: &[&OwnerRef]) -> Action {
    let list = serde_json::to_value(keep).expect("owner references are plain data");
    patch(
        object,
        json!({ "metadata": { "ownerReferences": null_if_empty(list) } }),
    )
}

/// Leaves an object with all finalizers but this one.
pub(super) fn drop_finalizer(object: &Object, name: &str) -> Action {
    let keep = object
        .finalizers()
        .iter()
        .filter(|finalizer| &***finalizer != name);
    let list = serde_json::to_value(keep.collect::<Vec<_>>()).expect("finalizers are texts");
    patch(
        object,
        json!({ "metadata": { "finalizers": null_if_empty(list) } }),
    )
}

/// A merge patch removes a field by null; an empty list would stay as an empty list.
fn null_if_empty(list: Value) -> Value {
    if list.as_array().is_some_and(Vec::is_empty) {
        Value::Null
    } else {
        list
    }
}

fn patch(object: &Object, patch: Value) -> Action {
    Action::Api(Write::Patch {
        at: object.seen(),
        part: Part::Main,
        patch: Patch::Merge(patch),
    })
}
