//! A recorded history of writes and watches, and nine judgements on it.
//!
//! The judgements are those that etcd's robustness tests pass on watches. They know nothing of a
//! server: the same ones judge ours and the real kube-apiserver.

mod judge;
mod record;

use anyhow::{Result, ensure};
use kube::Client;
use serde_json::Value;

/// Everything that was seen of one namespace, from before its first object on.
#[derive(Debug, Clone, Default)]
pub(crate) struct History {
    /// What writers were told, in no order.
    pub(crate) acks: Vec<Ack>,
    /// What one watch of everything saw: the order of all writes.
    pub(crate) log: Vec<Event>,
    pub(crate) streams: Vec<Stream>,
}

/// One acknowledged write.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Ack {
    /// The object as it was answered.
    Written(Value),
    /// The uid of what is gone.
    Deleted(String),
}

/// What happened to an object, as a watch tells it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Change {
    Added,
    Modified,
    Deleted,
}

/// One event of a watch.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Event {
    pub(crate) change: Change,
    pub(crate) revision: u64,
    pub(crate) object: Value,
}

/// A watch that goes on over all its connections.
#[derive(Debug, Clone)]
pub(crate) struct Stream {
    pub(crate) filter: Filter,
    pub(crate) connections: Vec<Connection>,
}

/// Which objects a watch asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Filter {
    All,
    /// `metadata.labels.role`.
    Role(&'static str),
    Name(&'static str),
}

/// One request of a watch and what came of it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Connection {
    /// After which revision; None if it asked for the present state first.
    pub(crate) after: Option<u64>,
    /// The present state, where it was asked for.
    pub(crate) initial: Vec<Event>,
    pub(crate) items: Vec<Item>,
}

/// What a watch says once the present state was sent.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Item {
    Event(Event),
    Bookmark(u64),
}

impl Filter {
    pub(crate) fn matches(&self, object: &Value) -> bool {
        match self {
            Self::All => true,
            Self::Role(role) => object["metadata"]["labels"]["role"] == *role,
            Self::Name(name) => object["metadata"]["name"] == *name,
        }
    }
}

/// Has writers and watchers at work on a server and judges what they saw.
pub(crate) async fn run(client: &Client, seed: u64) -> Result<()> {
    let history = record::record(client, seed).await?;
    let faults = judge::all(&history);
    for (name, fault) in faults.iter().take(FAULTS_SHOWN_MAX) {
        println!("{name}: {fault}");
    }
    ensure!(
        faults.is_empty(),
        "{} faults in the history of seed {seed}",
        faults.len()
    );
    let connections = history
        .streams
        .iter()
        .map(|stream| stream.connections.len());
    println!(
        "seed {seed}: {} writes, {} events, {} watches over {} connections: {} judgements hold",
        history.acks.len(),
        history.log.len(),
        history.streams.len(),
        connections.sum::<usize>(),
        judge::JUDGEMENTS.len()
    );
    Ok(())
}

const FAULTS_SHOWN_MAX: usize = 20;
