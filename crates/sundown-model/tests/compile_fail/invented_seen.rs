//! A proof of observation that nobody observed.

use sundown_model::{ObjectKey, Resource, Rv, Seen};

fn main() {
    let key = ObjectKey::cluster(&Resource::new("", "namespaces"), "default");
    let _ = Seen { key, uid: "made-up".into(), rv: Rv::new(1) };
}
