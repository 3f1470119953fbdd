//! Lists and watches the kinds that a run looks at. A watch that ends, for whatever reason, begins
//! again with a fresh list, so that nothing is missed when the control plane was away.

use std::time::Duration;

use futures::{AsyncBufReadExt as _, StreamExt as _};
use kube::Client;
use serde_json::Value;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

use super::snapshot::Seen;
use crate::objects::{self, Known, text};

/// Events that wait to be looked at; the reader is a loop that does little else.
const EVENTS_MAX: usize = 256;
/// How long to wait before a server that does not answer is asked again.
const PAUSE: Duration = Duration::from_millis(200);
/// A kind that the server does not know may be installed later.
const UNKNOWN_PAUSE: Duration = Duration::from_secs(2);

/// What is seen of a namespace, for as long as this lives.
#[derive(Debug)]
pub(super) struct Watches {
    seen: mpsc::Receiver<Seen>,
    _tasks: JoinSet<()>,
}

impl Watches {
    /// Begins to look at a namespace; the client may change when the control plane does.
    pub(super) fn begin(client: &watch::Receiver<Client>, namespace: &str) -> Self {
        let (tell, seen) = mpsc::channel(EVENTS_MAX);
        let mut tasks = JoinSet::new();
        for kind in Known::ALL {
            let path = kind.path(Some(namespace));
            tasks.spawn(follow(client.clone(), kind, path, tell.clone()));
        }
        Self {
            seen,
            _tasks: tasks,
        }
    }

    /// What is seen next. Cancel-safe.
    pub(super) async fn next(&mut self) -> Seen {
        match self.seen.recv().await {
            Some(seen) => seen,
            // The tasks end with this value only.
            None => std::future::pending().await,
        }
    }
}

async fn follow(
    client: watch::Receiver<Client>,
    kind: Known,
    path: String,
    tell: mpsc::Sender<Seen>,
) {
    loop {
        let current = client.borrow().clone();
        let pause = match look(&current, kind, &path, &tell).await {
            Ok(()) => PAUSE,
            Err(error) if objects::is_missing(&error) => {
                if tell.send(Seen::Listed(kind, Vec::new())).await.is_err() {
                    return;
                }
                UNKNOWN_PAUSE
            }
            Err(error) => {
                tracing::debug!(%error, path, "watch");
                PAUSE
            }
        };
        if tell.is_closed() {
            return;
        }
        tokio::time::sleep(pause).await;
    }
}

/// One list, and what comes after it until the watch ends.
async fn look(
    client: &Client,
    kind: Known,
    path: &str,
    tell: &mpsc::Sender<Seen>,
) -> Result<(), kube::Error> {
    let mut list = objects::send(client, http::Method::GET, path, &Value::Null).await?;
    let version = text(&list, "/metadata/resourceVersion").to_owned();
    let items = match list["items"].take() {
        Value::Array(items) => items,
        _ => Vec::new(),
    };
    if tell.send(Seen::Listed(kind, items)).await.is_err() {
        return Ok(());
    }
    let uri = format!("{path}?watch=true&resourceVersion={version}");
    let request = http::Request::get(uri).body(Vec::new());
    let request = request.map_err(kube::Error::HttpError)?;
    let events = client.request_stream(request).await?;
    let events = std::pin::pin!(events);
    let mut lines = events.lines();
    while let Some(line) = lines.next().await {
        // A line that is torn or missing ends the watch, and a list is next.
        let Some(event) = line
            .ok()
            .and_then(|line| serde_json::from_str::<Value>(&line).ok())
        else {
            return Ok(());
        };
        let Some(seen) = seen(kind, event) else {
            return Ok(());
        };
        if tell.send(seen).await.is_err() {
            return Ok(());
        }
    }
    Ok(())
}

/// What an event says; None: the watch is too old, most likely.
fn seen(kind: Known, mut event: Value) -> Option<Seen> {
    let object = event["object"].take();
    match text(&event, "/type") {
        "ADDED" | "MODIFIED" => Some(Seen::Put(kind, object)),
        "DELETED" => Some(Seen::Gone(kind, object)),
        _ => None,
    }
}
