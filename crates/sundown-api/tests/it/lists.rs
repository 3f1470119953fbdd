//! GET and LIST: selectors, pages, revisions, metadata only.

use serde_json::{Value, json};
use sundown_api::Config;
use sundown_store::History;

use crate::world::{CM, PARTIAL, PODS, SUNJOBS, World, cm, pod, sunjob};

fn with_labels() -> World {
    let mut world = World::new();
    for (name, labels) in [
        ("a", json!({ "app": "x", "n": "1" })),
        ("b", json!({ "app": "y", "n": "20" })),
        ("c", json!({})),
    ] {
        let mut body = cm(name);
        body["metadata"]["labels"] = labels;
        world.post(CM, &body).ok();
    }
    world
}

fn names(list: &Value) -> Vec<&str> {
    let items = list["items"].as_array().expect("a list");
    items
        .iter()
        .filter_map(|item| item["metadata"]["name"].as_str())
        .collect()
}

#[test]
fn selects_by_labels() {
    let mut world = with_labels();
    for (selector, expected) in [
        ("app=x", &["a"][..]),
        ("app==x", &["a"]),
        ("app!=x", &["b", "c"]),
        ("app in (x,y)", &["a", "b"]),
        ("app notin (x, z)", &["b", "c"]),
        ("app", &["a", "b"]),
        ("!app", &["c"]),
        ("app in (x,y),n>5", &["b"]),
        ("n<5", &["a"]),
        ("", &["a", "b", "c"]),
    ] {
        let plain = crate::world::request(sundown_api::Method::Get, CM, &Value::Null);
        let query = vec![("labelSelector".to_owned(), selector.to_owned())];
        let reply = world.send(&sundown_api::Request { query, ..plain }).ok();
        assert_eq!(names(&reply.json), expected, "{selector}");
    }
}

#[test]
fn selects_by_fields() {
    let mut world = with_labels();
    let list = |world: &mut World, selector: &str| {
        let reply = world.get(&format!("{CM}?fieldSelector={selector}")).ok();
        names(&reply.json).join(" ")
    };
    assert_eq!(list(&mut world, "metadata.name=b"), "b");
    assert_eq!(list(&mut world, "metadata.name!=b"), "a c");
    assert_eq!(list(&mut world, "metadata.namespace=other"), "");
    let mut pod = pod("p");
    pod["spec"]["nodeName"] = json!("n1");
    world.post(PODS, &pod).ok();
    let on = |world: &mut World, node: &str| {
        let path = format!("/api/v1/pods?fieldSelector=spec.nodeName={node}");
        names(&world.get(&path).ok().json).len()
    };
    assert_eq!((on(&mut world, "n1"), on(&mut world, "n2")), (1, 0));
}

#[test]
fn keeps_namespaces_apart() {
    let mut world = with_labels();
    world
        .post("/api/v1/namespaces/kube-system/configmaps", &cm("z"))
        .ok();
    assert_eq!(names(&world.get(CM).ok().json), ["a", "b", "c"]);
    assert_eq!(
        names(&world.get("/api/v1/configmaps").ok().json),
        ["a", "b", "c", "z"]
    );
}

#[test]
fn carries_the_revision_of_the_store() {
    let mut world = with_labels();
    let newest = world.get(&format!("{CM}/c")).rv();
    world.post(PODS, &pod("p")).ok();
    let list = world.get(CM).ok();
    assert_eq!(list.rv(), world.server.revision().to_string());
    assert_ne!(list.rv(), newest);
}

#[test]
fn pages_through_one_state() {
    let mut world = with_labels();
    let first = world.get(&format!("{CM}?limit=2")).ok();
    assert_eq!(names(&first.json), ["a", "b"]);
    assert_eq!(first.metadata("remainingItemCount"), 1);
    world.delete(&format!("{CM}/c"), &Value::Null).ok();
    world.post(CM, &cm("d")).ok();
    let token = first.metadata("continue").as_str().unwrap().to_owned();
    let second = world.get(&format!("{CM}?limit=2&continue={token}")).ok();
    assert_eq!(names(&second.json), ["c"], "as it was at the first page");
    assert_eq!(second.rv(), first.rv());
    assert_eq!(second.metadata("continue"), &Value::Null);
    assert_eq!(world.get(&format!("{CM}?continue=garbage")).code, 400);
}

#[test]
fn pages_across_namespaces_whose_names_share_a_beginning() {
    let mut world = World::new();
    for namespace in ["a", "a-b", "a0b"] {
        world
            .post(
                "/api/v1/namespaces",
                &json!({ "metadata": { "name": namespace } }),
            )
            .ok();
        world
            .post(
                &format!("/api/v1/namespaces/{namespace}/configmaps"),
                &cm("x"),
            )
            .ok();
        world
            .post(
                &format!("/api/v1/namespaces/{namespace}/configmaps"),
                &cm("y"),
            )
            .ok();
    }
    let (mut seen, mut token) = (0, String::new());
    loop {
        let page = world
            .get(&format!("/api/v1/configmaps?limit=1&continue={token}"))
            .ok();
        seen += names(&page.json).len();
        match page.metadata("continue").as_str() {
            Some(next) => next.clone_into(&mut token),
            None => break,
        }
    }
    assert_eq!(seen, 6);
}

#[test]
fn refuses_pages_whose_state_is_gone() {
    let history = History {
        events_min: 1,
        age_max_seconds: 10,
        ..History::default()
    };
    let mut world = World::with(Config {
        history,
        ..Config::default()
    });
    for name in ["a", "b", "c"] {
        world.post(CM, &cm(name)).ok();
    }
    let first = world.get(&format!("{CM}?limit=1")).ok();
    let token = first.metadata("continue").as_str().unwrap().to_owned();
    for round in 0..5 {
        world.pass(100);
        world
            .merge(
                &format!("{CM}/c"),
                &json!({ "data": { "x": round.to_string() } }),
            )
            .ok();
    }
    let reply = world.get(&format!("{CM}?limit=5&continue={token}"));
    assert_eq!((reply.code, reply.reason()), (410, "Expired"));
    let inconsistent = reply.metadata("continue").as_str().unwrap().to_owned();
    let rest = world.get(&format!("{CM}?continue={inconsistent}")).ok();
    assert_eq!(names(&rest.json), ["b", "c"]);
    let reply = world.get(&format!(
        "{CM}?resourceVersion=5&resourceVersionMatch=Exact"
    ));
    let text = "The resourceVersion for the provided list is too old.";
    assert_eq!((reply.code, reply.message()), (410, text));
}

#[test]
fn reads_at_revisions_as_asked() {
    let mut world = with_labels();
    let rv = world.get(CM).rv();
    world.delete(&format!("{CM}/a"), &Value::Null).ok();
    let list = |world: &mut World, query: &str| world.get(&format!("{CM}?{query}"));
    let exact = format!("resourceVersion={rv}&resourceVersionMatch=Exact");
    let exact = list(&mut world, &exact).ok();
    assert_eq!(
        (names(&exact.json), exact.rv()),
        (vec!["a", "b", "c"], rv.clone())
    );
    let newer = list(&mut world, &format!("resourceVersion={rv}")).ok();
    assert_eq!(names(&newer.json), ["b", "c"]);
    let reply = list(&mut world, "resourceVersion=100000");
    assert_eq!((reply.code, reply.reason()), (504, "Timeout"));
    assert!(
        reply
            .message()
            .contains("Too large resource version: 100000, current: ")
    );
    let wrong = [
        "resourceVersionMatch=Exact",
        "resourceVersion=0&resourceVersionMatch=Exact",
    ];
    for query in wrong {
        assert_eq!(list(&mut world, query).code, 422, "{query}");
    }
}

#[test]
fn shows_metadata_only_when_asked() {
    let mut world = with_labels();
    let full = world.get(&format!("{CM}/a")).ok();
    let part = world.get_as(&format!("{CM}/a"), PARTIAL).ok();
    let expected = json!({
        "kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1",
        "metadata": full.json["metadata"],
    });
    assert_eq!(part.json, expected);
    let accept = "application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,\
                  application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json";
    let list = world.get_as(CM, accept).ok();
    assert_eq!(list.json["kind"], "PartialObjectMetadataList");
    assert_eq!(list.json["apiVersion"], "meta.k8s.io/v1");
    assert_eq!(list.json["items"][0], expected);
    let table = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";
    assert_eq!(world.get_as(CM, table).ok().json["kind"], "Table");
}

#[test]
fn names_the_type_of_items_only_for_custom_resources() {
    let mut world = World::with_sunjobs();
    world.post(CM, &cm("a")).ok();
    world.post(SUNJOBS, &sunjob("a")).ok();
    let items = world.get(CM).ok().json["items"].clone();
    assert_eq!(
        (items[0].get("kind"), items[0].get("apiVersion")),
        (None, None)
    );
    let items = world.get(SUNJOBS).ok().json["items"].clone();
    assert_eq!(
        (&items[0]["kind"], &items[0]["apiVersion"]),
        (&json!("SunJob"), &json!("sundown.dev/v1"))
    );
}
