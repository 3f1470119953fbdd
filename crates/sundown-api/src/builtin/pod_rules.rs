//! What pods may not have, and what of a pod may not change, in the words of upstream's
//! `apis/core/validation`.

use std::collections::BTreeSet;

use serde_json::Value;

use super::containers;
use super::place::At;
use crate::dns;
use crate::document::Document;
use crate::field::{Errors, FieldError};

const RESTART_POLICIES: [&str; 3] = ["Always", "OnFailure", "Never"];
const DNS_POLICIES: [&str; 4] = ["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"];
const MAY_CHANGE: &str = "pod updates may not change fields other than \
                          `spec.containers[*].image`,`spec.initContainers[*].image`,\
                          `spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing \
                          tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if \
                          it was previously negative)";

/// What is wrong with a pod.
pub(super) fn validate_pod(object: &Document) -> Errors {
    let spec = At::new(object.rest.get("spec"), "spec");
    let mut errors = Errors::default();
    validate_spec(&spec, &BTreeSet::new(), &mut errors);
    if spec.text_of("serviceAccountName").is_empty() {
        for volume in spec.child("volumes").items() {
            for source in volume.down(&["projected", "sources"]).items() {
                let token = source.child("serviceAccountToken");
                if token.is_set() {
                    let why = "must not be specified when serviceAccountName is not set";
                    errors.push(token.forbidden(why));
                }
            }
        }
    }
    for list in ["containers", "initContainers"] {
        for container in spec.child(list).items() {
            let image = container.child("image");
            if image.text().trim() != image.text() {
                let why = "must not have leading or trailing whitespace";
                errors.push(image.invalid(why));
            }
        }
    }
    errors
}

/// What is wrong with the template of pods; the claims that somebody else adds are volumes, too.
pub(super) fn validate_template(template: &At<'_>, claims: &BTreeSet<&str>, errors: &mut Errors) {
    // Upstream leaves `metadata` out of these paths.
    let labels = template.down(&["metadata", "labels"]);
    At::new(Some(labels.value), template.path_of("labels")).labels(errors);
    let spec = template.child("spec");
    validate_spec(&spec, claims, errors);
    let ephemeral = spec.child("ephemeralContainers");
    if ephemeral.items().next().is_some() {
        errors.push(ephemeral.forbidden("ephemeral containers not allowed in pod template"));
    }
}

fn validate_spec(spec: &At<'_>, claims: &BTreeSet<&str>, errors: &mut Errors) {
    let volumes = spec.child("volumes");
    let mut names = volumes_of(&volumes, errors);
    names.extend(claims.iter().copied());
    let list = spec.child("containers");
    containers::validate(&list, &names, errors);
    containers::validate_init(&spec.child("initContainers"), &list, &names, errors);
    if spec.child("hostNetwork").is_true() {
        host_network(&list, errors);
    }
    spec.child("restartPolicy")
        .one_of(&RESTART_POLICIES, errors);
    spec.child("dnsPolicy").one_of(&DNS_POLICIES, errors);
    spec.child("nodeSelector").labels(errors);
    for (member, form) in [
        (
            "serviceAccountName",
            dns::subdomain as fn(&str) -> Vec<String>,
        ),
        ("nodeName", dns::subdomain),
    ] {
        named(&spec.child(member), form, errors);
    }
    let deadline = spec.child("activeDeadlineSeconds");
    if deadline
        .number()
        .is_some_and(|it| !(1..=i64::from(i32::MAX)).contains(&it))
    {
        let why = "must be between 1 and 2147483647, inclusive";
        errors.push(deadline.invalid(why));
    }
    named(&spec.child("hostname"), dns::label, errors);
    named(&spec.child("subdomain"), dns::label, errors);
    for toleration in spec.child("tolerations").items() {
        tolerate(&toleration, errors);
    }
    named(&spec.child("priorityClassName"), dns::subdomain, errors);
    named(&spec.child("runtimeClassName"), dns::subdomain, errors);
    let policy = spec.child("preemptionPolicy");
    if policy.is_set() {
        policy.one_of(&["PreemptLowerPriority", "Never"], errors);
    }
}

fn named(at: &At<'_>, form: fn(&str) -> Vec<String>, errors: &mut Errors) {
    if !at.text().is_empty() {
        at.named(form, errors);
    }
}

/// The names of the volumes that are fine.
fn volumes_of<'a>(volumes: &At<'a>, errors: &mut Errors) -> BTreeSet<&'a str> {
    let mut names = BTreeSet::new();
    for volume in volumes.items() {
        let mut wrong = Errors::default();
        volume_source(&volume, &mut wrong);
        let name = volume.child("name");
        name.label_name(&mut wrong);
        if names.contains(name.text()) {
            wrong.push(name.duplicate());
        }
        if wrong.is_empty() {
            names.insert(name.text());
        }
        errors.append(wrong);
    }
    names
}

fn volume_source(volume: &At<'_>, errors: &mut Errors) {
    let members = volume.value.as_object().into_iter().flatten();
    let sources: Vec<At<'_>> = members
        .filter(|(member, value)| *member != "name" && !value.is_null())
        .map(|(member, _)| volume.child(member))
        .collect();
    if sources.is_empty() {
        errors.push(volume.required("must specify a volume type"));
    }
    for source in sources.iter().skip(1) {
        errors.push(source.forbidden("may not specify more than 1 volume type"));
    }
    let Some(source) = sources.first() else {
        return;
    };
    let needed: &[&str] = match source.path.rsplit('.').next().unwrap_or("") {
        "hostPath" => &["path"],
        "secret" => &["secretName"],
        "configMap" => &["name"],
        "persistentVolumeClaim" => &["claimName"],
        "nfs" => &["server", "path"],
        "csi" => &["driver"],
        _ => &[],
    };
    for member in needed {
        let own = source.child(member);
        if own.text().is_empty() {
            errors.push(own.required(""));
        }
    }
    if source.path.ends_with(".hostPath") {
        let path = source.child("path");
        if path.text().split('/').any(|part| part == "..") {
            errors.push(path.invalid("must not contain '..'"));
        }
    }
}

fn host_network(containers: &At<'_>, errors: &mut Errors) {
    for port in containers.items().flat_map(|it| it.child("ports").items()) {
        let own = port.child("containerPort").number().unwrap_or(0);
        let host = port.child("hostPort").number().unwrap_or(0);
        // In a template it may be missing, since pods get it.
        if host != 0 && host != own {
            let why = "must match `containerPort` when `hostNetwork` is true";
            errors.push(FieldError::invalid(port.path_of("hostPort"), host, why));
        }
    }
}

fn tolerate(toleration: &At<'_>, errors: &mut Errors) {
    let (key, operator) = (toleration.child("key"), toleration.child("operator"));
    if !key.text().is_empty() {
        key.named(dns::qualified_name, errors);
    }
    if key.text().is_empty() && operator.text() != "Exists" {
        let why = "operator must be Exists when `key` is empty, which means \"match all values and all \
                   keys\"";
        errors.push(operator.invalid(why));
    }
    let effect = toleration.child("effect");
    if toleration.child("tolerationSeconds").is_set() && effect.text() != "NoExecute" {
        let why = "effect must be 'NoExecute' when `tolerationSeconds` is set";
        errors.push(FieldError::invalid(&*effect.path, effect.text(), why));
    }
    match operator.text() {
        "" | "Equal" => toleration.child("value").named(dns::label_value, errors),
        "Exists" => {
            let value = toleration.child("value");
            if !value.text().is_empty() {
                let why = "value must be empty when `operator` is 'Exists'";
                errors.push(FieldError::invalid(&*operator.path, value.text(), why));
            }
        }
        _ => errors.push(operator.unsupported(&["Equal", "Exists"])),
    }
    if !effect.text().is_empty() {
        let effects = ["NoSchedule", "PreferNoSchedule", "NoExecute"];
        effect.one_of(&effects, errors);
    }
}

/// What of a pod may not change.
pub(super) fn validate_change(old: &Document, new: &Document) -> Errors {
    let (before, after) = (
        At::new(old.rest.get("spec"), "spec"),
        At::new(new.rest.get("spec"), "spec"),
    );
    let mut errors = Errors::default();
    for list in ["containers", "initContainers"] {
        let (before, after) = (before.child(list), after.child(list));
        if before.items().count() != after.items().count() {
            let why = "pod updates may not add or remove containers";
            errors.push(after.forbidden(why));
            return errors;
        }
    }
    let (was, is) = (
        before.child("activeDeadlineSeconds"),
        after.child("activeDeadlineSeconds"),
    );
    match (was.number(), is.number()) {
        (Some(was), Some(now)) if was < now => {
            let why = "must be less than or equal to previous value";
            errors.push(is.invalid(why));
            return errors;
        }
        (Some(_), None) => {
            let why = "must not update from a positive integer to nil value";
            errors.push(is.invalid(why));
        }
        _ => {}
    }
    only_added_tolerations(&before, &after, &mut errors);
    let munged = munged(before.value, after.value);
    if munged != *before.value {
        let changes = changes("spec", before.value, &munged);
        let why = format!("{MAY_CHANGE}\n{changes}");
        errors.push(after.forbidden(&why));
    }
    errors
}

fn only_added_tolerations(before: &At<'_>, after: &At<'_>, errors: &mut Errors) {
    let list = after.child("tolerations");
    let seconds = "tolerationSeconds";
    let without_seconds = |value: &Value| {
        let mut value = value.clone();
        if let Some(map) = value.as_object_mut() {
            map.remove(seconds);
        }
        value
    };
    let own: BTreeSet<String> = list
        .items()
        .map(|own| without_seconds(own.value).to_string())
        .collect();
    for old in before.child("tolerations").items() {
        if !own.contains(&without_seconds(old.value).to_string()) {
            let why = "existing toleration can not be modified except its tolerationSeconds";
            errors.push(list.forbidden(why));
            return;
        }
    }
}

/// The new spec, with the fields that may change put back.
fn munged(old: &Value, new: &Value) -> Value {
    let mut munged = new.clone();
    for list in ["containers", "initContainers"] {
        let count = new[list].as_array().map_or(0, Vec::len);
        for index in 0..count {
            munged[list][index]["image"] = old[list][index]["image"].clone();
        }
    }
    let Some(map) = munged.as_object_mut() else {
        return munged;
    };
    for member in ["activeDeadlineSeconds", "schedulingGates", "tolerations"] {
        match old.get(member) {
            Some(value) => map.insert(member.to_owned(), value.clone()),
            None => map.remove(member),
        };
    }
    let grace = "terminationGracePeriodSeconds";
    if old[grace].as_i64().is_some_and(|seconds| seconds < 0) && new[grace] == 1 {
        map.insert(grace.to_owned(), old[grace].clone());
    }
    munged
}

/// What differs, line by line. Upstream prints its own structs here; these are the fields of the API.
fn changes(path: &str, old: &Value, new: &Value) -> String {
    match (old, new) {
        _ if old == new => String::new(),
        (Value::Object(one), Value::Object(other)) => {
            let members: BTreeSet<&String> = one.keys().chain(other.keys()).collect();
            let lines = members
                .into_iter()
                .map(|member| changes(&format!("{path}.{member}"), &old[member], &new[member]));
            lines.collect()
        }
        (Value::Array(one), Value::Array(other)) if one.len() == other.len() => {
            let pairs = one.iter().zip(other).enumerate();
            let lines =
                pairs.map(|(index, (old, new))| changes(&format!("{path}[{index}]"), old, new));
            lines.collect()
        }
        _ => format!("@@ {path} @@\n-{old}\n+{new}\n"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn changes_name_the_fields_that_differ() {
        let old = json!({ "a": 1, "b": [{ "c": "x" }], "d": true });
        let new = json!({ "a": 1, "b": [{ "c": "y" }], "d": true, "e": 2 });
        let expected = "@@ spec.b[0].c @@\n-\"x\"\n+\"y\"\n@@ spec.e @@\n-null\n+2\n";
        assert_eq!(changes("spec", &old, &new), expected);
    }
}
