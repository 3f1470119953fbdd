//! Which names a definition gets, and the conditions that say so.
//!
//! Upstream's naming, establishing and approval controllers work on what is stored; here the commit
//! that changes a definition settles all of its group, so that a kind is served, or refused, from
//! that commit on.

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Map, Value, json};
use sundown_model::ObjectKey;
use sundown_schema::member;
use sundown_store::{Store, Stored, Transaction, Write};

use crate::document::{Document, whole_seconds};
use crate::registry::{Registry, Type, crd_resource};

/// The annotation that groups of the Kubernetes community need.
pub(crate) const APPROVED: &str = "api-approved.kubernetes.io";

/// Settles the definitions of all groups that were touched.
pub(crate) fn settle<'a>(
    store: &mut Store,
    ty: &Type,
    touched: impl Iterator<Item = &'a ObjectKey>,
    now: Timestamp,
) {
    let definitions = crd_resource();
    let own = touched.filter(|key| key.resource == definitions);
    let groups: BTreeSet<String> = own.map(|key| group_of(key).to_owned()).collect();
    for group in groups {
        let keys = store.of(&definitions).map(|(key, _)| key);
        let keys: Vec<ObjectKey> = keys.filter(|key| group_of(key) == group).cloned().collect();
        // Each round gives names away or ends it, and a name that is given stays given.
        while keys
            .iter()
            .any(|key| settle_one(store, ty, &keys, key, now))
        {}
    }
}

/// Names of definitions are `plural.group`.
fn group_of(key: &ObjectKey) -> &str {
    key.name.split_once('.').map_or("", |(_, group)| group)
}

fn settle_one(
    store: &mut Store,
    ty: &Type,
    keys: &[ObjectKey],
    key: &ObjectKey,
    now: Timestamp,
) -> bool {
    let Some(stored) = store.get(key).map(Arc::clone) else {
        return false;
    };
    let own = Names::of(&stored);
    let approval = approval(group_of(key), &stored);
    let has_approval = |approval: &Condition| own.conditions.iter().any(|it| approval.stands(it));
    let is_approved = approval.as_ref().is_none_or(has_approval);
    if own.requested == own.accepted && is_approved {
        return false;
    }
    let others = keys.iter().filter(|other| *other != key);
    let others = others.filter_map(|other| store.get(other));
    let others: Vec<Value> = others.map(|other| Names::of(other).accepted).collect();
    let settled = own.settled(&others, group_of(key));
    let mut object = Document::of(&stored);
    let before = object.section("status").clone();
    settled.put(&mut object, now);
    let status = object.section("status");
    if let Some(condition) = &approval {
        condition.set(status, now);
    }
    if *status == before {
        return false;
    }
    let transaction = Transaction {
        reads: Vec::new(),
        writes: vec![Write::Put {
            key: key.clone(),
            body: object.encode(ty),
        }],
    };
    store.commit(&transaction, now).is_ok()
}

/// Settles a definition that is about to be stored for the first time.
///
/// Assumes: its group is not one of the Kubernetes community, which needs an approval.
pub(crate) fn settle_new(store: &Store, key: &ObjectKey, object: &mut Document, now: Timestamp) {
    let definitions = crd_resource();
    let others = store.of(&definitions);
    let others = others.filter(|(other, _)| group_of(other) == group_of(key));
    let others: Vec<Value> = others.map(|(_, it)| Names::of(it).accepted).collect();
    let part = |path: &[&str]| object.at(path).cloned().unwrap_or_default();
    let own = Names {
        requested: part(&["spec", "names"]),
        accepted: part(&["status", "acceptedNames"]),
        conditions: Vec::new(),
    };
    own.settled(&others, group_of(key)).put(object, now);
}

/// What a definition asks for and what it has.
struct Names {
    requested: Value,
    accepted: Value,
    conditions: Vec<Value>,
}

/// What a definition gets.
struct Settled {
    names: Value,
    conditions: [Condition; 2],
}

impl Settled {
    fn put(self, object: &mut Document, now: Timestamp) {
        let status = object.section("status");
        status.insert("acceptedNames".into(), self.names);
        for condition in &self.conditions {
            condition.set(status, now);
        }
    }
}

impl Names {
    fn of(stored: &Stored) -> Self {
        let parse = |bytes: Option<&[u8]>| {
            let parsed = bytes.and_then(|bytes| serde_json::from_slice(bytes).ok());
            parsed.unwrap_or(Value::Null)
        };
        let json = stored.json();
        let names = member(json, "spec").and_then(|spec| member(spec, "names"));
        let mut status = parse(member(json, "status"));
        let conditions = status["conditions"].as_array().cloned();
        Self {
            requested: parse(names),
            accepted: status["acceptedNames"].take(),
            conditions: conditions.unwrap_or_default(),
        }
    }

    /// Each name is given unless another definition of the group has it.
    fn settled(&self, others: &[Value], group: &str) -> Settled {
        let taken = |members: &[&str]| -> BTreeSet<String> {
            let values = others
                .iter()
                .flat_map(|it| members.iter().map(|name| &it[*name]));
            values
                .flat_map(texts)
                .filter(|text| !text.is_empty())
                .collect()
        };
        let resources = taken(&["plural", "singular", "shortNames"]);
        let kinds = taken(&["kind", "listKind"]);
        let mut names = self.accepted.as_object().cloned().unwrap_or_default();
        let mut conflict: Option<Condition> = None;
        for (name, reason, taken) in [
            ("plural", "PluralConflict", &resources),
            ("singular", "SingularConflict", &resources),
            ("shortNames", "ShortNamesConflict", &resources),
            ("kind", "KindConflict", &kinds),
            ("listKind", "ListKindConflict", &kinds),
        ] {
            let had = texts(&self.accepted[name]);
            let mut used = texts(&self.requested[name]);
            used.retain(|it| !had.contains(it) && taken.contains(it));
            if name == "plural" {
                // Not upstream's, which serves one of the two: a built-in kind keeps its place.
                let plural = texts(&self.requested[name]).join("");
                used.extend(Some(plural).filter(|plural| Registry::is_built_in(group, plural)));
            }
            if used.is_empty() {
                give(&mut names, name, &self.requested[name]);
            } else {
                let message = in_use(&used);
                conflict = Some(Condition::new("NamesAccepted", "False", reason, &message));
            }
        }
        give(&mut names, "categories", &self.requested["categories"]);
        let accepted =
            || Condition::new("NamesAccepted", "True", "NoConflicts", "no conflicts found");
        let established = self.established(conflict.is_none());
        Settled {
            names: Value::Object(names),
            conditions: [conflict.unwrap_or_else(accepted), established],
        }
    }

    /// What was served once stays served.
    fn established(&self, is_accepted: bool) -> Condition {
        let is_old = |it: &&Value| it["type"] == "Established" && it["status"] == "True";
        let is_established = self.conditions.iter().any(|it| is_old(&it));
        if is_established || is_accepted {
            let message = "the initial names have been accepted";
            Condition::new("Established", "True", "InitialNamesAccepted", message)
        } else {
            let message = "not all names are accepted";
            Condition::new("Established", "False", "NotAccepted", message)
        }
    }
}

fn texts(value: &Value) -> Vec<String> {
    match value {
        Value::String(text) => vec![text.clone()],
        Value::Array(list) => list.iter().flat_map(texts).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => Vec::new(),
    }
}

fn give(names: &mut Map<String, Value>, name: &str, value: &Value) {
    if value.is_null() {
        names.remove(name);
    } else {
        names.insert(name.into(), value.clone());
    }
}

fn in_use(names: &[String]) -> String {
    let told: Vec<String> = names
        .iter()
        .map(|name| format!("{name:?} is already in use"))
        .collect();
    match told.as_slice() {
        [one] => one.clone(),
        all => format!("[{}]", all.join(", ")),
    }
}

/// One condition of a definition.
#[derive(Debug, Clone)]
pub(crate) struct Condition {
    name: &'static str,
    status: &'static str,
    reason: &'static str,
    message: String,
}

impl Condition {
    pub(crate) fn new(
        name: &'static str,
        status: &'static str,
        reason: &'static str,
        message: &str,
    ) -> Self {
        Self {
            name,
            status,
            reason,
            message: message.to_owned(),
        }
    }

    fn stands(&self, present: &Value) -> bool {
        present["type"] == self.name
            && present["status"] == self.status
            && present["reason"] == self.reason
            && present["message"] == *self.message
    }

    /// Puts the condition among those of a status; its time is that of the transition.
    pub(crate) fn set(&self, status: &mut Map<String, Value>, now: Timestamp) {
        let conditions = status.entry("conditions").or_insert(Value::Null);
        if !conditions.is_array() {
            *conditions = json!([]);
        }
        let Some(list) = conditions.as_array_mut() else {
            return;
        };
        let mut new = json!({
            "lastTransitionTime": whole_seconds(now).to_string(), "message": self.message,
            "reason": self.reason, "status": self.status, "type": self.name,
        });
        match list.iter_mut().find(|it| it["type"] == self.name) {
            Some(old) => {
                if old["status"] == self.status {
                    new["lastTransitionTime"] = old["lastTransitionTime"].take();
                }
                *old = new;
            }
            None => list.push(new),
        }
    }
}

/// Whether a group belongs to the Kubernetes community.
pub(crate) fn is_protected(group: &str) -> bool {
    let is_within = |domain: &str| {
        group == domain
            || group
                .strip_suffix(domain)
                .is_some_and(|it| it.ends_with('.'))
    };
    is_within("k8s.io") || is_within("kubernetes.io")
}

/// What the annotation of a definition says about its approval.
pub(crate) enum Approval {
    Missing,
    Bypassed,
    Approved,
    Invalid,
}

impl Approval {
    pub(crate) fn of(annotation: &str) -> Self {
        let has_host = |(scheme, rest): (&str, &str)| !scheme.is_empty() && !rest.starts_with('/');
        if annotation.is_empty() {
            Self::Missing
        } else if annotation.starts_with("unapproved") {
            Self::Bypassed
        } else if annotation.split_once("://").is_some_and(has_host) {
            Self::Approved
        } else {
            Self::Invalid
        }
    }

    /// Why a definition is refused for it.
    pub(crate) fn refusal(&self) -> Option<String> {
        let see = "see https://github.com/kubernetes/enhancements/pull/1111";
        match self {
            Self::Missing => Some(format!(
                "protected groups must have approval annotation {APPROVED:?}, {see}"
            )),
            Self::Invalid => Some(format!(
                "protected groups must have approval annotation {APPROVED:?} with either a URL or a \
                 reason starting with \"unapproved\", {see}"
            )),
            Self::Approved | Self::Bypassed => None,
        }
    }
}

fn approval(group: &str, stored: &Stored) -> Option<Condition> {
    if !is_protected(group) {
        return None;
    }
    let annotations = member(stored.metadata_json(), "annotations");
    let annotations: Option<Map<String, Value>> =
        annotations.and_then(|bytes| serde_json::from_slice(bytes).ok());
    let annotation = annotations
        .as_ref()
        .and_then(|it| it.get(APPROVED)?.as_str())
        .unwrap_or("");
    let told = |status, reason, message: &str| {
        Condition::new(
            "KubernetesAPIApprovalPolicyConformant",
            status,
            reason,
            message,
        )
    };
    let approval = Approval::of(annotation);
    let refusal = approval.refusal().unwrap_or_default();
    Some(match approval {
        Approval::Approved => told(
            "True",
            "ApprovedAnnotation",
            &format!("approved in {annotation}"),
        ),
        Approval::Bypassed => told(
            "False",
            "UnapprovedAnnotation",
            &format!("not approved: {annotation:?}"),
        ),
        Approval::Missing => told("False", "MissingAnnotation", &refusal),
        Approval::Invalid => told("False", "InvalidAnnotation", &refusal),
    })
}
