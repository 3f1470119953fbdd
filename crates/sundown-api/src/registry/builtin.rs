//! The built-in kinds, one row each. Adding a kind is adding a row.

use std::sync::Arc;

use sundown_model::Resource;

use super::{DefaultPolicy, Rules, Type};

/// The columns in which kinds differ; the defaults are those of most kinds.
#[expect(
    clippy::struct_excessive_bools,
    reason = "a row of a table: independent yes-or-no columns"
)]
struct Row {
    group: &'static str,
    version: &'static str,
    plural: &'static str,
    kind: &'static str,
    short_names: &'static [&'static str],
    categories: &'static [&'static str],
    namespaced: bool,
    has_status: bool,
    default_policy: DefaultPolicy,
    returns_object: bool,
    has_generation: bool,
    unconditional_update: bool,
    selectable: &'static [&'static str],
    rules: Rules,
}

const PLAIN: Row = Row {
    group: "",
    version: "v1",
    plural: "",
    kind: "",
    short_names: &[],
    categories: &[],
    namespaced: true,
    has_status: false,
    default_policy: DefaultPolicy::Background,
    returns_object: false,
    has_generation: false,
    unconditional_update: true,
    selectable: &[],
    rules: Rules::Plain,
};

const WORKLOAD: Row = Row {
    categories: &["all"],
    has_status: true,
    has_generation: true,
    ..PLAIN
};

const ROWS: &[Row] = &[
    Row {
        plural: "namespaces",
        kind: "Namespace",
        short_names: &["ns"],
        namespaced: false,
        has_status: true,
        returns_object: true,
        selectable: &["status.phase"],
        rules: Rules::Namespace,
        ..PLAIN
    },
    Row {
        plural: "configmaps",
        kind: "ConfigMap",
        short_names: &["cm"],
        ..PLAIN
    },
    Row {
        plural: "secrets",
        kind: "Secret",
        selectable: &["type"],
        rules: Rules::Secret,
        ..PLAIN
    },
    Row {
        plural: "pods",
        kind: "Pod",
        short_names: &["po"],
        returns_object: true,
        selectable: &[
            "spec.nodeName",
            "spec.restartPolicy",
            "spec.schedulerName",
            "spec.serviceAccountName",
            "status.phase",
            "status.podIP",
        ],
        rules: Rules::Pod,
        ..WORKLOAD
    },
    Row {
        plural: "events",
        kind: "Event",
        short_names: &["ev"],
        default_policy: DefaultPolicy::Unsupported,
        selectable: &[
            "involvedObject.kind",
            "involvedObject.namespace",
            "involvedObject.name",
            "involvedObject.uid",
            "involvedObject.apiVersion",
            "involvedObject.resourceVersion",
            "involvedObject.fieldPath",
            "reason",
            "reportingComponent",
            "source",
            "type",
        ],
        ..PLAIN
    },
    Row {
        plural: "serviceaccounts",
        kind: "ServiceAccount",
        short_names: &["sa"],
        returns_object: true,
        ..PLAIN
    },
    Row {
        group: "batch",
        plural: "jobs",
        kind: "Job",
        default_policy: DefaultPolicy::Orphan,
        selectable: &["status.successful"],
        ..WORKLOAD
    },
    Row {
        group: "apps",
        plural: "deployments",
        kind: "Deployment",
        short_names: &["deploy"],
        ..WORKLOAD
    },
    Row {
        group: "apps",
        plural: "replicasets",
        kind: "ReplicaSet",
        short_names: &["rs"],
        ..WORKLOAD
    },
    Row {
        group: "coordination.k8s.io",
        plural: "leases",
        kind: "Lease",
        unconditional_update: false,
        ..PLAIN
    },
    Row {
        group: "apiextensions.k8s.io",
        plural: "customresourcedefinitions",
        kind: "CustomResourceDefinition",
        short_names: &["crd", "crds"],
        categories: &["api-extensions"],
        namespaced: false,
        has_status: true,
        has_generation: true,
        unconditional_update: false,
        rules: Rules::Definition,
        ..PLAIN
    },
];

/// All built-in types.
pub(super) fn types() -> Vec<Type> {
    ROWS.iter().map(Row::to_type).collect()
}

/// The resource of definitions of custom resources.
pub(crate) fn crd_resource() -> Resource {
    Resource::new("apiextensions.k8s.io", "customresourcedefinitions")
}

impl Row {
    fn to_type(&self) -> Type {
        let texts = |texts: &[&str]| texts.iter().map(|text| Arc::from(*text)).collect();
        Type {
            resource: Resource::new(self.group, self.plural),
            version: self.version.into(),
            kind: self.kind.into(),
            list_kind: format!("{}List", self.kind).into(),
            singular: self.kind.to_lowercase().into(),
            short_names: texts(self.short_names),
            categories: texts(self.categories),
            namespaced: self.namespaced,
            has_status: self.has_status,
            default_policy: self.default_policy,
            graceful: self.rules == Rules::Pod,
            returns_object: self.returns_object,
            has_generation: self.has_generation,
            unconditional_update: self.unconditional_update,
            label_names: self.rules == Rules::Namespace,
            has_delete_collection: self.rules != Rules::Namespace,
            selectable: self.selectable,
            rules: self.rules,
            definition: None,
        }
    }
}
