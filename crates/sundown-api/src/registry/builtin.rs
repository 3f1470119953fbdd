//! The built-in kinds, one row each. Adding a kind is adding a row.

use std::sync::Arc;

use sundown_model::Resource;

use super::{DefaultPolicy, ENDPOINTS, Rules, Type};
use crate::builtin::EVENT_NAMES;
use crate::scale::ScalePaths;
use crate::view::View;

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
    /// Whether somebody in this server acts on the kind, or nobody has to.
    is_acted_on: bool,
    has_scale: bool,
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
    is_acted_on: true,
    has_scale: false,
};

/// A workload with replicas.
const REPLICATED: Row = Row {
    has_scale: true,
    ..WORKLOAD
};

const WORKLOAD: Row = Row {
    categories: &["all"],
    has_status: true,
    has_generation: true,
    is_acted_on: false,
    ..PLAIN
};

const CLUSTER: Row = Row {
    namespaced: false,
    ..PLAIN
};

const ADMISSION: Row = Row {
    group: "admissionregistration.k8s.io",
    categories: &["api-extensions"],
    has_generation: true,
    is_acted_on: false,
    ..CLUSTER
};

const RBAC: Row = Row {
    group: "rbac.authorization.k8s.io",
    ..PLAIN
};

const EVENT_FIELDS: &[&str] = &[
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
];

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
            "spec.hostNetwork",
            "spec.host",
            "status.phase",
            "status.podIP",
            "status.podIPs",
            "status.nominatedNodeName",
        ],
        rules: Rules::Pod,
        ..WORKLOAD
    },
    Row {
        plural: "events",
        kind: "Event",
        short_names: &["ev"],
        default_policy: DefaultPolicy::Unsupported,
        selectable: EVENT_FIELDS,
        ..PLAIN
    },
    Row {
        group: "events.k8s.io",
        plural: "events",
        kind: "Event",
        short_names: &["ev"],
        default_policy: DefaultPolicy::Unsupported,
        selectable: EVENT_FIELDS,
        ..PLAIN
    },
    Row {
        plural: "bindings",
        kind: "Binding",
        rules: Rules::Binding,
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
        ..REPLICATED
    },
    Row {
        group: "apps",
        plural: "replicasets",
        kind: "ReplicaSet",
        short_names: &["rs"],
        ..REPLICATED
    },
    Row {
        group: "coordination.k8s.io",
        plural: "leases",
        kind: "Lease",
        unconditional_update: false,
        ..PLAIN
    },
    Row {
        plural: "nodes",
        kind: "Node",
        short_names: &["no"],
        has_status: true,
        selectable: &["spec.unschedulable"],
        ..CLUSTER
    },
    Row {
        plural: "services",
        kind: "Service",
        short_names: &["svc"],
        categories: &["all"],
        has_status: true,
        returns_object: true,
        selectable: &["spec.clusterIP", "spec.type"],
        is_acted_on: false,
        ..PLAIN
    },
    Row {
        plural: "endpoints",
        kind: "Endpoints",
        short_names: &["ep"],
        ..PLAIN
    },
    Row {
        plural: "persistentvolumeclaims",
        kind: "PersistentVolumeClaim",
        short_names: &["pvc"],
        has_status: true,
        returns_object: true,
        is_acted_on: false,
        ..PLAIN
    },
    Row {
        plural: "persistentvolumes",
        kind: "PersistentVolume",
        short_names: &["pv"],
        has_status: true,
        returns_object: true,
        is_acted_on: false,
        ..CLUSTER
    },
    Row {
        plural: "limitranges",
        kind: "LimitRange",
        short_names: &["limits"],
        is_acted_on: false,
        ..PLAIN
    },
    Row {
        plural: "resourcequotas",
        kind: "ResourceQuota",
        short_names: &["quota"],
        has_status: true,
        returns_object: true,
        is_acted_on: false,
        ..PLAIN
    },
    Row {
        plural: "podtemplates",
        kind: "PodTemplate",
        has_generation: true,
        returns_object: true,
        ..PLAIN
    },
    Row {
        plural: "replicationcontrollers",
        kind: "ReplicationController",
        short_names: &["rc"],
        default_policy: DefaultPolicy::Orphan,
        selectable: &["status.replicas"],
        ..REPLICATED
    },
    Row {
        group: "batch",
        plural: "cronjobs",
        kind: "CronJob",
        short_names: &["cj"],
        ..WORKLOAD
    },
    Row {
        group: "apps",
        plural: "statefulsets",
        kind: "StatefulSet",
        short_names: &["sts"],
        ..REPLICATED
    },
    Row {
        group: "apps",
        plural: "daemonsets",
        kind: "DaemonSet",
        short_names: &["ds"],
        ..WORKLOAD
    },
    Row {
        group: "apps",
        plural: "controllerrevisions",
        kind: "ControllerRevision",
        ..PLAIN
    },
    Row {
        plural: "roles",
        kind: "Role",
        ..RBAC
    },
    Row {
        plural: "rolebindings",
        kind: "RoleBinding",
        ..RBAC
    },
    Row {
        plural: "clusterroles",
        kind: "ClusterRole",
        namespaced: false,
        ..RBAC
    },
    Row {
        plural: "clusterrolebindings",
        kind: "ClusterRoleBinding",
        namespaced: false,
        ..RBAC
    },
    Row {
        group: "policy",
        plural: "poddisruptionbudgets",
        kind: "PodDisruptionBudget",
        short_names: &["pdb"],
        has_status: true,
        has_generation: true,
        unconditional_update: false,
        is_acted_on: false,
        ..PLAIN
    },
    Row {
        group: "scheduling.k8s.io",
        plural: "priorityclasses",
        kind: "PriorityClass",
        short_names: &["pc"],
        has_generation: true,
        ..CLUSTER
    },
    Row {
        plural: "mutatingwebhookconfigurations",
        kind: "MutatingWebhookConfiguration",
        ..ADMISSION
    },
    Row {
        plural: "validatingwebhookconfigurations",
        kind: "ValidatingWebhookConfiguration",
        ..ADMISSION
    },
    Row {
        group: "discovery.k8s.io",
        plural: "endpointslices",
        kind: "EndpointSlice",
        has_generation: true,
        ..PLAIN
    },
    Row {
        group: "networking.k8s.io",
        plural: "ingresses",
        kind: "Ingress",
        short_names: &["ing"],
        has_status: true,
        has_generation: true,
        is_acted_on: false,
        ..PLAIN
    },
    Row {
        group: "networking.k8s.io",
        plural: "ingressclasses",
        kind: "IngressClass",
        has_generation: true,
        ..CLUSTER
    },
    Row {
        group: "networking.k8s.io",
        plural: "networkpolicies",
        kind: "NetworkPolicy",
        short_names: &["netpol"],
        has_generation: true,
        is_acted_on: false,
        ..PLAIN
    },
    Row {
        group: "storage.k8s.io",
        plural: "storageclasses",
        kind: "StorageClass",
        short_names: &["sc"],
        returns_object: true,
        ..CLUSTER
    },
    Row {
        group: "autoscaling",
        version: "v2",
        plural: "horizontalpodautoscalers",
        kind: "HorizontalPodAutoscaler",
        short_names: &["hpa"],
        categories: &["all"],
        has_status: true,
        has_generation: true,
        is_acted_on: false,
        ..PLAIN
    },
    Row {
        group: "apiregistration.k8s.io",
        plural: "apiservices",
        kind: "APIService",
        categories: &["api-extensions"],
        has_status: true,
        unconditional_update: false,
        is_acted_on: false,
        ..CLUSTER
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

/// Events have two groups and one place.
fn events_view() -> View {
    View {
        resource: Resource::new("", "events"),
        version: "v1",
        kind: "Event",
        names: EVENT_NAMES,
    }
}

/// The type of a body that is a part of an object and never stored, such as a Scale.
pub(crate) fn part_type(group: &'static str, kind: &'static str) -> Type {
    let row = Row {
        group,
        kind,
        ..PLAIN
    };
    row.to_type()
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
            label_names: self.rules == Rules::Namespace || self.kind == "Service",
            has_delete_collection: self.rules != Rules::Namespace,
            selectable: self.selectable,
            rules: self.rules,
            is_acted_on: self.is_acted_on,
            deprecation: (self.kind == "Endpoints").then(|| ENDPOINTS.into()),
            definition: None,
            schema: None,
            storage_version: None,
            fields: Vec::new(),
            scale: self.has_scale.then(|| Arc::new(ScalePaths::usual())),
            view: (self.group == "events.k8s.io").then(|| Arc::new(events_view())),
        }
    }
}
