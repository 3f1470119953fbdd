//! Writers and watchers at work on one namespace, and what they were told.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use fastrand::Rng;
use http_body_util::BodyExt;
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::{Ack, Change, Connection, Event, Filter, History, Item, Stream};

const WRITERS: u64 = 6;
const WRITES: usize = 40;
const NAMES: [&str; 6] = ["k0", "k1", "k2", "k3", "k4", "k5"];
const ROLES: [&str; 3] = ["a", "b", "c"];
/// Whatever hangs ends here.
const TIME_MAX: Duration = Duration::from_mins(2);

/// What a watcher asks for and how it behaves.
struct Plan {
    filter: Filter,
    /// Asks for the present state instead of what came after a revision.
    begins_with_state: bool,
    /// Hangs up after so many events, and comes back.
    cuts: bool,
}

const PLANS: [Plan; 7] = [
    Plan::new(Filter::All, false, false),
    Plan::new(Filter::All, false, true),
    Plan::new(Filter::All, true, true),
    Plan::new(Filter::Role("a"), false, true),
    Plan::new(Filter::Role("b"), false, false),
    Plan::new(Filter::Role("b"), true, true),
    Plan::new(Filter::Name("k0"), false, true),
];

impl Plan {
    const fn new(filter: Filter, begins_with_state: bool, cuts: bool) -> Self {
        Self {
            filter,
            begins_with_state,
            cuts,
        }
    }

    /// Whose last write ends the watch.
    fn last_name(&self) -> &'static str {
        match self.filter {
            Filter::Role("b") => "k1",
            Filter::All | Filter::Role(_) | Filter::Name(_) => "k0",
        }
    }

    fn query(&self) -> String {
        match &self.filter {
            Filter::All => String::new(),
            Filter::Role(role) => format!("&labelSelector=role%3D{role}"),
            Filter::Name(name) => format!("&fieldSelector=metadata.name%3D{name}"),
        }
    }
}

/// Runs it all; what order things happen in is up to the server.
pub(super) async fn record(client: &Client, seed: u64) -> Result<History> {
    tokio::time::timeout(TIME_MAX, at_work(client, seed))
        .await
        .context("writers and watchers did not come to an end")?
}

async fn at_work(client: &Client, seed: u64) -> Result<History> {
    let body = json!({ "metadata": { "generateName": "history-" } });
    let (_, namespace) = send(client, "POST", "/api/v1/namespaces", &body).await?;
    let namespace = text(&namespace, "/metadata/name")?;
    let path: Arc<str> = format!("/api/v1/namespaces/{namespace}/configmaps").into();
    let (_, list) = send(client, "GET", &path, &Value::Null).await?;
    let start: u64 = text(&list, "/metadata/resourceVersion")?.parse()?;
    let mut watchers = JoinSet::new();
    for (index, plan) in (0..).zip(PLANS) {
        let (client, path) = (client.clone(), Arc::clone(&path));
        let rng = Rng::with_seed(seed ^ (1000 + index));
        watchers.spawn(async move {
            let stream = watch(&client, &path, plan, start, rng).await?;
            anyhow::Ok((index, stream))
        });
    }
    let mut writers = JoinSet::new();
    for index in 0..WRITERS {
        let (client, path) = (client.clone(), Arc::clone(&path));
        let rng = Rng::with_seed(seed ^ (2000 + index));
        writers.spawn(async move { write(&client, &path, rng).await });
    }
    let mut history = History::default();
    while let Some(acks) = writers.join_next().await {
        history.acks.extend(acks??);
    }
    for (name, role) in [("k1", "b"), ("k0", "a")] {
        let ack = write_last(client, &path, name, role).await?;
        history.acks.push(ack);
    }
    let mut streams: BTreeMap<u64, Stream> = BTreeMap::new();
    while let Some(stream) = watchers.join_next().await {
        streams.extend([stream??]);
    }
    history.streams = streams.into_values().collect();
    // The first one watched everything and was never cut.
    let whole = history.streams.remove(0);
    let items = whole.connections.into_iter().flat_map(|it| it.items);
    history.log = items
        .filter_map(|item| match item {
            Item::Event(event) => Some(event),
            Item::Bookmark(_) => None,
        })
        .collect();
    send(
        client,
        "DELETE",
        &format!("/api/v1/namespaces/{namespace}"),
        &Value::Null,
    )
    .await?;
    Ok(history)
}

async fn write(client: &Client, path: &str, mut rng: Rng) -> Result<Vec<Ack>> {
    let mut acks = Vec::new();
    for round in 0..WRITES {
        let name = NAMES[rng.usize(..NAMES.len())];
        let role = ROLES[rng.usize(..ROLES.len())];
        let at = format!("{path}/{name}");
        let body = json!({
            "metadata": { "name": name, "labels": { "role": role } },
            "data": { "n": rng.u32(..).to_string(), "round": round.to_string() },
        });
        let (code, answer) = match rng.u8(..8) {
            0..3 => send(client, "POST", path, &body).await?,
            3..7 => send(client, "PATCH", &at, &body).await?,
            _ => send(client, "DELETE", &at, &Value::Null).await?,
        };
        match code {
            200 | 201 if answer["kind"] == "Status" => {
                acks.push(Ack::Deleted(text(&answer, "/details/uid")?));
            }
            200 | 201 => acks.push(Ack::Written(answer)),
            // Not there, there already, changed too often in between.
            404 | 409 => {}
            _ => bail!("{code}: {answer}"),
        }
    }
    Ok(acks)
}

async fn write_last(client: &Client, path: &str, name: &str, role: &str) -> Result<Ack> {
    let body = json!({
        "metadata": { "name": name, "labels": { "role": role } }, "data": { "last": "true" },
    });
    let (code, answer) = send(client, "PATCH", &format!("{path}/{name}"), &body).await?;
    if code == 200 {
        return Ok(Ack::Written(answer));
    }
    let (code, answer) = send(client, "POST", path, &body).await?;
    ensure!(code == 201, "{code}: {answer}");
    Ok(Ack::Written(answer))
}

async fn watch(
    client: &Client,
    path: &str,
    plan: Plan,
    start: u64,
    mut rng: Rng,
) -> Result<Stream> {
    let mut after = (!plan.begins_with_state).then_some(start);
    let mut connections = Vec::new();
    loop {
        let events_max = if plan.cuts {
            1 + rng.usize(..20)
        } else {
            usize::MAX
        };
        let connection = connect(client, path, &plan, after, events_max).await?;
        let (mut last, mut is_over) = (None, false);
        for item in &connection.items {
            last = Some(match item {
                Item::Event(event) => {
                    is_over |= is_last(&event.object, plan.last_name());
                    event.revision
                }
                Item::Bookmark(revision) => *revision,
            });
        }
        is_over |= connection
            .initial
            .iter()
            .any(|it| is_last(&it.object, plan.last_name()));
        after = last.or(after);
        connections.push(connection);
        if is_over {
            let filter = plan.filter;
            return Ok(Stream {
                filter,
                connections,
            });
        }
    }
}

async fn connect(
    client: &Client,
    path: &str,
    plan: &Plan,
    after: Option<u64>,
    events_max: usize,
) -> Result<Connection> {
    let from = match after {
        Some(revision) => format!("&resourceVersion={revision}"),
        None => "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan".into(),
    };
    let uri = format!(
        "{path}?watch=1&allowWatchBookmarks=true{from}{}",
        plan.query()
    );
    let request = http::Request::get(uri).body(Body::empty())?;
    let response = client.send(request).await?;
    ensure!(
        response.status() == 200,
        "a watch was refused: {response:?}"
    );
    let mut body = response.into_body();
    let mut connection = Connection {
        after,
        ..Connection::default()
    };
    let mut is_initial = after.is_none();
    let mut bytes: Vec<u8> = Vec::new();
    let mut count = 0;
    while let Some(frame) = body.frame().await {
        if let Ok(data) = frame?.into_data() {
            bytes.extend_from_slice(&data);
        }
        while let Some(end) = bytes.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = bytes.drain(..=end).collect();
            let line: Value = serde_json::from_slice(&line).context("a line is no JSON")?;
            let item = item(&line)?;
            match item {
                Item::Event(event) if is_initial => connection.initial.push(event),
                item => {
                    is_initial = false;
                    let is_over = matches!(&item, Item::Event(event)
                        if is_last(&event.object, plan.last_name()));
                    count += usize::from(matches!(item, Item::Event(_)));
                    connection.items.push(item);
                    if is_over || count >= events_max {
                        return Ok(connection);
                    }
                }
            }
        }
    }
    Ok(connection)
}

fn item(line: &Value) -> Result<Item> {
    let object = line["object"].clone();
    let revision = text(&object, "/metadata/resourceVersion")
        .with_context(|| format!("a watch ended with {line}"))?;
    let revision = revision.parse()?;
    let change = match line["type"].as_str() {
        Some("ADDED") => Change::Added,
        Some("MODIFIED") => Change::Modified,
        Some("DELETED") => Change::Deleted,
        Some("BOOKMARK") => return Ok(Item::Bookmark(revision)),
        _ => bail!("an event of another type: {line}"),
    };
    Ok(Item::Event(Event {
        change,
        revision,
        object,
    }))
}

fn is_last(object: &Value, name: &str) -> bool {
    object["metadata"]["name"] == name && object["data"]["last"] == "true"
}

async fn send(client: &Client, method: &str, path: &str, body: &Value) -> Result<(u16, Value)> {
    let media = match method {
        "PATCH" => "application/merge-patch+json",
        _ => "application/json",
    };
    let bytes = if body.is_null() {
        Vec::new()
    } else {
        body.to_string().into_bytes()
    };
    let request = http::Request::builder()
        .method(method)
        .uri(path)
        .header("content-type", media)
        .body(Body::from(bytes))?;
    let response = client.send(request).await?;
    let code = response.status().as_u16();
    let bytes = response.into_body().collect().await?.to_bytes();
    let answer = serde_json::from_slice(&bytes).context("an answer is no JSON")?;
    Ok((code, answer))
}

fn text(value: &Value, pointer: &str) -> Result<String> {
    let text = value.pointer(pointer).and_then(Value::as_str);
    Ok(text
        .with_context(|| format!("{pointer} is missing in {value}"))?
        .to_owned())
}
