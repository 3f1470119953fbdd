//! Autoscalers: what they have when nobody says otherwise and what they may not have.

use serde_json::{Value, json};

use super::place::At;
use super::{section, set};
use crate::document::Document;
use crate::field::{Errors, FieldError};

/// Fills in an autoscaler.
pub(super) fn default(object: &mut Document) {
    let spec = object.section("spec");
    set(spec, "minReplicas", json!(1));
    let metrics = json!([{
        "type": "Resource",
        "resource": { "name": "cpu", "target": { "type": "Utilization", "averageUtilization": 80 } },
    }]);
    set(spec, "metrics", metrics);
    // Upstream fills in both directions once either of them is told.
    if let Some(behavior) = spec.get_mut("behavior").and_then(Value::as_object_mut) {
        let up = section(behavior, "scaleUp");
        set(up, "stabilizationWindowSeconds", json!(0));
        set(up, "selectPolicy", json!("Max"));
        let pods = json!({ "type": "Pods", "value": 4, "periodSeconds": 15 });
        let percent = json!({ "type": "Percent", "value": 100, "periodSeconds": 15 });
        set(up, "policies", json!([pods, percent]));
        let down = section(behavior, "scaleDown");
        set(down, "selectPolicy", json!("Max"));
        set(down, "policies", json!([percent]));
    }
}

/// What is wrong with an autoscaler; upstream tells of a missing maximum at the end.
pub(super) fn validate(object: &Document) -> Errors {
    let spec = At::new(object.rest.get("spec"), "spec");
    let mut errors = Errors::default();
    let (min, max) = (spec.child("minReplicas"), spec.child("maxReplicas"));
    let highest = max.number().unwrap_or(0);
    if min.number().is_some_and(|lowest| highest < lowest) {
        errors.push(max.invalid("must be greater than or equal to `minReplicas`"));
    }
    let target = spec.child("scaleTargetRef");
    for member in ["kind", "name"] {
        let own = target.child(member);
        if own.text().is_empty() {
            errors.push(own.required(""));
        }
    }
    let version = target.child("apiVersion");
    if target.text_of("kind") != "ReplicationController" && !version.text().contains('/') {
        let why = "apiVersion must specify API group";
        errors.push(FieldError::invalid(&*version.path, version.text(), why));
    }
    let metrics = spec.child("metrics");
    let mut kinds = metrics.items();
    let has_outside = kinds.any(|it| matches!(it.text_of("type"), "Object" | "External"));
    if min.number() == Some(0) && !has_outside {
        let why = "must specify at least one Object or External metric to support scaling to zero \
                   replicas";
        errors.push(metrics.forbidden(why));
    }
    if highest == 0 {
        errors.push(max.required(""));
    } else if highest < 0 {
        errors.push(max.invalid("must be greater than or equal to 1"));
    }
    errors
}
