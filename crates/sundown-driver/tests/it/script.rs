//! A server of one resource and one object, which a watch tells of.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use futures::StreamExt;
use futures::stream;
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody, combinators::UnsyncBoxBody};
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};

type Answer = http::Response<UnsyncBoxBody<Bytes, Infallible>>;

/// How long the frames of a watch are: shorter than any line.
const FRAME_LEN: usize = 7;

/// Remembers the patches that it was sent.
#[derive(Debug, Clone, Default)]
pub(crate) struct Script {
    patches: Arc<Mutex<Vec<Value>>>,
    /// The sorts of requests that have panicked; None: none shall.
    panicked: Option<Arc<Mutex<BTreeSet<String>>>>,
}

impl Script {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// One that panics at the first request of each sort.
    pub(crate) fn stumbling() -> Self {
        Self {
            panicked: Some(Arc::default()),
            ..Self::default()
        }
    }

    /// How many requests have panicked.
    pub(crate) fn panicked(&self) -> usize {
        let panicked = self.panicked.iter();
        let counts = panicked.map(|it| it.lock().unwrap_or_else(PoisonError::into_inner).len());
        counts.sum()
    }

    fn stumble(&self, sort: String) {
        let Some(panicked) = &self.panicked else {
            return;
        };
        let mut panicked = panicked.lock().unwrap_or_else(PoisonError::into_inner);
        let is_first = panicked.insert(sort);
        drop(panicked);
        assert!(!is_first, "injected into a request");
    }

    pub(crate) fn client(&self) -> Client {
        let script = self.clone();
        let service = tower::service_fn(move |request| {
            let script = script.clone();
            async move { Ok::<_, Infallible>(script.answer(request).await) }
        });
        Client::new(service, "default")
    }

    pub(crate) fn patches(&self) -> Vec<Value> {
        let patches = self.patches.lock();
        patches.unwrap_or_else(PoisonError::into_inner).clone()
    }

    async fn answer(&self, request: http::Request<Body>) -> Answer {
        let (head, body) = request.into_parts();
        let query = head.uri.query().unwrap_or_default();
        self.stumble(format!("{} {}", head.method, head.uri));
        match (head.method.as_str(), head.uri.path()) {
            ("GET", "/api") => whole(&core()),
            ("GET", "/apis") => whole(&json!({ "items": [] })),
            ("GET", "/api/v1/configmaps") if query.contains("watch=true") => watch(),
            ("GET", "/api/v1/configmaps") => {
                whole(&json!({ "metadata": { "resourceVersion": "5" }, "items": [] }))
            }
            ("PATCH", "/api/v1/namespaces/default/configmaps/owner") => {
                let body = body.collect_bytes().await.unwrap_or_default();
                let patch = serde_json::from_slice(&body).unwrap_or_default();
                let mut patches = self.patches.lock().unwrap_or_else(PoisonError::into_inner);
                patches.push(patch);
                whole(&owner(&json!([])))
            }
            _ => {
                let mut answer =
                    whole(&json!({ "kind": "Status", "message": "not in the script" }));
                *answer.status_mut() = http::StatusCode::BAD_REQUEST;
                answer
            }
        }
    }
}

fn core() -> Value {
    let verbs = ["get", "list", "watch", "create", "patch", "delete"];
    json!({ "items": [{ "metadata": { "name": "" }, "versions": [{
        "version": "v1",
        "freshness": "Current",
        "resources": [{
            "resource": "configmaps",
            "responseKind": { "kind": "ConfigMap" },
            "scope": "Namespaced",
            "verbs": verbs,
        }],
    }] }] })
}

/// Deleted in foreground, without dependents.
fn owner(finalizers: &Value) -> Value {
    json!({ "metadata": {
        "name": "owner",
        "namespace": "default",
        "uid": "uid-owner",
        "resourceVersion": "7",
        "deletionTimestamp": "2026-11-15T12:00:00Z",
        "deletionGracePeriodSeconds": 0,
        "finalizers": finalizers,
    } })
}

/// One object, then silence.
fn watch() -> Answer {
    let event = json!({ "type": "MODIFIED", "object": owner(&json!(["foregroundDeletion"])) });
    let bytes = Bytes::from(format!("{event}\n"));
    let frames = (0..bytes.len()).step_by(FRAME_LEN).map({
        let bytes = bytes.clone();
        move |from| bytes.slice(from..bytes.len().min(from + FRAME_LEN))
    });
    let frames = stream::iter(frames.collect::<Vec<_>>()).chain(stream::pending());
    let body = StreamBody::new(frames.map(|bytes| Ok(Frame::data(bytes))));
    http::Response::new(body.boxed_unsync())
}

fn whole(json: &Value) -> Answer {
    let body = http_body_util::Full::from(json.to_string());
    http::Response::new(body.boxed_unsync())
}
