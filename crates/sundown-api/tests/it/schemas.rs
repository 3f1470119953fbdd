//! Custom resources with a schema: the answers are those of a kube-apiserver 1.37 to the same
//! requests.

use serde_json::{Value, json};

use crate::world::{CRDS, World};

const THINGS: &str = "/apis/x.dev/v1/namespaces/default/things";

fn definition(spec: &Value) -> Value {
    let schema = json!({
        "type": "object", "required": ["spec"],
        "properties": { "spec": spec, "status": { "type": "object", "properties": { "n": { "type": "integer" } } } },
    });
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": "things.x.dev" },
        "spec": {
            "group": "x.dev", "scope": "Namespaced",
            "names": { "plural": "things", "kind": "Thing" },
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "subresources": { "status": {} }, "schema": { "openAPIV3Schema": schema },
            }],
        },
    })
}

fn world() -> World {
    let mut world = World::new();
    let spec = json!({
        "type": "object",
        "x-kubernetes-validations": [
            { "rule": "self.n <= 10 || self.s == 'root'", "message": "more than 10 need root" },
            { "rule": "self.n >= oldSelf.n", "fieldPath": ".n", "reason": "FieldValueForbidden",
              "messageExpression": "'n shrinks'" },
        ],
        "properties": {
            "n": { "type": "integer", "default": 3 }, "s": { "type": "string", "default": "ok" },
            "nu": { "type": "string", "nullable": true }, "dn": { "type": "string", "default": "q" },
            "ports": { "type": "array", "items": { "type": "object", "properties": { "name": { "type": "string" } } } },
        },
    });
    world.post(CRDS, &definition(&spec)).ok();
    world
}

fn thing(name: &str, spec: &Value) -> Value {
    json!({ "apiVersion": "x.dev/v1", "kind": "Thing", "metadata": { "name": name }, "spec": spec })
}

#[test]
fn prunes_fills_in_and_warns() {
    let mut world = world();
    let body = thing("b", &json!({ "n": 9, "dn": null, "nu": null, "extra": 1 }));
    let reply = world.post(THINGS, &body).ok();
    let expect = json!({ "dn": "q", "n": 9, "nu": null, "s": "ok" });
    assert_eq!(reply.json["spec"], expect);
    assert_eq!(reply.warnings, [r#"unknown field "spec.extra""#]);
}

#[test]
fn a_strict_client_is_told_of_unknown_and_repeated_fields() {
    let mut world = world();
    let mut body = thing(
        "b",
        &json!({ "n": 1, "extra": 1, "ports": [{ "name": "a", "zz": 1 }] }),
    );
    body["metadata"]["foo"] = json!(1);
    let mut request = crate::world::request(
        sundown_api::Method::Post,
        &format!("{THINGS}?fieldValidation=Strict"),
        &body,
    );
    let text = String::from_utf8(request.body).unwrap();
    request.body = text.replace("\"n\":1", "\"n\":2,\"n\":1").into_bytes();
    let reply = world.send(&request);
    assert_eq!(reply.code, 400);
    assert_eq!(
        reply.message(),
        "Thing in version \"v1\" cannot be handled as a Thing: strict decoding error: duplicate \
         field \"spec.n\", unknown field \"metadata.foo\", unknown field \"spec.extra\", unknown \
         field \"spec.ports[0].zz\""
    );
}

#[test]
fn rules_hold_at_create_and_at_update() {
    let mut world = world();
    let reply = world.post(THINGS, &thing("b", &json!({ "n": 11 })));
    assert_eq!(
        (reply.code, reply.message()),
        (
            422,
            "Thing.x.dev \"b\" is invalid: spec: Invalid value: more than 10 need root"
        )
    );
    world.post(THINGS, &thing("b", &json!({ "n": 9 }))).ok();
    let path = format!("{THINGS}/b");
    let reply = world.merge(&path, &json!({ "spec": { "n": 5 } }));
    assert_eq!(
        reply.message(),
        "Thing.x.dev \"b\" is invalid: spec.n: Forbidden: n shrinks"
    );
    world.merge(&path, &json!({ "spec": { "n": 10 } })).ok();
}

#[test]
fn rules_are_not_looked_at_where_the_schema_is_violated() {
    let mut world = world();
    let body = json!({ "apiVersion": "x.dev/v1", "kind": "Thing", "metadata": { "name": "c" } });
    assert_eq!(
        world.post(THINGS, &body).message(),
        "Thing.x.dev \"c\" is invalid: [spec: Required value, <nil>: Invalid value: null: some \
         validation rules were not checked because the object was invalid; correct the existing \
         errors to complete validation]"
    );
}

#[test]
fn the_status_is_judged_by_its_own_endpoint() {
    let mut world = world();
    world.post(THINGS, &thing("b", &json!({ "n": 9 }))).ok();
    let path = format!("{THINGS}/b/status");
    let reply = world.merge(&path, &json!({ "status": { "n": "x" } }));
    assert_eq!(
        reply.message(),
        "Thing.x.dev \"b\" is invalid: [status.n: Invalid value: \"string\": n in body must be of \
         type integer: \"string\", <nil>: Invalid value: null: some validation rules were \
         not checked because the object was invalid; correct the existing errors to complete \
         validation]"
    );
    let reply = world
        .merge(&path, &json!({ "status": { "n": 1 }, "spec": { "n": 1 } }))
        .ok();
    assert_eq!(
        (&reply.json["status"]["n"], &reply.json["spec"]["n"]),
        (&json!(1), &json!(9))
    );
}

#[test]
fn refuses_definitions_that_are_not_structural() {
    let mut world = World::new();
    let reply = world.post(CRDS, &definition(&json!({ "properties": {} })));
    assert_eq!(
        reply.message(),
        "CustomResourceDefinition.apiextensions.k8s.io \"things.x.dev\" is invalid: \
         spec.validation.openAPIV3Schema.properties[spec].type: Required value: must not be empty \
         for specified object fields"
    );
}
