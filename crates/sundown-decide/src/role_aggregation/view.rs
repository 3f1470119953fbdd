//! What of a `ClusterRole` is looked at.

use serde_json::Value;
use sundown_model::Object;

use super::RoleView;
use crate::json::items;

pub(super) const FIELDS: &[&str] = &["/aggregationRule", "/metadata/labels", "/rules"];

/// How a role is put together; None if its rules are its own.
pub(super) fn aggregation(role: &Object) -> Option<&Value> {
    role.field("/aggregationRule").filter(|it| !it.is_null())
}

/// The role as others select it.
pub(super) fn role(object: &Object) -> RoleView<'_> {
    RoleView {
        name: &object.key().name,
        labels: object.field("/metadata/labels"),
        rules: items(object.field("/rules")),
    }
}
