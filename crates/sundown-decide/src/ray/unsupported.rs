//! What a cluster may ask for that nothing here makes yet. It is refused by name: a cluster that is
//! made without what it asks for would look as if it had it.

use sundown_kinds::constants::{ANNOTATION_FT_ENABLED, ANNOTATION_SERVE_SERVICE};
use sundown_kinds::ray_cluster::{ClusterSpec, WorkerGroup};
use sundown_kinds::{Gates, Metadata};
use sundown_model::ACTIONS_MAX;

/// The first field that is asked for and not supported; its path below the object's root, with `spec`
/// standing where the spec of the cluster stands.
pub(crate) fn field(spec: &ClusterSpec, metadata: &Metadata, gates: &Gates) -> Option<String> {
    let asked = [
        (spec.enable_autoscaling, "enableInTreeAutoscaling"),
        (asks_for_tokens(spec), "authOptions"),
        (spec.fault_tolerance.is_some(), "gcsFaultToleranceOptions"),
        (spec.tls_enabled == Some(true), "tlsOptions"),
        (spec.history_server.is_some(), "historyServerOptions"),
        (spec.network_policy.is_some(), "networkPolicy"),
        (has_ingress(spec), "headGroupSpec.enableIngress"),
    ];
    let field = asked.into_iter().find(|(is_asked, _)| *is_asked);
    if let Some((_, name)) = field {
        return Some(format!("spec.{name}"));
    }
    if let Some(index) = too_many_hosts(spec, gates) {
        let field = format!("spec.workerGroupSpecs[{index}].numOfHosts");
        return Some(format!("{field} above {ACTIONS_MAX}"));
    }
    [ANNOTATION_FT_ENABLED, ANNOTATION_SERVE_SERVICE]
        .into_iter()
        .find(|name| metadata.is_annotated(name))
        .map(|name| format!("annotation {name}"))
}

/// What is said about it, with what to use instead.
pub(crate) fn message(field: &str) -> String {
    let instead = instead(field);
    format!("{field} is not supported by Sundown yet; {instead}")
}

fn instead(field: &str) -> &'static str {
    let name = field.rsplit('.').next().unwrap_or(field);
    match name {
        "enableInTreeAutoscaling" => "set replicas of each worker group to what the job needs",
        "authOptions" => "leave it out, or set its mode to disabled",
        "enableIngress" => "leave it out: sundown run prints an address of the dashboard",
        "networkPolicy" => "leave it out: nothing from outside reaches pods here",
        "submissionMode SidecarMode" => "use K8sJobMode or HTTPMode",
        _ if name.starts_with("numOfHosts") => "use more replicas with fewer hosts",
        _ => "leave it out",
    }
}

/// Without a mode upstream makes a secret that no pod knows of; with `disabled` it makes nothing.
fn asks_for_tokens(spec: &ClusterSpec) -> bool {
    spec.auth
        .as_ref()
        .is_some_and(|auth| auth.mode != "disabled" || auth.enable_token_review)
}

/// The first group whose replicas have more hosts than one decision makes: a replica comes as a whole, for
/// half of one is taken for one that lost its hosts.
fn too_many_hosts(spec: &ClusterSpec, gates: &Gates) -> Option<usize> {
    let is_too_many = |group: &WorkerGroup| {
        let hosts = usize::try_from(group.host_count).unwrap_or(0);
        gates.ray_multi_host_indexing && hosts > ACTIONS_MAX
    };
    spec.worker_groups.iter().position(is_too_many)
}

fn has_ingress(spec: &ClusterSpec) -> bool {
    let head = spec.raw.get("headGroupSpec");
    head.and_then(|head| head.get("enableIngress")?.as_bool()) == Some(true)
}
