//! What the decision reads of a `CustomResourceDefinition`.

use serde_json::Value;
use sundown_model::{Object, Resource, Seen};

/// The fields that a watch has to keep.
pub(super) const FIELDS: &[&str] = &["/spec/group", "/spec/names/plural", "/status/conditions"];

/// The finalizer that this controller removes.
pub(super) const CLEANUP: &str = "customresourcecleanup.apiextensions.k8s.io";

/// A definition, as far as its end is concerned.
#[derive(Debug, Clone)]
pub(super) struct DefinitionView {
    pub(super) seen: Seen,
    pub(super) is_deleting: bool,
    pub(super) finalizers: Vec<String>,
    /// What it defines.
    pub(super) resource: Resource,
    /// status.conditions as they stand.
    pub(super) conditions: Vec<Value>,
}

impl DefinitionView {
    pub(super) fn of(definition: &Object) -> Self {
        let text = |pointer| {
            let found = definition.field(pointer).and_then(Value::as_str);
            found.unwrap_or("")
        };
        let conditions = definition.field("/status/conditions");
        Self {
            seen: definition.seen(),
            is_deleting: definition.is_deleting(),
            finalizers: definition
                .finalizers()
                .iter()
                .map(ToString::to_string)
                .collect(),
            resource: Resource::new(text("/spec/group"), text("/spec/names/plural")),
            conditions: conditions
                .and_then(Value::as_array)
                .cloned()
                .unwrap_or_default(),
        }
    }

    pub(super) fn is_held(&self) -> bool {
        self.finalizers.iter().any(|name| name == CLEANUP)
    }

    /// Whether it was ever served; else it has no instances.
    pub(super) fn is_established(&self) -> bool {
        let is_it = |it: &&Value| it["type"] == "Established" && it["status"] == "True";
        self.conditions.iter().any(|it| is_it(&it))
    }
}
