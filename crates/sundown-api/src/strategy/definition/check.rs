//! What keeps a definition from being accepted, in the order and the words of upstream's
//! `apis/apiextensions/validation`.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use sundown_schema::check as check_schema;

use super::hoisted::Hoisted;
use super::{columns, versions};
use crate::custom::{self, names};
use crate::dns;
use crate::document::Document;
use crate::field::{Errors, FieldError};

/// What would keep a definition from being served.
pub(crate) fn validate(object: &Document) -> Errors {
    let mut errors = Errors::default();
    let text = |path: &[&str]| object.text_at(path).to_owned();
    let (group, plural) = (text(&["spec", "group"]), text(&["spec", "names", "plural"]));
    let name = object.metadata.name.as_str();
    if name != format!("{plural}.{group}") {
        let why = "must be spec.names.plural+\".\"+spec.group";
        errors.push(FieldError::invalid("metadata.name", name, why));
    }
    errors.append(group_and_scope(&group, &text(&["spec", "scope"])));
    let hoisted = Hoisted::of(object);
    errors.append(all_versions(object, &hoisted));
    errors.append(required_names(object));
    errors.append(form_of_names(object));
    let schema = hoisted.common("schema");
    let has_status = versions(object).iter().any(|it| has_status(Some(it)));
    errors.append(of_schema(schema, has_status, "spec.validation"));
    errors.append(columns::subresources(
        hoisted.common("subresources"),
        "spec.subresources",
    ));
    errors.append(columns::columns(
        hoisted.common("additionalPrinterColumns"),
        "spec.additionalPrinterColumns",
    ));
    let fields = hoisted.common("selectableFields");
    let first = versions(object)
        .first()
        .and_then(|it| it.pointer("/schema/openAPIV3Schema"));
    let first = first.unwrap_or(&Value::Null);
    errors.append(columns::selectable(fields, first, "spec.selectableFields"));
    errors.append(conversion(object));
    errors.append(stored_versions(object));
    errors.extend(approval(object, &group));
    if object.at(&["spec", "preserveUnknownFields"]) == Some(&json!(true)) {
        let why = "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in \
                   spec.versions[*].schema instead";
        errors.push(FieldError::invalid("spec.preserveUnknownFields", true, why));
    }
    errors
}

/// What an update must not change.
pub(crate) fn changes(old: &Document, new: &Document) -> Errors {
    let conditions = old.at(&["status", "conditions"]).and_then(Value::as_array);
    let is_it = |it: &Value| it["type"] == "Established" && it["status"] == "True";
    let is_established = conditions.is_some_and(|list| list.iter().any(is_it));
    let mut fixed: Vec<&[&str]> = Vec::new();
    if is_established {
        fixed.extend([&["spec", "scope"][..], &["spec", "names", "kind"]]);
    }
    fixed.extend([&["spec", "group"][..], &["spec", "names", "plural"]]);
    let changed = fixed
        .into_iter()
        .filter(|path| old.text_at(path) != new.text_at(path));
    let error = |path: &[&str]| {
        FieldError::invalid(path.join("."), new.text_at(path), "field is immutable")
    };
    changed.map(error).collect()
}

fn group_and_scope(group: &str, scope: &str) -> Errors {
    let mut errors = Errors::default();
    let wrong = dns::subdomain(group).join(",");
    if group.is_empty() {
        errors.push(FieldError::required("spec.group", ""));
    } else if !wrong.is_empty() {
        errors.push(FieldError::invalid("spec.group", group, &wrong));
    } else if !group.contains('.') {
        let why = "should be a domain with at least one dot";
        errors.push(FieldError::invalid("spec.group", group, why));
    }
    let scopes = ["Cluster", "Namespaced"];
    if scope.is_empty() {
        errors.push(FieldError::required("spec.scope", ""));
    } else if !scopes.contains(&scope) {
        errors.push(FieldError::unsupported("spec.scope", scope, &scopes));
    }
    errors
}

fn all_versions(object: &Document, hoisted: &Hoisted<'_>) -> Errors {
    let all = versions(object);
    let mut errors = Errors::default();
    for (index, version) in all.iter().enumerate() {
        if version
            .pointer("/schema/openAPIV3Schema")
            .is_none_or(Value::is_null)
        {
            let at = format!("spec.versions[{index}].schema.openAPIV3Schema");
            errors.push(FieldError::required(at, ""));
        }
    }
    for (index, version) in all.iter().enumerate() {
        errors.append(one_version(index, version, hoisted));
    }
    let names: BTreeSet<String> = all.iter().map(|it| it["name"].to_string()).collect();
    if names.len() < all.len() {
        let why = "must contain unique version names";
        errors.push(FieldError::invalid_as(
            "spec.versions",
            &hoisted.shown(),
            why,
        ));
    }
    if all
        .iter()
        .filter(|version| version["storage"] == true)
        .count()
        != 1
    {
        let why = "must have exactly one version marked as storage version";
        let shown = object.at(&["spec", "versions"]).map(|_| hoisted.shown());
        let shown = shown.unwrap_or_else(|| "null".to_owned());
        errors.push(FieldError::invalid_as("spec.versions", &shown, why));
    }
    // The internal type has the first version a second time.
    if let Some(first) = all.first() {
        errors.append(label(
            first["name"].as_str().unwrap_or(""),
            "spec.version",
            "",
        ));
    }
    errors
}

fn one_version(index: usize, version: &Value, hoisted: &Hoisted<'_>) -> Errors {
    let at = |member: &str| format!("spec.versions[{index}].{member}");
    let name = version["name"].as_str().unwrap_or("");
    let mut errors = label(name, &at("name"), "");
    if let Some(warning) = version.get("deprecationWarning").and_then(Value::as_str) {
        let tell = |why: &str| FieldError::invalid(at("deprecationWarning"), warning, why);
        if version["deprecated"] != true {
            errors.push(tell("can only be set for deprecated versions"));
        } else if warning.len() > 256 {
            errors.push(tell("must be <= 256 characters long"));
        } else if warning.is_empty() {
            errors.push(tell("must not be an empty string"));
        }
    }
    let schema = hoisted.own(index, "schema");
    errors.append(of_schema(schema, has_status(Some(version)), &at("schema")));
    let parts = hoisted.own(index, "subresources");
    errors.append(columns::subresources(parts, &at("subresources")));
    let own = hoisted.own(index, "additionalPrinterColumns");
    errors.append(columns::columns(own, &at("additionalPrinterColumns")));
    let fields = hoisted.own(index, "selectableFields");
    let schema = version
        .pointer("/schema/openAPIV3Schema")
        .unwrap_or(&Value::Null);
    errors.append(columns::selectable(fields, schema, &at("selectableFields")));
    errors
}

fn has_status(version: Option<&Value>) -> bool {
    let status = version.and_then(|it| it.pointer("/subresources/status"));
    status.is_some_and(|it| !it.is_null())
}

fn of_schema(validation: Option<&Value>, has_status: bool, path: &str) -> Errors {
    let Some(schema) = validation.and_then(|it| it.get("openAPIV3Schema")) else {
        return Errors::default();
    };
    let problems = check_schema(schema, &format!("{path}.openAPIV3Schema"), has_status);
    problems.map(custom::told)
}

fn label(text: &str, path: &str, lead: &str) -> Errors {
    let wrong = dns::letter_label(&text.to_lowercase()).join(",");
    let wrong = if lead.is_empty() {
        dns::letter_label(text).join(",")
    } else {
        wrong
    };
    if wrong.is_empty() {
        return Errors::default();
    }
    Errors::from([FieldError::invalid(path, text, &format!("{lead}{wrong}"))])
}

fn required_names(object: &Document) -> Errors {
    let names = ["plural", "singular", "kind", "listKind"].into_iter();
    let missing = names.filter(|name| object.text_at(&["spec", "names", name]).is_empty());
    missing
        .map(|name| FieldError::required(format!("spec.names.{name}"), ""))
        .collect()
}

fn form_of_names(object: &Document) -> Errors {
    const MIXED: &str = "may have mixed case, but should otherwise match: ";
    let text = |name: &str| object.text_at(&["spec", "names", name]);
    let mut errors = Errors::default();
    for (name, lead) in [
        ("plural", ""),
        ("singular", ""),
        ("kind", MIXED),
        ("listKind", MIXED),
    ] {
        if !text(name).is_empty() {
            errors.append(label(text(name), &format!("spec.names.{name}"), lead));
        }
    }
    let listed = |member: &str| {
        let list = object
            .at(&["spec", "names", member])
            .and_then(Value::as_array);
        let texts = list.into_iter().flatten().filter_map(Value::as_str);
        let mut errors = Errors::default();
        for (index, text) in texts.enumerate() {
            errors.append(label(text, &format!("spec.names.{member}[{index}]"), ""));
        }
        errors
    };
    let short = listed("shortNames");
    let categories = listed("categories");
    errors.append(short);
    if !text("kind").is_empty() && text("kind") == text("listKind") {
        let why = "kind and listKind may not be the same";
        errors.push(FieldError::invalid(
            "spec.names.listKind",
            text("listKind"),
            why,
        ));
    }
    errors.append(categories);
    errors
}

/// Conversion by webhooks is not supported, and refused by name.
fn conversion(object: &Document) -> Errors {
    let strategy = object.text_at(&["spec", "conversion", "strategy"]);
    if strategy.is_empty() {
        return Errors::from([FieldError::required("spec.conversion.strategy", "")]);
    }
    if strategy != "None" {
        let supported: &[&str] = if strategy == "Webhook" {
            &["None"]
        } else {
            &["None", "Webhook"]
        };
        return Errors::from([FieldError::unsupported(
            "spec.conversion.strategy",
            strategy,
            supported,
        )]);
    }
    let why = "should not be set when strategy is not set to Webhook";
    let is_set = |member: &str| {
        let value = object.at(&["spec", "conversion", "webhook", member]);
        value.is_some_and(|it| !it.is_null())
    };
    let parts = [
        ("clientConfig", "webhookClientConfig"),
        ("conversionReviewVersions", "conversionReviewVersions"),
    ];
    let set = parts.into_iter().filter(|(member, _)| is_set(member));
    set.map(|(_, shown)| FieldError::forbidden(format!("spec.conversion.{shown}"), why))
        .collect()
}

fn stored_versions(object: &Document) -> Errors {
    let at = "status.storedVersions";
    let stored = object
        .at(&["status", "storedVersions"])
        .and_then(Value::as_array);
    let stored = stored.map_or(&[][..], Vec::as_slice);
    if stored.is_empty() {
        let why = "must have at least one stored version";
        return Errors::from([FieldError::invalid(at, Value::Null, why)]);
    }
    let known: Vec<&Value> = versions(object)
        .iter()
        .map(|version| &version["name"])
        .collect();
    let lost = stored
        .iter()
        .enumerate()
        .filter(|(_, version)| !known.contains(version));
    let told = lost.map(|(index, version)| {
        let name = version.as_str().unwrap_or("");
        let why = format!(
            "missing from spec.versions; {name} was previously a storage version, and must remain in \
             spec.versions until a storage migration ensures no data remains persisted in {name} and \
             removes {name} from status.storedVersions"
        );
        FieldError::invalid(format!("{at}[{index}]"), name, &why)
    });
    told.collect()
}

fn approval(object: &Document, group: &str) -> Option<FieldError> {
    if !names::is_protected(group) {
        return None;
    }
    let annotation = object.metadata.annotations.get(names::APPROVED);
    let annotation = annotation.map_or("", String::as_str);
    let why = names::Approval::of(annotation).refusal()?;
    let at = format!("metadata.annotations[{}]", names::APPROVED);
    Some(if annotation.is_empty() {
        FieldError::required(at, &why)
    } else {
        FieldError::invalid(at, annotation, &why)
    })
}
