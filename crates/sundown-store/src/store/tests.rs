//! The store's invariants (S1, S6, S7 of the reliability notes) and the splices of stored bytes.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use sundown_model::Uid;

use super::*;
use crate::Parts;

fn config_maps() -> Resource {
    Resource::new("", "configmaps")
}

fn secrets() -> Resource {
    Resource::new("", "secrets")
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn key(resource: &Resource, name: &str) -> ObjectKey {
    ObjectKey::namespaced(resource, "default", name)
}

fn body(name: &str, data: &str) -> Body {
    let labels = BTreeMap::from([("app".to_owned(), data.to_owned())]);
    let mut rest = Map::new();
    rest.insert("data".into(), json!({ "value": data }));
    let parts = Parts {
        api_version: "v1",
        kind: "ConfigMap",
        uid: &Uid::from(name),
        labels: &labels,
        metadata: &json!({ "name": name, "labels": labels }),
        rest: &rest,
    };
    Body::encode(&parts).unwrap()
}

fn put(resource: &Resource, name: &str, data: &str) -> Write {
    Write::Put {
        key: key(resource, name),
        body: body(name, data),
    }
}

fn delete(resource: &Resource, name: &str) -> Write {
    Write::Delete {
        key: key(resource, name),
    }
}

fn blind(writes: Vec<Write>) -> Transaction {
    Transaction {
        reads: Vec::new(),
        writes,
    }
}

fn keeping(events_min: usize) -> Store {
    Store::new(History {
        events_min,
        age_max_seconds: 10,
        ..History::default()
    })
}

/// A store in which the first ten revisions are ten states of one object.
fn ten_writes(history_min: usize) -> Store {
    let mut store = keeping(history_min);
    for second in 1..=10 {
        let write = put(&config_maps(), "a", &second.to_string());
        store.commit(&blind(vec![write]), at(second)).unwrap();
    }
    store
}

fn revisions(store: &Store, resource: &Resource, after: u64) -> Result<Vec<u64>, Compacted> {
    let events = store.events_after(resource, Revision::new(after))?;
    Ok(events.map(|event| event.revision.number()).collect())
}

#[test]
fn numbers_every_write_of_a_transaction_consecutively() {
    let mut store = keeping(100);
    let transaction = blind(vec![
        put(&config_maps(), "a", "1"),
        put(&secrets(), "b", "1"),
        delete(&config_maps(), "a"),
    ]);
    let committed = store.commit(&transaction, at(0)).unwrap();
    let numbers: Vec<u64> = committed.writes.iter().map(|(r, _)| r.number()).collect();
    assert_eq!(numbers, [1, 2, 3]);
    assert_eq!(store.revision(), Revision::new(3));
    assert_eq!(store.newest(&config_maps()), Revision::new(3));
    assert_eq!(store.newest(&secrets()), Revision::new(2));
    assert_eq!(store.newest(&Resource::new("", "pods")), Revision::ZERO);
}

#[test]
fn changes_nothing_when_any_read_is_stale() {
    let mut store = ten_writes(100);
    let before = store.clone();
    let transaction = Transaction {
        reads: vec![
            (key(&config_maps(), "free"), None),
            (key(&config_maps(), "a"), Some(Revision::new(9))),
        ],
        writes: vec![put(&config_maps(), "free", "1")],
    };
    let stale = store.commit(&transaction, at(11)).unwrap_err();
    assert_eq!(stale.key, key(&config_maps(), "a"));
    assert_eq!(store.revision(), before.revision());
    assert!(store.get(&key(&config_maps(), "free")).is_none());
    assert_eq!(revisions(&store, &config_maps(), 10), Ok(vec![]));
}

#[test]
fn changes_nothing_when_a_later_write_of_the_transaction_fails() {
    let mut store = ten_writes(100);
    let writes = vec![
        put(&config_maps(), "b", "1"),
        delete(&config_maps(), "missing"),
    ];
    assert!(store.commit(&blind(writes), at(11)).is_err());
    assert_eq!(store.revision(), Revision::new(10));
    assert!(store.get(&key(&config_maps(), "b")).is_none());
}

#[test]
fn refuses_to_create_over_a_key_that_was_taken_meanwhile() {
    let mut store = keeping(100);
    let create = Transaction {
        reads: vec![(key(&config_maps(), "a"), None)],
        writes: vec![put(&config_maps(), "a", "1")],
    };
    assert!(store.commit(&create, at(0)).is_ok());
    assert!(store.commit(&create, at(0)).is_err());
}

#[test]
fn needs_no_revision_for_a_transaction_without_writes() {
    let mut store = ten_writes(100);
    store.commit(&Transaction::default(), at(1_000)).unwrap();
    assert_eq!(store.revision(), Revision::new(10));
    assert_eq!(revisions(&store, &config_maps(), 0).unwrap().len(), 10);
}

#[test]
fn keeps_a_snapshot_as_it_was() {
    let mut store = ten_writes(100);
    let snapshot = store.clone();
    store
        .commit(&blind(vec![delete(&config_maps(), "a")]), at(11))
        .unwrap();
    assert!(store.get(&key(&config_maps(), "a")).is_none());
    let kept = snapshot.get(&key(&config_maps(), "a")).unwrap();
    assert_eq!(kept.revision(), Revision::new(10));
}

#[test]
fn gives_a_lister_exactly_the_later_writes() {
    let mut store = keeping(1_000);
    let mut listed: BTreeMap<ObjectKey, Revision> = BTreeMap::new();
    let mut cursor = Revision::ZERO;
    for round in 0_i64..60 {
        let name = format!("n{}", round % 7);
        let resource = if round % 3 == 0 {
            secrets()
        } else {
            config_maps()
        };
        let is_there = store.get(&key(&resource, &name)).is_some();
        let write = if round % 5 == 4 && is_there {
            delete(&resource, &name)
        } else {
            put(&resource, &name, &round.to_string())
        };
        store.commit(&blind(vec![write]), at(round)).unwrap();
        if round == 20 {
            let objects = store.of(&config_maps());
            listed = objects
                .map(|(key, stored)| (key.clone(), stored.revision()))
                .collect();
            cursor = store.revision();
        }
    }
    for event in store.events_after(&config_maps(), cursor).unwrap() {
        assert!(
            event.revision > cursor,
            "each event is newer than the one before"
        );
        cursor = event.revision;
        let before = listed.get(&event.key).copied();
        assert_eq!(event.prev.as_ref().map(|prev| prev.revision()), before);
        match &event.new {
            Some(new) => listed.insert(event.key.clone(), new.revision()),
            None => listed.remove(&event.key),
        };
    }
    let live: BTreeMap<ObjectKey, Revision> = store
        .of(&config_maps())
        .map(|(key, stored)| (key.clone(), stored.revision()))
        .collect();
    assert_eq!(listed, live);
}

#[test]
fn answers_compacted_and_never_a_gap() {
    let mut store = ten_writes(3);
    store
        .commit(&blind(vec![put(&config_maps(), "a", "11")]), at(100))
        .unwrap();
    // Eleven events, all but one too old, three kept: 9, 10 and 11.
    assert_eq!(revisions(&store, &config_maps(), 8), Ok(vec![9, 10, 11]));
    let compacted = Compacted {
        floor: Revision::new(8),
    };
    assert_eq!(revisions(&store, &config_maps(), 7), Err(compacted));
    assert_eq!(revisions(&store, &config_maps(), 0), Err(compacted));
}

#[test]
fn keeps_young_events_beyond_the_minimum() {
    let store = ten_writes(3);
    // The newest is at second 10 and ten seconds are kept.
    assert_eq!(revisions(&store, &config_maps(), 0).unwrap().len(), 10);
}

#[test]
fn keeps_no_more_bytes_than_it_may_however_young_the_events_are() {
    let bytes_max = 10_000;
    let mut store = Store::new(History {
        bytes_max,
        ..History::default()
    });
    // Stands in the object twice.
    let large = "x".repeat(1_500);
    for _ in 0..10 {
        let writes = vec![put(&config_maps(), "a", &large)];
        store.commit(&blind(writes), at(1)).unwrap();
    }
    assert_eq!(revisions(&store, &config_maps(), 7), Ok(vec![8, 9, 10]));
    assert!(revisions(&store, &config_maps(), 6).is_err());
    // What is larger than all that may be kept is kept until the next write.
    let huge = "x".repeat(2 * bytes_max);
    store
        .commit(&blind(vec![put(&config_maps(), "a", &huge)]), at(1))
        .unwrap();
    assert_eq!(revisions(&store, &config_maps(), 10), Ok(vec![11]));
}

#[test]
fn spares_quiet_resources_when_a_busy_one_is_trimmed() {
    let mut store = keeping(2);
    store
        .commit(&blind(vec![put(&secrets(), "s", "1")]), at(0))
        .unwrap();
    for second in 1..=50 {
        store
            .commit(&blind(vec![put(&config_maps(), "a", "x")]), at(second))
            .unwrap();
    }
    assert_eq!(revisions(&store, &secrets(), 1), Ok(vec![]));
    assert!(revisions(&store, &secrets(), 0).is_err());
    assert!(revisions(&store, &config_maps(), 30).is_err());
}

#[test]
fn rebuilds_an_older_state_from_the_log() {
    let mut store = ten_writes(100);
    let writes = vec![put(&config_maps(), "b", "1"), delete(&config_maps(), "a")];
    store.commit(&blind(writes), at(11)).unwrap();
    let names = |revision: u64| -> Vec<(String, u64)> {
        let objects = store.at(&config_maps(), Revision::new(revision)).unwrap();
        let pairs = objects.iter();
        pairs
            .map(|(key, stored)| (key.name.to_string(), stored.revision().number()))
            .collect()
    };
    assert_eq!(names(0), []);
    assert_eq!(names(4), [("a".into(), 4)]);
    assert_eq!(names(11), [("a".into(), 10), ("b".into(), 11)]);
    assert_eq!(names(12), [("b".into(), 11)]);
}

#[test]
fn scans_one_resource_and_one_namespace() {
    let mut store = keeping(100);
    let in_other = ObjectKey::namespaced(&config_maps(), "other", "z");
    let at_cluster = ObjectKey::cluster(&config_maps(), "c");
    let writes = vec![
        put(&secrets(), "s", "1"),
        put(&config_maps(), "b", "1"),
        put(&config_maps(), "a", "1"),
        Write::Put {
            key: in_other,
            body: body("z", "1"),
        },
        Write::Put {
            key: at_cluster,
            body: body("c", "1"),
        },
    ];
    store.commit(&blind(writes), at(0)).unwrap();
    let of: Vec<_> = store
        .of(&config_maps())
        .map(|(key, _)| &*key.name)
        .collect();
    assert_eq!(of, ["c", "a", "b", "z"]);
    let within = store.within(&config_maps(), &Namespace::from("default"));
    assert_eq!(
        within.map(|(key, _)| &*key.name).collect::<Vec<_>>(),
        ["a", "b"]
    );
}

#[test]
fn stamps_and_splices_without_parsing() {
    let stored = body("a", "x").stamp(Revision::new(7));
    let whole: Value = serde_json::from_slice(stored.json()).unwrap();
    assert_eq!(whole["metadata"]["resourceVersion"], "7");
    assert_eq!(
        (&whole["apiVersion"], &whole["kind"]),
        (&json!("v1"), &json!("ConfigMap"))
    );
    assert_eq!(whole["data"]["value"], "x");
    assert_eq!(stored.label("app"), Some("x"));
    assert_eq!(stored.label("other"), None);
    let metadata: Value = serde_json::from_slice(stored.metadata_json()).unwrap();
    assert_eq!(metadata, whole["metadata"]);
    assert!(stored.content_json().starts_with(b"\"metadata\":{"));

    let later = stored.restamped(Revision::new(12_345));
    let whole: Value = serde_json::from_slice(later.json()).unwrap();
    assert_eq!(whole["metadata"]["resourceVersion"], "12345");
    assert_eq!(later, body("a", "x").stamp(Revision::new(12_345)));
}
