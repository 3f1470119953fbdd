//! What the decision reads of a `CustomResourceDefinition`.

use serde_json::Value;
use sundown_model::{Object, Resource};

/// The fields that a watch has to keep.
pub(super) const FIELDS: &[&str] = &["/spec/group", "/spec/names/plural", "/status/conditions"];

/// The finalizer that this controller removes.
pub(super) const CLEANUP: &str = "customresourcecleanup.apiextensions.k8s.io";

/// A definition, as far as its end is concerned.
#[derive(Debug, Clone)]
pub(super) struct DefinitionView<'a> {
    pub(super) object: &'a Object,
    /// What it defines.
    pub(super) resource: Resource,
    /// status.conditions as they stand.
    pub(super) conditions: Vec<Value>,
}

impl<'a> DefinitionView<'a> {
    pub(super) fn of(definition: &'a Object) -> Self {
        let text = |pointer| {
            let found = definition.field(pointer).and_then(Value::as_str);
            found.unwrap_or("")
        };
        let conditions = definition.field("/status/conditions");
        Self {
            object: definition,
            resource: Resource::new(text("/spec/group"), text("/spec/names/plural")),
            conditions: conditions
                .and_then(Value::as_array)
                .cloned()
                .unwrap_or_default(),
        }
    }

    pub(super) fn is_held(&self) -> bool {
        self.object.has_finalizer(CLEANUP)
    }

    /// Whether it was ever served; else it has no instances.
    pub(super) fn is_established(&self) -> bool {
        let is_it = |it: &&Value| it["type"] == "Established" && it["status"] == "True";
        self.conditions.iter().any(|it| is_it(&it))
    }
}
