//! Watches: what is sent, in which order, with which revision, and how they end.

use serde_json::{Value, json};
use sundown_api::Config;
use sundown_model::Resource;
use sundown_store::History;

use crate::world::{CM, PARTIAL, PODS, SUNJOBS, World, cm, pod, sunjob};

fn labelled(name: &str, app: &str) -> Value {
    let mut body = cm(name);
    body["metadata"]["labels"] = json!({ "app": app });
    body
}

#[test]
fn begins_with_the_present_state() {
    let mut world = World::new();
    world.post(CM, &cm("a")).ok();
    for query in ["watch=1", "watch=true&resourceVersion=0"] {
        let mut watch = world.watch(&format!("{CM}?{query}"));
        assert_eq!(world.seen(&mut watch), ["ADDED a"], "{query}");
        assert_eq!(world.seen(&mut watch), Vec::<String>::new());
    }
    let mut watch = world.watch(&format!("{CM}?watch=1&allowWatchBookmarks=true"));
    world.post(CM, &cm("b")).ok();
    let (events, _) = world.poll(&mut watch);
    let end = events.last().unwrap();
    assert_eq!(end["type"], "BOOKMARK");
    assert_eq!(
        end["object"]["metadata"]["annotations"],
        json!({ "k8s.io/initial-events-end": "true" })
    );
    assert_eq!(
        end["object"]["metadata"]["resourceVersion"],
        world.server.revision().to_string()
    );
    assert_eq!(
        (&end["object"]["kind"], &end["object"]["apiVersion"]),
        (&json!("ConfigMap"), &json!("v1"))
    );
}

#[test]
fn streams_lists_with_send_initial_events() {
    let mut world = World::new();
    world.post(CM, &cm("a")).ok();
    let query =
        "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
    let mut watch = world.watch(&format!("{CM}?{query}"));
    assert_eq!(world.seen(&mut watch), ["ADDED a", "BOOKMARK -"]);
    let future = world.server.revision().number() + 1;
    let mut later = world.watch(&format!("{CM}?{query}&resourceVersion={future}"));
    assert_eq!(world.seen(&mut later), Vec::<String>::new());
    world.delete(&format!("{CM}/a"), &Value::Null).ok();
    assert_eq!(
        world.seen(&mut later),
        ["BOOKMARK -"],
        "no DELETED before the end bookmark"
    );
    let none = "watch=1&sendInitialEvents=false&resourceVersionMatch=NotOlderThan";
    world.post(CM, &cm("b")).ok();
    let mut watch = world.watch(&format!("{CM}?{none}"));
    world.post(CM, &cm("c")).ok();
    assert_eq!(world.seen(&mut watch), ["ADDED c"]);
    for wrong in [
        "sendInitialEvents=true",
        "resourceVersionMatch=NotOlderThan",
    ] {
        assert_eq!(
            world.get(&format!("{CM}?watch=1&{wrong}")).code,
            422,
            "{wrong}"
        );
    }
}

#[test]
fn sends_everything_after_a_revision_in_order() {
    let mut world = World::new();
    world.post(CM, &cm("a")).ok();
    let rv = world.get(CM).rv();
    world
        .merge(&format!("{CM}/a"), &json!({ "data": { "x": "1" } }))
        .ok();
    world.post(PODS, &pod("p")).ok();
    world.post(CM, &cm("b")).ok();
    world.delete(&format!("{CM}/a"), &Value::Null).ok();
    let mut watch = world.watch(&format!("{CM}?watch=1&resourceVersion={rv}"));
    let (events, ended) = world.poll(&mut watch);
    let types: Vec<&str> = events
        .iter()
        .filter_map(|event| event["type"].as_str())
        .collect();
    assert_eq!(
        (types, ended),
        (vec!["MODIFIED", "ADDED", "DELETED"], false)
    );
    let revisions: Vec<u64> = events
        .iter()
        .map(|event| {
            event["object"]["metadata"]["resourceVersion"]
                .as_str()
                .unwrap()
                .parse()
                .unwrap()
        })
        .collect();
    assert!(revisions.is_sorted_by(|a, b| a < b), "{revisions:?}");
    // The DELETED object is the last state with the revision of the deletion.
    assert_eq!(revisions[2], world.server.revision().number());
    assert_eq!(events[2]["object"]["data"], json!({ "x": "1" }));
}

#[test]
fn stays_silent_until_a_future_revision() {
    let mut world = World::new();
    let future = world.server.revision().number() + 2;
    let query = format!("{CM}?watch=1&resourceVersion={future}&allowWatchBookmarks=1");
    let mut watch = world.watch(&query);
    world.pass(61);
    assert_eq!(world.seen(&mut watch), Vec::<String>::new());
    for name in ["a", "b", "c"] {
        world.post(CM, &cm(name)).ok();
    }
    let seen = world.seen(&mut watch);
    assert_eq!(
        seen.first().map(String::as_str),
        Some("ADDED c"),
        "{seen:?}"
    );
}

#[test]
fn ends_in_the_stream_when_history_is_gone() {
    let history = History {
        events_min: 2,
        age_max_seconds: 10,
        ..History::default()
    };
    let mut world = World::with(Config {
        history,
        ..Config::default()
    });
    for name in ["a", "b", "c", "d"] {
        world.pass(100);
        world.post(CM, &cm(name)).ok();
    }
    // The two newest events are kept.
    let floor = world.server.revision().number() - 2;
    let mut watch = world.watch(&format!("{CM}?watch=1&resourceVersion=1"));
    let (events, ended) = world.poll(&mut watch);
    assert!(ended);
    assert_eq!(events.len(), 1);
    assert_eq!(events[0]["type"], "ERROR");
    let status = &events[0]["object"];
    assert_eq!(
        (&status["code"], &status["reason"]),
        (&json!(410), &json!("Expired"))
    );
    let message = format!("too old resource version: 1 ({floor})");
    assert_eq!(status["message"], message);
    assert_eq!(world.poll(&mut watch), (vec![], true), "and it stays ended");
    assert_eq!(watch.wake_at(), None);
    let mut watch = world.watch(&format!("{CM}?watch=1&resourceVersion={floor}"));
    assert_eq!(world.seen(&mut watch), ["ADDED c", "ADDED d"]);
}

#[test]
fn turns_changes_of_selection_into_coming_and_going() {
    let mut world = World::new();
    let rv = world.get(CM).rv();
    let query = format!("watch=1&resourceVersion={rv}&labelSelector=app=x");
    let mut watch = world.watch(&format!("{CM}?{query}"));
    world.post(CM, &labelled("a", "y")).ok();
    assert_eq!(world.seen(&mut watch), Vec::<String>::new());
    let relabel = |app: &str| json!({ "metadata": { "labels": { "app": app } } });
    world.merge(&format!("{CM}/a"), &relabel("x")).ok();
    assert_eq!(world.seen(&mut watch), ["ADDED a"]);
    world
        .merge(&format!("{CM}/a"), &json!({ "data": { "k": "v" } }))
        .ok();
    assert_eq!(world.seen(&mut watch), ["MODIFIED a"]);
    let left = world.merge(&format!("{CM}/a"), &relabel("z")).ok();
    let (events, _) = world.poll(&mut watch);
    assert_eq!(events[0]["type"], "DELETED");
    let object = &events[0]["object"];
    assert_eq!(
        object["metadata"]["labels"]["app"], "x",
        "the previous state"
    );
    assert_eq!(
        object["metadata"]["resourceVersion"],
        left.rv().as_str(),
        "with this revision"
    );
    world.delete(&format!("{CM}/a"), &Value::Null).ok();
    assert_eq!(world.seen(&mut watch), Vec::<String>::new());
}

#[test]
fn watches_one_namespace_or_one_object() {
    let mut world = World::new();
    let rv = world.get(CM).rv();
    let mut all = world.watch(&format!("/api/v1/configmaps?watch=1&resourceVersion={rv}"));
    let mut one = world.watch(&format!(
        "{CM}?watch=1&resourceVersion={rv}&fieldSelector=metadata.name=a"
    ));
    let mut inside = world.watch(&format!("{CM}?watch=1&resourceVersion={rv}"));
    world.post(CM, &cm("a")).ok();
    world.post(CM, &cm("b")).ok();
    world
        .post("/api/v1/namespaces/kube-system/configmaps", &cm("a"))
        .ok();
    assert_eq!(world.seen(&mut all), ["ADDED a", "ADDED b", "ADDED a"]);
    assert_eq!(world.seen(&mut one), ["ADDED a"]);
    let named = world.get(&format!("{CM}/a?watch=1&resourceVersion={rv}"));
    assert_eq!(named.json["kind"], "ConfigMap", "one object is only read");
    assert_eq!(world.seen(&mut inside), ["ADDED a", "ADDED b"]);
}

#[test]
fn bookmarks_every_minute_and_before_the_end() {
    let mut world = World::new();
    let rv = world.get(CM).rv();
    let query =
        format!("{CM}?watch=1&resourceVersion={rv}&allowWatchBookmarks=true&timeoutSeconds=100");
    let start = world.now;
    let mut watch = world.watch(&query);
    let after = |seconds: i64| Some(start + jiff::SignedDuration::from_secs(seconds));
    assert_eq!(watch.wake_at(), after(60));
    world.pass(59);
    assert_eq!(world.seen(&mut watch), Vec::<String>::new());
    world.post(PODS, &pod("p")).ok();
    world.pass(1);
    let (events, ended) = world.poll(&mut watch);
    assert_eq!((events.len(), ended), (1, false));
    let revision = &events[0]["object"]["metadata"]["resourceVersion"];
    assert_eq!(
        revision,
        &json!(world.server.revision().to_string()),
        "the store's revision"
    );
    assert_eq!(events[0]["object"]["metadata"].get("annotations"), None);
    assert_eq!(watch.wake_at(), after(98));
    world.pass(38);
    assert_eq!(world.seen(&mut watch), ["BOOKMARK -"]);
    assert_eq!(watch.wake_at(), after(100));
    world.pass(2);
    assert_eq!(world.poll(&mut watch), (vec![], true));
}

#[test]
fn ends_by_itself_after_half_an_hour_to_an_hour() {
    let mut world = World::new();
    let start = world.now;
    let mut watch = world.watch(&format!("{CM}?watch=1"));
    let seconds = watch.wake_at().unwrap().as_second() - start.as_second();
    assert!((1800..3600).contains(&seconds), "{seconds}");
    world.pass(seconds - 1);
    assert!(!world.poll(&mut watch).1);
    world.pass(1);
    assert!(world.poll(&mut watch).1);
}

#[test]
fn sends_metadata_only_when_asked() {
    let mut world = World::new();
    let mut watch = world.watch_as(&format!("{CM}?watch=1&allowWatchBookmarks=1"), PARTIAL);
    let created = world.post(CM, &cm("a")).ok();
    let (events, _) = world.poll(&mut watch);
    let object = json!({
        "kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1",
        "metadata": created.json["metadata"],
    });
    assert_eq!(events[0], json!({ "type": "ADDED", "object": object }));
    assert_eq!(events[1]["object"]["kind"], "PartialObjectMetadata");
}

#[test]
fn closes_when_its_type_is_no_longer_served() {
    let mut world = World::with_sunjobs();
    world.post(SUNJOBS, &sunjob("a")).ok();
    let mut watch = world.watch(&format!("{SUNJOBS}?watch=1"));
    assert_eq!(watch.resource(), &Resource::new("sundown.dev", "sunjobs"));
    assert_eq!(world.seen(&mut watch), ["ADDED a"]);
    world
        .delete(
            &format!("{}/sunjobs.sundown.dev", crate::world::CRDS),
            &Value::Null,
        )
        .ok();
    assert!(
        !world.poll(&mut watch).1,
        "instances can still be seen going"
    );
    let released = json!({ "metadata": { "finalizers": null } });
    let definition = format!("{}/sunjobs.sundown.dev", crate::world::CRDS);
    world.merge(&definition, &released).ok();
    assert!(world.poll(&mut watch).1);
}

#[test]
fn forks_as_a_value() {
    let mut world = World::new();
    let mut watch = world.watch(&format!("{CM}?watch=1"));
    world.poll(&mut watch);
    let mut fork = watch.clone();
    world.post(CM, &cm("a")).ok();
    assert_eq!(world.seen(&mut watch), ["ADDED a"]);
    assert_eq!(world.seen(&mut fork), ["ADDED a"]);
}

#[test]
fn tells_a_slow_watcher_in_parts_and_leaves_out_nothing() {
    let mut world = World::new();
    let rv = world.get(CM).rv();
    let query = format!("{CM}?watch=1&resourceVersion={rv}&allowWatchBookmarks=true");
    let mut watch = world.watch(&query);
    for index in 0..600 {
        world.post(CM, &cm(&format!("a{index}"))).ok();
    }
    world.pass(60);
    let mut parts = Vec::new();
    loop {
        let part = world.seen(&mut watch);
        if part.is_empty() {
            break;
        }
        parts.push(part);
    }
    assert!(parts.len() > 1 && parts.iter().all(|part| part.len() <= 257));
    let lines: Vec<String> = parts.concat();
    assert_eq!(lines.len(), 601);
    assert!(lines[..600].iter().all(|line| line.starts_with("ADDED")));
    assert!(lines[600].starts_with("BOOKMARK"), "only when all was told");
}
