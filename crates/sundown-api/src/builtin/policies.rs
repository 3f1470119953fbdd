//! Small kinds with a few rules each: leases, budgets, priorities, ingresses, secrets, events.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use super::labels;
use super::place::At;
use crate::dns;
use crate::document::Document;
use crate::field::{Errors, FieldError};

const SECRET_BYTES_MAX: usize = 1024 * 1024;

/// What is wrong with a lease.
pub(super) fn validate_lease(object: &Document) -> Errors {
    let spec = At::new(object.rest.get("spec"), "spec");
    let mut errors = Errors::default();
    let duration = spec.child("leaseDurationSeconds");
    if duration.number().is_some_and(|seconds| seconds <= 0) {
        errors.push(duration.invalid("must be greater than 0"));
    }
    spec.none_negative(&["leaseTransitions"], &mut errors);
    errors
}

/// What is wrong with a disruption budget.
pub(super) fn validate_budget(object: &Document) -> Errors {
    let spec = At::new(object.rest.get("spec"), "spec");
    let mut errors = Errors::default();
    let bounds = ["minAvailable", "maxUnavailable"].map(|member| spec.child(member));
    if bounds.iter().all(At::is_set) {
        errors.push(spec.invalid("minAvailable and maxUnavailable cannot be both set"));
    }
    for bound in bounds.iter().filter(|bound| bound.is_set()) {
        super::workloads::share(bound, &mut errors);
        super::workloads::at_most_all(bound, &mut errors);
    }
    let selector = spec.child("selector");
    if selector.is_set() {
        labels::validate(&selector, &mut errors);
    }
    errors
}

/// What is wrong with a class of priorities.
pub(super) fn validate_priority(object: &Document) -> Errors {
    const USER_MAX: i64 = 1_000_000_000;
    let mut errors = Errors::default();
    let name = object.metadata.name.as_str();
    let value = At::new(object.rest.get("value"), "value");
    if name.starts_with("system-") {
        if !matches!(name, "system-cluster-critical" | "system-node-critical") {
            let why = format!(
                "priority class names with 'system-' prefix are reserved for system use only. error: \
                 {name} is not a known system priority class"
            );
            errors.push(FieldError::forbidden("metadata.name", &why));
        }
    } else if value.number().is_some_and(|number| number > USER_MAX) {
        let why = format!("maximum allowed value of a user defined priority is {USER_MAX}");
        errors.push(value.forbidden(&why));
    }
    errors
}

/// What of a class of priorities may not change.
pub(super) fn validate_priority_change(old: &Document, new: &Document) -> Errors {
    let mut errors = Errors::default();
    if old.rest.get("value") != new.rest.get("value") {
        errors.push(FieldError::forbidden(
            "value",
            "may not be changed in an update.",
        ));
    }
    let policy = |it: &Document| it.rest.get("preemptionPolicy").cloned();
    if policy(old) != policy(new) {
        let at = At::new(new.rest.get("preemptionPolicy"), "preemptionPolicy");
        errors.push(at.invalid(super::place::IMMUTABLE));
    }
    errors
}

/// What is wrong with an ingress.
pub(super) fn validate_ingress(object: &Document) -> Errors {
    let spec = At::new(object.rest.get("spec"), "spec");
    let mut errors = Errors::default();
    let (rules, backend) = (spec.child("rules"), spec.child("defaultBackend"));
    if rules.items().next().is_none() && !backend.is_set() {
        let why = "either `defaultBackend` or `rules` must be specified";
        errors.push(FieldError::invalid("spec", Value::Null, why));
    }
    if backend.is_set() {
        validate_backend(&backend, &mut errors);
    }
    for rule in rules.items() {
        let host = rule.child("host");
        if !host.text().is_empty() && !host.text().contains('*') {
            host.named(dns::subdomain, &mut errors);
        }
        let http = rule.child("http");
        let paths = http.child("paths");
        if http.is_set() && paths.items().next().is_none() {
            errors.push(paths.required(""));
        }
        for path in paths.items() {
            validate_path(&path, &mut errors);
        }
    }
    errors
}

fn validate_path(path: &At<'_>, errors: &mut Errors) {
    let kind = path.child("pathType");
    if !kind.is_set() {
        errors.push(kind.required("pathType must be specified"));
        return;
    }
    let text = path.child("path");
    let known = ["Exact", "ImplementationSpecific", "Prefix"];
    let is_free = kind.text() == "ImplementationSpecific" && text.text().is_empty();
    if !known.contains(&kind.text()) {
        errors.push(kind.unsupported(&known));
    } else if !text.text().starts_with('/') && !is_free {
        let why = "must be an absolute path";
        errors.push(FieldError::invalid(&*text.path, text.text(), why));
    }
    validate_backend(&path.child("backend"), errors);
}

fn validate_backend(backend: &At<'_>, errors: &mut Errors) {
    let (service, resource) = (backend.child("service"), backend.child("resource"));
    match (service.is_set(), resource.is_set()) {
        (true, true) => {
            let why = "cannot set both resource and service backends";
            errors.push(FieldError::invalid(&*backend.path, "", why));
        }
        (false, true) => {}
        (false, false) => {
            let why = "resource or service backend is required";
            errors.push(FieldError::invalid(&*backend.path, "", why));
        }
        (true, false) => {
            service.child("name").label_name(errors);
            let port = service.child("port");
            let (name, number) = (port.child("name"), port.child("number"));
            match (name.text().is_empty(), number.number().unwrap_or(0) == 0) {
                (true, true) => {
                    errors.push(backend.required("port name or number is required"));
                }
                (true, false) => number.port(errors),
                (false, true) => name.named(dns::port_name, errors),
                (false, false) => {
                    let why = "cannot set both port name & port number";
                    errors.push(FieldError::invalid(&*backend.path, "", why));
                }
            }
        }
    }
}

/// What is wrong with a config map.
pub(super) fn validate_config_map(object: &Document) -> Errors {
    let mut errors = Errors::default();
    let mut bytes = 0;
    for member in ["data", "binaryData"] {
        let map = object.rest.get(member).and_then(Value::as_object);
        for (key, value) in map.into_iter().flatten() {
            keyed(member, key, &mut errors);
            if member == "data" && object.at(&["binaryData", key]).is_some() {
                let why = "duplicate of key present in binaryData";
                let at = format!("data[{key}]");
                errors.push(FieldError::invalid(at, key.as_str(), why));
            }
            bytes += value.as_str().map_or(0, str::len);
        }
    }
    if bytes > SECRET_BYTES_MAX {
        errors.push(FieldError::too_long("", SECRET_BYTES_MAX));
    }
    errors
}

/// What is wrong with a secret.
pub(super) fn validate_secret(object: &Document) -> Errors {
    let mut errors = Errors::default();
    let data = object.rest.get("data").and_then(Value::as_object);
    let decoded = |key: &str| {
        let text = data?.get(key)?.as_str()?;
        STANDARD.decode(text).ok()
    };
    let mut bytes = 0;
    for (key, value) in data.into_iter().flatten() {
        keyed("data", key, &mut errors);
        bytes += value.as_str().map_or(0, |text| text.len() / 4 * 3);
    }
    if bytes > SECRET_BYTES_MAX {
        errors.push(FieldError::too_long("data", SECRET_BYTES_MAX));
    }
    let mut need = |key: &str| {
        let at = format!("data[{key}]");
        errors.push(FieldError::required(at, ""));
    };
    let has = |key: &str| data.is_some_and(|data| data.contains_key(key));
    match object.text_at(&["type"]) {
        "kubernetes.io/service-account-token" => {
            const NAME: &str = "kubernetes.io/service-account.name";
            let name = object.metadata.annotations.get(NAME);
            if name.is_none_or(String::is_empty) {
                let at = format!("metadata.annotations[{NAME}]");
                errors.push(FieldError::required(at, ""));
            }
        }
        "kubernetes.io/tls" => {
            let keys = ["tls.crt", "tls.key"].into_iter();
            keys.filter(|key| !has(key)).for_each(need);
        }
        "kubernetes.io/basic-auth" if !has("username") && !has("password") => {
            ["username", "password"].into_iter().for_each(need);
        }
        "kubernetes.io/ssh-auth" if decoded("ssh-privatekey").is_none_or(|key| key.is_empty()) => {
            need("ssh-privatekey");
        }
        "kubernetes.io/dockercfg" => json_content(&decoded, ".dockercfg", &mut errors),
        "kubernetes.io/dockerconfigjson" => {
            json_content(&decoded, ".dockerconfigjson", &mut errors);
        }
        _ => {}
    }
    errors
}

fn json_content(decoded: &dyn Fn(&str) -> Option<Vec<u8>>, key: &str, errors: &mut Errors) {
    let at = format!("data[{key}]");
    let Some(content) = decoded(key) else {
        errors.push(FieldError::required(at, ""));
        return;
    };
    if serde_json::from_slice::<serde_json::Map<String, Value>>(&content).is_err() {
        let why = match serde_json::from_slice::<Value>(&content) {
            Ok(other) => format!(
                "json: cannot unmarshal {} into Go value of type map[string]interface {{}}",
                crate::go_json::name_of(&other)
            ),
            Err(_) => crate::go_json::syntax_error(&content),
        };
        errors.push(FieldError::invalid(at, "<secret contents redacted>", &why));
    }
}

fn keyed(member: &str, key: &str, errors: &mut Errors) {
    for why in dns::config_key(key) {
        errors.push(FieldError::invalid(format!("{member}[{key}]"), key, &why));
    }
}
