//! A definition of the size and shape of this field's: a pod template, several times, in each
//! group of workers. Generated, and judged by counted work, not by time.

use serde_json::{Map, Value, json};

use crate::{Compiler, check};

const QUANTITY: &str = r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$";

fn text(words: &str) -> Value {
    json!({ "type": "string", "description": words.repeat(12) })
}

/// Some hundred fields, with lists, maps and quantities as a container has them.
fn container() -> Value {
    let quantity = json!({
        "anyOf": [{ "type": "integer" }, { "type": "string" }], "pattern": QUANTITY,
        "x-kubernetes-int-or-string": true,
    });
    let mut fields = Map::new();
    for index in 0..50 {
        fields.insert(
            format!("text{index}"),
            text("What this field is good for. "),
        );
        let limits = json!({ "type": "object", "additionalProperties": quantity });
        fields.insert(format!("limits{index}"), limits);
        let port = json!({
            "type": "object", "required": ["port"],
            "properties": { "name": text("A name. "), "port": { "type": "integer", "format": "int32" } },
        });
        let ports = json!({
            "type": "array", "items": port, "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["port"],
        });
        fields.insert(format!("ports{index}"), ports);
    }
    json!({ "type": "object", "properties": fields })
}

fn template() -> Value {
    let list = json!({ "type": "array", "items": container() });
    let spec = json!({
        "type": "object",
        "properties": { "containers": list, "initContainers": list, "ephemeralContainers": list },
    });
    json!({ "type": "object", "properties": { "spec": spec, "metadata": { "type": "object" } } })
}

fn definition() -> Value {
    let group = json!({
        "type": "object",
        "properties": { "replicas": { "type": "integer", "default": 1 }, "template": template() },
    });
    let groups = json!({ "type": "array", "items": group });
    let cluster = json!({
        "type": "object",
        "properties": { "head": group, "workers": groups },
        "x-kubernetes-validations": [{ "rule": "!has(self.workers) || self.workers.size() < 1000" }],
    });
    json!({
        "type": "object",
        "properties": { "spec": {
            "type": "object", "properties": { "cluster": cluster, "submitter": template() },
        } },
    })
}

#[test]
fn a_large_definition_is_kept_small() {
    let schema = definition();
    let bytes = schema.to_string().len();
    assert!(bytes > 400_000, "as large as those of this field: {bytes}");
    let compiled = Compiler::default().compile(&schema);
    // Nine schemas of containers are one, and descriptions are none.
    assert!(compiled.node_count() < 200, "{}", compiled.node_count());
}

#[test]
fn a_large_definition_registers_and_judges() {
    let schema = definition();
    assert_eq!(check(&schema, "s", true), crate::Problems::default());
    let compiled = Compiler::default().compile(&schema);
    let mut object = json!({ "spec": { "cluster": { "workers": [
        { "template": { "spec": { "containers": [{ "limits3": { "cpu": "1x" }, "odd": 1 }] } } },
    ] } } });
    assert_eq!(
        compiled.prune(&mut object),
        ["spec.cluster.workers[0].template.spec.containers[0].odd"]
    );
    compiled.default(&mut object);
    assert_eq!(object["spec"]["cluster"]["workers"][0]["replicas"], 1);
    let told: Vec<String> = compiled
        .validate(&object, None)
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].starts_with(
        "spec.cluster.workers[0].template.spec.containers[0].limits3.cpu: Invalid value: \"1x\""
    ));
}
