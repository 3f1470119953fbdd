//! Each judgement finds its own fault in a history that was right before.

use serde_json::{Value, json};

use super::super::{Ack, Change, Connection, Event, Filter, History, Item, Stream};
use super::all;

fn object(name: &str, revision: u64, role: &str) -> Value {
    json!({ "metadata": {
        "name": name, "uid": format!("u-{name}"), "resourceVersion": revision.to_string(),
        "labels": { "role": role },
    } })
}

fn event(change: Change, name: &str, revision: u64, role: &str) -> Event {
    let object = object(name, revision, role);
    Event {
        change,
        revision,
        object,
    }
}

/// `a` is made, changes its role, comes back and is deleted; `b` stays.
fn right() -> History {
    use Change::{Added, Deleted, Modified};
    let log = vec![
        event(Added, "a", 2, "x"),
        event(Added, "b", 3, "x"),
        event(Modified, "a", 4, "y"),
        event(Modified, "a", 5, "x"),
        event(Deleted, "a", 6, "x"),
        event(Modified, "b", 7, "x"),
    ];
    let mut acks: Vec<Ack> = log
        .iter()
        .filter(|event| event.change != Deleted)
        .map(|event| Ack::Written(event.object.clone()))
        .collect();
    acks.push(Ack::Deleted("u-a".into()));
    let cut = Stream {
        filter: Filter::Role("x"),
        connections: vec![
            Connection {
                after: Some(1),
                initial: Vec::new(),
                items: vec![
                    Item::Event(log[0].clone()),
                    Item::Event(log[1].clone()),
                    Item::Event(event(Deleted, "a", 4, "x")),
                ],
            },
            Connection {
                after: Some(4),
                initial: Vec::new(),
                items: vec![
                    Item::Event(event(Added, "a", 5, "x")),
                    Item::Event(log[4].clone()),
                    Item::Event(log[5].clone()),
                ],
            },
        ],
    };
    let present = Stream {
        filter: Filter::All,
        connections: vec![Connection {
            after: None,
            initial: vec![log[2].clone(), log[1].clone()],
            items: vec![
                Item::Bookmark(4),
                Item::Event(log[3].clone()),
                Item::Event(log[4].clone()),
                Item::Event(log[5].clone()),
            ],
        }],
    };
    History {
        acks,
        log,
        streams: vec![cut, present],
    }
}

fn names(history: &History) -> Vec<&'static str> {
    let mut names: Vec<_> = all(history).into_iter().map(|(name, _)| name).collect();
    names.dedup();
    names
}

fn broken(change: impl FnOnce(&mut History)) -> Vec<&'static str> {
    let mut history = right();
    change(&mut history);
    names(&history)
}

#[test]
fn a_right_history_passes() {
    assert_eq!(all(&right()), []);
}

#[test]
fn an_object_that_nobody_asked_for_is_found() {
    let found = broken(|history| {
        let foreign = Item::Event(event(Change::Modified, "a", 4, "y"));
        history.streams[0].connections[0].items[2] = foreign;
    });
    assert!(found.contains(&"filter"), "{found:?}");
}

#[test]
fn events_out_of_order_are_found() {
    let found = broken(|history| history.streams[0].connections[0].items.swap(0, 1));
    assert!(found.contains(&"ordered"), "{found:?}");
}

#[test]
fn an_event_that_comes_twice_is_found() {
    let found = broken(|history| {
        let twice = history.streams[0].connections[0].items[2].clone();
        history.streams[0].connections[1].items.insert(0, twice);
    });
    assert!(found.contains(&"unique"), "{found:?}");
}

#[test]
fn two_writes_of_one_revision_are_found() {
    let found = broken(|history| history.log[1].revision = 2);
    assert!(found.contains(&"atomic"), "{found:?}");
}

#[test]
fn an_event_that_a_bookmark_had_covered_is_found() {
    let found = broken(|history| history.streams[1].connections[0].items[0] = Item::Bookmark(5));
    assert!(found.contains(&"bookmarkable"), "{found:?}");
}

#[test]
fn an_event_that_a_new_connection_skips_is_found() {
    let found = broken(|history| {
        history.streams[0].connections[1].items.remove(0);
    });
    assert!(found.contains(&"resumable"), "{found:?}");
    assert!(found.contains(&"reliable"), "{found:?}");
}

#[test]
fn a_lost_write_and_an_event_that_never_came_are_found() {
    let found = broken(|history| history.acks.push(Ack::Written(object("c", 9, "x"))));
    assert_eq!(found, ["reliable"]);
    let found = broken(|history| {
        history.streams[1].connections[0].items.remove(2);
    });
    assert_eq!(found, ["reliable"]);
    let found = broken(|history| {
        history.streams[1].connections[0].initial.pop();
    });
    assert_eq!(found, ["reliable"], "the present state lacks an object");
}

#[test]
fn an_object_that_leaves_as_it_never_was_is_found() {
    let found = broken(|history| history.log[4].object["metadata"]["labels"]["role"] = json!("y"));
    assert!(found.contains(&"previous state"), "{found:?}");
}

#[test]
fn an_object_that_enters_as_modified_is_found() {
    let found = broken(|history| {
        let entered = Item::Event(event(Change::Modified, "a", 5, "x"));
        history.streams[0].connections[1].items[0] = entered;
    });
    assert_eq!(found, ["is created"]);
}
