//! What the decision reads of a Namespace.

use serde_json::Value;
use sundown_model::{Deletion, Namespace, Object};

/// The fields that a watch has to keep.
pub(super) const FIELDS: &[&str] = &["/spec/finalizers", "/status/conditions"];

/// The finalizer in spec that this controller removes.
pub(super) const KUBERNETES: &str = "kubernetes";

/// A namespace, as far as its end is concerned.
#[derive(Debug, Clone)]
pub(super) struct NamespaceView<'a> {
    pub(super) object: &'a Object,
    pub(super) name: Namespace,
    pub(super) deletion: Option<Deletion>,
    /// spec.finalizers.
    pub(super) finalizers: Vec<String>,
    /// Whether metadata.finalizers holds any.
    has_finalizers: bool,
    /// status.conditions as they stand.
    pub(super) conditions: Vec<Value>,
}

impl<'a> NamespaceView<'a> {
    pub(super) fn of(namespace: &'a Object) -> Self {
        let list = |pointer| namespace.field(pointer).and_then(Value::as_array);
        let finalizers = list("/spec/finalizers").into_iter().flatten();
        Self {
            object: namespace,
            name: Namespace::from(&*namespace.key().name),
            deletion: namespace.deletion(),
            finalizers: finalizers
                .filter_map(Value::as_str)
                .map(ToOwned::to_owned)
                .collect(),
            has_finalizers: !namespace.finalizers().is_empty(),
            conditions: list("/status/conditions").cloned().unwrap_or_default(),
        }
    }

    /// Whether it stays when this controller is done, so that its conditions will be read.
    pub(super) fn outlives_us(&self) -> bool {
        self.has_finalizers || self.finalizers.len() > 1
    }

    pub(super) fn is_held(&self) -> bool {
        self.finalizers.iter().any(|name| name == KUBERNETES)
    }
}
