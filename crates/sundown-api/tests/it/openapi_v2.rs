//! `/openapi/v2`: kubectl 1.37 could create no `kind: List`, edit no two objects at once and apply no
//! file with a definition and an object of it, because it asks for this document and got a 404.
//!
//! That Go reads from the protobuf what the JSON says is judged by the lane `peers`.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use sundown_api::{Called, Config, Method, Request, Response};

use super::world::{CM, CRDS, JSON_PATCH, World, cm, custom_resource_definition, request};

const V2: &str = "/openapi/v2";
const JSON: &str = "application/json";
const ASKED: &str = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";
const PROTOBUF: &str = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";

/// What kube-apiserver 1.37.1 publishes for the built-in kinds, written by `cargo xtask codegen`.
const PUBLISHED: &str = include_str!("openapi_v2/generated.json");

/// A definition, and what a kube-apiserver 1.37.1 publishes for it, texts for people left out.
const WIDGET: &str = include_str!("openapi_v2/widget.json");
const WIDGET_PUBLISHED: &str = include_str!("openapi_v2/widget_published.json");

fn fetch(world: &mut World, accept: Option<&str>, tag: Option<&str>) -> Response {
    let request = Request {
        accept: accept.map(str::to_owned),
        if_none_match: tag.map(str::to_owned),
        ..request(Method::Get, V2, &Value::Null)
    };
    match world.call(&request) {
        Called::Response(response) => response,
        Called::Watch(_) | Called::Log(_) => panic!("a document is a whole answer"),
    }
}

fn header(response: &Response, name: &str) -> String {
    let found = response.headers.iter().find(|(own, _)| *own == name);
    found.map(|(_, value)| value.clone()).unwrap_or_default()
}

fn tag(world: &mut World, accept: &str) -> String {
    header(&fetch(world, Some(accept), None), "etag")
}

/// A world with the kinds of Ray, one that takes any field, and one of many shapes.
fn furnished() -> World {
    let mut world = World::with(Config {
        definitions: || {
            vec![
                sundown_kinds::crd::ray_job(),
                sundown_kinds::crd::ray_cluster(),
            ]
        },
        ..Config::default()
    });
    world.post(CRDS, &custom_resource_definition()).ok();
    let widget: Value = serde_json::from_str(WIDGET).unwrap();
    world.post(CRDS, &widget).ok();
    world
}

fn document(world: &mut World) -> Value {
    serde_json::from_slice(&fetch(world, None, None).body).unwrap()
}

/// All references in a document.
fn references(value: &Value, found: &mut BTreeSet<String>) {
    if let Some(reference) = value["$ref"].as_str() {
        found.insert(reference.to_owned());
    }
    let members = value.as_object().into_iter().flatten().map(|(_, own)| own);
    let items = value.as_array().into_iter().flatten();
    members.chain(items).for_each(|own| references(own, found));
}

/// Group, version and kind of everything that discovery tells of.
fn served(world: &mut World) -> BTreeSet<[String; 3]> {
    let mut paths = vec!["/api/v1".to_owned()];
    let groups = world.get("/apis").ok().json;
    for group in groups["groups"].as_array().unwrap() {
        for version in group["versions"].as_array().unwrap() {
            paths.push(format!(
                "/apis/{}",
                version["groupVersion"].as_str().unwrap()
            ));
        }
    }
    let mut kinds = BTreeSet::new();
    for path in paths {
        let list = world.get(&path).ok().json;
        let both = list["groupVersion"].as_str().unwrap();
        let (group, version) = both.split_once('/').unwrap_or(("", both));
        for resource in list["resources"].as_array().unwrap() {
            // Parts of objects have kinds of their own; what is created or listed is no part.
            if !resource["name"].as_str().unwrap().contains('/') {
                let kind = resource["kind"].as_str().unwrap();
                kinds.insert([group, version, kind].map(str::to_owned));
            }
        }
    }
    kinds
}

#[test]
fn every_reference_leads_to_a_definition() {
    let document = document(&mut furnished());
    let mut found = BTreeSet::new();
    references(&document, &mut found);
    assert!(found.len() > 300, "only {} references", found.len());
    for reference in found {
        let name = reference.strip_prefix("#/definitions/").unwrap();
        assert!(document["definitions"].get(name).is_some(), "{reference}");
    }
}

#[test]
fn every_reference_of_version_three_leads_to_a_schema() {
    let mut world = furnished();
    let index = world.get("/openapi/v3").ok().json;
    for (_, path) in index["paths"].as_object().unwrap() {
        let url = path["serverRelativeURL"].as_str().unwrap();
        let document = world.get(url).ok().json;
        let mut found = BTreeSet::new();
        references(&document, &mut found);
        for reference in found {
            let name = reference.strip_prefix("#/components/schemas/").unwrap();
            let schemas = &document["components"]["schemas"];
            assert!(schemas.get(name).is_some(), "{url}: {reference}");
        }
    }
}

/// The accepted names of a definition change without its spec, when another definition gives one up.
#[test]
fn version_three_tells_documents_apart_that_differ_in_accepted_names_alone() {
    fn definition(plural: &str, version: &str, kind: &str) -> Value {
        let schema = json!({ "openAPIV3Schema": { "type": "object" } });
        json!({
            "metadata": { "name": format!("{plural}.names.sundown.dev") },
            "spec": {
                "group": "names.sundown.dev", "scope": "Namespaced",
                "names": { "plural": plural, "kind": kind, "listKind": format!("{kind}List") },
                "versions": [{ "name": version, "served": true, "storage": true, "schema": schema }],
            },
        })
    }
    fn url(world: &mut World) -> String {
        let index = world.get("/openapi/v3").ok().json;
        let path = &index["paths"]["apis/names.sundown.dev/v1"]["serverRelativeURL"];
        path.as_str().unwrap().to_owned()
    }
    let mut world = World::new();
    world
        .post(CRDS, &definition("firsts", "v1alpha1", "First"))
        .ok();
    world
        .post(CRDS, &definition("seconds", "v1", "Second"))
        .ok();
    let wanted = json!({ "spec": { "names": { "listKind": "FirstList" } } });
    let seconds = format!("{CRDS}/seconds.names.sundown.dev");
    world.merge(&seconds, &wanted).ok();
    let before = (url(&mut world), world.get(&seconds).ok().json);
    let firsts = format!("{CRDS}/firsts.names.sundown.dev");
    world.delete(&firsts, &Value::Null).ok();
    let cleaned = json!({ "metadata": { "finalizers": null } });
    world.merge(&firsts, &cleaned).ok();
    let after = (url(&mut world), world.get(&seconds).ok().json);
    assert_eq!(before.1["spec"], after.1["spec"]);
    let list_kind = |it: &Value| it["status"]["acceptedNames"]["listKind"].clone();
    assert_eq!(list_kind(&before.1), "SecondList");
    assert_eq!(list_kind(&after.1), "FirstList");
    assert_ne!(before.0, after.0);
}

#[test]
fn every_kind_that_is_served_has_one_definition() {
    let mut world = furnished();
    let document = document(&mut world);
    let mut told = Vec::new();
    for (name, definition) in document["definitions"].as_object().unwrap() {
        let kinds = definition["x-kubernetes-group-version-kind"].as_array();
        for kind in kinds.into_iter().flatten() {
            let part = |part: &str| kind[part].as_str().unwrap().to_owned();
            told.push([part("group"), part("version"), part("kind")]);
            assert_eq!(definition["type"], "object", "{name}");
        }
    }
    for kind in served(&mut world) {
        let count = told.iter().filter(|own| **own == kind).count();
        assert_eq!(count, 1, "{kind:?}");
    }
}

/// What kubectl cannot read ends every validation: a list without items, a primitive without type.
#[test]
fn kubectl_can_read_every_schema() {
    fn check(path: &str, schema: &Value) {
        let inner = |name: &str| schema.get(name);
        if inner("$ref").is_some() {
            assert!(
                inner("type").is_none() && inner("properties").is_none(),
                "{path}"
            );
        } else if schema["type"] == "array" {
            assert!(schema["items"].is_object(), "{path}");
        } else if let Some(own) = inner("type") {
            let known = ["object", "string", "number", "integer", "boolean"];
            assert!(known.contains(&own.as_str().unwrap()), "{path}: {own}");
        }
        for (name, own) in schema["properties"].as_object().into_iter().flatten() {
            check(&format!("{path}.{name}"), own);
        }
        for name in ["items", "additionalProperties"] {
            if let Some(own) = inner(name) {
                check(path, own);
            }
        }
    }
    let document = document(&mut furnished());
    for (name, definition) in document["definitions"].as_object().unwrap() {
        check(name, definition);
    }
}

#[test]
fn kubectl_finds_where_fields_are_validated() {
    let document = document(&mut furnished());
    let one = "/apis/shop.sundown.dev/v1/namespaces/{namespace}/widgets/{name}";
    let patch = &document["paths"][one]["patch"];
    let kind = json!({ "group": "shop.sundown.dev", "version": "v1", "kind": "Widget" });
    assert_eq!(patch["x-kubernetes-group-version-kind"], kind);
    let parameters = patch["parameters"].as_array().unwrap();
    let validation = json!({ "name": "fieldValidation", "in": "query", "type": "string" });
    assert!(parameters.contains(&validation), "{parameters:?}");
    let mut ids = BTreeSet::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, own) in item.as_object().unwrap() {
            if method != "parameters" {
                let id = own["operationId"].as_str().unwrap();
                assert!(ids.insert(id.to_owned()), "{path}: {id} is there twice");
            }
        }
    }
}

fn without_texts(value: &mut Value) {
    if let Some(map) = value.as_object_mut() {
        map.retain(|name, own| name != "description" || !own.is_string());
        map.values_mut().for_each(without_texts);
    }
    let items = value.as_array_mut().into_iter().flatten();
    items.for_each(without_texts);
}

/// The values of `enum` and `default` were told to be objects: kubectl refused every List with a
/// definition that has one.
#[test]
fn publishes_built_in_kinds_as_upstream_does() {
    let mut document = document(&mut World::new());
    let expected: Value = serde_json::from_str(PUBLISHED).unwrap();
    let mut differences = Vec::new();
    for (name, own) in document["definitions"].as_object_mut().unwrap() {
        without_texts(own);
        if expected[name] != *own {
            differences.push(format!("{name}\n ours   {own}\n theirs {}", expected[name]));
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

#[test]
fn publishes_definitions_as_upstream_does() {
    let mut document = document(&mut furnished());
    let expected: Value = serde_json::from_str(WIDGET_PUBLISHED).unwrap();
    for (name, expected) in expected.as_object().unwrap() {
        let own = &mut document["definitions"][name];
        without_texts(own);
        assert_eq!(own, expected, "{name}");
    }
    let any = &document["definitions"]["dev.sundown.v1.SunJob"];
    let members: Vec<&String> = any.as_object().unwrap().keys().collect();
    assert_eq!(members, ["type", "x-kubernetes-group-version-kind"]);
}

#[test]
fn keeps_what_strategic_merge_patches_go_by() {
    let document = document(&mut World::new());
    let spec = &document["definitions"]["io.k8s.api.core.v1.PodSpec"]["properties"];
    let containers = &spec["containers"];
    assert_eq!(containers["x-kubernetes-patch-strategy"], "merge");
    assert_eq!(containers["x-kubernetes-patch-merge-key"], "name");
    let either = &document["definitions"]["io.k8s.apimachinery.pkg.util.intstr.IntOrString"];
    assert_eq!(
        *either,
        json!({ "type": "string", "format": "int-or-string" })
    );
}

#[test]
fn serves_what_a_client_wants_most() {
    let mut world = World::new();
    let mut check = |accept: Option<&str>, code: u16, media: &str| {
        let response = fetch(&mut world, accept, None);
        assert_eq!(
            (response.code, response.content_type),
            (code, media),
            "{accept:?}"
        );
        assert_eq!(header(&response, "vary"), "Accept");
        assert_eq!(response.body.is_empty(), code == 406);
    };
    check(None, 200, JSON);
    check(Some("*/*"), 200, JSON);
    check(Some("application/*"), 200, JSON);
    check(Some(ASKED), 200, PROTOBUF);
    check(Some(PROTOBUF), 200, PROTOBUF);
    check(Some(&format!("*/*, {ASKED}")), 200, PROTOBUF);
    check(Some(&format!("{JSON};q=0.1, {ASKED};q=0.9")), 200, PROTOBUF);
    check(Some(&format!("{ASKED};q=0.1, {JSON};q=0.9")), 200, JSON);
    check(Some("text/html"), 406, JSON);
    check(Some("application/vnd.kubernetes.protobuf"), 406, JSON);
    check(Some("application/json;q=0"), 406, JSON);
}

#[test]
fn is_not_sent_again_to_a_client_that_has_it() {
    let mut world = furnished();
    let (json, protobuf) = (tag(&mut world, JSON), tag(&mut world, ASKED));
    assert_ne!(json, protobuf, "two forms are two documents");
    for (accept, tag) in [(JSON, &json), (ASKED, &protobuf)] {
        let again = fetch(&mut world, Some(accept), Some(tag));
        assert_eq!((again.code, again.body.len()), (304, 0));
        assert_eq!(header(&again, "etag"), *tag);
    }
    assert_eq!(fetch(&mut world, Some(ASKED), Some(&json)).code, 200);

    world.post(CM, &cm("a")).ok();
    let seen = json!({ "type": "Seen", "status": "True", "lastTransitionTime": null });
    let path = "/status/conditions/-";
    let status = json!([{ "op": "add", "path": path, "value": seen }]);
    let widget = format!("{CRDS}/widgets.shop.sundown.dev");
    world
        .patch(&format!("{widget}/status"), JSON_PATCH, &status)
        .ok();
    assert_eq!(
        tag(&mut world, JSON),
        json,
        "nothing that it tells of changed"
    );
    let other = json!({ "spec": { "names": { "shortNames": ["w"] } } });
    world.merge(&widget, &other).ok();
    assert_ne!(tag(&mut world, JSON), json);
    world.delete(&widget, &Value::Null).ok();
    let cleaned = json!({ "metadata": { "finalizers": null } });
    world.merge(&widget, &cleaned).ok();
    assert!(
        document(&mut world)["definitions"]
            .get("dev.sundown.shop.v1.Widget")
            .is_none()
    );
}

#[test]
fn tells_the_same_names_in_protobuf() {
    let mut world = furnished();
    let json = document(&mut world);
    let protobuf = fetch(&mut world, Some(ASKED), None).body;
    let names = |number: u64, inner: u64| -> BTreeSet<String> {
        let part = fields(&protobuf)
            .into_iter()
            .find(|(own, _)| *own == number);
        let entries = fields(part.unwrap().1)
            .into_iter()
            .filter(|(own, _)| *own == inner);
        let name = |entry: &[u8]| String::from_utf8(fields(entry)[0].1.to_vec()).unwrap();
        entries.map(|(_, entry)| name(entry)).collect()
    };
    let keys = |part: &str| json[part].as_object().unwrap().keys().cloned().collect();
    assert_eq!(names(8, 2), keys("paths"));
    assert_eq!(names(9, 1), keys("definitions"));
}

/// The members of a message of which all have a length.
fn fields(mut bytes: &[u8]) -> Vec<(u64, &[u8])> {
    fn varint(bytes: &mut &[u8]) -> u64 {
        let (mut value, mut shift) = (0, 0);
        loop {
            let byte = bytes[0];
            *bytes = &bytes[1..];
            value |= u64::from(byte & 0x7f) << shift;
            shift += 7;
            if byte < 0x80 {
                return value;
            }
        }
    }
    let mut fields = Vec::new();
    while !bytes.is_empty() {
        let head = varint(&mut bytes);
        assert_eq!(head & 7, 2, "every member of these messages has a length");
        let length = usize::try_from(varint(&mut bytes)).unwrap();
        let (own, rest) = bytes.split_at(length);
        fields.push((head >> 3, own));
        bytes = rest;
    }
    fields
}
