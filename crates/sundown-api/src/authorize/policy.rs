//! The roles and bindings that every cluster has: put in where they are missing, and given back what
//! they lack at each start, unless their annotation says that they are to be left alone.
//!
//! The table is generated (`cargo xtask codegen`). Rules that somebody added stay, as upstream's start
//! leaves them (component-helpers, auth/rbac/reconciliation).

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use sundown_model::ObjectKey;
use sundown_schema::member;
use sundown_store::{Body, Stored, Transaction, Write};

use super::GROUP;
use super::rule::{Rule, uncovered};
use crate::document::Document;
use crate::registry::Type;
use crate::{Cx, Server, create};

const TABLE: &str = include_str!("../generated/policy.txt");

/// What all of them have.
const LABEL: (&str, &str) = ("kubernetes.io/bootstrapping", "rbac-defaults");
const AUTOUPDATE: (&str, &str) = ("rbac.authorization.kubernetes.io/autoupdate", "true");

/// What stands for a member until its text is put in.
const MARK: &str = "{}";

/// One line of the table.
#[derive(Debug, Clone)]
pub(super) struct Given {
    pub(super) kind: &'static str,
    pub(super) namespace: &'static str,
    pub(super) name: &'static str,
    labels: Vec<(&'static str, &'static str)>,
    /// All but metadata, as the store writes it, in the order of the names.
    members: Vec<(&'static str, &'static str)>,
}

/// All of them.
pub(super) fn given() -> impl Iterator<Item = Given> {
    TABLE.lines().map(Given::read)
}

/// Puts in what is missing.
pub(crate) fn lay_in(server: &mut Server, cx: &mut Cx<'_>) {
    let mut writes = Vec::new();
    for given in given() {
        let ty = server.registry().find(GROUP, "v1", given.plural()).cloned();
        let ty = ty.expect("the kinds of RBAC are built in");
        let namespace = Some(given.namespace).filter(|text| !text.is_empty());
        let key = ty.key(namespace, given.name);
        let body = match server.store().get(&key) {
            None => Some(given.body(&ty, cx)),
            Some(stored) if given.is_whole_in(stored) => None,
            Some(stored) => given
                .reconciled(&Document::of(stored), cx)
                .map(|it| it.encode(&ty)),
        };
        writes.extend(body.map(|body| put(key, body)));
    }
    let transaction = Transaction {
        reads: Vec::new(),
        writes,
    };
    server.lay(&transaction, cx.now);
}

fn put(key: ObjectKey, body: Body) -> Write {
    Write::Put { key, body }
}

impl Given {
    fn read(line: &'static str) -> Self {
        let mut columns = line.split('\t');
        let mut next = || columns.next().unwrap_or_default();
        let (kind, namespace, name, labels) = (next(), next(), next(), next());
        let labels = labels.split(',').filter_map(|pair| pair.split_once('='));
        let labels = labels.chain([LABEL]).collect();
        let mut members = Vec::new();
        while let (Some(member), Some(text)) = (columns.next(), columns.next()) {
            members.push((member, text));
        }
        Self {
            kind,
            namespace,
            name,
            labels,
            members,
        }
    }

    fn plural(&self) -> &'static str {
        match self.kind {
            "ClusterRole" => "clusterroles",
            "ClusterRoleBinding" => "clusterrolebindings",
            "Role" => "roles",
            _ => "rolebindings",
        }
    }

    fn text(&self, name: &str) -> &'static str {
        let found = self.members.iter().find(|(own, _)| *own == name);
        found.map_or("null", |(_, text)| text)
    }

    #[cfg(test)]
    pub(super) fn has(&self, name: &str, text: &str) -> bool {
        self.text(name) == text
    }

    pub(super) fn value(&self, name: &str) -> Value {
        serde_json::from_str(self.text(name)).expect("the table holds JSON")
    }

    fn rules(&self) -> Vec<Rule> {
        serde_json::from_str::<Option<_>>(self.text("rules"))
            .expect("the table holds rules")
            .unwrap_or_default()
    }

    fn is_aggregated(&self) -> bool {
        self.text("aggregationRule") != "null"
    }

    /// A new object. Its members are put in as they stand: reading and writing them again would take
    /// longer than everything else at the start of an empty server.
    fn body(&self, ty: &Type, cx: &mut Cx<'_>) -> Body {
        let mut document = Document::default();
        self.name.clone_into(&mut document.metadata.name);
        self.namespace.clone_into(&mut document.metadata.namespace);
        document.metadata.labels = owned(&self.labels);
        document.metadata.annotations = owned(&[AUTOUPDATE]);
        let marks = self.members.iter();
        document.rest = marks
            .map(|(name, _)| ((*name).to_owned(), Value::Object(Map::new())))
            .collect();
        create::complete(&mut document, cx);
        let texts: Vec<&str> = self.members.iter().map(|(_, text)| *text).collect();
        document.encode(ty).filled(MARK, &texts)
    }

    /// Whether a stored object has all of it, word by word: so it is at nearly every start.
    fn is_whole_in(&self, stored: &Stored) -> bool {
        let metadata = stored.metadata_json();
        let has_annotation = metadata
            .windows(AUTOUPDATE.0.len())
            .any(|it| it == AUTOUPDATE.0.as_bytes());
        let mut members = self.members.iter();
        has_annotation
            && self
                .labels
                .iter()
                .all(|(key, _)| stored.label(key).is_some())
            && members.all(|(name, text)| {
                // The rules of an aggregated role are those of others.
                (*name == "rules" && self.is_aggregated())
                    || member(stored.json(), name) == Some(text.as_bytes())
            })
    }

    /// The stored object with what it lacks; None if it lacks nothing, or is to be left alone.
    pub(super) fn reconciled(&self, old: &Document, cx: &mut Cx<'_>) -> Option<Document> {
        let annotations = &old.metadata.annotations;
        if annotations
            .get(AUTOUPDATE.0)
            .is_some_and(|it| it == "false")
        {
            return None;
        }
        let mut new = old.clone();
        if new.at(&["roleRef"]) != Some(&self.value("roleRef")) && !self.is_role() {
            // A binding cannot be turned to another role: it is made anew.
            new.rest.clear();
            for name in ["roleRef", "subjects"] {
                new.rest.insert(name.to_owned(), self.value(name));
            }
            create::complete(&mut new, cx);
        }
        for (key, value) in &self.labels {
            let labels = &mut new.metadata.labels;
            labels
                .entry((*key).to_owned())
                .or_insert((*value).to_owned());
        }
        let annotations = &mut new.metadata.annotations;
        annotations
            .entry(AUTOUPDATE.0.to_owned())
            .or_insert(AUTOUPDATE.1.to_owned());
        if self.is_role() {
            self.reconcile_rules(&mut new);
        } else {
            add_missing(&mut new, "subjects", &self.value("subjects"));
        }
        (new != *old).then_some(new)
    }

    fn is_role(&self) -> bool {
        self.kind.ends_with("Role")
    }

    fn reconcile_rules(&self, new: &mut Document) {
        if !self.is_aggregated() {
            new.rest.remove("aggregationRule");
            let own = new.at(&["rules"]).cloned().unwrap_or_default();
            let own: Vec<Rule> = serde_json::from_value(own).unwrap_or_default();
            let missing = uncovered(&own.iter(), &self.rules());
            add_missing(new, "rules", &json!(missing));
            return;
        }
        let wanted = self.value("aggregationRule");
        let rule = new.section("aggregationRule");
        let selectors = rule.entry("clusterRoleSelectors").or_insert(json!([]));
        if let Some(own) = selectors.as_array_mut() {
            let wanted = wanted["clusterRoleSelectors"].as_array();
            for selector in wanted.into_iter().flatten() {
                if !own.contains(selector) {
                    own.push(selector.clone());
                }
            }
        }
    }
}

fn add_missing(document: &mut Document, name: &str, wanted: &Value) {
    let wanted = wanted.as_array().map(Vec::as_slice).unwrap_or_default();
    if wanted.is_empty() {
        return;
    }
    let list = document.rest.entry(name).or_insert(Value::Null);
    if !list.is_array() {
        *list = json!([]);
    }
    if let Some(own) = list.as_array_mut() {
        for item in wanted {
            if !own.contains(item) {
                own.push(item.clone());
            }
        }
    }
}

fn owned(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    let pairs = pairs.iter();
    pairs
        .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
        .collect()
}
