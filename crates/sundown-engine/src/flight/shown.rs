//! The one list of what a flight record shows. What is not on it is hidden: a new field of a type, or
//! of a kind, shows nothing until somebody has thought about it.
//!
//! Shown are names, places, times, words of Kubernetes and of Sundown, and what decisions are made of.
//! Values of variables, commands, headers, paths, outputs, messages of pods and of Ray, values of labels
//! and of annotations are not.

use super::hiding::Rule;

/// The texts of our own types that are shown: the type, then its fields or variants.
const TYPES: &[(&str, &[&str])] = &[
    ("Record", &["line", "at", "controllers"]),
    // Names and places.
    ("ObjectKey", &["resource", "namespace", "name"]),
    ("OwnerRef", &["apiVersion", "kind", "name", "uid"]),
    ("Object", &["uid", "finalizers"]),
    ("Deletion", &["at"]),
    ("Seen", &["uid"]),
    ("Position", &["resource"]),
    (
        "ResourceType",
        &["resource", "version", "served", "kind", "aliases"],
    ),
    ("Catalog", &["types"]),
    ("Form", &["fields"]),
    ("Brake", &["namespaces", "resources"]),
    // The engine.
    ("Effect", &["by"]),
    ("Why", &["code"]),
    ("Birth", &["by", "owner"]),
    ("Cache", &["tables", "gone", "gone_order"]),
    ("Streams", &["by_resource", "due"]),
    ("Discovery", &["at"]),
    ("Barriers", &["not_before"]),
    ("Ticket", &["missing"]),
    ("Asking", &["resources"]),
    ("Queue", &["timers"]),
    ("Item", &["failed_at", "not_before", "due_at"]),
    ("Key", &["Probe", "Image", "Stray"]),
    ("Facts", &["fresh"]),
    ("NodeFacts", &["pods", "images", "names"]),
    ("LiveFact", &["answered_at"]),
    ("ReplyFact", &["answered_at"]),
    ("DeedFact", &["ended_at", "failures"]),
    ("RefusalFact", &["refused_at", "message"]),
    ("RefusedDelete", &["uid"]),
    ("FailedFact", &["uid", "failed_at", "failures"]),
    ("WrittenFact", &["written_at"]),
    (
        "Subject",
        &[
            "Submission",
            "Stop",
            "Pod",
            "Release",
            "Removal",
            "Signal",
            "Image",
        ],
    ),
    // Sundown's own words: what they quote stands apart, or was taken out where it came in.
    ("Note", &["uid", "reason", "message"]),
    ("Refusal", &["message"]),
    ("DeedRefusal", &["message"]),
    // Ray and the node.
    ("Query", &["at", "submission_id", "image"]),
    (
        "Call",
        &["at", "submission_id", "session", "pod", "image", "Names"],
    ),
    ("Submission", &["submission_id"]),
    ("Answer", &["name", "ray_version"]),
    ("Run", &["pod", "container"]),
    ("Image", &["progress", "message"]),
    (
        "Sandbox",
        &[
            "pod",
            "namespace",
            "name",
            "hostname",
            "domain",
            "hosts",
            "search",
        ],
    ),
    ("Volume", &["name"]),
    ("Content", &["kind"]),
    ("Selection", &["name"]),
    ("Launch", &["image"]),
    ("Variable", &["name", "of", "key", "prefix"]),
    ("Mount", &["volume"]),
    ("Report", &["pod", "image"]),
    ("Pod", &["pod", "address", "containers", "lost"]),
    ("State", &["started_at"]),
    ("Ended", &["started_at", "finished_at", "reason"]),
];

/// Places that hold more than a text.
const OTHERS: &[(&str, &str, Rule)] = &[
    ("Record", "checkpoint", Rule::Done),
    ("Saved", "slots", Rule::Done),
    ("Object", "fields", Rule::Fields),
    ("Draft", "body", Rule::Fields),
    ("Patch", "Merge", Rule::Fields),
    ("ProbeKind", "headers", Rule::Named),
    ("Submission", "runtime_env", Rule::Whole),
    // Names of resources and numbers.
    ("Submission", "entrypoint_resources", Rule::Done),
];

/// Fields of Kubernetes objects whose texts are shown, wherever they stand.
pub(super) const FIELDS: &[&str] = &[
    // Names and places.
    "apiVersion",
    "appProtocol",
    "claimName",
    "clusterIP",
    "clusterIPs",
    "component",
    "containerID",
    "containerName",
    "dashboardURL",
    "finalizers",
    "generateName",
    "group",
    "groupName",
    "hostIP",
    "hostname",
    "hostnames",
    "image",
    "imageID",
    "ip",
    "mountPath",
    "jobId",
    "key",
    "kind",
    "name",
    "namespace",
    "nodeName",
    "plural",
    "podIP",
    "podName",
    "port",
    "prefix",
    "rayClusterName",
    "resourceVersion",
    "schedulerName",
    "secretName",
    "serviceAccount",
    "serviceAccountName",
    "serviceIP",
    "serviceName",
    "subdomain",
    "targetPort",
    "uid",
    "workersToDelete",
    // Words of Kubernetes and of Ray.
    "action",
    "addressType",
    "completionMode",
    "conditionType",
    "dnsPolicy",
    "effect",
    "fieldPath",
    "imagePullPolicy",
    "jobDeploymentStatus",
    "jobStatus",
    "managedBy",
    "medium",
    "mode",
    "operator",
    "phase",
    "podReplacementPolicy",
    "policy",
    "protocol",
    "qosClass",
    "rayVersion",
    "reason",
    "resource",
    "restartPolicy",
    "runtimeClassName",
    "scheme",
    "serviceType",
    "state",
    "status",
    "submissionMode",
    "topologyKey",
    "type",
    "upscalingMode",
    "version",
    "whenUnsatisfiable",
    // Numbers and times that are texts.
    "completedIndexes",
    "completionTime",
    "creationTimestamp",
    "deletionTimestamp",
    "desiredCPU",
    "desiredGPU",
    "desiredMemory",
    "desiredTPU",
    "divisor",
    "endTime",
    "eventTime",
    "entrypointResources",
    "failedIndexes",
    "finishedAt",
    "firstTimestamp",
    "jobStatusCheckFailureStartTime",
    "lastObservedTime",
    "lastProbeTime",
    "lastTimestamp",
    "lastTransitionTime",
    "lastUpdateTime",
    "sizeLimit",
    "startTime",
    "startedAt",
    "succeededIndexes",
];

/// What is shown below one other field only.
pub(super) const BELOW: &[(&str, &str)] = &[
    // Sundown's own words. That of a pod that ended, and that of a RayJob, are the pod's and Ray's.
    ("conditions", "message"),
    ("waiting", "message"),
    ("addresses", "address"),
    ("endpoints", "addresses"),
    ("hostPath", "path"),
    ("uncountedTerminatedPods", "succeeded"),
    ("uncountedTerminatedPods", "failed"),
];

/// Maps from names to numbers and times: the values are shown.
pub(super) const NUMBERS: &[&str] = &[
    "allocatable",
    "capacity",
    "endpoints",
    "limits",
    "overhead",
    "requests",
    "resources",
    "stateTransitionTimes",
];

/// Maps whose keys are the user's: of the values, those of [`KEYS`] are shown.
pub(super) const LABELS: &[&str] = &[
    "annotations",
    "clusterSelector",
    "labels",
    "matchLabels",
    "nodeSelector",
    "selector",
];

/// Maps whose keys and values are the user's: no value is shown.
pub(super) const TEXTS: &[&str] = &["binaryData", "data", "env", "env_vars", "stringData"];

/// Beginnings of the keys of labels and annotations that Kubernetes, Ray or Sundown sets.
pub(super) const KEYS: &[&str] = &[
    "app.kubernetes.io/created-by",
    "app.kubernetes.io/name",
    "batch.kubernetes.io/",
    "controller-uid",
    "endpointslice.kubernetes.io/managed-by",
    "job-name",
    "kubernetes.io/hostname",
    "kubernetes.io/os",
    "kubernetes.io/arch",
    "kubernetes.io/service-name",
    "metadata.name",
    "ray.io/",
    "sundown.dev/",
];

/// A key that is not shown in spite of its beginning: a hash without a key of its own, of a whole spec.
pub(super) const RECREATE_HASH: &str = "ray.io/upgrade-strategy-recreate-hash";

/// Parameters of `ray start` that decide something.
pub(super) const RAY_START_PARAMS: &[&str] = &[
    "block",
    "dashboard-agent-listen-port",
    "dashboard-host",
    "dashboard-port",
    "memory",
    "metrics-export-port",
    "num-cpus",
    "num-gpus",
    "object-store-memory",
    "port",
    "ray-client-server-port",
];

/// Variables whose values decide something.
pub(super) const VARIABLES: &[&str] = &["RAY_enable_autoscaler_v2"];

/// States of a `RayJob` in which Ray has not said anything yet, so that the message is Sundown's. Not
/// among them: `Retrying`, `Suspending` and `Suspended`, which keep what Ray said of the attempt before.
pub(super) const BEFORE_RAY: &[&str] = &["Initializing", "ValidationFailed", "Waiting"];

/// What becomes of a text in a field of one of our own types.
pub(super) fn rule(ty: &str, field: &str) -> Rule {
    let other = OTHERS.iter().find(|it| it.0 == ty && it.1 == field);
    if let Some((_, _, rule)) = other {
        return *rule;
    }
    let mut shown = TYPES.iter().filter(|it| it.0 == ty);
    if shown.any(|(_, fields)| fields.contains(&field)) {
        Rule::Show
    } else {
        Rule::Hide
    }
}
