//! The definitions of Volcano's Job, `PodGroup` and Queue, as stored kinds.
//!
//! Names, scopes, subresources and columns are Volcano's. Typed are the fields that say when a Job goes, that a column shows
//! or that have a default which is not inside of a field that is kept open (`networkTopology` and partitions have some
//! in Volcano's own); every other field is kept as it comes, and judging it is Volcano's business.

use serde_json::{Value, json};
use sundown_model::KnownKind;

use super::Column;
use crate::volcano::{JOB, POD_GROUP, QUEUE};

/// The definition of jobs.batch.volcano.sh, as JSON.
pub fn job() -> String {
    let columns = [
        Column("STATUS", "string", ".status.state.phase", 0),
        Column("minAvailable", "integer", ".status.minAvailable", 0),
        Column("RUNNINGS", "integer", ".status.running", 0),
        Column("AGE", "date", ".metadata.creationTimestamp", 0),
        Column("QUEUE", "string", ".spec.queue", 1),
    ];
    let state = open(&json!({
        "lastTransitionTime": { "type": "string", "format": "date-time" },
        "message": { "type": "string" },
        "phase": { "type": "string" },
        "reason": { "type": "string" },
    }));
    let spec = open(&json!({
        "maxRetry": with_default(at_least(0), json!(3)),
        "minAvailable": at_least(0),
        "queue": with_default(json!({ "type": "string", "maxLength": 253 }), json!("default")),
        "ttlSecondsAfterFinished": at_least(0),
    }));
    let status = open(&json!({
        "minAvailable": int32(),
        "running": int32(),
        "state": state,
    }));
    Definition {
        kind: JOB,
        short: ["vcjob", "vj"],
        scope: "Namespaced",
        has_status: true,
    }
    .text(&columns, &spec, &status)
}

/// The definition of podgroups.scheduling.volcano.sh, as JSON. It has no subresource for its status.
pub fn pod_group() -> String {
    let columns = [
        Column("STATUS", "string", ".status.phase", 0),
        Column("minMember", "integer", ".spec.minMember", 0),
        Column("RUNNINGS", "integer", ".status.running", 0),
        Column("AGE", "date", ".metadata.creationTimestamp", 0),
        Column("QUEUE", "string", ".spec.queue", 1),
    ];
    let spec = open(&json!({
        "minMember": int32(),
        "queue": with_default(json!({ "type": "string" }), json!("default")),
    }));
    let status = open(&json!({ "phase": { "type": "string" }, "running": int32() }));
    Definition {
        kind: POD_GROUP,
        short: ["pg", "podgroup-v1beta1"],
        scope: "Namespaced",
        has_status: false,
    }
    .text(&columns, &spec, &status)
}

/// The definition of queues.scheduling.volcano.sh, as JSON.
pub fn queue() -> String {
    let columns = [Column("PARENT", "string", ".spec.parent", 0)];
    let spec = open(&json!({ "parent": { "type": "string" }, "weight": int32() }));
    let status = open(&json!({ "state": { "type": "string" } }));
    Definition {
        kind: QUEUE,
        short: ["q", "queue-v1beta1"],
        scope: "Cluster",
        has_status: true,
    }
    .text(&columns, &spec, &status)
}

/// What differs between the three beside columns and schemas.
struct Definition {
    kind: KnownKind,
    short: [&'static str; 2],
    scope: &'static str,
    has_status: bool,
}

impl Definition {
    fn text(&self, columns: &[Column], spec: &Value, status: &Value) -> String {
        let KnownKind {
            group,
            kind,
            plural,
            version,
        } = self.kind;
        let schema = json!({
            "type": "object",
            "properties": {
                "apiVersion": { "type": "string" },
                "kind": { "type": "string" },
                "metadata": { "type": "object" },
                "spec": spec,
                "status": status,
            },
        });
        let mut served = json!({
            "name": version,
            "served": true,
            "storage": true,
            "schema": { "openAPIV3Schema": schema },
            "additionalPrinterColumns": columns.iter().map(Column::to_value).collect::<Vec<_>>(),
        });
        if self.has_status {
            served["subresources"] = json!({ "status": {} });
        }
        let definition = json!({
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": { "name": format!("{plural}.{group}") },
            "spec": {
                "group": group,
                "names": {
                    "kind": kind,
                    "listKind": format!("{kind}List"),
                    "plural": plural,
                    "shortNames": self.short,
                    "singular": kind.to_lowercase(),
                },
                "scope": self.scope,
                "versions": [served],
            },
        });
        definition.to_string()
    }
}

/// An object with these fields and any others.
fn open(properties: &Value) -> Value {
    json!({
        "type": "object",
        "properties": properties,
        "x-kubernetes-preserve-unknown-fields": true,
    })
}

fn int32() -> Value {
    json!({ "type": "integer", "format": "int32" })
}

fn at_least(minimum: i64) -> Value {
    json!({ "type": "integer", "format": "int32", "minimum": minimum })
}

fn with_default(mut schema: Value, default: Value) -> Value {
    schema["default"] = default;
    schema
}

#[cfg(test)]
mod tests {
    use sundown_schema::{Compiler, Schema, check};

    use super::*;

    fn read(text: &str) -> Value {
        serde_json::from_str(text).unwrap()
    }

    fn schema(definition: &Value) -> &Value {
        &definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    }

    fn problems(schema: &Schema, object: &Value) -> Vec<String> {
        let problems = schema.validate(object, None);
        problems.iter().map(|it| it.field.clone()).collect()
    }

    #[test]
    fn each_schema_is_structural() {
        for text in [job(), pod_group(), queue()] {
            let definition = read(&text);
            let wrong = check(schema(&definition), "openAPIV3Schema", true);
            assert!(wrong.is_empty(), "{}: {wrong:?}", definition["metadata"]);
        }
    }

    #[test]
    fn queues_belong_to_the_cluster_and_pod_groups_have_no_status_of_their_own() {
        let scope = |text: &str| read(text)["spec"]["scope"].clone();
        assert_eq!(scope(&job()), "Namespaced");
        assert_eq!(scope(&pod_group()), "Namespaced");
        assert_eq!(scope(&queue()), "Cluster");
        let has_status = |text: &str| {
            let versions = &read(text)["spec"]["versions"];
            versions[0].pointer("/subresources/status").is_some()
        };
        assert!(has_status(&job()) && has_status(&queue()));
        assert!(!has_status(&pod_group()));
    }

    #[test]
    fn a_job_keeps_every_field_and_gets_its_defaults() {
        let schema = Compiler::default().compile(schema(&read(&job())));
        let tasks = json!([{ "name": "trainer", "replicas": 1, "template": { "spec": {} } }]);
        let mut object = json!({ "spec": { "tasks": tasks, "plugins": { "svc": [] } } });
        assert!(schema.prune(&mut object).is_empty());
        schema.default(&mut object);
        assert_eq!(object["spec"]["tasks"], tasks);
        assert_eq!(object["spec"]["queue"], "default");
        assert_eq!(object["spec"]["maxRetry"], 3);
    }

    #[test]
    fn a_ttl_is_a_number_of_32_bits_and_not_negative() {
        let schema = Compiler::default().compile(schema(&read(&job())));
        let ttl = |seconds: Value| json!({ "spec": { "ttlSecondsAfterFinished": seconds } });
        for fine in [json!(0), json!(3_600), json!(i32::MAX)] {
            assert!(problems(&schema, &ttl(fine.clone())).is_empty(), "{fine}");
        }
        for wrong in [json!(-1), json!(i64::MAX), json!("60"), json!(1.5)] {
            assert!(
                !problems(&schema, &ttl(wrong.clone())).is_empty(),
                "{wrong}"
            );
        }
    }

    #[test]
    fn a_finish_time_is_an_instant() {
        let schema = Compiler::default().compile(schema(&read(&job())));
        let at = |text: &str| json!({ "status": { "state": { "lastTransitionTime": text } } });
        assert!(problems(&schema, &at("2030-01-01T00:00:00Z")).is_empty());
        let found = problems(&schema, &at("yesterday"));
        assert_eq!(found, ["status.state.lastTransitionTime"]);
    }
}
