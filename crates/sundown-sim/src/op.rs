//! What users do, as requests. Small words, so that a scenario reads as a story.

use serde_json::{Value, json};
use sundown_api::{Method, Request};
use sundown_model::{ObjectKey, Resource};

/// One request of a user.
#[derive(Debug, Clone, PartialEq)]
pub struct Op {
    pub(crate) request: Request,
    /// How it stands in a trace.
    pub(crate) label: String,
}

/// Where objects of the kinds that scenarios use live. A kind whose name another group has too is called
/// `Kind.group`.
const PATHS: &[(&str, &str, &str)] = &[
    ("ConfigMap", "/api/v1", "configmaps"),
    ("Event", "/api/v1", "events"),
    ("Secret", "/api/v1", "secrets"),
    ("PersistentVolumeClaim", "/api/v1", "persistentvolumeclaims"),
    ("Pod", "/api/v1", "pods"),
    ("Job", "/apis/batch/v1", "jobs"),
    ("ReplicaSet", "/apis/apps/v1", "replicasets"),
    ("Deployment", "/apis/apps/v1", "deployments"),
    ("RayJob", "/apis/ray.io/v1", "rayjobs"),
    ("RayCluster", "/apis/ray.io/v1", "rayclusters"),
    (
        "Job.batch.volcano.sh",
        "/apis/batch.volcano.sh/v1alpha1",
        "jobs",
    ),
    (
        "PodGroup",
        "/apis/scheduling.volcano.sh/v1beta1",
        "podgroups",
    ),
    ("Widget", "/apis/example.com/v1", "widgets"),
];

/// The name of an object in a story: kind, namespace and name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct It {
    pub(crate) kind: &'static str,
    pub(crate) namespace: &'static str,
    pub(crate) name: &'static str,
}

/// An object in the namespace `default`.
pub(crate) const fn it(kind: &'static str, name: &'static str) -> It {
    It {
        kind,
        namespace: "default",
        name,
    }
}

impl It {
    pub(crate) const fn within(self, namespace: &'static str) -> Self {
        Self { namespace, ..self }
    }

    fn place(self) -> (&'static str, &'static str) {
        let found = PATHS.iter().find(|(kind, ..)| *kind == self.kind);
        let (_, base, plural) = found.expect("scenarios name kinds of the table");
        (base, plural)
    }

    /// As an object of it says, without its group.
    pub(crate) fn kind(self) -> &'static str {
        self.kind
            .split_once('.')
            .map_or(self.kind, |(kind, _)| kind)
    }

    pub(crate) fn api_version(self) -> String {
        self.place()
            .0
            .trim_start_matches("/apis/")
            .trim_start_matches("/api/")
            .to_owned()
    }

    fn resource(self) -> Resource {
        let (base, plural) = self.place();
        let group = base
            .strip_prefix("/apis/")
            .and_then(|it| it.split_once('/'));
        Resource::new(group.map_or("", |(group, _)| group), plural)
    }

    /// Where the object is kept, whatever others of its kind's plural there are.
    pub(crate) fn key(self) -> ObjectKey {
        ObjectKey::namespaced(&self.resource(), self.namespace, self.name)
    }

    pub(crate) fn collection(self) -> String {
        let (base, plural) = self.place();
        format!("{base}/namespaces/{}/{plural}", self.namespace)
    }

    pub(crate) fn path(self) -> String {
        format!("{}/{}", self.collection(), self.name)
    }
}

/// The least that the server takes for a kind, beyond its name.
fn least(kind: &str) -> Value {
    let containers = json!([{ "name": "main", "image": "none" }]);
    let labels = json!({ "app": "story" });
    match kind {
        "Pod" => json!({ "spec": { "containers": containers } }),
        "PersistentVolumeClaim" => json!({ "spec": {
            "accessModes": ["ReadWriteOnce"], "resources": { "requests": { "storage": "1Gi" } },
        } }),
        "Job" => {
            let pod = json!({ "restartPolicy": "Never", "containers": containers });
            json!({ "spec": { "template": { "spec": pod } } })
        }
        "ReplicaSet" | "Deployment" => json!({ "spec": {
            "selector": { "matchLabels": labels },
            "template": { "metadata": { "labels": labels }, "spec": { "containers": containers } },
        } }),
        _ => json!({}),
    }
}

impl std::fmt::Display for It {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}/{}", self.kind, self.namespace, self.name)
    }
}

impl Op {
    pub(crate) fn new(method: Method, path: String, body: Option<&Value>, label: String) -> Self {
        let merge = method == Method::Patch;
        let content = if merge {
            "application/merge-patch+json"
        } else {
            "application/json"
        };
        let request = Request {
            method,
            path,
            query: Vec::new(),
            content_type: body.map(|_| content.to_owned()),
            accept: None,
            user_agent: None,
            if_none_match: None,
            user: sundown_api::User::admin(),
            body: body
                .map(|body| body.to_string().into_bytes())
                .unwrap_or_default(),
        };
        Self { request, label }
    }

    pub(crate) fn create(it: It, extra: &Value) -> Self {
        let mut body = json!({
            "apiVersion": it.api_version(),
            "kind": it.kind(),
            "metadata": { "name": it.name },
        });
        merge(&mut body, &least(it.kind));
        merge(&mut body, extra);
        Self::new(
            Method::Post,
            it.collection(),
            Some(&body),
            format!("create {it}"),
        )
    }

    pub(crate) fn patch(it: It, patch: &Value) -> Self {
        Self::new(
            Method::Patch,
            it.path(),
            Some(patch),
            format!("patch {it} {patch}"),
        )
    }

    pub(crate) fn patch_status(it: It, patch: &Value) -> Self {
        let status = format!("{}/status", it.path());
        Self::new(
            Method::Patch,
            status,
            Some(patch),
            format!("patch status of {it}"),
        )
    }

    pub(crate) fn delete(it: It, policy: &str) -> Self {
        let options = json!({ "propagationPolicy": policy });
        Self::new(
            Method::Delete,
            it.path(),
            Some(&options),
            format!("delete {it} ({policy})"),
        )
    }
}

/// Defines a kind.
pub(crate) fn define(definition: &Value) -> Op {
    let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions".to_owned();
    let label = format!("define {}", definition["spec"]["names"]["kind"]);
    Op::new(Method::Post, path, Some(definition), label)
}

/// Lays one document over another, as a merge patch does but for nulls.
pub(crate) fn merge(base: &mut Value, over: &Value) {
    match (base, over) {
        (Value::Object(base), Value::Object(over)) => {
            for (name, value) in over {
                merge(base.entry(name.clone()).or_insert(Value::Null), value);
            }
        }
        (base, over) => *base = over.clone(),
    }
}
