//! What built-in kinds fill in, refuse and keep, beyond what their facts say.
//!
//! Mirrors the parts of upstream's defaults, strategies, validation and admission that clients rely
//! on, one file per family of kinds. Kinds without a row get nothing.

mod access;
mod admission;
mod autoscaling;
mod binding;
mod containers;
mod cron;
mod events;
mod eviction;
mod jobs;
mod labels;
mod place;
mod pod_rules;
mod pods;
mod policies;
mod services;
mod storage;
mod webhooks;
mod workloads;

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::Server;
use crate::dns;
use crate::document::{Document, whole_seconds};
use crate::failure::Failure;
use crate::field::{Errors, FieldError};
use crate::registry::Type;
use crate::route::Part;
use place::{At, IMMUTABLE};

pub(crate) use binding::bind;
pub(crate) use events::EVENT_NAMES;
pub(crate) use eviction::evict;

const STORED_ONLY: &str = "is stored, but no controller of this server acts on it yet";

/// Whether a warning is about this server, and not about the request that it answers.
pub fn is_about_server(warning: &str) -> bool {
    warning.ends_with(STORED_ONLY)
}

/// What a client is told who creates an object that nobody acts on yet.
pub(crate) fn create_warning(server: &Server, ty: &Type) -> Option<String> {
    let kind = &ty.kind;
    let is_acted_on = ty.is_acted_on || server.config().acted_on.contains(&ty.resource);
    (!is_acted_on).then(|| format!("{kind} {STORED_ONLY}"))
}

/// Fills in what the client left out.
pub(crate) fn default(ty: &Type, object: &mut Document) {
    if ty.is_custom() {
        return;
    }
    match (ty.resource.group(), &*ty.kind) {
        ("", "Pod") => pods::default_pod(object),
        ("", "PodTemplate") => pods::default_template(&mut object.rest),
        ("", "Service") => services::default(object),
        ("", "PersistentVolumeClaim") => storage::default_claim(object),
        ("", "PersistentVolume") => storage::default_volume(object),
        ("batch", "Job") => jobs::default_job(object),
        ("batch", "CronJob") => jobs::default_cron_job(object),
        ("apps", "Deployment") => workloads::default_deployment(object),
        ("apps", "ReplicaSet") => workloads::default_replica_set(object),
        ("apps", "StatefulSet") => workloads::default_stateful_set(object),
        ("apps", "DaemonSet") => workloads::default_daemon_set(object),
        ("", "ReplicationController") => workloads::default_replication_controller(object),
        ("storage.k8s.io", "StorageClass") => {
            set(&mut object.rest, "reclaimPolicy", json!("Delete"));
            set(&mut object.rest, "volumeBindingMode", json!("Immediate"));
        }
        ("networking.k8s.io", "NetworkPolicy") => {
            let has_egress = object.at(&["spec", "egress"]).is_some();
            let types: &[&str] = if has_egress {
                &["Ingress", "Egress"]
            } else {
                &["Ingress"]
            };
            let spec = object.section("spec");
            set(spec, "policyTypes", json!(types));
            for list in ["ingress", "egress"] {
                for port in each(spec, list).flat_map(|rule| each(rule, "ports")) {
                    set(port, "protocol", json!("TCP"));
                }
            }
        }
        ("rbac.authorization.k8s.io", "RoleBinding" | "ClusterRoleBinding") => {
            access::default_binding(object);
        }
        ("rbac.authorization.k8s.io", "Role" | "ClusterRole") => access::default_role(object),
        ("autoscaling", "HorizontalPodAutoscaler") => autoscaling::default(object),
        ("admissionregistration.k8s.io", kind) => webhooks::default(kind, object),
        ("apiregistration.k8s.io", "APIService") => webhooks::default_api_service(object),
        ("", "Node") => default_node(object),
        ("", "Endpoints") => {
            for port in each(&mut object.rest, "subsets").flat_map(|it| each(it, "ports")) {
                set(port, "protocol", json!("TCP"));
            }
        }
        ("discovery.k8s.io", "EndpointSlice") => {
            for port in each(&mut object.rest, "ports") {
                set(port, "name", json!(""));
                set(port, "protocol", json!("TCP"));
            }
        }
        ("scheduling.k8s.io", "PriorityClass") => {
            let policy = json!("PreemptLowerPriority");
            set(&mut object.rest, "preemptionPolicy", policy);
        }
        _ => {}
    }
}

/// Adds what upstream's admission plugins add to a new object.
///
/// Errors: a plugin refuses it.
pub(crate) fn admit(server: &Server, ty: &Type, object: &mut Document) -> Result<(), Failure> {
    if ty.is_custom() {
        return Ok(());
    }
    admission::admit(server, ty, object)
}

/// Adds what upstream's admission plugins add to a changed object.
pub(crate) fn admit_update(ty: &Type, part: Part, old: &Document, new: &mut Document) {
    if !ty.is_custom() && part == Part::Main {
        admission::admit_update(ty, old, new);
    }
}

/// Whether a new object keeps the status that it is sent with: kubelets register with theirs.
pub(crate) fn keeps_status(ty: &Type) -> bool {
    (ty.resource.group(), &*ty.kind) == ("", "Node")
}

/// Completes an object that is to be stored, once its metadata is: selectors, addresses, counters.
pub(crate) fn prepare(
    server: &Server,
    ty: &Type,
    old: Option<&Document>,
    new: &mut Document,
    now: Timestamp,
) {
    if ty.is_custom() {
        return;
    }
    match (ty.resource.group(), &*ty.kind) {
        ("", "Pod") if old.is_none() => {
            let class = pods::quality_of_service(new.rest.get("spec"));
            let status = json!({ "phase": "Pending", "qosClass": class });
            new.replace("status", Some(status));
        }
        ("", "Node") => drop_dynamic_configuration(old, new),
        ("", "Service") => services::settle(server.store(), old, new),
        ("", "PersistentVolumeClaim") if old.is_none() => {
            set(new.section("status"), "phase", json!("Pending"));
        }
        ("", "PersistentVolume") if old.is_none() => {
            let status = new.section("status");
            set(status, "phase", json!("Pending"));
            let now = whole_seconds(now).to_string();
            set(status, "lastPhaseTransitionTime", json!(now));
        }
        ("batch", "Job") if old.is_none() => jobs::prepare(new),
        ("apps", "DaemonSet") => workloads::count_templates(old, new),
        _ => {}
    }
}

/// What the status of a kind keeps when a client leaves it out.
pub(crate) fn prepare_status(ty: &Type, old: &Document, new: &mut Document) {
    match (ty.resource.group(), &*ty.kind) {
        ("", "Pod") => {
            if let Some(class) = old.at(&["status", "qosClass"]) {
                set(new.section("status"), "qosClass", class.clone());
            }
            pods::default_status(new);
        }
        ("", "Node") => {
            default_node(new);
            drop_dynamic_configuration(Some(old), new);
        }
        _ => {}
    }
}

/// What a kind refuses in a status.
pub(crate) fn validate_status(ty: &Type, old: &Document, new: &Document) -> Errors {
    let mut errors = Errors::default();
    match (ty.resource.group(), &*ty.kind) {
        ("", "Pod") => {
            let class = |pod| {
                At::new(
                    Document::at(pod, &["status", "qosClass"]),
                    "status.qosClass",
                )
            };
            class(new).same_as(&class(old), &mut errors);
        }
        ("", "Service") if new.text_at(&["spec", "type"]) != "LoadBalancer" => {
            let path = "status.loadBalancer.ingress";
            let ingress = At::new(new.at(&["status", "loadBalancer", "ingress"]), path);
            if ingress.items().next().is_some() {
                let why = "may only be used when `spec.type` is 'LoadBalancer'";
                errors.push(ingress.forbidden(why));
            }
        }
        _ => {}
    }
    errors
}

/// What of a node has two names or follows from another field.
fn default_node(object: &mut Document) {
    let first = object.at(&["spec", "podCIDR"]).cloned();
    if let Some(first) = first {
        set(object.section("spec"), "podCIDRs", json!([first]));
    }
    if let Some(capacity) = object.at(&["status", "capacity"]).cloned() {
        set(object.section("status"), "allocatable", capacity);
    }
}

/// Upstream gave up the dynamic configuration of kubelets; it keeps what older versions stored.
fn drop_dynamic_configuration(old: Option<&Document>, new: &mut Document) {
    for (section, member) in [("spec", "configSource"), ("status", "config")] {
        let is_kept = old.is_some_and(|old| old.at(&[section, member]).is_some());
        if !is_kept && new.at(&[section, member]).is_some() {
            new.section(section).remove(member);
        }
    }
}

/// What upstream warns of in a new object.
pub(crate) fn name_warning(ty: &Type, object: &Document) -> Option<String> {
    let whose = match (ty.resource.group(), &*ty.kind) {
        ("", "Pod") => "the Pod's hostname",
        ("apps", "Deployment" | "ReplicaSet")
        | ("batch", "Job" | "CronJob")
        | ("", "ReplicationController") => "Pod names and hostnames",
        _ => return None,
    };
    let wrong = dns::label(&object.metadata.name);
    (!wrong.is_empty()).then(|| {
        format!(
            "metadata.name: this is used in {whose}, which can result in surprising behavior; a DNS \
             label is recommended: [{}]",
            wrong.join(" ")
        )
    })
}

/// What a kind refuses in a new or changed object.
pub(crate) fn validate(ty: &Type, object: &Document) -> Errors {
    if ty.is_custom() {
        return Errors::default();
    }
    match (ty.resource.group(), &*ty.kind) {
        ("", "Pod") => pod_rules::validate_pod(object),
        ("", "ConfigMap") => policies::validate_config_map(object),
        ("", "Secret") => policies::validate_secret(object),
        ("", "Service") => services::validate(object),
        ("", "Endpoints") => services::validate_endpoints(object),
        ("", "PersistentVolumeClaim") => storage::validate_claim(object),
        ("", "PersistentVolume") => storage::validate_volume(object),
        ("" | "events.k8s.io", "Event") => events::validate(ty, object),
        ("batch", "Job") => jobs::validate_job(object),
        ("batch", "CronJob") => jobs::validate_cron_job(object),
        ("apps", "Deployment" | "ReplicaSet" | "StatefulSet" | "DaemonSet") => {
            workloads::validate(&ty.kind, object)
        }
        ("coordination.k8s.io", "Lease") => policies::validate_lease(object),
        ("policy", "PodDisruptionBudget") => policies::validate_budget(object),
        ("networking.k8s.io", "Ingress") => policies::validate_ingress(object),
        ("storage.k8s.io", "StorageClass") => storage::validate_class(object),
        ("scheduling.k8s.io", "PriorityClass") => policies::validate_priority(object),
        ("autoscaling", "HorizontalPodAutoscaler") => autoscaling::validate(object),
        ("rbac.authorization.k8s.io", "Role" | "ClusterRole") => {
            access::validate_role(&ty.kind, object)
        }
        ("rbac.authorization.k8s.io", "RoleBinding" | "ClusterRoleBinding") => {
            access::validate_binding(&ty.kind, object)
        }
        _ => Errors::default(),
    }
}

/// What an update may not change.
pub(crate) fn immutable(ty: &Type, old: &Document, new: &Document) -> Errors {
    if ty.is_custom() {
        return Errors::default();
    }
    let fields: &[&[&str]] = match (ty.resource.group(), &*ty.kind) {
        ("", "ConfigMap" | "Secret") if old.at(&["immutable"]) == Some(&json!(true)) => {
            return frozen(old, new);
        }
        ("", "Secret") => &[&["type"]],
        ("", "Pod") => return pod_rules::validate_change(old, new),
        ("", "Service") => return services::validate_change(old, new),
        ("batch", "Job") => return jobs::validate_change(old, new),
        ("apps", "Deployment" | "ReplicaSet" | "DaemonSet") => &[&["spec", "selector"]],
        ("apps", "StatefulSet") => &[
            &["spec", "selector"],
            &["spec", "volumeClaimTemplates"],
            &["spec", "serviceName"],
            &["spec", "podManagementPolicy"],
        ],
        ("storage.k8s.io", "StorageClass") => return storage::validate_change(old, new),
        ("scheduling.k8s.io", "PriorityClass") => {
            return policies::validate_priority_change(old, new);
        }
        ("rbac.authorization.k8s.io", "RoleBinding" | "ClusterRoleBinding") => {
            return access::validate_change(old, new);
        }
        ("events.k8s.io", "Event") => return events::validate_change(old, new),
        _ => &[],
    };
    let changed = fields.iter().filter(|path| old.at(path) != new.at(path));
    changed
        .map(|path| At::new(new.at(path), path.join(".")).invalid(IMMUTABLE))
        .collect()
}

/// Immutable config maps and secrets stay as they are, and immutable.
fn frozen(old: &Document, new: &Document) -> Errors {
    let why = "field is immutable when `immutable` is set";
    ["immutable", "data", "binaryData"]
        .into_iter()
        .filter(|member| old.rest.get(*member) != new.rest.get(*member))
        .map(|member| FieldError::forbidden(member, why))
        .collect()
}

/// Whether the metadata of an object changed in a way that its generation counts.
pub(crate) fn is_revised(ty: &Type, old: &Document, new: &Document) -> bool {
    (ty.resource.group(), &*ty.kind) == ("apps", "Deployment")
        && old.metadata.annotations != new.metadata.annotations
}

/// What of an object a part of it may change: the status, for most.
pub(crate) fn is_whole(part: Part) -> bool {
    matches!(part, Part::Main | Part::Scale)
}

/// Sets a member that is missing.
fn set(map: &mut Map<String, Value>, member: &str, value: Value) {
    let own = map.entry(member).or_insert(Value::Null);
    if own.is_null() {
        *own = value;
    }
}

/// The member as an object, made if missing.
fn section<'a>(map: &'a mut Map<String, Value>, member: &str) -> &'a mut Map<String, Value> {
    let own = map.entry(member).or_insert(Value::Null);
    if !own.is_object() {
        *own = json!({});
    }
    own.as_object_mut().expect("made an object above")
}

/// The members of a list that are objects.
fn each<'a>(
    map: &'a mut Map<String, Value>,
    member: &str,
) -> impl Iterator<Item = &'a mut Map<String, Value>> {
    let list = map.get_mut(member).and_then(Value::as_array_mut);
    list.into_iter().flatten().filter_map(Value::as_object_mut)
}
