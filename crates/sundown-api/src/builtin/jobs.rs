//! Jobs and schedules of jobs: what they have when nobody says otherwise, what they may not have and
//! what of them may not change, after upstream's `apis/batch`.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::place::At;
use super::pod_rules::validate_template;
use super::pods::default_template;
use super::{cron, labels, section, set};
use crate::document::Document;
use crate::field::{Errors, FieldError};

const UID_LABEL: &str = "batch.kubernetes.io/controller-uid";
const NAME_LABEL: &str = "batch.kubernetes.io/job-name";
const OLD_UID_LABEL: &str = "controller-uid";
const OLD_NAME_LABEL: &str = "job-name";
const PARALLELISM_OF_INDEXED_MAX: i64 = 100_000;

/// Fills in a job.
pub(super) fn default_job(object: &mut Document) {
    let spec = object.section("spec");
    let is_set = |member: &str| spec.get(member).is_some_and(|value| !value.is_null());
    if !is_set("completions") && !is_set("parallelism") {
        set(spec, "completions", json!(1));
    }
    set(spec, "parallelism", json!(1));
    let is_per_index = spec.get("backoffLimitPerIndex").is_some();
    let limit = if is_per_index { i32::MAX } else { 6 };
    set(spec, "backoffLimit", json!(limit));
    set(spec, "completionMode", json!("NonIndexed"));
    set(spec, "suspend", json!(false));
    let is_policy = spec.get("podFailurePolicy").is_some();
    let replaced = if is_policy {
        "Failed"
    } else {
        "TerminatingOrFailed"
    };
    set(spec, "podReplacementPolicy", json!(replaced));
    set(spec, "manualSelector", json!(false));
    default_template(spec);
    default_labels(object);
}

/// A job without labels has those of its pods.
fn default_labels(object: &mut Document) {
    let own = object.at(&["spec", "template", "metadata", "labels"]);
    if let Some(own) = own
        && object.metadata.labels.is_empty()
    {
        object.metadata.labels = labels::of(own);
    }
}

/// Gives a new job its selector and the labels that its pods are found by.
pub(super) fn prepare(object: &mut Document) {
    let (uid, name) = (object.metadata.uid.clone(), object.metadata.name.clone());
    let template_labels = object
        .at(&["spec", "template", "metadata", "labels"])
        .map(labels::of);
    // Upstream keeps one map for both when the job has none of its own.
    let is_shared = template_labels.as_ref() == Some(&object.metadata.labels);
    let spec = object.section("spec");
    if spec.get("manualSelector") == Some(&json!(true)) {
        return;
    }
    let Some(Value::Object(template)) = spec.get_mut("template") else {
        return;
    };
    let own = section(section(template, "metadata"), "labels");
    for (label, value) in [
        (OLD_NAME_LABEL, &name),
        (NAME_LABEL, &name),
        (OLD_UID_LABEL, &uid),
        (UID_LABEL, &uid),
    ] {
        set(own, label, json!(value));
    }
    let selector = section(section(spec, "selector"), "matchLabels");
    set(selector, UID_LABEL, json!(uid));
    if is_shared {
        object.metadata.labels.clear();
    }
    default_labels(object);
}

/// Fills in a schedule of jobs. The jobs themselves are filled in when they are made.
pub(super) fn default_cron_job(object: &mut Document) {
    let spec = object.section("spec");
    set(spec, "concurrencyPolicy", json!("Allow"));
    set(spec, "suspend", json!(false));
    set(spec, "successfulJobsHistoryLimit", json!(3));
    set(spec, "failedJobsHistoryLimit", json!(1));
    if let Some(Value::Object(template)) = spec.get_mut("jobTemplate") {
        default_template(section(template, "spec"));
    }
}

/// What is wrong with a job.
pub(super) fn validate_job(object: &Document) -> Errors {
    let spec = At::new(object.rest.get("spec"), "spec");
    let mut errors = Errors::default();
    validate_generated(object, &spec, &mut errors);
    validate_spec(&spec, &mut errors);
    let selector = spec.child("selector");
    if selector.is_set() {
        labels::validate(&selector, &mut errors);
    } else {
        errors.push(selector.required(""));
    }
    let own = spec.down(&["template", "metadata", "labels"]);
    if !labels::selects(selector.value, &labels::of(own.value)) {
        errors.push(own.invalid("`selector` does not match template `labels`"));
    }
    errors
}

/// A selector that was not asked for by hand is the generated one.
fn validate_generated(object: &Document, spec: &At<'_>, errors: &mut Errors) {
    let selector = spec.child("selector");
    if spec.child("manualSelector").is_true() || !selector.is_set() {
        return;
    }
    let (uid, name) = (&object.metadata.uid, &object.metadata.name);
    let expected = [
        (OLD_UID_LABEL, uid),
        (OLD_NAME_LABEL, name),
        (UID_LABEL, uid),
        (NAME_LABEL, name),
    ];
    let own = spec.down(&["template", "metadata", "labels"]);
    for (label, value) in expected {
        let actual = own.text_of(label);
        if own.value.get(label).is_none() {
            let path = format!("{}[{label}]", own.path);
            errors.push(FieldError::required(path, &format!("must be '{value}'")));
        } else if actual != value {
            let why = format!("must be '{value}'");
            let path = format!("{}[{label}]", own.path);
            errors.push(FieldError::invalid(path, own.value.clone(), &why));
        }
    }
    let expected = expected.map(|(label, value)| (label.to_owned(), value.clone()));
    if !labels::selects(selector.value, &expected.into_iter().collect()) {
        errors.push(selector.invalid("`selector` not auto-generated"));
    }
}

fn validate_spec(spec: &At<'_>, errors: &mut Errors) {
    let numbers = [
        "parallelism",
        "completions",
        "activeDeadlineSeconds",
        "backoffLimit",
        "ttlSecondsAfterFinished",
        "backoffLimitPerIndex",
        "maxFailedIndexes",
    ];
    spec.none_negative(&numbers, errors);
    let (per_index, failed) = (
        spec.child("backoffLimitPerIndex"),
        spec.child("maxFailedIndexes"),
    );
    if failed.is_set() && !per_index.is_set() {
        errors.push(per_index.required("when maxFailedIndexes is specified"));
    }
    validate_mode(spec, errors);
    let template = spec.child("template");
    validate_template(&template, &BTreeSet::new(), errors);
    let policy = template.down(&["spec", "restartPolicy"]);
    match policy.text() {
        "" | "Always" => {
            errors.push(policy.required("valid values: \"OnFailure\", \"Never\""));
        }
        "Never" => {}
        "OnFailure" => {
            if spec.child("podFailurePolicy").is_set() {
                let why = "only \"Never\" is supported when podFailurePolicy is specified";
                errors.push(policy.invalid(why));
            }
        }
        _ => errors.push(policy.unsupported(&["OnFailure", "Never"])),
    }
}

fn validate_mode(spec: &At<'_>, errors: &mut Errors) {
    let mode = spec.child("completionMode");
    let (completions, parallelism) = (spec.child("completions"), spec.child("parallelism"));
    let failed = spec.child("maxFailedIndexes");
    match mode.text() {
        "Indexed" => {
            if !completions.is_set() {
                errors.push(completions.required("when completion mode is Indexed"));
            }
            let count = parallelism.number().unwrap_or(0);
            if count > PARALLELISM_OF_INDEXED_MAX {
                let why = "must be less than or equal to 100000 when completion mode is Indexed";
                errors.push(parallelism.invalid(why));
            }
            if let (Some(most), Some(all)) = (failed.number(), completions.number())
                && most > all
            {
                errors.push(failed.invalid("must be less than or equal to completions"));
            }
        }
        "" | "NonIndexed" => {
            for member in ["backoffLimitPerIndex", "maxFailedIndexes", "successPolicy"] {
                let own = spec.child(member);
                if own.is_set() {
                    errors.push(own.invalid("requires indexed completion mode"));
                }
            }
        }
        _ => errors.push(mode.unsupported(&["NonIndexed", "Indexed"])),
    }
    let replaced = spec.child("podReplacementPolicy");
    if replaced.is_set() && !["Failed", "TerminatingOrFailed"].contains(&replaced.text()) {
        errors.push(replaced.unsupported(&["Failed", "TerminatingOrFailed"]));
    }
}

/// What is wrong with a schedule of jobs.
pub(super) fn validate_cron_job(object: &Document) -> Errors {
    let spec = At::new(object.rest.get("spec"), "spec");
    let mut errors = Errors::default();
    let schedule = spec.child("schedule");
    if schedule.text().is_empty() {
        errors.push(schedule.required(""));
    } else {
        if let Err(why) = cron::check(schedule.text()) {
            errors.push(schedule.invalid(&why));
        }
        if schedule.text().contains("TZ") {
            let why = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead";
            errors.push(schedule.invalid(why));
        }
    }
    spec.none_negative(&["startingDeadlineSeconds"], &mut errors);
    let zone = spec.child("timeZone");
    if zone.is_set() && zone.text().is_empty() {
        errors.push(zone.invalid("timeZone must be nil or non-empty string"));
    }
    let policies = ["Allow", "Forbid", "Replace"];
    spec.child("concurrencyPolicy")
        .one_of(&policies, &mut errors);
    let job = spec.down(&["jobTemplate", "spec"]);
    validate_spec(&job, &mut errors);
    let selector = job.child("selector");
    if selector.is_set() {
        errors.push(selector.invalid("`selector` will be auto-generated"));
    }
    let manual = job.child("manualSelector");
    if manual.is_true() {
        errors.push(manual.unsupported(&["nil", "false"]));
    }
    let limits = ["successfulJobsHistoryLimit", "failedJobsHistoryLimit"];
    spec.none_negative(&limits, &mut errors);
    if object.metadata.name.len() > 52 {
        let name = object.metadata.name.as_str();
        let why = "must be no more than 52 characters";
        errors.push(FieldError::invalid("metadata.name", name, why));
    }
    errors
}

/// What of a job may not change.
pub(super) fn validate_change(old: &Document, new: &Document) -> Errors {
    let (before, after) = (
        At::new(old.rest.get("spec"), "spec"),
        At::new(new.rest.get("spec"), "spec"),
    );
    let mut errors = Errors::default();
    let (was, is) = (before.child("completions"), after.child("completions"));
    if after.text_of("completionMode") != "Indexed" {
        is.same_as(&was, &mut errors);
    } else if was.value != is.value && is.value != after.child("parallelism").value {
        errors.push(is.invalid("can only be modified in tandem with spec.parallelism"));
    }
    let same = |member: &str, errors: &mut Errors| {
        after.child(member).same_as(&before.child(member), errors);
    };
    same("selector", &mut errors);
    template_change(old, &before, &after, &mut errors);
    for member in [
        "completionMode",
        "podFailurePolicy",
        "backoffLimitPerIndex",
        "managedBy",
        "successPolicy",
    ] {
        same(member, &mut errors);
    }
    errors
}

/// The template of a suspended job without pods may get other labels, resources and places to run.
fn template_change(old: &Document, before: &At<'_>, after: &At<'_>, errors: &mut Errors) {
    let is_suspended = before.child("suspend").is_true();
    let has_started = old
        .at(&["status", "startTime"])
        .is_some_and(|at| !at.is_null());
    let is_marked = old.at(&["status", "conditions"]).is_some_and(|list| {
        let mut list = list.as_array().into_iter().flatten();
        list.any(|it| it["type"] == "Suspended" && it["status"] == "True")
    });
    let active = old.at(&["status", "active"]).and_then(Value::as_i64);
    let is_free = is_suspended && (!has_started || is_marked) && active.unwrap_or(0) == 0;
    let (was, is) = (before.child("template"), after.child("template"));
    let mut allowed = was.value.clone();
    if is_free {
        allow(&mut allowed, is.value);
    }
    if *is.value != allowed {
        errors.push(is.invalid(super::place::IMMUTABLE));
    }
}

/// Takes over what may change.
fn allow(old: &mut Value, new: &Value) {
    let take = |old: &mut Map<String, Value>, new: &Value, members: &[&str]| {
        for member in members {
            match new.get(member) {
                Some(value) => old.insert((*member).to_owned(), value.clone()),
                None => old.remove(*member),
            };
        }
    };
    if let Some(metadata) = old.get_mut("metadata").and_then(Value::as_object_mut) {
        take(metadata, &new["metadata"], &["annotations", "labels"]);
    }
    let Some(spec) = old.get_mut("spec").and_then(Value::as_object_mut) else {
        return;
    };
    let new = &new["spec"];
    let members = ["nodeSelector", "tolerations", "schedulingGates"];
    take(spec, new, &members);
    let only_nodes = |affinity: &Value| {
        let others = ["podAffinity", "podAntiAffinity"];
        others.iter().all(|kind| affinity.get(kind).is_none())
    };
    if only_nodes(&new["affinity"]) && spec.get("affinity").is_none_or(only_nodes) {
        take(spec, new, &["affinity"]);
    }
    for list in ["containers", "initContainers"] {
        for (index, container) in super::each(spec, list).enumerate() {
            take(container, &new[list][index], &["resources"]);
        }
    }
}
