//! Webhooks and aggregated APIs: what they have unless their author says otherwise. This server calls none.

use serde_json::{Value, json};

use super::{each, set};
use crate::document::Document;

/// Fills in a configuration of webhooks, as upstream's `admissionregistration/v1/defaults.go`.
pub(super) fn default(kind: &str, object: &mut Document) {
    for webhook in each(&mut object.rest, "webhooks") {
        set(webhook, "failurePolicy", json!("Fail"));
        set(webhook, "matchPolicy", json!("Equivalent"));
        set(webhook, "namespaceSelector", json!({}));
        set(webhook, "objectSelector", json!({}));
        set(webhook, "timeoutSeconds", json!(10));
        if kind == "MutatingWebhookConfiguration" {
            set(webhook, "reinvocationPolicy", json!("Never"));
        }
        for rule in each(webhook, "rules") {
            set(rule, "scope", json!("*"));
        }
        default_port(webhook.get_mut("clientConfig"));
    }
}

/// Fills in an `APIService`.
pub(super) fn default_api_service(object: &mut Document) {
    default_port(object.rest.get_mut("spec"));
}

/// The port of the Service that something is asked by, if it is one.
fn default_port(of: Option<&mut Value>) {
    let service = of.and_then(|of| of.get_mut("service"));
    if let Some(service) = service.and_then(Value::as_object_mut) {
        set(service, "port", json!(443));
    }
}
