//! What a manifest asks for and nobody here does: refused by name before anything starts. What is
//! left alone because it changes nothing on one machine is listed in `docs/node.md`.

use serde_json::Value;
use sundown_model::{Subject, node};

use super::chart::Scene;
use super::decide::refusal;
use super::launch::Trouble;
use super::probe::{ProbeView, Purpose};
use super::view::{ContainerView, PodView, Role};
use super::{confinement, sandbox, user};
use crate::json::{items, list, number, text};

/// Fields of a pod's spec that ask for something when they are true.
const POD_FLAGS: &[&str] = &[
    "hostIPC",
    "hostNetwork",
    "hostPID",
    "setHostnameAsFQDN",
    "shareProcessNamespace",
];

/// Fields of a pod's spec that ask for something when they are not empty.
const POD_VALUES: &[&str] = &["ephemeralContainers", "resourceClaims", "runtimeClassName"];

/// The bit that lets everybody read a file.
const OPEN: i64 = 0o004;

/// Whether all that a container and its pod ask for can be done.
///
/// Errors: something cannot, by the name of its field.
pub(super) fn check(pod: &PodView<'_>, container: &ContainerView<'_>) -> Result<(), Trouble> {
    of_pod(pod)?;
    of_resolver(pod)?;
    for volume in items(pod.object.field("/spec/volumes")) {
        sandbox::check_kind(volume)?;
    }
    of_user(pod, container)?;
    of_container(container)?;
    confinement::check(pod, container)?;
    of_hooks(container)?;
    of_probes(container)
}

/// What the node refuses by name: which of its paths are closed to pods only it knows.
pub(super) fn by_node(scene: &Scene<'_>) -> Option<Trouble> {
    let subject = Subject::Pod(scene.pod.uid.clone());
    let (refused, message) = refusal(scene.facts, &subject)?;
    let is_closed = refused == node::Refused::ClosedHostPath;
    (is_closed && scene.on_node.is_none()).then(|| Trouble::new(message))
}

fn refuse(field: impl std::fmt::Display) -> Trouble {
    Trouble::new(format!("{field} is not supported here"))
}

fn of_pod(pod: &PodView<'_>) -> Result<(), Trouble> {
    let field = |name: &str| pod.object.field(&format!("/spec/{name}"));
    let is_true = |name: &&&str| field(name) == Some(&Value::Bool(true));
    if let Some(name) = POD_FLAGS.iter().find(is_true) {
        return Err(refuse(format!("spec.{name}")));
    }
    if let Some(name) = POD_VALUES.iter().find(|name| is_filled(field(name))) {
        return Err(refuse(format!("spec.{name}")));
    }
    if field("hostUsers") == Some(&Value::Bool(false)) {
        return Err(refuse("spec.hostUsers: false"));
    }
    let sysctls = pod.object.field("/spec/securityContext");
    if is_filled(sysctls.and_then(|it| it.get("sysctls"))) {
        return Err(refuse("spec.securityContext.sysctls"));
    }
    Ok(())
}

/// Names are looked up at the node, whatever the policy: only one without it cannot be had.
fn of_resolver(pod: &PodView<'_>) -> Result<(), Trouble> {
    let policy = pod.object.field("/spec/dnsPolicy").and_then(Value::as_str);
    if policy == Some("None") {
        return Err(refuse("spec.dnsPolicy: None"));
    }
    let servers = pod.object.field("/spec/dnsConfig");
    if is_filled(servers.and_then(|it| it.get("nameservers"))) {
        return Err(refuse("spec.dnsConfig.nameservers"));
    }
    Ok(())
}

/// Root reads and writes everything in its container, so that groups are about other users only. For
/// these, directories are open; what is not are files whose mode names a group.
fn of_user(pod: &PodView<'_>, container: &ContainerView<'_>) -> Result<(), Trouble> {
    let is_root = user::run_as(pod, container).user.unwrap_or(0) == 0;
    let context = pod.object.field("/spec/securityContext");
    if is_root {
        return Ok(());
    }
    if user::has_further_groups(pod) {
        return Err(refuse("spec.securityContext.supplementalGroups"));
    }
    let has_group = context.is_some_and(|it| number(it, "fsGroup").is_some());
    let mut volumes = items(pod.object.field("/spec/volumes")).iter();
    let closed = volumes.find(|volume| is_closed(volume));
    match closed.filter(|_| has_group) {
        Some(volume) => Err(refuse(format!(
            "spec.securityContext.fsGroup for the files of volume {:?}, whose mode is not for all,",
            text(volume, "name")
        ))),
        None => Ok(()),
    }
}

/// Whether a volume has files that only their owner and group may read.
fn is_closed(volume: &Value) -> bool {
    let kinds = ["configMap", "secret", "downwardAPI", "projected"];
    let sources = kinds.iter().filter_map(|kind| volume.get(kind));
    let mut modes = sources.flat_map(|source| {
        let parts = list(source, "sources").iter();
        let parts = parts.filter_map(|part| part.as_object()?.values().next());
        let items = parts.chain([source]).flat_map(|it| list(it, "items"));
        let modes = items.filter_map(|item| number(item, "mode"));
        modes
            .chain(number(source, "defaultMode"))
            .collect::<Vec<_>>()
    });
    modes.any(|mode| mode & OPEN == 0)
}

fn of_container(container: &ContainerView<'_>) -> Result<(), Trouble> {
    let json = container.json;
    let context = json.get("securityContext");
    if context.and_then(|it| it.get("privileged")) == Some(&Value::Bool(true)) {
        return Err(refuse("securityContext.privileged"));
    }
    for name in ["volumeDevices", "restartPolicyRules"] {
        if is_filled(json.get(name)) {
            return Err(refuse(name));
        }
    }
    let mut ports = list(json, "ports").iter();
    if ports.any(|port| number(port, "hostPort").is_some_and(|port| port != 0)) {
        return Err(refuse("ports.hostPort"));
    }
    for mount in list(json, "volumeMounts") {
        if is_filled(mount.get("subPathExpr")) {
            return Err(refuse("volumeMounts.subPathExpr"));
        }
        let propagation = text(mount, "mountPropagation");
        if !matches!(propagation, "" | "None") {
            let field = format!("volumeMounts.mountPropagation: {propagation}");
            return Err(refuse(field));
        }
    }
    Ok(())
}

/// A command before the end is run; the other hooks are nobody's.
fn of_hooks(container: &ContainerView<'_>) -> Result<(), Trouble> {
    let Some(lifecycle) = container.json.get("lifecycle") else {
        return Ok(());
    };
    if is_filled(lifecycle.get("postStart")) {
        return Err(refuse("lifecycle.postStart"));
    }
    let handler = lifecycle.get("preStop").and_then(Value::as_object);
    let mut kinds = handler.into_iter().flat_map(|it| it.keys());
    match kinds.find(|kind| *kind != "exec") {
        Some(kind) => Err(refuse(format!("lifecycle.preStop.{kind}"))),
        None => Ok(()),
    }
}

fn of_probes(container: &ContainerView<'_>) -> Result<(), Trouble> {
    for purpose in Purpose::ALL {
        let member = purpose.member();
        let Some(json) = container.json.get(member) else {
            continue;
        };
        for kind in ["httpGet", "tcpSocket"] {
            let host = json.get(kind).map_or("", |it| text(it, "host"));
            if !host.is_empty() {
                return Err(refuse(format!("{member}.{kind}.host")));
            }
        }
        if json.get("grpc").is_some() {
            return Err(refuse(format!("{member}.grpc")));
        }
        // Upstream probes init containers only when they stay.
        if container.role != Role::Init && ProbeView::of(container, purpose).is_none() {
            let what = format!("{member}: it has no handler, or a port that is not known");
            return Err(Trouble::new(what));
        }
    }
    Ok(())
}

/// Whether a value says anything.
fn is_filled(value: Option<&Value>) -> bool {
    match value {
        None | Some(Value::Null) => false,
        Some(Value::String(text)) => !text.is_empty(),
        Some(Value::Array(all)) => !all.is_empty(),
        Some(Value::Object(all)) => !all.is_empty(),
        Some(Value::Bool(_) | Value::Number(_)) => true,
    }
}
