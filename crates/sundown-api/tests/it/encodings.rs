//! Answers for clients that take no JSON: YAML and protobuf.

use serde_json::{Value, json};
use sundown_api::{Called, Encoding, Request, Response};

use crate::world::{CM, JOBS, PODS, SUNJOBS, World, cm, job, pod, request, sunjob};

const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";
const YAML: &str = "application/yaml";

/// What a client gets, as the shell hands it on.
fn get(world: &mut World, path: &str, accept: &str) -> Response {
    let request = Request {
        accept: Some(accept.into()),
        ..request(sundown_api::Method::Get, path, &Value::Null)
    };
    let Called::Response(mut response) = world.call(&request) else {
        panic!("{path} is no watch");
    };
    Encoding::of(&request).apply(&mut response);
    response
}

#[test]
fn json_is_preferred_wherever_it_is_taken() {
    let mut world = World::new();
    world.post(CM, &cm("a")).ok();
    for (accept, media) in [
        (
            "application/vnd.kubernetes.protobuf, */*",
            "application/json",
        ),
        (
            "application/yaml;q=0.9, application/json;q=0.1",
            "application/json",
        ),
        ("application/yaml", YAML),
        (PROTOBUF, PROTOBUF),
        (
            "application/vnd.kubernetes.protobuf;q=0.1,application/yaml",
            YAML,
        ),
    ] {
        let response = get(&mut world, &format!("{CM}/a"), accept);
        assert_eq!(
            (response.code, response.content_type),
            (200, media),
            "{accept}"
        );
    }
    let refused = get(&mut world, CM, "text/plain");
    assert_eq!(refused.code, 406);
}

/// What is written is sent back as the body of an update: nothing may change.
#[test]
fn an_object_in_protobuf_reads_as_the_same_object() {
    let mut world = World::new();
    let mut pod = pod("a");
    pod["metadata"]["labels"] = json!({ "x": "y", "empty": "" });
    pod["metadata"]["finalizers"] = json!(["a.io/b"]);
    pod["spec"]["terminationGracePeriodSeconds"] = json!(7);
    pod["spec"]["containers"][0]["resources"] = json!({ "limits": { "cpu": "500m" } });
    pod["spec"]["containers"][0]["livenessProbe"] =
        json!({ "httpGet": { "path": "/", "port": "http" }, "periodSeconds": 3 });
    pod["spec"]["containers"][0]["ports"] = json!([{ "name": "http", "containerPort": 80 }]);
    world.post(PODS, &pod).ok();
    world.post(JOBS, &job("a")).ok();
    let secret = json!({ "metadata": { "name": "a" }, "stringData": { "k": "v" } });
    let secrets = "/api/v1/namespaces/default/secrets";
    world.post(secrets, &secret).ok();
    let crds = crate::world::CRDS;
    world
        .post(crds, &crate::world::custom_resource_definition())
        .ok();
    for path in [
        format!("{PODS}/a"),
        format!("{JOBS}/a"),
        format!("{secrets}/a"),
        format!("{crds}/sunjobs.sundown.dev"),
        "/api/v1/namespaces/default".to_owned(),
    ] {
        let before = world.get(&path).ok();
        let body = get(&mut world, &path, PROTOBUF).body;
        let update = Request {
            content_type: Some(PROTOBUF.into()),
            body,
            ..request(sundown_api::Method::Put, &path, &Value::Null)
        };
        let after = world.send(&update).ok();
        assert_eq!(after.json, before.json, "{path}");
    }
}

#[test]
fn lists_errors_and_watches_have_their_messages() {
    let mut world = World::with_sunjobs();
    world.post(CM, &cm("a")).ok();
    let list = get(&mut world, CM, PROTOBUF);
    assert_eq!(&list.body[..4], b"k8s\0");
    assert!(list.body.windows(13).any(|part| part == b"ConfigMapList"));
    let missing = get(&mut world, &format!("{CM}/none"), PROTOBUF);
    assert_eq!((missing.code, missing.content_type), (404, PROTOBUF));
    assert!(missing.body.windows(8).any(|part| part == b"NotFound"));
    let custom = get(&mut world, SUNJOBS, PROTOBUF);
    assert_eq!(custom.code, 406, "custom resources have no messages");
    let rv = world.get(CM).rv();
    let mut watch = world.watch_as(&format!("{CM}?watch=1&resourceVersion={rv}"), PROTOBUF);
    assert_eq!(
        watch.media_type(),
        "application/vnd.kubernetes.protobuf;stream=watch"
    );
    world.post(CM, &cm("b")).ok();
    let polled = watch.poll(&world.server, world.now);
    let frame = &polled.lines[0];
    let length = u32::from_be_bytes(frame[..4].try_into().unwrap());
    assert_eq!(length as usize, frame.len() - 4);
    assert_eq!(&frame[4..11], b"\x0a\x05ADDED");
}

/// The scale of a custom resource is no custom resource: autoscalers ask for it in protobuf.
#[test]
fn the_scale_of_a_custom_resource_has_its_message() {
    let mut world = World::new();
    let mut definition = crate::world::custom_resource_definition();
    let version = &mut definition["spec"]["versions"][0];
    version["subresources"]["scale"] =
        json!({ "specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas" });
    world.post(crate::world::CRDS, &definition).ok();
    let mut object = sunjob("a");
    object["spec"]["replicas"] = json!(2);
    world.post(SUNJOBS, &object).ok();
    let path = format!("{SUNJOBS}/a/scale");
    let scale = get(&mut world, &path, PROTOBUF);
    assert_eq!((scale.code, scale.content_type), (200, PROTOBUF));
    let head = b"k8s\0\x0a\x17\x0a\x0eautoscaling/v1\x12\x05Scale\x12";
    assert!(scale.body.starts_with(head));
    let update = Request {
        accept: Some(PROTOBUF.into()),
        content_type: Some(PROTOBUF.into()),
        body: scale.body,
        ..request(sundown_api::Method::Put, &path, &Value::Null)
    };
    let Called::Response(written) = world.call(&update) else {
        panic!("a scale is a whole answer");
    };
    assert_eq!(written.code, 200);
    assert_eq!(get(&mut world, &format!("{SUNJOBS}/a"), PROTOBUF).code, 406);
}

/// Informers of metadata ask so for every kind, custom ones included.
#[test]
fn metadata_alone_has_its_messages() {
    let one = format!("{PROTOBUF};as=PartialObjectMetadata;g=meta.k8s.io;v=v1");
    let many = format!("{PROTOBUF};as=PartialObjectMetadataList;g=meta.k8s.io;v=v1");
    let mut world = World::with_sunjobs();
    for (path, object) in [(CM, cm("a")), (SUNJOBS, sunjob("a"))] {
        let uid = world.post(path, &object).ok().uid();
        let has =
            |body: &[u8], text: &str| body.windows(text.len()).any(|part| part == text.as_bytes());
        let object = get(&mut world, &format!("{path}/a"), &one);
        assert_eq!((object.code, object.content_type), (200, PROTOBUF));
        // The envelope, then the metadata as the first and only field.
        let head = b"k8s\0\x0a\x27\x0a\x0emeta.k8s.io/v1\x12\x15PartialObjectMetadata\x12";
        assert!(object.body.starts_with(head), "{path}");
        assert!(has(&object.body, &uid), "{path}");
        let list = get(&mut world, path, &many);
        assert_eq!((list.code, list.content_type), (200, PROTOBUF));
        assert!(has(&list.body, "PartialObjectMetadataList") && has(&list.body, &uid));
        let watched = format!(
            "{path}?watch=1&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"
        );
        let mut watch = world.watch_as(&watched, &one);
        assert!(watch.media_type().starts_with(PROTOBUF));
        let lines = watch.poll(&world.server, world.now).lines;
        assert_eq!(&lines[0][4..11], b"\x0a\x05ADDED");
        assert_eq!(&lines[1][4..14], b"\x0a\x08BOOKMARK");
        assert!(has(&lines[0], &uid) && has(&lines[1], "initial-events-end"));
    }
    let table = format!("{PROTOBUF};as=Table;g=meta.k8s.io;v=v1");
    assert_eq!(
        get(&mut world, CM, &table).code,
        406,
        "Tables have no message"
    );
}

#[test]
fn what_is_asked_first_decides_the_form_and_json_only_the_encoding() {
    let mut world = World::new();
    world.post(CM, &cm("a")).ok();
    let metadata = "as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
    for (accept, media, kind) in [
        (
            format!("{PROTOBUF};{metadata},application/json"),
            PROTOBUF,
            "PartialObjectMetadata",
        ),
        (
            format!("{PROTOBUF};{metadata},application/json;{metadata},application/json"),
            "application/json",
            "PartialObjectMetadata",
        ),
        (format!("{YAML};{metadata}"), YAML, "PartialObjectMetadata"),
        (format!("{YAML};as=Table;g=meta.k8s.io;v=v1"), YAML, "Table"),
        (
            format!("{PROTOBUF},application/json;{metadata}"),
            PROTOBUF,
            "ConfigMap",
        ),
    ] {
        let response = get(&mut world, &format!("{CM}/a"), &accept);
        assert_eq!(
            (response.code, response.content_type),
            (200, media),
            "{accept}"
        );
        let says = |text: &[u8]| response.body.windows(text.len()).any(|part| part == text);
        assert!(says(kind.as_bytes()), "{accept}");
    }
}

#[test]
fn yaml_says_the_same_as_json() {
    let mut world = World::new();
    let mut body = cm("a");
    body["data"] = json!({ "yes": "no", "number": "1", "lines": "a\nb\n", "empty": "" });
    let created = world.post(CM, &body).ok();
    let text = get(&mut world, &format!("{CM}/a"), YAML).body;
    let update = Request {
        content_type: Some(YAML.into()),
        body: text,
        ..request(sundown_api::Method::Put, &format!("{CM}/a"), &Value::Null)
    };
    assert_eq!(world.send(&update).ok().json, created.json);
}
