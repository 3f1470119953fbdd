//! What names are made from: services, and the pods that they mean.

use core::net::Ipv4Addr;

use serde_json::Value;
use sundown_model::{Object, Uid};

use crate::json::{items, text};
use crate::selector::is_subset;

/// The fields of a Service that a watch has to keep.
pub(super) const SERVICE_FIELDS: &[&str] = &[
    "/spec/clusterIP",
    "/spec/ports",
    "/spec/publishNotReadyAddresses",
    "/spec/selector",
    "/spec/type",
];

/// The fields of a Pod that a watch has to keep.
pub(super) const POD_FIELDS: &[&str] = &[
    "/metadata/labels",
    "/spec/containers",
    "/spec/hostname",
    "/spec/nodeName",
    "/spec/subdomain",
    "/status/conditions",
    "/status/phase",
    "/status/podIP",
];

/// The fields of an `EndpointSlice` that a watch has to keep.
pub(super) const SLICE_FIELDS: &[&str] = &["/endpoints", "/metadata/labels", "/ports"];

/// The label by which a slice names its service.
pub(super) const SERVICE_NAME: &str = "kubernetes.io/service-name";

/// A service.
#[derive(Debug, Clone)]
pub(super) struct ServiceView<'a> {
    pub(super) object: &'a Object,
    pub(super) selector: Option<&'a Value>,
    pub(super) is_headless: bool,
    pub(super) shows_unready: bool,
    pub(super) is_external: bool,
    pub(super) ports: &'a [Value],
}

/// A pod, as far as others look for it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct PodView<'a> {
    pub(super) object: &'a Object,
    pub(super) uid: &'a Uid,
    pub(super) address: Ipv4Addr,
    pub(super) is_ready: bool,
    pub(super) is_deleting: bool,
    pub(super) node: &'a str,
    pub(super) hostname: &'a str,
    pub(super) subdomain: &'a str,
}

impl<'a> ServiceView<'a> {
    pub(super) fn of(object: &'a Object) -> Self {
        let word = |pointer| object.field(pointer).and_then(Value::as_str).unwrap_or("");
        let selector = object.field("/spec/selector");
        let has_pairs = |it: &&Value| it.as_object().is_some_and(|map| !map.is_empty());
        Self {
            object,
            selector: selector.filter(has_pairs),
            is_headless: word("/spec/clusterIP") == "None",
            shows_unready: object.field("/spec/publishNotReadyAddresses")
                == Some(&Value::Bool(true)),
            is_external: word("/spec/type") == "ExternalName",
            ports: items(object.field("/spec/ports")),
        }
    }

    /// Whether it means a pod.
    pub(super) fn selects(&self, pod: &Object) -> bool {
        self.selector.is_some()
            && pod.key().namespace == self.object.key().namespace
            && is_subset(self.selector, pod.field("/metadata/labels"))
    }

    /// Whether those who look for the service are sent to a pod.
    pub(super) fn shows(&self, pod: &PodView<'_>) -> bool {
        self.shows_unready || (pod.is_ready && !pod.is_deleting)
    }
}

impl<'a> PodView<'a> {
    /// None: it cannot be reached, because it has no address or is over.
    pub(super) fn of(object: &'a Object) -> Option<Self> {
        let word = |pointer| object.field(pointer).and_then(Value::as_str).unwrap_or("");
        if matches!(word("/status/phase"), "Succeeded" | "Failed") {
            return None;
        }
        let mut conditions = items(object.field("/status/conditions")).iter();
        let is_ready = |it: &Value| text(it, "type") == "Ready" && text(it, "status") == "True";
        Some(Self {
            object,
            uid: object.uid(),
            address: word("/status/podIP").parse().ok()?,
            is_ready: conditions.any(is_ready),
            is_deleting: object.is_deleting(),
            node: word("/spec/nodeName"),
            hostname: word("/spec/hostname"),
            subdomain: word("/spec/subdomain"),
        })
    }

    /// Whether two observations of a pod say the same to those who look for it.
    pub(super) fn is_same(old: &Object, new: &Object) -> bool {
        let labels = |it: &Object| it.field("/metadata/labels").cloned();
        let view = |it: &Object| {
            let it = PodView::of(it)?;
            Some((it.address, it.is_ready, it.is_deleting, it.node.to_owned()))
        };
        labels(old) == labels(new) && view(old) == view(new)
    }
}
