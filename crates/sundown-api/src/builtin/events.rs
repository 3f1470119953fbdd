//! Events: one kind in two groups, stored as the older one. What they may not have.

use serde_json::{Map, Value};

use super::place::At;
use crate::dns;
use crate::document::Document;
use crate::field::{Errors, FieldError};
use crate::registry::Type;

const CHARACTERS_MAX: usize = 128;
const NOTE_CHARACTERS_MAX: usize = 1024;

/// The members of events as `events.k8s.io` shows them, and as the core group stores them.
pub(crate) const EVENT_NAMES: &[(&str, &str)] = &[
    ("regarding", "involvedObject"),
    ("note", "message"),
    ("deprecatedSource", "source"),
    ("deprecatedFirstTimestamp", "firstTimestamp"),
    ("deprecatedLastTimestamp", "lastTimestamp"),
    ("deprecatedCount", "count"),
    ("reportingController", "reportingComponent"),
];

/// What is wrong with an event; the newer group is stricter.
pub(super) fn validate(ty: &Type, object: &Document) -> Errors {
    let mut errors = Errors::default();
    let is_new = !ty.resource.group().is_empty();
    let has_time = object
        .at(&["eventTime"])
        .is_some_and(|time| !time.is_null());
    let own = object.metadata.namespace.as_str();
    let about = At::new(
        object.at(&["involvedObject", "namespace"]),
        "involvedObject.namespace",
    );
    let fits = match (about.text(), has_time) {
        ("", true) => matches!(own, "default" | "kube-system"),
        ("", false) => matches!(own, "" | "default"),
        (_, true) => true,
        (about, false) => about == own,
    };
    if !fits {
        let why = "does not match event.namespace";
        errors.push(FieldError::invalid(&*about.path, about.text(), why));
    }
    if has_time {
        validate_new(is_new, &object.rest, &mut errors);
    }
    if is_new {
        validate_strictly(has_time, &object.rest, &mut errors);
    }
    errors
}

/// What of an event of the newer group may not change.
pub(super) fn validate_change(old: &Document, new: &Document) -> Errors {
    let mut errors = Errors::default();
    for (member, shown) in [
        ("involvedObject", "involvedObject"),
        ("reason", "reason"),
        ("message", "message"),
        ("source", "source"),
        ("firstTimestamp", "firstTimestamp"),
        ("lastTimestamp", "lastTimestamp"),
        ("count", "count"),
        ("type", "type"),
        ("eventTime", "eventTime"),
        ("action", "action"),
        ("related", "related"),
        ("reportingComponent", "reportingController"),
        ("reportingInstance", "reportingInstance"),
    ] {
        let was = At::new(old.rest.get(member), shown);
        At::new(new.rest.get(member), shown).same_as(&was, &mut errors);
    }
    errors
}

fn validate_new(is_new: bool, event: &Map<String, Value>, errors: &mut Errors) {
    let controller = if is_new {
        "reportingController"
    } else {
        "reportingComponent"
    };
    let reporter = At::new(event.get("reportingComponent"), controller);
    if reporter.text().is_empty() {
        errors.push(reporter.required(""));
    }
    for why in dns::qualified_name(reporter.text()) {
        errors.push(FieldError::invalid(controller, reporter.text(), &why));
    }
    for member in ["reportingInstance", "action", "reason"] {
        let at = At::new(event.get(member), member);
        if at.text().is_empty() {
            errors.push(at.required(""));
        }
        if at.text().len() > CHARACTERS_MAX {
            let why = format!("can have at most {CHARACTERS_MAX} characters");
            errors.push(FieldError::invalid(member, "", &why));
        }
    }
    let message = At::new(event.get("message"), "message");
    if message.text().len() > NOTE_CHARACTERS_MAX {
        let why = format!("can have at most {NOTE_CHARACTERS_MAX} characters");
        errors.push(FieldError::invalid("message", "", &why));
    }
}

fn validate_strictly(has_time: bool, event: &Map<String, Value>, errors: &mut Errors) {
    let at = |member: &str| At::new(event.get(member), member);
    let series = at("series");
    if series.is_set() && series.child("count").number().unwrap_or(0) < 2 {
        errors.push(FieldError::invalid(
            "series.count",
            "",
            "should be at least 2",
        ));
    }
    if !has_time {
        errors.push(FieldError::required("eventTime", ""));
    }
    let kind = at("type");
    if !["Normal", "Warning"].contains(&kind.text()) {
        let why = format!("has invalid value: {}", kind.text());
        errors.push(FieldError::invalid("type", "", &why));
    }
    for member in ["firstTimestamp", "lastTimestamp", "count"] {
        let old = at(member);
        if old.is_set() && old.number() != Some(0) {
            errors.push(FieldError::invalid(member, "", "needs to be unset"));
        }
    }
    let source = at("source");
    if !source.text_of("component").is_empty() || !source.text_of("host").is_empty() {
        errors.push(FieldError::invalid("source", "", "needs to be unset"));
    }
}
