//! What a run asks of its control plane while it is under way. An answer may take long, or never come: each request is a
//! task, so that the run goes on and hears signals meanwhile.

use std::path::PathBuf;
use std::time::Duration;

use http::Method;
use kube::Client;
use serde_json::{Value, json};
use sundown_decide::ray_job::ANNOTATION_READER;
use tokio::sync::watch;
use tokio::task::{JoinError, JoinSet};
use tokio::time::timeout;

use crate::control::{self, Forwarded, Request};
use crate::objects;
use crate::run::remove;
use crate::run::step::Errand;

/// How long to wait for the answer that the logs are read. Unanswered, what the job ran on goes a moment later by itself.
const RELEASE_TIME_MAX: Duration = Duration::from_secs(10);

/// The requests that are under way, for as long as this lives.
#[derive(Default)]
pub(super) struct Errands {
    asked: JoinSet<Answered>,
    /// Which of them that is.
    asks: Option<Errand>,
    opening: JoinSet<Answered>,
}

/// What came of a request.
pub(super) enum Answered {
    Released,
    Deleted(Result<(), kube::Error>),
    /// The way to the dashboard of the pod of this address; None: not yet.
    Opened(String, Option<Forwarded>),
    /// Its task panicked.
    Broken,
}

/// The object that a request is about.
#[derive(Debug, Clone)]
pub(super) struct About {
    pub(super) path: String,
    pub(super) uid: String,
}

impl Errands {
    /// What is asked for.
    pub(super) fn asks(&self) -> Option<Errand> {
        self.asks
    }

    /// Whether the deletion was asked for and not answered yet.
    pub(super) fn is_deleting(&self) -> bool {
        self.asks == Some(Errand::Delete)
    }

    /// Whether the way to a dashboard was asked for and not answered yet.
    pub(super) fn is_opening(&self) -> bool {
        !self.opening.is_empty()
    }

    /// Says that the logs of a job are read.
    pub(super) fn release(&mut self, client: Client, about: About) {
        self.asks = Some(Errand::Release);
        self.asked.spawn(async move {
            let metadata = json!({
                "uid": about.uid, "annotations": { ANNOTATION_READER: Value::Null },
            });
            let body = json!({ "metadata": metadata });
            let asked = objects::send(&client, Method::PATCH, &about.path, &body);
            match timeout(RELEASE_TIME_MAX, asked).await {
                Ok(Ok(_)) => {}
                Ok(Err(error)) => tracing::debug!(%error, "say that the logs are read"),
                Err(error) => tracing::debug!(%error, "say that the logs are read"),
            }
            Answered::Released
        });
    }

    /// Deletes a job with all that it owns; what else was asked for counts no longer.
    pub(super) fn delete(&mut self, client: watch::Receiver<Client>, about: About) {
        self.asked = JoinSet::new();
        self.asks = Some(Errand::Delete);
        self.asked.spawn(async move {
            Answered::Deleted(remove::delete_until_answered(client, about.path, about.uid).await)
        });
    }

    /// Opens the way to the dashboard of the pod of this address.
    pub(super) fn open(&mut self, state: PathBuf, request: Request, address: String) {
        self.opening.spawn(async move {
            let open = control::forward(&state, &request).await;
            Answered::Opened(address, open.ok())
        });
    }

    /// Returns when something was answered. Cancel-safe.
    pub(super) async fn next(&mut self) -> Answered {
        tokio::select! {
            Some(answered) = self.asked.join_next() => {
                self.asks = None;
                or_broken(answered)
            }
            Some(opened) = self.opening.join_next() => or_broken(opened),
            else => std::future::pending().await,
        }
    }
}

fn or_broken(answered: Result<Answered, JoinError>) -> Answered {
    answered.unwrap_or_else(|error| {
        tracing::warn!(%error, "a request of this run");
        Answered::Broken
    })
}
