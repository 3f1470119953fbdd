//! From the fields that a watch keeps back to the documents that `sundown-kinds` reads. Total: what is
//! missing stays missing.

use jiff::Timestamp;
use serde_json::{Map, Value, json};
use sundown_kinds::constants::{LABEL_REPLICA_INDEX, LABEL_REPLICA_NAME};
use sundown_kinds::ray_cluster::summary::{PodView, ServiceView};
use sundown_kinds::{Malformed, RayCluster, RayJob};
use sundown_model::Object;

/// What is read of a `RayJob` or a `RayCluster`: all of the spec goes into what is made of it.
pub(crate) const RAY_FIELDS: &[&str] = &[
    "/metadata/annotations",
    "/metadata/creationTimestamp",
    "/metadata/generation",
    "/metadata/labels",
    "/spec",
    "/status",
];

/// What is read of a pod of a cluster.
pub(crate) const POD_FIELDS: &[&str] = &[
    "/metadata/annotations",
    "/metadata/creationTimestamp",
    "/metadata/labels",
    "/spec/containers",
    "/spec/restartPolicy",
    "/status/conditions",
    "/status/containerStatuses",
    "/status/phase",
    "/status/podIP",
];

/// What is read of a service.
pub(crate) const SERVICE_FIELDS: &[&str] = &[
    "/metadata/creationTimestamp",
    "/spec/clusterIP",
    "/spec/ports",
    "/spec/selector",
];

/// A cluster.
pub(crate) fn ray_cluster(object: &Object) -> Result<RayCluster, Malformed> {
    RayCluster::read(&document(object, RAY_FIELDS))
}

/// A job.
pub(crate) fn ray_job(object: &Object) -> Result<RayJob, Malformed> {
    RayJob::read(&document(object, RAY_FIELDS))
}

/// A service.
pub(crate) fn service(object: &Object) -> ServiceView {
    ServiceView::read(&document(object, SERVICE_FIELDS))
}

/// A pod of a cluster.
#[derive(Debug, Clone)]
pub(crate) struct Pod<'a> {
    pub(crate) object: &'a Object,
    pub(crate) view: PodView,
    pub(crate) created_at: Option<Timestamp>,
    /// Which replica of its group it belongs to.
    pub(crate) replica_index: Option<u32>,
    pub(crate) replica_name: String,
}

impl<'a> Pod<'a> {
    pub(crate) fn of(object: &'a Object) -> Self {
        let document = document(object, POD_FIELDS);
        let metadata = &document["metadata"];
        let label = |name: &str| metadata["labels"][name].as_str();
        let created = metadata["creationTimestamp"].as_str();
        Self {
            object,
            view: PodView::read(&document),
            created_at: created.and_then(|text| text.parse().ok()),
            replica_index: label(LABEL_REPLICA_INDEX).and_then(|text| text.parse().ok()),
            replica_name: label(LABEL_REPLICA_NAME).unwrap_or("").to_owned(),
        }
    }

    /// Whether it stays: a pod that goes is as good as gone.
    pub(crate) fn is_live(&self) -> bool {
        !self.view.is_deleting
    }

    /// Whether it is of no use any more. A container that ended in a pod that runs on comes back by
    /// itself, unless its policy says otherwise.
    pub(crate) fn is_spent(&self) -> bool {
        if matches!(&*self.view.phase, "Failed" | "Succeeded") {
            return true;
        }
        self.view.phase == "Running"
            && self.view.restart_policy == "Never"
            && self.ray_container_exit().is_some()
    }

    /// How the container that runs Ray has ended, if it has.
    pub(crate) fn ray_container_exit(&self) -> Option<i64> {
        let name = self.object.field("/spec/containers/0/name")?.as_str()?;
        let mut containers = self.view.containers.iter();
        containers.find(|it| it.name == name)?.exit_code
    }

    /// An annotation.
    pub(crate) fn annotation(&self, name: &str) -> &'a str {
        let all = self.object.field("/metadata/annotations");
        all.and_then(|all| all.get(name)?.as_str()).unwrap_or("")
    }
}

/// The kept fields of an object, at their places, with its identity.
fn document(object: &Object, fields: &[&str]) -> Value {
    let mut document = json!({
        "metadata": {
            "name": &*object.key().name,
            "namespace": object.key().namespace_str(),
            "uid": object.uid().as_str(),
        },
    });
    if let Some(deletion) = object.deletion() {
        document["metadata"]["deletionTimestamp"] = json!(deletion.at.to_string());
    }
    for field in fields {
        if let Some(value) = object.field(field) {
            place(&mut document, field, value);
        }
    }
    document
}

fn place(root: &mut Value, pointer: &str, value: &Value) {
    let mut at = root;
    for part in pointer.split('/').skip(1) {
        if !at.is_object() {
            *at = Value::Object(Map::new());
        }
        at = &mut at[part];
    }
    at.clone_from(value);
}
