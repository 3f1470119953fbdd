//! The definitions of the custom resources: names, versions, columns, and the schemas of the
//! generated file put together.
//!
//! The schemas of Ray's kinds come out of `crd/fields.txt` and the published schemas of Kubernetes by
//! `cargo xtask codegen`. Whether a server takes them is the business of `sundown-schema`.

pub mod compare;
pub mod volcano;

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde_json::{Value, json};
use sundown_model::KnownKind;

const TABLE: &str = include_str!("generated/schemas.json");
const REFERENCE: &str = "{\"$ref\":\"";

/// Each schema by its name, cut where it names others: the file has one in a line.
static SCHEMAS: LazyLock<BTreeMap<&str, Vec<Piece<'_>>>> = LazyLock::new(|| {
    let lines = TABLE.lines().filter_map(|line| {
        let (name, schema) = line.strip_prefix('"')?.split_once("\":")?;
        Some((name, pieces(schema.trim_end_matches(','))))
    });
    lines.collect()
});

/// A part of a text.
#[derive(Debug, Clone, Copy)]
enum Piece<'a> {
    Text(&'a str),
    /// The schema of this name stands here.
    Schema(&'a str),
}

/// The API group.
pub const GROUP: &str = "ray.io";

/// ray.io/v1 `RayJob`.
pub const RAY_JOB: KnownKind = KnownKind {
    group: GROUP,
    version: "v1",
    kind: "RayJob",
    plural: "rayjobs",
};

/// ray.io/v1 `RayCluster`.
pub const RAY_CLUSTER: KnownKind = KnownKind {
    group: GROUP,
    version: "v1",
    kind: "RayCluster",
    plural: "rayclusters",
};

/// The definition of rayjobs.ray.io, as JSON.
pub fn ray_job() -> String {
    let columns = [
        Column("job status", "string", ".status.jobStatus", 0),
        Column(
            "deployment status",
            "string",
            ".status.jobDeploymentStatus",
            0,
        ),
        Column("ray cluster name", "string", ".status.rayClusterName", 0),
        Column("start time", "string", ".status.startTime", 0),
        Column("end time", "string", ".status.endTime", 0),
        Column("age", "date", ".metadata.creationTimestamp", 0),
    ];
    definition("RayJob", &columns, &[])
}

/// The definition of rayclusters.ray.io, as JSON.
pub fn ray_cluster() -> String {
    let columns = [
        Column(
            "desired workers",
            "integer",
            ".status.desiredWorkerReplicas",
            0,
        ),
        Column(
            "available workers",
            "integer",
            ".status.availableWorkerReplicas",
            0,
        ),
        Column("cpus", "string", ".status.desiredCPU", 0),
        Column("memory", "string", ".status.desiredMemory", 0),
        Column("gpus", "string", ".status.desiredGPU", 0),
        Column("tpus", "string", ".status.desiredTPU", 1),
        Column("status", "string", ".status.state", 0),
        Column("age", "date", ".metadata.creationTimestamp", 0),
        Column("head pod IP", "string", ".status.head.podIP", 1),
        Column("head service IP", "string", ".status.head.serviceIP", 1),
    ];
    definition("RayCluster", &columns, &columns)
}

/// Name, type, path and priority of a printer column.
struct Column(&'static str, &'static str, &'static str, i64);

impl Column {
    fn to_value(&self) -> Value {
        let Self(name, kind, path, priority) = self;
        let mut column = json!({"name": name, "type": kind, "jsonPath": path});
        if *priority != 0 {
            column["priority"] = json!(priority);
        }
        column
    }
}

fn definition(kind: &str, columns: &[Column], columns_before: &[Column]) -> String {
    let singular = kind.to_lowercase();
    let mut old = version(kind, "v1alpha1", columns_before);
    old["deprecated"] = json!(true);
    old["deprecationWarning"] = json!(format!(
        "ray.io/v1alpha1 {kind} is deprecated; use ray.io/v1 {kind}. v1alpha1 receives no new fields \
         and will be unavailable in KubeRay 1.9."
    ));
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{singular}s.{GROUP}")},
        "spec": {
            "group": GROUP,
            "names": {
                "categories": ["all"],
                "kind": kind,
                "listKind": format!("{kind}List"),
                "plural": format!("{singular}s"),
                "singular": singular,
            },
            "scope": "Namespaced",
            "versions": [version(kind, "v1", columns), old],
        },
    });
    let short = definition.to_string();
    let short = pieces(&short);
    let mut length = 0;
    put_in_place(&short, &mut |text| length += text.len());
    let mut whole = String::with_capacity(length);
    put_in_place(&short, &mut |text| whole.push_str(text));
    whole
}

fn version(kind: &str, name: &str, columns: &[Column]) -> Value {
    let mut version = json!({
        "name": name,
        "served": true,
        "storage": name == "v1",
        "subresources": {"status": {}},
        "schema": {"openAPIV3Schema": {"$ref": format!("{name}.{kind}")}},
    });
    if !columns.is_empty() {
        let columns: Vec<Value> = columns.iter().map(Column::to_value).collect();
        version["additionalPrinterColumns"] = json!(columns);
    }
    version
}

/// Gives a text in parts, with every schema that it names in the place of its name.
///
/// Text, because the definitions are text when they are stored, and half a megabyte of them as values
/// takes longer than the start of a server may.
fn put_in_place(pieces: &[Piece<'_>], put: &mut impl FnMut(&str)) {
    for piece in pieces {
        match piece {
            Piece::Text(text) => put(text),
            Piece::Schema(name) => {
                let schema = SCHEMAS.get(name);
                let schema = schema.expect("the file is closed: a test reads the whole");
                put_in_place(schema, put);
            }
        }
    }
}

fn pieces(text: &str) -> Vec<Piece<'_>> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once(REFERENCE) {
        let (name, after) = after
            .split_once("\"}")
            .expect("a reference is alone in its object: a test reads the whole");
        pieces.extend([Piece::Text(before), Piece::Schema(name)]);
        rest = after;
    }
    pieces.push(Piece::Text(rest));
    pieces
}

#[cfg(test)]
mod tests;
