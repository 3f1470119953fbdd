//! May they, and what may they: the answers of access reviews.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::authorize::{Attributes, MISSING_MAX, Rule};
use crate::{Server, User};

/// How many entries of rules are shown: some ten megabytes. The default roles have a few thousand.
const SHOWN_MAX: usize = 500_000;

/// Whether a user may do what the spec of a review says.
pub(super) fn status(server: &Server, user: &User, sent: &Value) -> Value {
    let part = |name: &str| sent["spec"].get(name).filter(|it| !it.is_null());
    let (resource, other) = (part("resourceAttributes"), part("nonResourceAttributes"));
    let text = |name: &str| resource.or(other).map_or("", |it| text(it, name));
    let asked = Attributes {
        user,
        verb: text("verb"),
        group: text("group"),
        resource: text("resource"),
        subresource: text("subresource"),
        namespace: text("namespace"),
        name: text("name"),
        path: text("path"),
        is_resource: resource.is_some(),
    };
    let decision = server.may(&asked);
    let mut status = json!({ "allowed": decision.is_allowed() });
    let reason = decision.to_string();
    if !reason.is_empty() {
        status["reason"] = reason.into();
    }
    status
}

/// The user that a review is about.
pub(super) fn subject(sent: &Value) -> User {
    let spec = &sent["spec"];
    let texts = |value: &Value| {
        let all = value.as_array().into_iter().flatten();
        all.filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let extra = spec["extra"].as_object().into_iter().flatten();
    User {
        name: text(spec, "user").to_owned(),
        uid: text(spec, "uid").to_owned(),
        groups: texts(&spec["groups"]),
        extra: extra
            .map(|(key, values)| (key.clone(), texts(values)))
            .collect::<BTreeMap<_, _>>(),
    }
}

/// All that a user may do in a namespace.
pub(super) fn rules(server: &Server, user: &User, namespace: &str) -> Value {
    if server.bindings().is_none() {
        return json!({
            "resourceRules": [{ "verbs": ["*"], "apiGroups": ["*"], "resources": ["*"] }],
            "nonResourceRules": [{ "verbs": ["*"], "nonResourceURLs": ["*"] }],
            "incomplete": false,
        });
    }
    let (held, errors, is_incomplete) = shown(server, user, namespace);
    let (mut resources, mut others) = (Vec::new(), Vec::new());
    for rule in held {
        if !rule.resources.is_empty() {
            let mut shown = json!({
                "verbs": rule.verbs, "apiGroups": rule.api_groups, "resources": rule.resources,
            });
            if !rule.resource_names.is_empty() {
                shown["resourceNames"] = json!(rule.resource_names);
            }
            resources.push(shown);
        }
        if !rule.non_resource_urls.is_empty() {
            others.push(json!({
                "verbs": rule.verbs, "nonResourceURLs": rule.non_resource_urls,
            }));
        }
    }
    let mut status = json!({
        "resourceRules": resources, "nonResourceRules": others, "incomplete": is_incomplete,
    });
    if !errors.is_empty() {
        let text = match errors.as_slice() {
            [one] => one.clone(),
            many => format!("[{}]", many.join(", ")),
        };
        status["evaluationError"] = text.into();
    }
    status
}

/// The rules of a user, binding by binding, why some may be missing, and whether some were left out.
///
/// A role of a megabyte that is bound a thousand times would make an answer of a gigabyte.
fn shown<'a>(
    server: &'a Server,
    user: &'a User,
    namespace: &'a str,
) -> (Vec<&'a Rule>, Vec<String>, bool) {
    let (mut rules, mut errors, mut entry_count) = (Vec::new(), Vec::new(), 0);
    let mut missing = BTreeSet::new();
    for (binding, own) in server.held(user, namespace) {
        let Some(own) = own else {
            if missing.len() < MISSING_MAX && missing.insert(&binding.role) {
                errors.push(binding.missing_role());
            }
            continue;
        };
        entry_count += own.iter().map(Rule::entry_count).sum::<usize>();
        if entry_count > SHOWN_MAX {
            errors.push(format!(
                "rules with more than {SHOWN_MAX} entries are left out"
            ));
            return (rules, errors, true);
        }
        rules.extend(own);
    }
    (rules, errors, false)
}

fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value[name].as_str().unwrap_or("")
}
