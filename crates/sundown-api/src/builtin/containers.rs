//! What containers may not have: the messages are upstream's, its `apis/core/validation` names the
//! rules. What pods may not have around them is in `pod_rules`.

use std::collections::BTreeSet;

use super::place::At;
use crate::dns;
use crate::field::{Errors, FieldError};
use crate::quantity::Quantity;

const PROTOCOLS: [&str; 3] = ["SCTP", "TCP", "UDP"];
const SOURCES: &str = "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, \
                       `secretKeyRef` or `fileKeyRef`";

/// What is wrong with the containers of a pod.
pub(super) fn validate(list: &At<'_>, volumes: &BTreeSet<&str>, errors: &mut Errors) {
    let mut names = BTreeSet::new();
    if list.items().next().is_none() {
        errors.push(list.required(""));
    }
    for container in list.items() {
        common(&container, volumes, errors);
        let name = container.child("name");
        if !names.insert(name.text()) {
            errors.push(name.duplicate());
        }
        lifecycle(&container.child("lifecycle"), errors);
        probes(&container, errors);
    }
    host_ports(list, errors);
}

/// What is wrong with the init containers of a pod.
pub(super) fn validate_init(
    list: &At<'_>,
    others: &At<'_>,
    volumes: &BTreeSet<&str>,
    errors: &mut Errors,
) {
    let mut names: BTreeSet<&str> = others.items().map(|it| it.text_of("name")).collect();
    for container in list.items() {
        common(&container, volumes, errors);
        let name = container.child("name");
        if !names.insert(name.text()) && !name.text().is_empty() {
            errors.push(name.duplicate());
        }
        let policy = container.child("restartPolicy");
        if policy.text() == "Always" {
            lifecycle(&container.child("lifecycle"), errors);
            probes(&container, errors);
            continue;
        }
        for member in [
            "lifecycle",
            "livenessProbe",
            "readinessProbe",
            "startupProbe",
        ] {
            let own = container.child(member);
            if own.is_set() {
                let why = "may not be set for init containers without restartPolicy=Always";
                errors.push(own.forbidden(why));
            }
        }
    }
}

fn common(container: &At<'_>, volumes: &BTreeSet<&str>, errors: &mut Errors) {
    container.child("name").label_name(errors);
    let image = container.child("image");
    if image.text().is_empty() {
        errors.push(image.required(""));
    }
    let policy = container.child("terminationMessagePolicy");
    policy.one_of(&["File", "FallbackToLogsOnError"], errors);
    ports(&container.child("ports"), errors);
    environment(container, errors);
    mounts(container, volumes, errors);
    let policy = container.child("imagePullPolicy");
    policy.one_of(&["Always", "IfNotPresent", "Never"], errors);
    resources(&container.child("resources"), errors);
}

fn ports(list: &At<'_>, errors: &mut Errors) {
    let mut names = BTreeSet::new();
    for port in list.items() {
        let name = port.child("name");
        if !name.text().is_empty() {
            let before = errors.len();
            name.named(dns::port_name, errors);
            if errors.len() == before && !names.insert(name.text()) {
                errors.push(name.duplicate());
            }
        }
        let number = port.child("containerPort");
        match number.number().unwrap_or(0) {
            0 => errors.push(number.required("")),
            _ => number.port(errors),
        }
        let host = port.child("hostPort");
        if host.number().unwrap_or(0) != 0 {
            host.port(errors);
        }
        port.child("protocol").one_of(&PROTOCOLS, errors);
    }
}

/// Two containers of one pod cannot have one port of the host.
fn host_ports(containers: &At<'_>, errors: &mut Errors) {
    let mut taken = BTreeSet::new();
    for port in containers.items().flat_map(|it| it.child("ports").items()) {
        let number = port.child("hostPort").number().unwrap_or(0);
        let place = (number, port.text_of("protocol"), port.text_of("hostIP"));
        if number != 0 && !taken.insert(place) {
            let shown = format!("{}/{}/{}", place.1, place.2, place.0);
            let text = format!("Duplicate value: {shown:?}");
            let path = port.path_of("hostPort");
            errors.push(FieldError::raw("FieldValueDuplicate", path, text));
        }
    }
}

fn environment(container: &At<'_>, errors: &mut Errors) {
    for variable in container.child("env").items() {
        let name = variable.child("name");
        if name.text().is_empty() {
            errors.push(name.required(""));
        } else {
            name.named(dns::variable, errors);
        }
        let source = variable.child("valueFrom");
        if source.is_set() {
            value_from(&source, variable.text_of("value"), errors);
        }
    }
    for source in container.child("envFrom").items() {
        let prefix = source.child("prefix");
        if !prefix.text().is_empty() {
            prefix.named(dns::variable, errors);
        }
        let kinds = ["configMapRef", "secretRef"].map(|kind| source.child(kind));
        let count = kinds.iter().filter(|kind| kind.is_set()).count();
        for kind in kinds.iter().filter(|kind| kind.is_set()) {
            named_reference(kind, errors);
        }
        if count != 1 {
            let why = if count == 0 {
                "must specify one of: `configMapRef` or `secretRef`"
            } else {
                "may not have more than one field specified at a time"
            };
            // Upstream names the list here, not its element.
            let path = container.path_of("envFrom");
            errors.push(FieldError::invalid(path, "", why));
        }
    }
}

fn value_from(source: &At<'_>, value: &str, errors: &mut Errors) {
    let mut count = 0;
    for kind in [
        "fieldRef",
        "resourceFieldRef",
        "configMapKeyRef",
        "secretKeyRef",
        "fileKeyRef",
    ] {
        let own = source.child(kind);
        if !own.is_set() {
            continue;
        }
        count += 1;
        match kind {
            "fieldRef" => {
                let path = own.child("fieldPath");
                if path.text().is_empty() {
                    errors.push(path.required(""));
                }
            }
            "configMapKeyRef" | "secretKeyRef" => {
                own.child("name").named(dns::subdomain, errors);
                let key = own.child("key");
                if key.text().is_empty() {
                    errors.push(key.required(""));
                } else {
                    key.named(dns::config_key, errors);
                }
            }
            _ => {}
        }
    }
    let why = match count {
        0 => SOURCES,
        _ if !value.is_empty() => "may not be specified when `value` is not empty",
        1 => return,
        _ => "may not have more than one field specified at a time",
    };
    errors.push(FieldError::invalid(&*source.path, "", why));
}

fn named_reference(reference: &At<'_>, errors: &mut Errors) {
    let name = reference.child("name");
    if name.text().is_empty() {
        errors.push(name.required(""));
    } else {
        name.named(dns::subdomain, errors);
    }
}

fn mounts(container: &At<'_>, volumes: &BTreeSet<&str>, errors: &mut Errors) {
    let list = container.child("volumeMounts");
    let mut paths = BTreeSet::new();
    for mount in list.items() {
        let (name, path) = (mount.child("name"), mount.child("mountPath"));
        if name.text().is_empty() {
            errors.push(name.required(""));
        }
        if !volumes.contains(name.text()) {
            errors.push(name.not_found());
        }
        if path.text().is_empty() {
            errors.push(path.required(""));
        }
        if !paths.insert(path.text()) {
            errors.push(path.invalid("must be unique"));
        }
        for member in ["subPath", "subPathExpr"] {
            let text = mount.text_of(member);
            // Upstream names the list here, not its element.
            let at = list.path_of(member);
            if text.starts_with('/') {
                errors.push(FieldError::invalid(at, text, "must be a relative path"));
            } else if text.split('/').any(|part| part == "..") {
                errors.push(FieldError::invalid(at, text, "must not contain '..'"));
            }
        }
    }
}

fn resources(resources: &At<'_>, errors: &mut Errors) {
    let amount = |at: &At<'_>| Quantity::parse(at.text()).map_or(0, Quantity::billionths);
    let (limits, requests) = (resources.child("limits"), resources.child("requests"));
    for (list, is_request) in [(&limits, false), (&requests, true)] {
        for name in list
            .value
            .as_object()
            .into_iter()
            .flat_map(|map| map.keys())
        {
            let own = At::new(list.value.get(name), format!("{}[{name}]", list.path));
            resource_name(name, &own.path, errors);
            if amount(&own) < 0 {
                errors.push(own.invalid("must be greater than or equal to 0"));
            }
            let limit = limits.child(name);
            if is_request && limit.is_set() && amount(&own) > amount(&limit) {
                let path = requests.path.clone();
                let why = format!(
                    "must be less than or equal to {name} limit of {}",
                    limit.text()
                );
                errors.push(FieldError::invalid(path, own.text(), &why));
            }
        }
    }
}

fn resource_name(name: &str, path: &str, errors: &mut Errors) {
    let wrong = dns::qualified_name(name);
    let is_fine = wrong.is_empty();
    for why in wrong {
        errors.push(FieldError::invalid(path, name, &why));
    }
    let is_known =
        matches!(name, "cpu" | "memory" | "ephemeral-storage") || name.starts_with("hugepages-");
    if is_fine && !name.contains('/') && !is_known {
        let why = "must be a standard resource type or fully qualified";
        errors.push(FieldError::invalid(path, name, why));
        let why = "must be a standard resource for containers";
        errors.push(FieldError::invalid(path, name, why));
    }
}

fn lifecycle(lifecycle: &At<'_>, errors: &mut Errors) {
    for member in ["postStart", "preStop"] {
        let own = lifecycle.child(member);
        if own.is_set() {
            handler(&own, errors);
        }
    }
}

fn probes(container: &At<'_>, errors: &mut Errors) {
    for member in ["livenessProbe", "readinessProbe", "startupProbe"] {
        let probe = container.child(member);
        if !probe.is_set() {
            continue;
        }
        handler(&probe, errors);
        let numbers = [
            "initialDelaySeconds",
            "timeoutSeconds",
            "periodSeconds",
            "successThreshold",
            "failureThreshold",
        ];
        probe.none_negative(&numbers, errors);
        let threshold = probe.child("successThreshold");
        if member != "readinessProbe" && threshold.number().is_some_and(|count| count != 1) {
            errors.push(threshold.invalid("must be 1"));
        }
    }
}

fn handler(handler: &At<'_>, errors: &mut Errors) {
    let kinds = ["exec", "httpGet", "tcpSocket", "grpc", "sleep"];
    let kinds = kinds.map(|kind| (kind, handler.child(kind)));
    let mut set = kinds.iter().filter(|(_, own)| own.is_set());
    let Some((kind, own)) = set.next() else {
        errors.push(handler.required("must specify a handler type"));
        return;
    };
    match *kind {
        "exec" => {
            let command = own.child("command");
            if command.items().next().is_none() {
                errors.push(command.required(""));
            }
        }
        "httpGet" => {
            let path = own.child("path");
            if path.text().is_empty() {
                errors.push(path.required(""));
            }
            own.child("port").port_or_name(errors);
            let scheme = own.child("scheme");
            if !["HTTP", "HTTPS"].contains(&scheme.text()) {
                errors.push(scheme.unsupported(&["HTTP", "HTTPS"]));
            }
        }
        "tcpSocket" | "grpc" => own.child("port").port_or_name(errors),
        _ => {}
    }
    for (_, own) in set {
        errors.push(own.forbidden("may not specify more than 1 handler type"));
    }
}
