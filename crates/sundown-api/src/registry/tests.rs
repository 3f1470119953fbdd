//! What is served, compared with what a real kube-apiserver said that it serves
//! (`generated/discovery.txt`, written by `cargo xtask accept facts`).

use std::collections::{BTreeMap, BTreeSet};

use super::*;

const SERVED: &str = include_str!("../generated/discovery.txt");

/// Parts of built-in kinds that come later; they are refused by name.
const LATER: [&str; 6] = [
    "attach",
    "ephemeralcontainers",
    "exec",
    "portforward",
    "proxy",
    "resize",
];

#[derive(Default)]
struct Fact {
    /// Singular, kind, scope, verbs, short names, categories.
    columns: Vec<&'static str>,
    /// Kind and verbs of each part.
    parts: BTreeMap<&'static str, (&'static str, &'static str)>,
}

/// By `group/version/plural`.
fn facts() -> BTreeMap<String, Fact> {
    let mut facts: BTreeMap<String, Fact> = BTreeMap::new();
    let mut key = String::new();
    for line in SERVED.lines() {
        if let Some(part) = line.strip_prefix('\t') {
            let parts: Vec<&str> = part.split('\t').collect();
            let own = &mut facts.entry(key.clone()).or_default().parts;
            own.insert(parts[0], (parts[1], parts[2]));
            continue;
        }
        let columns: Vec<&str> = line.split('\t').collect();
        key = format!("{}/{}", columns[0], columns[1]);
        facts.entry(key.clone()).or_default().columns = columns[2..].to_vec();
    }
    facts
}

#[test]
fn names_and_verbs_are_those_of_a_real_server() {
    let facts = facts();
    for ty in builtin::types() {
        let key = format!(
            "{}/{}/{}",
            ty.resource.group(),
            ty.version,
            ty.resource.plural()
        );
        let fact = facts
            .get(&key)
            .unwrap_or_else(|| panic!("{key} is not served upstream"));
        let joined = |texts: &[Arc<str>]| {
            let texts: Vec<&str> = texts.iter().map(|text| &**text).collect();
            texts.join(",")
        };
        let scope = if ty.namespaced {
            "Namespaced"
        } else {
            "Cluster"
        };
        let own = [
            ty.singular.to_string(),
            ty.kind.to_string(),
            scope.to_owned(),
            ty.verbs().join(","),
            joined(&ty.short_names),
            joined(&ty.categories),
        ];
        assert_eq!(own.to_vec(), fact.columns, "{key}");
    }
}

#[test]
fn parts_are_those_of_a_real_server_but_for_those_that_come_later() {
    let facts = facts();
    for ty in builtin::types() {
        let key = format!(
            "{}/{}/{}",
            ty.resource.group(),
            ty.version,
            ty.resource.plural()
        );
        let parts = crate::discovery::parts(&ty);
        let own: BTreeMap<&str, (String, String)> = parts
            .into_iter()
            .map(|part| {
                let (group, version) = part.other.unwrap_or(("", ""));
                let kind = format!("{group}/{version}/{}", part.kind);
                (part.name, (kind, part.verbs.join(",")))
            })
            .collect();
        let expected: BTreeMap<&str, (String, String)> = facts[&key]
            .parts
            .iter()
            .filter(|(name, _)| !LATER.contains(*name))
            .map(|(name, (kind, verbs))| (*name, ((*kind).to_owned(), (*verbs).to_owned())))
            .collect();
        assert_eq!(own, expected, "{key}");
    }
}

#[test]
fn every_kind_is_there_once() {
    let mut seen = BTreeSet::new();
    for ty in builtin::types() {
        assert!(
            seen.insert((ty.resource.clone(), ty.version.clone())),
            "{}",
            ty.resource
        );
    }
}
