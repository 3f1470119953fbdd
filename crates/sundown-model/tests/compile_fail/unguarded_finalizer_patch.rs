//! A patch of finalizers that names its target by key alone.

use sundown_model::{ObjectKey, Part, Patch, Resource, Write};

fn main() {
    let key = ObjectKey::cluster(&Resource::new("", "namespaces"), "default");
    let patch = Patch::Merge(serde_json::json!({ "metadata": { "finalizers": null } }));
    let _ = Write::Patch { at: key, part: Part::Main, patch };
}
