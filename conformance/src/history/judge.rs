//! The nine judgements. Each is a function of the history and can fail on its own.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::{Ack, Change, Connection, Event, Filter, History, Item, Stream};

type Judgement = fn(&History) -> Vec<String>;

/// By the names that etcd gave them.
pub(crate) const JUDGEMENTS: [(&str, Judgement); 9] = [
    ("filter", filter),
    ("ordered", ordered),
    ("unique", unique),
    ("atomic", atomic),
    ("bookmarkable", bookmarkable),
    ("resumable", resumable),
    ("reliable", reliable),
    ("previous state", previous_state),
    ("is created", is_created),
];

/// What every judgement has to say.
pub(crate) fn all(history: &History) -> Vec<(&'static str, String)> {
    JUDGEMENTS
        .iter()
        .flat_map(|(name, judgement)| judgement(history).into_iter().map(|fault| (*name, fault)))
        .collect()
}

/// A write, with what was there before.
struct Step<'a> {
    event: &'a Event,
    before: Option<&'a Value>,
}

impl Step<'_> {
    /// What the write means to a watch: objects enter, change and leave what it asks for.
    fn seen_by(&self, filter: &Filter) -> Option<Change> {
        let was = self.before.is_some_and(|object| filter.matches(object));
        let is = self.event.change != Change::Deleted && filter.matches(&self.event.object);
        match (was, is) {
            (false, true) => Some(Change::Added),
            (true, true) => Some(Change::Modified),
            (true, false) => Some(Change::Deleted),
            (false, false) => None,
        }
    }
}

fn steps(history: &History) -> Vec<Step<'_>> {
    let mut live: BTreeMap<&str, &Value> = BTreeMap::new();
    let mut steps = Vec::new();
    for event in &history.log {
        let name = name_of(&event.object);
        let before = match event.change {
            Change::Deleted => live.remove(name),
            Change::Added | Change::Modified => live.insert(name, &event.object),
        };
        steps.push(Step { event, before });
    }
    steps
}

fn name_of(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap_or("")
}

fn events(connection: &Connection) -> impl Iterator<Item = &Event> {
    connection.items.iter().filter_map(|item| match item {
        Item::Event(event) => Some(event),
        Item::Bookmark(_) => None,
    })
}

fn live_events(stream: &Stream) -> impl Iterator<Item = &Event> {
    stream.connections.iter().flat_map(events)
}

/// A watch is told only of objects that it asked for.
fn filter(history: &History) -> Vec<String> {
    let mut faults = Vec::new();
    for stream in &history.streams {
        let initial = stream.connections.iter().flat_map(|it| &it.initial);
        for event in initial.chain(live_events(stream)) {
            if !stream.filter.matches(&event.object) {
                let name = name_of(&event.object);
                faults.push(format!("{:?} was told of {name}", stream.filter));
            }
        }
    }
    faults
}

/// Revisions only grow, over all connections of a watch.
fn ordered(history: &History) -> Vec<String> {
    let mut faults = Vec::new();
    for stream in &history.streams {
        let mut last = 0;
        for event in live_events(stream) {
            if event.revision < last {
                faults.push(format!("{} came after {last}", event.revision));
            }
            last = event.revision;
        }
    }
    faults
}

/// No event comes twice.
fn unique(history: &History) -> Vec<String> {
    let mut faults = Vec::new();
    for stream in &history.streams {
        let mut seen = BTreeSet::new();
        for event in live_events(stream) {
            if !seen.insert((event.revision, name_of(&event.object))) {
                faults.push(format!("{} came twice", event.revision));
            }
        }
    }
    faults
}

/// One write is one revision: none is shared, and none is seen in part.
fn atomic(history: &History) -> Vec<String> {
    let mut faults = Vec::new();
    for pair in history.log.windows(2) {
        if pair[0].revision == pair[1].revision {
            faults.push(format!("{} is two writes", pair[0].revision));
        }
    }
    let known: BTreeSet<u64> = history.log.iter().map(|event| event.revision).collect();
    for stream in &history.streams {
        for event in live_events(stream) {
            if !known.contains(&event.revision) {
                faults.push(format!("{} was never written", event.revision));
            }
        }
    }
    faults
}

/// After a bookmark nothing comes that is not newer.
fn bookmarkable(history: &History) -> Vec<String> {
    let mut faults = Vec::new();
    for connection in history.streams.iter().flat_map(|it| &it.connections) {
        let mut mark = 0;
        for item in &connection.items {
            match item {
                Item::Bookmark(revision) if *revision < mark => {
                    faults.push(format!("bookmark {revision} came after {mark}"));
                }
                Item::Bookmark(revision) => mark = *revision,
                Item::Event(event) if event.revision <= mark => {
                    faults.push(format!("{} came after bookmark {mark}", event.revision));
                }
                Item::Event(_) => {}
            }
        }
    }
    faults
}

/// A connection begins with the first event after the revision that it asked for.
fn resumable(history: &History) -> Vec<String> {
    let steps = steps(history);
    let mut faults = Vec::new();
    for stream in &history.streams {
        for connection in &stream.connections {
            let (Some(after), Some(first)) = (connection.after, events(connection).next()) else {
                continue;
            };
            let expected = steps
                .iter()
                .find(|step| step.event.revision > after && step.seen_by(&stream.filter).is_some());
            let expected = expected.map(|step| step.event.revision);
            if expected != Some(first.revision) {
                let found = first.revision;
                faults.push(format!("after {after} came {found}, not {expected:?}"));
            }
        }
    }
    faults
}

/// Every write that was acknowledged is in the log as it was answered, nothing else is, and every
/// watch saw all of what it asked for.
fn reliable(history: &History) -> Vec<String> {
    let mut faults = unacknowledged(history);
    let steps = steps(history);
    for stream in &history.streams {
        let (Some(first), Some(last)) = (
            stream.connections.first().and_then(Connection::start),
            live_events(stream).last(),
        ) else {
            faults.push(format!("{:?} saw nothing", stream.filter));
            continue;
        };
        let expected: Vec<u64> = steps
            .iter()
            .filter(|step| step.event.revision > first && step.event.revision <= last.revision)
            .filter(|step| step.seen_by(&stream.filter).is_some())
            .map(|step| step.event.revision)
            .collect();
        let seen: BTreeSet<u64> = live_events(stream).map(|event| event.revision).collect();
        for missed in expected.iter().filter(|revision| !seen.contains(revision)) {
            faults.push(format!("{:?} missed {missed}", stream.filter));
        }
        faults.extend(wrong_present(&steps, stream));
    }
    faults
}

impl Connection {
    /// The revision that it starts after.
    fn start(&self) -> Option<u64> {
        self.after.or_else(|| {
            self.items.iter().find_map(|item| match item {
                Item::Bookmark(revision) => Some(*revision),
                Item::Event(_) => None,
            })
        })
    }
}

fn unacknowledged(history: &History) -> Vec<String> {
    let mut faults = Vec::new();
    let told = |object: &Value| object["metadata"]["resourceVersion"].clone();
    let uid = |object: &Value| object["metadata"]["uid"].as_str().map(str::to_owned);
    let mut written = BTreeMap::new();
    let mut deleted = BTreeSet::new();
    for ack in &history.acks {
        match ack {
            Ack::Written(object) => {
                written.insert(told(object).as_str().unwrap_or("").to_owned(), object);
            }
            Ack::Deleted(uid) => {
                deleted.insert(uid.clone());
            }
        }
    }
    for event in &history.log {
        match event.change {
            Change::Added | Change::Modified => {
                if written.remove(&event.revision.to_string()) != Some(&event.object) {
                    faults.push(format!("{} is not what was acknowledged", event.revision));
                }
            }
            Change::Deleted => {
                if !uid(&event.object).is_some_and(|uid| deleted.remove(&uid)) {
                    faults.push(format!("{} deletes what nobody deleted", event.revision));
                }
            }
        }
    }
    faults.extend(written.keys().map(|lost| format!("write {lost} is lost")));
    faults.extend(
        deleted
            .iter()
            .map(|lost| format!("the delete of {lost} is lost")),
    );
    faults
}

/// The present state that a connection began with, against the log.
fn wrong_present(steps: &[Step<'_>], stream: &Stream) -> Vec<String> {
    let mut faults = Vec::new();
    for connection in &stream.connections {
        let (None, Some(at)) = (connection.after, connection.start()) else {
            continue;
        };
        let mut live: BTreeMap<&str, &Value> = BTreeMap::new();
        for step in steps.iter().filter(|step| step.event.revision <= at) {
            let name = name_of(&step.event.object);
            match step.event.change {
                Change::Deleted => live.remove(name),
                Change::Added | Change::Modified => live.insert(name, &step.event.object),
            };
        }
        live.retain(|_, object| stream.filter.matches(object));
        let sent: BTreeMap<&str, &Value> = connection
            .initial
            .iter()
            .map(|event| (name_of(&event.object), &event.object))
            .collect();
        if sent != live {
            faults.push(format!("the state at {at} was told wrong"));
        }
    }
    faults
}

/// What leaves is told as it last was, with the revision at which it left.
fn previous_state(history: &History) -> Vec<String> {
    let steps: BTreeMap<u64, Step<'_>> = steps(history)
        .into_iter()
        .map(|step| (step.event.revision, step))
        .collect();
    let mut faults = Vec::new();
    let watched = history.streams.iter().flat_map(live_events);
    for event in history.log.iter().chain(watched) {
        if event.change != Change::Deleted {
            continue;
        }
        let before = steps.get(&event.revision).and_then(|step| step.before);
        let mut expected = before.cloned().unwrap_or_default();
        if !expected.is_null() {
            expected["metadata"]["resourceVersion"] = event.revision.to_string().into();
        }
        if event.object != expected {
            let name = name_of(&event.object);
            faults.push(format!("{name} left at {} as it never was", event.revision));
        }
    }
    faults
}

/// What enters is added, and nothing else is.
fn is_created(history: &History) -> Vec<String> {
    let steps: BTreeMap<u64, Step<'_>> = steps(history)
        .into_iter()
        .map(|step| (step.event.revision, step))
        .collect();
    let mut faults = Vec::new();
    for stream in &history.streams {
        for event in live_events(stream) {
            let expected = steps
                .get(&event.revision)
                .and_then(|step| step.seen_by(&stream.filter));
            if expected != Some(event.change) {
                faults.push(format!(
                    "{} is {:?} to {:?}, not {expected:?}",
                    event.revision, event.change, stream.filter
                ));
            }
        }
    }
    faults
}

#[cfg(test)]
mod tests;
