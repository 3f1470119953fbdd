//! Deployments and their kin: what they have when nobody says otherwise and what they may not have,
//! after upstream's `apis/apps/v1` and `apis/apps/validation`.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::place::At;
use super::pod_rules::validate_template;
use super::pods::default_template;
use super::{labels, section, set};
use crate::document::Document;
use crate::field::{Errors, FieldError};

const ANNOTATION_OF_TEMPLATE: &str = "deprecated.daemonset.template.generation";

/// Fills in a deployment.
pub(super) fn default_deployment(object: &mut Document) {
    let spec = object.section("spec");
    set(spec, "replicas", json!(1));
    set(spec, "revisionHistoryLimit", json!(10));
    set(spec, "progressDeadlineSeconds", json!(600));
    let strategy = section(spec, "strategy");
    set(strategy, "type", json!("RollingUpdate"));
    if strategy["type"] == "RollingUpdate" {
        let rolling = section(strategy, "rollingUpdate");
        set(rolling, "maxUnavailable", json!("25%"));
        set(rolling, "maxSurge", json!("25%"));
    }
    default_template(spec);
}

/// Fills in a replica set.
pub(super) fn default_replica_set(object: &mut Document) {
    let spec = object.section("spec");
    set(spec, "replicas", json!(1));
    default_template(spec);
}

/// Fills in a replication controller, which takes its selector and labels from its template.
pub(super) fn default_replication_controller(object: &mut Document) {
    let own = object
        .at(&["spec", "template", "metadata", "labels"])
        .cloned();
    let spec = object.section("spec");
    set(spec, "replicas", json!(1));
    default_template(spec);
    if let Some(own) = own {
        let selector = section(spec, "selector");
        if selector.is_empty() {
            *selector = own.as_object().cloned().unwrap_or_default();
        }
        if object.metadata.labels.is_empty() {
            object.metadata.labels = labels::of(&own);
        }
    }
}

/// Fills in a stateful set.
pub(super) fn default_stateful_set(object: &mut Document) {
    let spec = object.section("spec");
    set(spec, "replicas", json!(1));
    set(spec, "revisionHistoryLimit", json!(10));
    set(spec, "podManagementPolicy", json!("OrderedReady"));
    let strategy = section(spec, "updateStrategy");
    if strategy
        .get("type")
        .and_then(Value::as_str)
        .is_none_or(str::is_empty)
    {
        strategy.insert("type".into(), json!("RollingUpdate"));
        section(strategy, "rollingUpdate");
    }
    if strategy["type"] == "RollingUpdate"
        && let Some(Value::Object(rolling)) = strategy.get_mut("rollingUpdate")
    {
        set(rolling, "partition", json!(0));
        set(rolling, "maxUnavailable", json!(1));
    }
    let kept = section(spec, "persistentVolumeClaimRetentionPolicy");
    set(kept, "whenDeleted", json!("Retain"));
    set(kept, "whenScaled", json!("Retain"));
    for claim in super::each(spec, "volumeClaimTemplates") {
        super::storage::default_claim_template(claim);
    }
    default_template(spec);
}

/// Fills in a daemon set.
pub(super) fn default_daemon_set(object: &mut Document) {
    let spec = object.section("spec");
    set(spec, "revisionHistoryLimit", json!(10));
    let strategy = section(spec, "updateStrategy");
    set(strategy, "type", json!("RollingUpdate"));
    if strategy["type"] == "RollingUpdate" {
        let rolling = section(strategy, "rollingUpdate");
        set(rolling, "maxUnavailable", json!(1));
        set(rolling, "maxSurge", json!(0));
    }
    default_template(spec);
}

/// Counts the templates of a daemon set, in an annotation: upstream keeps the number of an old
/// field there.
pub(super) fn count_templates(old: Option<&Document>, new: &mut Document) {
    let template = |it: &Document| it.at(&["spec", "template"]).cloned();
    let count = |it: &Document| {
        let text = it.metadata.annotations.get(ANNOTATION_OF_TEMPLATE);
        text.and_then(|text| text.parse::<i64>().ok()).unwrap_or(0)
    };
    let number = match old {
        None => 1,
        Some(old) => count(old) + i64::from(template(old) != template(new)),
    };
    let annotations = &mut new.metadata.annotations;
    annotations.insert(ANNOTATION_OF_TEMPLATE.into(), number.to_string());
}

/// What is wrong with a kind that selects the pods of its template.
pub(super) fn validate(kind: &str, object: &Document) -> Errors {
    let spec = At::new(object.rest.get("spec"), "spec");
    let mut errors = Errors::default();
    match kind {
        "StatefulSet" => {
            stateful(&spec, &mut errors);
            spec.none_negative(&["replicas", "minReadySeconds"], &mut errors);
        }
        "ReplicaSet" => spec.none_negative(&["replicas", "minReadySeconds"], &mut errors),
        "Deployment" => spec.none_negative(&["replicas"], &mut errors),
        _ => {}
    }
    selected(kind, &spec, &mut errors);
    match kind {
        "Deployment" => deployed(&spec, &mut errors),
        "DaemonSet" => {
            spec.none_negative(&["minReadySeconds"], &mut errors);
            rolling_daemons(&spec.child("updateStrategy"), &mut errors);
            spec.none_negative(&["revisionHistoryLimit"], &mut errors);
        }
        _ => {}
    }
    errors
}

fn selected(kind: &str, spec: &At<'_>, errors: &mut Errors) {
    let (selector, template) = (spec.child("selector"), spec.child("template"));
    let own = template.down(&["metadata", "labels"]);
    let is_daemon = kind == "DaemonSet";
    if !selector.is_set() && !is_daemon {
        errors.push(selector.required(""));
    }
    let has_rules = !selector.is_set() || !labels::is_empty(selector.value);
    let is_met = labels::selects(selector.value, &labels::of(own.value));
    let unmet = || {
        FieldError::invalid(
            &*own.path,
            own.value.clone(),
            "`selector` does not match template `labels`",
        )
    };
    if selector.is_set() {
        labels::validate(&selector, errors);
    }
    if is_daemon && !is_met {
        errors.push(unmet());
    }
    if !has_rules {
        let whose = match kind {
            "StatefulSet" => "statefulset",
            "DaemonSet" => "daemonset",
            _ => "deployment",
        };
        errors.push(selector.invalid(&format!("empty selector is invalid for {whose}")));
    }
    if !is_daemon && selector.is_set() && !labels::is_sound(&selector) {
        let why = if kind == "StatefulSet" {
            ""
        } else {
            "invalid label selector"
        };
        errors.push(selector.invalid(why));
        return;
    }
    if !is_daemon && has_rules && !is_met {
        errors.push(unmet());
    }
    let claims: BTreeSet<&str> = spec
        .child("volumeClaimTemplates")
        .items()
        .map(|claim| claim.child("metadata").text_of("name"))
        .collect();
    validate_template(&template, &claims, errors);
    let policy = template.down(&["spec", "restartPolicy"]);
    if policy.text() != "Always" {
        errors.push(policy.unsupported(&["Always"]));
    }
    let deadline = template.down(&["spec", "activeDeadlineSeconds"]);
    if deadline.is_set() {
        let whose = if kind == "Deployment" {
            "ReplicaSet"
        } else {
            kind
        };
        let why = format!("activeDeadlineSeconds in {whose} is not Supported");
        errors.push(deadline.forbidden(&why));
    }
}

fn deployed(spec: &At<'_>, errors: &mut Errors) {
    let strategy = spec.child("strategy");
    let rolling = strategy.child("rollingUpdate");
    match strategy.text_of("type") {
        "Recreate" if rolling.is_set() => {
            let why = "may not be specified when strategy `type` is 'Recreate'";
            errors.push(rolling.forbidden(why));
        }
        "Recreate" => {}
        "RollingUpdate" => {
            let (down, up) = (rolling.child("maxUnavailable"), rolling.child("maxSurge"));
            share(&down, errors);
            share(&up, errors);
            if amount(&down) == 0 && amount(&up) == 0 {
                errors.push(down.invalid("may not be 0 when `maxSurge` is 0"));
            }
            at_most_all(&down, errors);
        }
        _ => errors.push(strategy.unsupported(&["Recreate", "RollingUpdate"])),
    }
    spec.none_negative(&["minReadySeconds", "revisionHistoryLimit"], errors);
    let deadline = spec.child("progressDeadlineSeconds");
    deadline.not_negative(errors);
    let ready = spec.child("minReadySeconds").number().unwrap_or(0);
    if deadline.number().is_some_and(|seconds| seconds <= ready) {
        errors.push(deadline.invalid("must be greater than minReadySeconds"));
    }
}

fn rolling_daemons(strategy: &At<'_>, errors: &mut Errors) {
    match strategy.text_of("type") {
        "OnDelete" => {}
        "RollingUpdate" => {
            let rolling = strategy.child("rollingUpdate");
            let (down, up) = (rolling.child("maxUnavailable"), rolling.child("maxSurge"));
            for at in [&down, &up] {
                share(at, errors);
            }
            for at in [&down, &up] {
                at_most_all(at, errors);
            }
            match (amount(&down), amount(&up)) {
                (0, 0) => errors.push(down.required("cannot be 0 when maxSurge is 0")),
                (0, _) | (_, 0) => {}
                _ => errors.push(up.invalid("may not be set when maxUnavailable is non-zero")),
            }
        }
        _ => errors.push(strategy.unsupported(&["RollingUpdate", "OnDelete"])),
    }
}

fn stateful(spec: &At<'_>, errors: &mut Errors) {
    let policy = spec.child("podManagementPolicy");
    if !["OrderedReady", "Parallel"].contains(&policy.text()) {
        errors.push(policy.invalid("must be 'OrderedReady' or 'Parallel'"));
    }
    let strategy = spec.child("updateStrategy");
    let rolling = strategy.child("rollingUpdate");
    match strategy.text_of("type") {
        "OnDelete" if rolling.is_set() => {
            errors.push(rolling.invalid("only allowed for updateStrategy 'RollingUpdate'"));
        }
        "OnDelete" => {}
        "RollingUpdate" => rolling.none_negative(&["partition"], errors),
        _ => errors.push(strategy.invalid("must be 'RollingUpdate' or 'OnDelete'")),
    }
}

/// A number that is not negative, or a percentage.
pub(super) fn share(at: &At<'_>, errors: &mut Errors) {
    if at.value.is_string() {
        let digits = at.text().strip_suffix('%').unwrap_or("");
        if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            let why = "a valid percent string must be a numeric string followed by an ending '%' \
                       (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')";
            errors.push(at.invalid(why));
        }
    } else {
        at.not_negative(errors);
    }
}

pub(super) fn at_most_all(at: &At<'_>, errors: &mut Errors) {
    if at.value.is_string() && amount(at) > 100 {
        errors.push(at.invalid("must not be greater than 100%"));
    }
}

fn amount(at: &At<'_>) -> i64 {
    let percent = at
        .text()
        .strip_suffix('%')
        .and_then(|digits| digits.parse().ok());
    at.number().or(percent).unwrap_or(0)
}
