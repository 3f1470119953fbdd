//! The roles and bindings that every cluster has, out of the policy files of upstream's own tests.
//!
//! One line each: kind, namespace, name, further labels, then the members as JSON. What all of them
//! have in common (the annotation, the label of the defaults) is written by hand in `sundown-api`.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde_json::{Map, Value};
use sundown_decide::role_aggregation::{RoleView, aggregated};

const FILES: [&str; 6] = [
    "cluster-roles.yaml",
    "controller-roles.yaml",
    "cluster-role-bindings.yaml",
    "controller-role-bindings.yaml",
    "namespace-roles.yaml",
    "namespace-role-bindings.yaml",
];

const OF_ALL: (&str, &str) = ("kubernetes.io/bootstrapping", "rbac-defaults");

/// Makes the table.
pub(super) fn make(directory: &Path) -> Result<String> {
    let mut objects = Vec::new();
    for file in FILES {
        let text = std::fs::read_to_string(directory.join(file));
        let text = text.with_context(|| format!("read {file}"))?;
        let list: Value = serde_saphyr::from_str(&text).with_context(|| format!("read {file}"))?;
        objects.extend(list["items"].as_array().cloned().unwrap_or_default());
    }
    aggregate(&mut objects);
    objects.iter().map(line).collect()
}

/// Fills in the rules of aggregated roles. Roles select roles that select others: until nothing is new.
fn aggregate(objects: &mut [Value]) {
    loop {
        let before = objects.to_vec();
        let earlier = before.iter().filter(|it| it["kind"] == "ClusterRole");
        let mut views: BTreeMap<&str, RoleView<'_>> = BTreeMap::new();
        for role in earlier {
            let name = role["metadata"]["name"].as_str().unwrap_or_default();
            let rules = role["rules"].as_array().map(Vec::as_slice);
            let view = RoleView {
                name,
                labels: role["metadata"].get("labels"),
                rules: rules.unwrap_or_default(),
            };
            views.insert(name, view);
        }
        let views: Vec<_> = views.into_values().collect();
        for object in objects.iter_mut() {
            if let Some(rule) = object.get("aggregationRule") {
                let name = object["metadata"]["name"].as_str().unwrap_or_default();
                let selectors = rule["clusterRoleSelectors"].as_array();
                let selectors = selectors.into_iter().flatten();
                let selectors = selectors.map(|selector| (selector, views.clone()));
                object["rules"] = aggregated(name, selectors).into();
            }
        }
        if *objects == *before {
            return;
        }
    }
}

fn line(object: &Value) -> Result<String> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let metadata = &object["metadata"];
    let name = text(&metadata["name"]);
    let annotations = &metadata["annotations"];
    ensure!(
        annotations["rbac.authorization.kubernetes.io/autoupdate"] == "true",
        "{name} is not kept up to date"
    );
    let mut labels = metadata["labels"].as_object().cloned().unwrap_or_default();
    let common = labels.remove(OF_ALL.0);
    ensure!(common == Some(OF_ALL.1.into()), "{name} is no default");
    let mut line = format!(
        "{}\t{}\t{name}\t{}",
        text(&object["kind"]),
        text(&metadata["namespace"]),
        joined(&labels)
    );
    for member in ["aggregationRule", "roleRef", "rules", "subjects"] {
        if let Some(value) = object.get(member).filter(|it| !it.is_null()) {
            write!(line, "\t{member}\t{value}")?;
        }
    }
    line.push('\n');
    Ok(line)
}

fn joined(labels: &Map<String, Value>) -> String {
    let pairs = labels
        .iter()
        .map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()));
    pairs.collect::<Vec<_>>().join(",")
}
