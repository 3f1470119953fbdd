//! The kinds and finalizers that decisions know by name.

pub use sundown_kinds::volcano::JOB as VOLCANO_JOB;
use sundown_model::KnownKind;

/// batch/v1 Job.
pub const JOB: KnownKind = KnownKind {
    group: "batch",
    version: "v1",
    kind: "Job",
    plural: "jobs",
};

/// v1 Namespace.
pub const NAMESPACE: KnownKind = KnownKind {
    group: "",
    version: "v1",
    kind: "Namespace",
    plural: "namespaces",
};

/// apiextensions.k8s.io/v1 `CustomResourceDefinition`.
pub const CRD: KnownKind = KnownKind {
    group: "apiextensions.k8s.io",
    version: "v1",
    kind: "CustomResourceDefinition",
    plural: "customresourcedefinitions",
};

/// rbac.authorization.k8s.io/v1 `ClusterRole`.
pub const CLUSTER_ROLE: KnownKind = KnownKind {
    group: "rbac.authorization.k8s.io",
    version: "v1",
    kind: "ClusterRole",
    plural: "clusterroles",
};

/// v1 Pod.
pub const POD: KnownKind = KnownKind {
    group: "",
    version: "v1",
    kind: "Pod",
    plural: "pods",
};

/// v1 `PersistentVolumeClaim`.
pub const CLAIM: KnownKind = KnownKind {
    group: "",
    version: "v1",
    kind: "PersistentVolumeClaim",
    plural: "persistentvolumeclaims",
};

/// v1 `PersistentVolume`.
pub const VOLUME: KnownKind = KnownKind {
    group: "",
    version: "v1",
    kind: "PersistentVolume",
    plural: "persistentvolumes",
};

/// v1 `ConfigMap`.
pub const CONFIG_MAP: KnownKind = KnownKind {
    group: "",
    version: "v1",
    kind: "ConfigMap",
    plural: "configmaps",
};

/// v1 Secret.
pub const SECRET: KnownKind = KnownKind {
    group: "",
    version: "v1",
    kind: "Secret",
    plural: "secrets",
};

/// v1 Node.
pub const NODE: KnownKind = KnownKind {
    group: "",
    version: "v1",
    kind: "Node",
    plural: "nodes",
};

/// v1 Service.
pub const SERVICE: KnownKind = KnownKind {
    group: "",
    version: "v1",
    kind: "Service",
    plural: "services",
};

/// v1 `ServiceAccount`.
pub const SERVICE_ACCOUNT: KnownKind = KnownKind {
    group: "",
    version: "v1",
    kind: "ServiceAccount",
    plural: "serviceaccounts",
};

/// discovery.k8s.io/v1 `EndpointSlice`.
pub const ENDPOINT_SLICE: KnownKind = KnownKind {
    group: "discovery.k8s.io",
    version: "v1",
    kind: "EndpointSlice",
    plural: "endpointslices",
};

/// v1 Event: never an owner, never collected.
pub const EVENT: KnownKind = KnownKind {
    group: "",
    version: "v1",
    kind: "Event",
    plural: "events",
};

/// events.k8s.io/v1 Event: the same objects by another name.
pub const EVENT_K8S_IO: KnownKind = KnownKind {
    group: "events.k8s.io",
    version: "v1",
    kind: "Event",
    plural: "events",
};

/// The finalizer of an object that waits for its dependents.
pub const FOREGROUND: &str = "foregroundDeletion";

/// The finalizer of an object whose dependents shall be let go.
pub const ORPHAN: &str = "orphan";

/// The finalizer of a claim that pods may use.
pub const CLAIM_PROTECTION: &str = "kubernetes.io/pvc-protection";

/// The finalizer of a volume that a claim may use.
pub const VOLUME_PROTECTION: &str = "kubernetes.io/pv-protection";

/// ray.io/v1 `RayCluster`.
pub const RAY_CLUSTER: KnownKind = KnownKind {
    group: "ray.io",
    version: "v1",
    kind: "RayCluster",
    plural: "rayclusters",
};

/// ray.io/v1 `RayJob`.
pub const RAY_JOB: KnownKind = KnownKind {
    group: "ray.io",
    version: "v1",
    kind: "RayJob",
    plural: "rayjobs",
};
